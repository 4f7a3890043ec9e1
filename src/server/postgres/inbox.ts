/** The receiver's side of an outbox: one effect per message, however often it is delivered (P66, F12). */
import { ConfigError } from '../../errors.ts'
import { checkName } from '../outbox/message.ts'
import { type PgPool, type PgQueryable, sqlState } from './client.ts'
import type { OutboxTime } from './outbox.ts'
import { inTransaction } from './session.ts'
import { timedBy } from './time.ts'

/** A message that arrived, and where. */
export interface Arrival {
  /** Who receives, 1 to 500 characters: `billing`. Each consumer takes a message once. */
  readonly consumer: string
  /** The message's id, as the sender's relay gave it, 1 to 500 characters. */
  readonly messageId: string
}

/** Whether this delivery was the one that took effect. */
export type Received<T> = { readonly ran: true; readonly value: T } | { readonly ran: false }

const INSERT = `
insert into samekey_inbox (consumer, message_id, received_at) values ($1, $2, $NOW)
on conflict (consumer, message_id) do nothing`

/**
 * Does the effect of a message once: writes down in the receiver's own transaction that it was received, and runs `work`
 * only where that was news. A second delivery at the same time waits for the first transaction, and then finds it
 * committed and does nothing, or rolled back and does the work itself.
 *
 * A receiver that is a samekey server needs none of this: the sender's relay gives `message.id` as `Idempotency-Key`,
 * and the key row does the same, and replays the answer too.
 *
 * @param transaction of the receiver, in the database of the effect. It must have begun: see
 * {@link receiveInTransaction} for a pool.
 * @param work writes local rows only (P54). What it throws takes back its writes and the note that the message was
 * received, even if the transaction goes on, and is thrown again.
 * @throws ConfigError for a name that cannot be stored.
 * @throws Error where `transaction` is none, but a pool for instance, or while another `receiveOnce` works on it; nothing
 * was written.
 * @throws whatever `work` or the database throws.
 * @example
 * ```ts
 * import pg from 'pg'
 * import { receiveOnce } from 'samekey/server/postgres'
 *
 * const client = await new pg.Pool().connect()
 * const message = { id: '018f0f3e-7b1c-7cc2-9f5d-2d5a0c3b1e4f', order: 7 }
 * try {
 *   await client.query('begin')
 *   const { ran } = await receiveOnce(client, { consumer: 'billing', messageId: message.id }, () =>
 *     client.query('insert into invoices (order_id) values ($1)', [message.order]),
 *   )
 *   await client.query('commit')
 *   console.log(ran ? 'billed' : 'billed before')
 * } catch (error) {
 *   await client.query('rollback')
 *   throw error
 * } finally {
 *   client.release()
 * }
 * ```
 */
export async function receiveOnce<T>(
  transaction: PgQueryable,
  arrival: Arrival,
  work: (transaction: PgQueryable) => Promise<T> | T,
  time: OutboxTime = {},
): Promise<Received<T>> {
  const names = namesOf(arrival)
  // Two at a time would go back to each other's savepoint, and take an effect with them that was reported as done.
  if (receiving.has(transaction)) throw new Error(ONE_AT_A_TIME)
  receiving.add(transaction)
  try {
    return await receive(transaction, names, work, time)
  } finally {
    receiving.delete(transaction)
  }
}

const receiving = new WeakSet<PgQueryable>()

async function receive<T>(
  transaction: PgQueryable,
  names: [string, string],
  work: (transaction: PgQueryable) => Promise<T> | T,
  time: OutboxTime,
): Promise<Received<T>> {
  try {
    // Outside of a transaction this is an error, before anything is written.
    await transaction.query('savepoint samekey_receive')
  } catch (error) {
    throw sqlState(error) === '25P01' ? new Error(NO_TRANSACTION, { cause: error }) : error
  }
  try {
    const received = await insertAndRun(transaction, names, work, time)
    await transaction.query('release savepoint samekey_receive')
    return received
  } catch (error) {
    // Whoever swallows this error and commits would have received a message without its effect.
    await transaction.query('rollback to savepoint samekey_receive').catch(() => {
      // The connection is gone, and the transaction with it.
    })
    throw error
  }
}

/** How {@link receiveInTransaction} waits. */
export interface ReceiveOptions extends OutboxTime {
  /** How long a delivery waits for another one of the same message, ms; then it throws, and comes again. Default 10000. */
  readonly waitMs?: number
}

/**
 * The same in a transaction of its own, which commits when `work` is done.
 *
 * @param work gets the transaction; it ends with this call. What it throws rolls back, and is thrown again.
 * @throws ConfigError for a name or a wait that cannot be meant.
 * @throws StoreUnavailableError nothing was committed, and never will be.
 * @throws CommitUnknownError the connection was lost while committing (P61); the next delivery finds the truth.
 * @throws whatever `work` throws.
 */
export async function receiveInTransaction<T>(
  pool: PgPool,
  arrival: Arrival,
  work: (transaction: PgQueryable) => Promise<T> | T,
  { waitMs = 10_000, now }: ReceiveOptions = {},
): Promise<Received<T>> {
  const names = namesOf(arrival)
  if (!(waitMs >= 0)) throw new ConfigError('waitMs', `must be milliseconds of at least 0, not ${waitMs}`)
  return inTransaction<Received<T>>(pool, waitMs, async ({ client, run, mark }) => {
    const { rowCount } = await client.query(...timedBy(now)(INSERT, names))
    if (rowCount !== 1) return { commit: false, value: { ran: false } }
    await mark()
    return { commit: true, value: { ran: true, value: await run(work) } }
  })
}

async function insertAndRun<T>(
  transaction: PgQueryable,
  names: [string, string],
  work: (transaction: PgQueryable) => Promise<T> | T,
  { now }: OutboxTime,
): Promise<Received<T>> {
  const { rowCount } = await transaction.query(...timedBy(now)(INSERT, names))
  return rowCount === 1 ? { ran: true, value: await work(transaction) } : { ran: false }
}

function namesOf({ consumer, messageId }: Arrival): [string, string] {
  return [checkName('consumer', consumer), checkName('messageId', messageId)]
}

const ONE_AT_A_TIME =
  'receiveOnce is still at work on this client: one message after the other in one transaction, or a client for each.'

const NO_TRANSACTION =
  'receiveOnce wants the transaction of the effect: a client after "begin". This was a pool, or a client without one; ' +
  'nothing was written. For a pool there is receiveInTransaction.'
