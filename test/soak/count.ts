/**
 * The count: what was wanted, what callers were told, what the stores hold and what is in the database, compared. A pure
 * function, and every difference is a violation in words.
 */
import type { Told, Wanted } from './book.ts'
import type { EffectRow, OrderRow, Truth } from './truth.ts'
import type { StoredIntent } from './words.ts'

export interface Evidence {
  readonly wanted: readonly Wanted[]
  readonly told: readonly Told[]
  readonly stored: readonly StoredIntent[]
  readonly truth: Truth
}

export interface Violation {
  /**
   * `lost`: told to be stored, and it has no end, or its order is not there. `doubled`: there is more than one order, or
   * effect. `wrong`: what was said of it is not so. `other`: something else that must not be.
   */
  readonly kind: 'lost' | 'doubled' | 'wrong' | 'other'
  /** Null where it is not about one. */
  readonly intent: string | null
  readonly what: string
}

export interface Verdict {
  readonly intents: number
  /** By state, as the stores have it. */
  readonly outcomes: Readonly<Record<string, number>>
  /** Intents, not violations: one can be wrong in several ways. */
  readonly lost: number
  readonly doubled: number
  readonly wrong: number
  readonly unknown: readonly string[]
  /** By state: the end is known, while the body of the answer broke off and is not here. */
  readonly bodiless: Readonly<Record<string, number>>
  /** Orders that are placed, and effects of workers. */
  readonly orders: number
  readonly effects: number
  /** How often somebody was told an end. */
  readonly answers: number
  readonly violations: readonly Violation[]
}

/** What can be the end of an intent here. Nothing should ever conflict, and nobody abandons anything. */
const ends: ReadonlySet<string> = new Set(['succeeded', 'rejected', 'cancelled', 'unknown'])
/** States which say that it did not happen, and never will. */
const nothing: ReadonlySet<string> = new Set(['rejected', 'cancelled', 'conflicted'])

/** All that is known about one intent. */
interface Case {
  readonly wanted: Wanted
  readonly told: readonly Told['report'][]
  readonly record: StoredIntent | undefined
  readonly orders: readonly OrderRow[]
  readonly effects: readonly EffectRow[]
}

export function count({ wanted, told, stored, truth }: Evidence): Verdict {
  const violations: Violation[] = []
  const reports = groupBy(told, ({ report }) => report.intent)
  const records = groupBy(stored, ({ intent }) => intent)
  const orders = groupBy(truth.orders, ({ intent }) => intent)
  const effects = groupBy(truth.effects, ({ intent }) => intent)

  for (const one of wanted) {
    const { intent } = one.order
    const ofIntent = records.get(intent) ?? []
    // Nothing here ever frees a name for a second key.
    if (ofIntent.length > 1) violations.push({ kind: 'doubled', intent, what: `it has ${ofIntent.length} records` })
    violations.push(
      ...complaintsAbout({
        wanted: one,
        told: (reports.get(intent) ?? []).map(({ report }) => report),
        record: ofIntent[0],
        orders: orders.get(intent) ?? [],
        effects: effects.get(intent) ?? [],
      }).map((complaint) => ({ ...complaint, intent })),
    )
  }
  violations.push(...complaintsAboutServers(stored, truth))

  const intentsOf = (kind: Violation['kind']): number =>
    new Set(violations.filter((violation) => violation.kind === kind).map(({ intent }) => intent)).size
  return {
    intents: wanted.length,
    outcomes: byState(stored),
    lost: intentsOf('lost'),
    doubled: intentsOf('doubled'),
    wrong: intentsOf('wrong'),
    unknown: stored.filter(({ state }) => state === 'unknown').map(({ intent }) => intent),
    bodiless: byState(stored.filter((record) => hasAnswer(record) && record.body === null)),
    orders: truth.orders.filter(isPlaced).length,
    effects: truth.effects.length,
    answers: told.filter(({ report }) => report.type === 'ended').length,
    violations,
  }
}

type Complaint = Omit<Violation, 'intent'>

function complaintsAbout(one: Case): Complaint[] {
  const { wanted, told, record, orders, effects } = one
  const complaints: Complaint[] = []
  const complain = (kind: Violation['kind'], what: string): void => void complaints.push({ kind, what })

  if (orders.length > 1) complain('doubled', `it was ordered ${orders.length} times`)
  if (effects.length > 1) complain('doubled', `a worker did it ${effects.length} times`)
  const failures = told.filter((report) => report.type === 'failed').filter(({ doing }) => doing !== 'cancel')
  for (const failure of new Set(failures.map(({ doing, error }) => `${doing}: ${error}`))) complain('other', failure)
  const promised = new Set(told.flatMap((report) => (report.type === 'failed' ? [] : [report.key])))
  if (promised.size > 1) complain('doubled', `callers were told ${promised.size} keys`)
  if (record === undefined) {
    if (promised.size > 0) complain('lost', 'it was told to be stored, and no store has it')
    else complain('other', 'it was ordered until the end, and nobody was ever told that it is stored')
    if (orders.length > 0) complain('lost', 'there is an order, and no store knows of it')
    return complaints
  }
  if (promised.size > 0 && !promised.has(record.key))
    complain('lost', 'the store has another key than callers were told')
  for (const { key } of [...orders, ...effects]) {
    if (key !== record.key) complain('wrong', `there is a row of a key that no store knows: ${key}`)
  }
  complaints.push(...complaintsAboutEnd(one, record), ...complaintsAboutWords(one, record))
  if (record.state === 'succeeded' && wanted.order.kind.endsWith('refused')) {
    complain('wrong', 'it succeeded, and the server refuses such orders')
  }
  if (record.state === 'rejected' && !wanted.order.kind.endsWith('refused')) {
    complain('wrong', `it was rejected with ${record.status}, and the server takes such orders`)
  }
  if (record.state === 'cancelled' && !wanted.isCancelled) complain('wrong', 'it was cancelled, and nobody wanted that')
  return complaints
}

