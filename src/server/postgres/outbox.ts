import { systemIds } from '../../platform/ids.ts'
import { checkMessageId, checkName, type NewMessage, payloadBytes } from '../outbox/message.ts'
import type { PgQueryable } from './client.ts'
import { LOCK_WRITERS } from './outbox-order.ts'
import { timedBy } from './time.ts'

/** Time, where a test owns it. */
export interface OutboxTime {
  /** Epoch ms. Default: the database's clock. */
  readonly now?: () => number
}

const TRANSACTION = 'select pg_current_xact_id()::text as xid'
/** Two statements: a number that is drawn before the lock is had says nothing about the order. */
const TRANSACTION_IN_ORDER = `${TRANSACTION}, ${LOCK_WRITERS}`

/** With the hint for relays that listen; it is sent at the commit. */
const INSERT = `
with message as (
  insert into samekey_outbox (message_id, topic, aggregate, payload, created_at, state, due_at, epoch, attempts, notes)
  select $1::uuid, $2, $3, $4::bytea, $NOW, 'waiting', $NOW, 0, 0, '[]' where pg_current_xact_id()::text = $5
  returning 1
) select pg_notify('samekey_outbox', '') from message`

/**
 * Writes a message for other services into the business transaction: it commits with the business change or not at all,
 * and a relay delivers it afterwards, at least once (P66). Nothing is sent from here: a call inside a transaction cannot
 * be rolled back (P65).
 *
 * Messages of one `aggregate` are delivered in the order of their commits. For that, transactions that write to one
 * aggregate wait for one another, from this call to their commit: write messages last, and those to several aggregates
 * in a fixed order. Two transactions that wait for each other all the same are a deadlock: PostgreSQL rolls one of them
 * back (40P01) and lets the other one through. Inside the kit that is a transient failure, answered with 503, and the
 * client's retry executes it; a transaction of your own has to be tried again, as after any deadlock. The wait ends at
 * `lock_timeout`, and counts as transient then too. Messages without an aggregate wait for nobody. A transaction that
 * writes to thousands of aggregates wants `max_locks_per_transaction` to be as large.
 *
 * @param transaction what `execute`, `step` or `finish` get, or a client on which you have begun one.
 * @returns the message's id.
 * @throws ConfigError for a message that cannot be stored; nothing was sent to the database.
 * @throws Error where `transaction` is none, but a pool for instance; nothing was written.
 * @throws the database's error, such as 23505 for an id that was written before: the transaction is over then.
 * @example
 * ```ts
 * import pg from 'pg'
 * import { idempotent, json } from 'samekey/server'
 * import { postgresServerStore, writeOutbox } from 'samekey/server/postgres'
 *
 * const placeOrder = idempotent({
 *   store: postgresServerStore(new pg.Pool()),
 *   operation: 'orders.create',
 *   scope: () => ({ tenant: 'acme', principal: 'web' }),
 *   async execute({ transaction }) {
 *     const { rows } = await transaction.query<{ id: number }>('insert into orders default values returning id')
 *     const id = rows[0]?.id
 *     await writeOutbox(transaction, {
 *       topic: 'orders.placed',
 *       aggregate: `order:${id}`,
 *       payload: JSON.stringify({ id }),
 *     })
 *     return json(201, { id })
 *   },
 * })
 * ```
 */
export async function writeOutbox(
  transaction: PgQueryable,
  message: NewMessage,
  { now }: OutboxTime = {},
): Promise<string> {
  const id = message.messageId === undefined ? systemIds().key(7) : checkMessageId(message.messageId)
  const topic = checkName('topic', message.topic)
  const aggregate = message.aggregate === null ? null : checkName('aggregate', message.aggregate)
  const payload = payloadBytes(message.payload)
  const { rows } =
    aggregate === null
      ? await transaction.query<{ xid: string }>(TRANSACTION)
      : await transaction.query<{ xid: string }>(TRANSACTION_IN_ORDER, [aggregate])
  const written = await transaction.query(...timedBy(now)(INSERT, [id, topic, aggregate, payload, rows[0]?.xid]))
  // Each statement of a pool is a transaction of its own, and a pool has a `query` too.
  if (written.rows.length === 0) throw new Error(NO_TRANSACTION)
  return id
}

const NO_TRANSACTION =
  'writeOutbox wants the business transaction (P66): what execute, step and finish get, or a client after "begin". ' +
  'This was a pool, or a client without one; nothing was written.'
