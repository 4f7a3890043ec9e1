/** What really happened, from SQL, against what was wanted and what the clients believe. */
import type { Pool } from 'pg'
import type { Order } from '../orders/order.ts'
import type { Effect, Fault, Played } from './fault.ts'
import type { ClientName } from './house.ts'
import { type Stage, until } from './stage.ts'

/** The truth about one fault. */
export interface Finding {
  readonly fault: Fault
  readonly wanted: number
  /** Null where it has nothing that this could happen to. */
  readonly plain: PlainAccount | null
  readonly samekey: SamekeyAccount
  /** Promises that samekey broke, in words. */
  readonly broken: readonly string[]
}

/** What one client's orders came to in the database. */
export interface Account {
  readonly orders: number
  /** Orders that nobody wants: beyond the first of the same reference, or cancelled by the word of the client. */
  readonly tooMany: number
  /** Wanted references without an order. */
  readonly missing: number
  /** Charges at the provider, or e-mails sent; null where the fault is not about them. */
  readonly effects: number | null
}

export interface PlainAccount extends Account {
  readonly sends: number
  /** Orders that it reported as failed, and how many of those are in the database all the same. */
  readonly failed: number
  readonly failedButThere: number
  /** The same for those that it reported as cancelled. */
  readonly cancelled: number
  readonly cancelledButThere: number
}

export interface SamekeyAccount extends Account {
  /** What the shop booked as paid or owed. */
  readonly charges: number
  /** Orders that are not there and that nobody would ever hear of again. */
  readonly lost: number
  readonly unknown: number
  /** As the records count them; copies that others sent are not among them. */
  readonly attempts: number
  /** How many intents ended in which state. */
  readonly outcomes: Readonly<Record<string, number>>
}

interface Row {
  readonly reference: string
  readonly orders: number
  readonly charges: number
  readonly effects: number
  readonly ids: readonly string[]
  readonly as_wanted: boolean
}

const EFFECTS: Readonly<Record<Effect | 'none', string>> = {
  charges: 'select count(*) from provider_charges e where e.order_id = o.id::text',
  'e-mails': 'select count(*) from sent_e_mails e where e.order_id = o.id::text',
  none: 'select 0',
}

/** Orders that were refused or taken back are none. */
const countSql = (effect: Effect | 'none'): string => `
select reference, count(*)::integer as orders, sum(charges)::integer as charges, sum(effects)::integer as effects,
  array_agg(id::text) as ids, bool_and(as_wanted) as as_wanted
from (
  select o.id, o.reference, o.document = w.wanted as as_wanted,
    (select count(*) from charges c where c.order_id = o.id and c.amount = o.total and c.currency = o.currency) as charges,
    (${EFFECTS[effect]}) as effects
  from orders o join unnest($2::text[], $3::jsonb[]) as w (reference, wanted) using (reference)
  where o.account = $1 and o.status in ('accepted', 'confirmed')
) as placed
group by reference`

/** States that say that there is no order, and never will be. */
const NO_ORDER: ReadonlySet<string> = new Set(['rejected', 'cancelled'])
/** States in which nobody is left in the belief that there is one. */
const TOLD: ReadonlySet<string> = new Set([...NO_ORDER, 'unknown', 'abandoned'])

/** Counts, compares, and says what is wrong. */
export async function audit(fault: Fault, stage: Stage, played: Played): Promise<Finding> {
  const { orders } = stage
  const database = played.database ?? stage.database
  // In the house, every order has an e-mail, whatever the fault is about.
  const effect = fault.counts ?? (played.database === undefined ? 'e-mails' : null)
  const count = (client: ClientName): Promise<Map<string, Row>> => rowsOf(database, client, orders, effect)
  if (effect === 'e-mails') await untilSent(count)
  const plain = await count('plain')
  const samekey = await count('samekey')
  return {
    fault,
    wanted: orders.length,
    plain: fault.plainHasNone === true ? null : plainAccount(fault, stage, plain),
    ...samekeyAccount(fault, stage, played, samekey, effect),
  }
}

/** E-mails come a little later. One that never comes is found by the count. */
async function untilSent(count: (client: ClientName) => Promise<Map<string, Row>>): Promise<void> {
  const allSent = async (): Promise<boolean> => {
    const rows = [...(await count('plain')).values(), ...(await count('samekey')).values()]
    return rows.every(({ orders, effects }) => effects >= orders)
  }
  await until('every e-mail is sent', allSent, 15_000).catch(() => {})
}

