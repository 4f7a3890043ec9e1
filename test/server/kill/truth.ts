/** What is true about a key and what was said about it, compared; every difference in words. */
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import type { KillPath, Truth } from './paths.ts'
import type { Heard, Send } from './shop.ts'
import { factsOf } from './tables.ts'

/** What was found wrong; empty when nothing was. */
export type Complaints = readonly string[]

export async function truthOf(pool: pg.Pool, key: string): Promise<Truth> {
  const { orders, ...facts } = await factsOf(pool, key)
  return { ...facts, orders: orders.length }
}

export function unlessTrue(when: string, found: Truth, allowed: readonly Truth[]): string[] {
  if (allowed.some((truth) => isDeepStrictEqual(found, truth))) return []
  return [`${when} there is ${JSON.stringify(found)} and not ${JSON.stringify(allowed)}`]
}

export function unlessStatus(when: string, heard: Heard, status: number): string[] {
  return heard !== 'nothing' && heard.status === status ? [] : [`${when} it answered ${JSON.stringify(heard)}`]
}

/**
 * One answer, byte for byte, and marked wherever it is a repetition.
 *
 * @param wasDone whether it had been done before the first of them; null: not known.
 * @param first what was heard before them; null: nothing, or another answer.
 */
function unlessSame(path: KillPath, answers: readonly Heard[], wasDone: boolean | null, first: Heard | null): string[] {
  const complaints = answers.flatMap((answer, index) => unlessStatus(`time ${index + 2}`, answer, path.status))
  const whole = first !== null && path.firstStatus === undefined ? [first, ...answers] : answers
  const contents = whole.map((answer) => answer !== 'nothing' && { ...answer, replayed: null })
  if (contents.some((content) => !isDeepStrictEqual(content, contents[0]))) {
    complaints.push(`the answers differ: ${JSON.stringify(contents)}`)
  }
  const marks = answers.map((answer) => answer !== 'nothing' && answer.replayed)
  const expected = [path.isMarked && (wasDone ?? marks[0]), path.isMarked, path.isMarked]
  if (!isDeepStrictEqual(marks, expected)) complaints.push(`marked as replays: ${marks}, and not ${expected}`)
  return complaints
}

/** Sends the same request three times, and says what about its answers and the rows is not as it must be. */
export async function complaintsAbout(
  path: KillPath,
  pool: pg.Pool,
  asked: {
    readonly send: Send
    readonly key: string
    readonly wasDone: boolean | null
    readonly first: Heard | null
  },
): Promise<Complaints> {
  const { send, key, wasDone, first } = asked
  const answers = [await path.again(send, key), await path.again(send, key), await path.again(send, key)]
  const complaints = unlessSame(path, answers, wasDone, first)
  if (path.after !== undefined) {
    const { ask, status, says } = path.after
    const last = await ask(send, key)
    complaints.push(...unlessStatus('afterwards', last, status))
    if (last !== 'nothing' && !last.body.includes(says)) complaints.push(`afterwards it says ${last.body}`)
  }
  complaints.push(...unlessTrue('in the end', await truthOf(pool, key), [path.done]))
  const { orders } = await factsOf(pool, key)
  const [answer] = answers
  const tellsOrder = path.isMarked && path.status === 201
  if (tellsOrder && answer !== 'nothing' && answer?.body !== JSON.stringify({ id: orders[0] })) {
    complaints.push(`it tells ${answer?.body} of order ${orders}`)
  }
  return complaints
}
