/** What really happened, from SQL, against what was wanted and what the clients believe. */
import type { Pool } from 'pg'
import type { Fault, Played } from './fault.ts'
import type { Order } from './orders.ts'
import type { Stage } from './stage.ts'

/** The truth about one fault. */
export interface Finding {
  readonly fault: Fault
  readonly wanted: number
  readonly plain: Account & {
    readonly sends: number
    /** Orders that it reported as failed, and how many of those are in the database all the same. */
    readonly failed: number
    readonly failedButThere: number
  }
  readonly samekey: Account & {
    /** Charges. */
    readonly effects: number
    /** Orders that are not there and that nobody would ever hear of again. */
    readonly lost: number
    readonly unknown: number
    /** As the records count them; copies that others sent are not among them. */
    readonly attempts: number
    /** How many intents ended in which state. */
    readonly outcomes: Readonly<Record<string, number>>
  }
  /** Promises that samekey broke, in words. */
  readonly broken: readonly string[]
}

/** What one client's orders came to in the database. */
export interface Account {
  readonly orders: number
  /** Orders beyond the first of the same reference. */
  readonly tooMany: number
  /** References without an order. */
  readonly missing: number
}

interface Row {
  readonly reference: string
  readonly orders: number
  readonly charges: number
  readonly ids: readonly string[]
  readonly as_wanted: boolean
}

const COUNT = `
select reference, count(*)::integer as orders, sum(charges)::integer as charges, array_agg(id::text) as ids,
  bool_and(document = wanted) as as_wanted
from (
  select o.id, o.reference, o.document, w.wanted,
    (select count(*) from charges c where c.order_id = o.id and c.amount = o.total and c.currency = o.currency) as charges
  from orders o join unnest($2::text[], $3::jsonb[]) as w (reference, wanted) using (reference)
  where o.account = $1
) as placed
group by reference`

/** Counts, compares, and says what is wrong. */
export async function audit(fault: Fault, stage: Stage, played: Played): Promise<Finding> {
  const { database, orders, heard } = stage
  const plain = await rowsOf(database, 'plain', orders)
  const samekey = await rowsOf(database, 'samekey', orders)
  const intents = [...heard.intents.values()]
  const outcomes: Record<string, number> = {}
  for (const { state } of intents) outcomes[state] = (outcomes[state] ?? 0) + 1
  const unknown = new Set(intents.filter(({ state }) => state === 'unknown').map(({ reference }) => reference))
  const lost = orders.filter(({ reference }) => !samekey.has(reference) && !unknown.has(reference))
  const broken = [...(played.broken ?? [])]

  if (played.happened === 0) broken.push('the fault did not happen, so nothing was shown')
  for (const { reference, orders, charges, as_wanted } of samekey.values()) {
    if (orders > 1) broken.push(`${reference} was ordered ${orders} times`)
    if (charges !== orders) broken.push(`${reference} was charged ${charges} times`)
    if (!as_wanted) broken.push(`${reference} is not what the customer ordered`)
  }
  for (const { reference } of lost) broken.push(`${reference} was lost`)
  for (const [reference, id] of heard.orderIds) {
    if (samekey.get(reference)?.ids[0] !== id) broken.push(`${reference} was taken for order ${id}`)
  }
  const attempts = sum(intents.map(({ attempts }) => attempts))
  const unrecorded = stage.sends('samekey') - attempts
  if (unrecorded > 0) broken.push(`${unrecorded} requests were sent that no record knows of`)
  const dueUnknown = played.besides?.unknown ?? (fault.mayStayUnknown === true ? unknown.size : 0)
  const due: Record<string, number> = {
    ...played.besides,
    succeeded: orders.length - dueUnknown,
    unknown: dueUnknown,
  }
  for (const state of new Set([...Object.keys(due), ...Object.keys(outcomes)])) {
    const [is, expected] = [outcomes[state] ?? 0, due[state] ?? 0]
    if (is !== expected) broken.push(`${is} intents instead of ${expected} ended ${state}`)
  }

  return {
    fault,
    wanted: orders.length,
    plain: {
      ...accountOf(plain, orders),
      sends: stage.sends('plain'),
      failed: heard.gaveUp.size,
      failedButThere: [...heard.gaveUp].filter((reference) => plain.has(reference)).length,
    },
    samekey: {
      ...accountOf(samekey, orders),
      effects: sum([...samekey.values()].map(({ charges }) => charges)),
      lost: lost.length,
      unknown: unknown.size,
      attempts,
      outcomes,
    },
    broken,
  }
}

async function rowsOf(database: Pool, account: string, orders: readonly Order[]): Promise<Map<string, Row>> {
  const references = orders.map(({ reference }) => reference)
  const documents = orders.map((order) => JSON.stringify(order))
  const { rows } = await database.query<Row>(COUNT, [account, references, documents])
  return new Map(rows.map((row) => [row.reference, row]))
}

function accountOf(rows: ReadonlyMap<string, Row>, wanted: readonly Order[]): Account {
  const orders = sum([...rows.values()].map((row) => row.orders))
  return { orders, tooMany: orders - rows.size, missing: wanted.length - rows.size }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