function plainAccount(fault: Fault, stage: Stage, rows: ReadonlyMap<string, Row>): PlainAccount {
  const said = (state: string): string[] => stage.references.filter((one) => stage.heard.plain.get(one) === state)
  const [failed, cancelled] = [said('gave up'), said('cancelled')]
  const there = (references: readonly string[]): number => references.filter((one) => rows.has(one)).length
  return {
    ...accountOf(fault, rows, stage.references, new Set(cancelled)),
    sends: stage.sends('plain'),
    failed: failed.length,
    failedButThere: there(failed),
    cancelled: cancelled.length,
    cancelledButThere: there(cancelled),
  }
}

function samekeyAccount(
  fault: Fault,
  stage: Stage,
  played: Played,
  rows: ReadonlyMap<string, Row>,
  effect: Effect | null,
): Pick<Finding, 'samekey' | 'broken'> {
  const { references, heard } = stage
  const intents = [...heard.intents.values()]
  const stateOf = new Map(intents.map(({ reference, state }) => [reference, state]))
  const are = (states: ReadonlySet<string>): string[] => references.filter((one) => states.has(stateOf.get(one) ?? ''))
  const unknown = are(new Set(['unknown']))
  const outcomes: Record<string, number> = {}
  for (const { state } of intents) outcomes[state] = (outcomes[state] ?? 0) + 1
  const told = new Set(are(TOLD))
  const lost = references.filter((reference) => !rows.has(reference) && !told.has(reference))
  const broken = [...(played.broken ?? [])]

  if (played.happened === 0) broken.push('the fault did not happen, so nothing was shown')
  for (const { reference, orders, charges, effects, as_wanted } of rows.values()) {
    if (orders > 1) broken.push(`${reference} was ordered ${orders} times`)
    if (charges !== orders) broken.push(`${reference} was booked ${charges} times`)
    if (effect !== null && effects !== orders) broken.push(`${reference} has ${effects} ${effect}`)
    if (!as_wanted) broken.push(`${reference} is not what the customer ordered`)
  }
  for (const reference of lost) broken.push(`${reference} was lost`)
  for (const reference of are(NO_ORDER)) {
    if (rows.has(reference)) broken.push(`${reference} is there, and was reported as ${stateOf.get(reference)}`)
  }
  for (const [reference, id] of heard.orderIds) {
    if (rows.get(reference)?.ids[0] !== id) broken.push(`${reference} was taken for order ${id}`)
  }
  const attempts = sum(intents.map(({ attempts }) => attempts))
  const unrecorded = stage.sends('samekey') - attempts
  if (unrecorded > 0) broken.push(`${unrecorded} requests were sent that no record knows of`)
  broken.push(...wrongOutcomes(fault, played, outcomes, references.length))

  return {
    samekey: {
      ...accountOf(fault, rows, references, new Set(are(NO_ORDER))),
      charges: sum([...rows.values()].map(({ charges }) => charges)),
      lost: lost.length,
      unknown: unknown.length,
      attempts,
      outcomes,
    },
    broken,
  }
}

function wrongOutcomes(
  fault: Fault,
  { besides = {} }: Played,
  outcomes: Readonly<Record<string, number>>,
  wanted: number,
): string[] {
  const { conflicted = 0, ...others } = besides
  const unknown = others.unknown ?? (fault.mayStayUnknown === true ? (outcomes.unknown ?? 0) : 0)
  const elsewhere = { ...others, unknown }
  // Intents that conflicted are a second device's: the first one's are counted besides.
  const due: Record<string, number> = { ...elsewhere, conflicted, succeeded: wanted - sum(Object.values(elsewhere)) }
  return [...new Set([...Object.keys(due), ...Object.keys(outcomes)])].flatMap((state) => {
    const [is, expected] = [outcomes[state] ?? 0, due[state] ?? 0]
    return is === expected ? [] : [`${is} intents instead of ${expected} ended ${state}`]
  })
}

async function rowsOf(
  database: Pool,
  account: ClientName,
  orders: readonly Order[],
  effect: Effect | null,
): Promise<Map<string, Row>> {
  const references = orders.map(({ reference }) => reference)
  const documents = orders.map((order) => JSON.stringify(order))
  const { rows } = await database.query<Row>(countSql(effect ?? 'none'), [account, references, documents])
  return new Map(rows.map((row) => [row.reference, row]))
}

function accountOf(
  fault: Fault,
  rows: ReadonlyMap<string, Row>,
  references: readonly string[],
  unwanted: ReadonlySet<string>,
): Account {
  const all = [...rows.values()]
  return {
    orders: sum(all.map(({ orders }) => orders)),
    tooMany: sum(all.map(({ reference, orders }) => orders - (unwanted.has(reference) ? 0 : 1))),
    missing: references.filter((reference) => !unwanted.has(reference) && !rows.has(reference)).length,
    effects: fault.counts === undefined ? null : sum(all.map(({ effects }) => effects)),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
