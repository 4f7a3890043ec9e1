import { sendByHand } from '../by-hand.ts'
import type { Fault } from '../fault.ts'
import { type ClientName, clientNames } from '../house.ts'
import type { Fate } from '../proxy.ts'
import { rulesFor, until } from '../stage.ts'
import { SHORT_RETENTION_MS } from '../terms.ts'

/** Of those that get no answer, so many have to be in doubt when the clients are killed. */
const enough = 4
const always = (fate: Fate): Fate[] => Array.from({ length: 100 }, () => fate)
const fates: readonly (readonly Fate[])[] = [
  ['lose the answer'],
  always('lose the answer silently'),
  always('lose the request silently'),
]

/**
 * A third of the orders get their answer from a repetition in time. Of the others, half are placed and half are not,
 * when both clients are killed. They come back when the keys are forgotten and their rows deleted; and somebody sends
 * the very same requests by hand. Now nothing could tell the first of them from the second.
 */
export const p57: Fault = {
  id: 'P57',
  story: 'Clients back, and requests sent by hand, after the keys were forgotten',
  person: 'check, resolve, abandon',
  mayStayUnknown: true,
  isSlow: true,
  async play(stage) {
    const { orders, database } = stage
    const shop = await stage.forgetfulShop()
    const networks = await stage.network(
      rulesFor(orders, (place) => fates[place % fates.length] ?? []),
      shop,
    )
    const keys = new Map<string, string>()
    const through = new Set<string>()
    // Long: who hears nothing waits, and is not taken for an outage that would slow the others down.
    const job = { concurrency: orders.length, attemptTimeoutMs: 2500 }
    const more = { ...job, retentionMs: SHORT_RETENTION_MS }
    const begunAt = Date.now()
    const first = [
      stage.plain('orders', job),
      stage.samekey('orders', 'orders.create', more, (report) => {
        if (report.type === 'stored') keys.set(report.reference, report.key)
        if (report.type === 'ended') through.add(report.reference)
      }),
    ]
    const inTime = orders.filter((_, place) => place % fates.length === 0)
    await until('what gets an answer in time has it', () =>
      inTime.every(({ reference }) => stage.heard.plain.has(reference) && through.has(reference)),
    )
    const sentBy = (name: ClientName): Set<string> => new Set(networks[name].seen.map(({ reference }) => reference))
    await until('the others were sent', () => clientNames.every((name) => sentBy(name).size > inTime.length + enough))
    await Promise.all(first.map((client) => client.kill()))
    await until('the keys are forgotten', async () => {
      const { rowCount } = await database.query('select from samekey_keys where key = any($1)', [[...keys.values()]])
      return rowCount === 0
    })
    // What was never sent is not in doubt, and is sent now.
    const sent = sentBy('samekey')
    const before = networks.samekey.seen.length
    for (const name of clientNames) networks[name].heal()
    await Promise.all([stage.plain('orders', job).ended, stage.samekey('orders', 'orders.create', more).ended])
    const again = networks.samekey.seen
      .slice(before)
      .filter(({ method, reference }) => method === 'POST' && sent.has(reference))
    const ageSeconds = Math.ceil((Date.now() - begunAt) / 1000)
    const answers = await Promise.all(
      orders
        .filter(({ reference }) => sent.has(reference))
        .map((order) => sendByHand(stage, shop, order, keys.get(order.reference) ?? '', ageSeconds)),
    )
    const strange = answers.filter(({ code }) => code !== 'idempotency_expired')
    return {
      happened: answers.length - strange.length,
      broken: [
        ...again.map(({ reference }) => `${reference} was sent after its key was forgotten`),
        ...strange.map(({ status, code }) => `a request sent by hand was answered with ${status} ${code ?? ''}`),
      ],
    }
  },
}