/** The stored end against the rows. */
function complaintsAboutEnd({ wanted, orders, effects }: Case, { state, inDoubt, body }: StoredIntent): Complaint[] {
  const placed = orders.filter(isPlaced).length
  const isLater = wanted.order.kind.startsWith('later')
  const complaints: Complaint[] = []
  if (!ends.has(state)) complaints.push({ kind: 'lost', what: `it has no end: it is ${state}` })
  if (state === 'unknown' && !inDoubt) complaints.push({ kind: 'wrong', what: 'it is unknown, and was never in doubt' })
  if (state === 'succeeded') {
    if (placed === 0) complaints.push({ kind: 'lost', what: 'it succeeded, and there is no order' })
    // Section 6: it is asked for again as long as the key is remembered. Who cancels what is done settles it at once.
    if (body === null && !wanted.isCancelled) {
      complaints.push({ kind: 'wrong', what: 'it succeeded, and its answer was not asked for again' })
    }
    if (isLater && effects.length === 0) complaints.push({ kind: 'lost', what: 'it succeeded, and no worker did it' })
  }
  if (nothing.has(state)) {
    if (placed > 0) complaints.push({ kind: 'wrong', what: `it is ${state}, and the order is there` })
    if (effects.length > 0) complaints.push({ kind: 'wrong', what: `it is ${state}, and a worker did it` })
  }
  return complaints
}

/** What callers were told against the stored end, and what all of it says of the order. */
function complaintsAboutWords({ told, orders }: Case, record: StoredIntent): Complaint[] {
  const complaints: Complaint[] = []
  const answers = told.filter((report) => report.type === 'ended')
  // An unknown one may be settled later, by an answer that comes late.
  const words = answers.filter(({ state }) => state !== 'unknown' || record.state === 'unknown')
  for (const state of new Set(words.map(({ state }) => state))) {
    if (state !== record.state) {
      complaints.push({ kind: 'wrong', what: `somebody was told that it is ${state}, and it is ${record.state}` })
    }
  }
  const different = new Set([...words, record].map(answerIn))
  if (different.size > 1) {
    complaints.push({ kind: 'wrong', what: `answers differ: ${[...different].join(' and ')}` })
  }
  const [order] = orders.filter(isPlaced)
  const isTold = record.state === 'succeeded' && record.body !== null
  if (isTold && order !== undefined && orderIn(record.body) !== order.id) {
    complaints.push({ kind: 'wrong', what: `its answer is ${record.body}, and its order is ${order.id}` })
  }
  return complaints
}

/** What is wrong whatever callers were told. */
function complaintsAboutServers(stored: readonly StoredIntent[], { orders, keys, log }: Truth): Violation[] {
  const intents = new Map(stored.map(({ key, intent }) => [key, intent]))
  const about = (key: string, kind: Violation['kind'], what: string): Violation => ({
    kind,
    intent: intents.get(key) ?? null,
    what: intents.has(key) ? what : `${what} (key ${key})`,
  })
  const violations: Violation[] = []
  const placed = new Set(orders.filter(isPlaced).map(({ key }) => key))
  for (const { key, state, task } of keys) {
    if (state === 'voided' && placed.has(key))
      violations.push(about(key, 'wrong', 'its key was voided, and the order is there'))
    if (state === 'running') violations.push(about(key, 'other', 'its row was committed without an answer'))
    if (task === 'unknown') violations.push(about(key, 'other', 'its work is unknown to the server'))
  }
  for (const { key, bodies } of log) {
    if (bodies > 1) violations.push(about(key, 'wrong', `it came with ${bodies} different bodies`))
    if (!intents.has(key)) violations.push(about(key, 'lost', 'something was sent that no store knows of'))
  }
  const wantedKeys = new Set(keys.map(({ key }) => key))
  for (const { key } of orders) {
    if (!wantedKeys.has(key)) violations.push(about(key, 'other', 'there is an order without a key row'))
  }
  return violations
}

function byState(records: readonly StoredIntent[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { state } of records) counts[state] = (counts[state] ?? 0) + 1
  return counts
}

function isPlaced({ status }: OrderRow): boolean {
  return status === 'placed'
}

/** A record may also hold an answer that did not decide, which callers are not told. */
function answerIn({ state, status, body }: Pick<StoredIntent, 'state' | 'status' | 'body'>): string {
  return hasAnswer({ state }) ? JSON.stringify({ state, status, body }) : state
}

function hasAnswer({ state }: Pick<StoredIntent, 'state'>): boolean {
  return state === 'succeeded' || state === 'rejected'
}

function orderIn(body: string | null): string | null {
  return body === null ? null : ((JSON.parse(body) as { orderId?: string }).orderId ?? null)
}

function groupBy<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const name = nameOf(item)
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [item])
    else group.push(item)
  }
  return groups
}
