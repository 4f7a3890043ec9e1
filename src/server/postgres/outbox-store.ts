import { claimed, type OutboxRow } from '../outbox/outbox-row.ts'
import type { Changed, ClaimedMessage, Claims, OutboxStore } from '../outbox/store.ts'
import type { Ending } from '../store.ts'
import type { PgPool, PgQueryable } from './client.ts'
import { listen } from './listen.ts'
import { callNext, IS_BEHIND, lockEnds, putBehind } from './outbox-order.ts'
import { type DbMessage, messageOf, OUTBOX_COLUMNS, outboxRowOf, saveRows } from './outbox-rows.ts'
import { inTransaction } from './session.ts'
import { epochMs, timedBy } from './time.ts'

/** How soon to look again at what is due, not first, and could not be put behind, ms. */
const SOON_MS = 50

/** What relays need, on the table `samekey_outbox`. */
export function outboxStore(
  pool: PgPool,
  options: {
    /** Null: all. */
    readonly topics: readonly string[] | null
    /** Epoch ms, for tests that own time. */
    readonly now: (() => number) | undefined
    readonly clock: Parameters<typeof listen>[3]
  },
): OutboxStore {
  const timed = timedBy(options.now)
  const topics = options.topics === null ? [] : [options.topics]
  const [due, next] = options.topics === null ? [DUE, NEXT_DUE] : [DUE_IN_TOPICS, NEXT_DUE_IN_TOPICS]

  async function take(client: PgQueryable, limit: number, leaseMs: number): Promise<Claims & { wrote: boolean }> {
    const { rows } = await client.query<DbMessage & Due>(...timed(due, [limit, ...topics]))
    const messages = rows.flatMap((db): ClaimedMessage[] => {
      const row = db.behind ? null : claimed(outboxRowOf(db), db.now, leaseMs)
      return row === null ? [] : [{ number: db.number, message: messageOf(db), claimed: row }]
    })
    if (messages.length > 0) {
      await saveRows(
        client,
        messages.map(({ number, claimed: row }) => ({ number, row })),
      )
    }
    const behind = rows.filter((row) => row.behind)
    const put = await putBehind(client, timed, behind)
    const wrote = messages.length > 0 || put > 0
    if (wrote && rows.length === limit) return { messages, wrote, more: true, nextInMs: null }
    if (put < behind.length) return { messages, wrote, more: false, nextInMs: SOON_MS }
    const [later] = (await client.query<{ in_ms: number | null }>(...timed(next, topics))).rows
    return { messages, wrote, more: false, nextInMs: later?.in_ms ?? null }
  }

  async function lockAndChange(
    client: PgQueryable,
    { number, message: { aggregate }, claimed: { epoch } }: ClaimedMessage,
    change: (row: OutboxRow, now: number) => OutboxRow | null,
  ): Promise<Ending<Changed>> {
    await lockEnds(client, aggregate)
    const [db] = (await client.query<DbMessage & { now: number }>(...timed(LOCK, [number]))).rows
    if (db === undefined || db.epoch !== epoch) return { commit: false, value: { kind: 'late' } }
    const before = outboxRowOf(db)
    const row = change(before, db.now)
    // The same epoch has written it before, and the answer to that was lost.
    if (row === null) return { commit: false, value: { kind: 'written', row: before } }
    await saveRows(client, [{ number, row }])
    if (row.settledAt !== null) await callNext(client, timed, db)
    return { commit: true, value: { kind: 'written', row } }
  }

  return {
    claim: (limit, leaseMs) =>
      inTransaction<Claims>(pool, Number.POSITIVE_INFINITY, async ({ client }) => {
        const { wrote, ...value } = await take(client, limit, leaseMs)
        return { commit: wrote, value }
      }),

    change: (message, change) =>
      inTransaction(pool, Number.POSITIVE_INFINITY, ({ client }) => lockAndChange(client, message, change)),

    onMessage: (wake) => listen(pool, 'samekey_outbox', wake, options.clock),
  }
}

interface Due {
  readonly now: number
  readonly behind: boolean
}

const DUE_COLUMNS = `${epochMs('$NOW')} as now, ${IS_BEHIND} as behind, ${OUTBOX_COLUMNS}`
const LOCK = `select ${epochMs('$NOW')} as now, ${OUTBOX_COLUMNS} from samekey_outbox as o where o.id = $1 for update`

/**
 * In parentheses, time is read once; without them, the database's clock is a new value for every row, and no index can
 * be searched for it.
 *
 * The longest due first: one that was called just now waits behind those of other aggregates. `$1` is the limit.
 */
const DUE = `
select ${DUE_COLUMNS} from samekey_outbox as o where o.due_at <= (select $NOW)
order by o.due_at, o.id limit $1 for update of o skip locked`

/** By topic, each in its index: what other topics have due, and nobody takes, is not read. `$2` are the topics. */
const DUE_IN_TOPICS = `
select due.* from unnest($2::text[]) as wanted (topic) cross join lateral (
  select ${DUE_COLUMNS} from samekey_outbox as o where o.topic = wanted.topic and o.due_at <= (select $NOW)
  order by o.due_at, o.id limit $1 for update of o skip locked) as due
order by due.due_at, due.number::bigint limit $1`

const IN_MS = 'ceil(extract(epoch from min(due_at) - $NOW) * 1000)::float8 as in_ms'
const NEXT_DUE = `select ${IN_MS} from samekey_outbox where due_at > (select $NOW)`
const NEXT_DUE_IN_TOPICS = `
select ${IN_MS} from unnest($1::text[]) as wanted (topic) cross join lateral (
  select o.due_at from samekey_outbox as o where o.topic = wanted.topic and o.due_at > (select $NOW)
  order by o.due_at limit 1) as due`
