import { setTimeout as sleep } from 'node:timers/promises'
import type { Order } from '../../orders/order.ts'
import { sendByHand } from '../by-hand.ts'
import type { Fault } from '../fault.ts'
import { allPass, type Stage } from '../stage.ts'

/** Client processes, and besides them bare requests with the same key. */
const processes = 3
const copies = 3

/**
 * Three processes work on the same orders at the same time: the plain ones do not know of each other, samekey's share
 * one file. Meanwhile the very same request, key and all, is sent straight to the server several times.
 */
export const f7: Fault = {
  id: 'F7',
  story: `Same orders from ${processes} processes at once, and copies of their requests`,
  person: 'inspect by key',
  async play(stage) {
    const { orders } = stage
    await stage.network(allPass)
    const byReference = new Map(orders.map((order) => [order.reference, order]))
    const bare: Promise<{ reference: string; id: string }>[] = []
    const copied = new Set<string>()
    const children = Array.from({ length: processes }, (_, index) => [
      stage.plain('orders', { doneFile: `${stage.folder}/F7-done-${index}.txt` }),
      stage.samekey('orders', 'orders.create', {}, (report) => {
        const order = report.type === 'stored' ? byReference.get(report.reference) : undefined
        if (report.type !== 'stored' || order === undefined || copied.has(report.reference)) return
        copied.add(report.reference)
        for (let copy = 0; copy < copies; copy++) {
          const answer = sendCopy(stage, order, report.key)
          // Whoever waits for all of them hears of it.
          answer.catch(() => {})
          bare.push(answer)
        }
      }),
    ]).flat()
    await Promise.all(children.map(({ ended }) => ended))
    const answers = await Promise.all(bare)
    const strange = answers.filter(({ reference, id }) => stage.heard.orderIds.get(reference) !== id)
    return {
      happened: answers.length,
      broken: strange.map(({ reference, id }) => `a copy of ${reference} was answered with order ${id}`),
    }
  },
}

async function sendCopy(stage: Stage, order: Order, key: string): Promise<{ reference: string; id: string }> {
  const { reference } = order
  for (;;) {
    const { status, id, code } = await sendByHand(stage, stage.shop, order, key)
    if (id !== undefined) return { reference, id }
    // The shop is busy, or the first one still runs.
    if (status !== 503 && code !== 'idempotency_in_progress') throw new Error(`A copy was answered with ${status}.`)
    await sleep(1000)
  }
}
