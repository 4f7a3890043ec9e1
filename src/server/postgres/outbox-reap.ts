/** Deletes what is over, in batches, so that no delete holds locks for long. */
import { ConfigError } from '../../errors.ts'
import { StoreUnavailableError } from '../errors.ts'
import type { PgPool } from './client.ts'
import type { OutboxTime } from './outbox.ts'
import { timedBy } from './time.ts'

/** What to keep. */
export interface ReapOptions extends OutboxTime {
  /** How long rows are kept after their end, ms. */
  readonly keepMs: number
  /** Most rows of this batch. Default 1000. */
  readonly limit?: number
}

/** Time in parentheses, and rows as an array: so both are looked up in an index, whatever the statistics say. */
const REAP_OUTBOX = `
delete from samekey_outbox where id = any(array(
  select id from samekey_outbox where settled_at <= (select $NOW) - $1 * interval '1 millisecond'
  order by settled_at limit $2 for update skip locked))`

/** By place: these rows never change, and so never move. */
const REAP_INBOX = `
delete from samekey_inbox where ctid = any(array(
  select ctid from samekey_inbox where received_at <= (select $NOW) - $1 * interval '1 millisecond'
  order by received_at limit $2 for update skip locked))`

/**
 * Deletes messages that were delivered or skipped at least `keepMs` ago. What is still to come, and what is parked, is
 * never deleted.
 *
 * @returns how many; call again while it is `limit`.
 * @throws ConfigError for a `keepMs` or `limit` that cannot be meant.
 * @throws StoreUnavailableError
 */
export function reapOutbox(pool: PgPool, options: ReapOptions): Promise<number> {
  return reap(pool, 'outbox', REAP_OUTBOX, options)
}

/**
 * Forgets messages that were received at least `keepMs` ago; one that comes again after that takes effect again. So keep
 * them for longer than a message can be under way: the longest outage of the sender or its relays, and the time for
 * which a message may lie parked there (P67).
 *
 * @returns how many; call again while it is `limit`.
 * @throws ConfigError for a `keepMs` or `limit` that cannot be meant.
 * @throws StoreUnavailableError
 */
export function reapInbox(pool: PgPool, options: ReapOptions): Promise<number> {
  return reap(pool, 'inbox', REAP_INBOX, options)
}

async function reap(
  pool: PgPool,
  what: string,
  sql: string,
  { keepMs, limit = 1000, now }: ReapOptions,
): Promise<number> {
  // Finite: an interval has no word for more.
  if (!(keepMs >= 0 && Number.isFinite(keepMs))) {
    throw new ConfigError('keepMs', `must be milliseconds of at least 0, not ${keepMs}`)
  }
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw new ConfigError('limit', `must be a whole number of at least 1, not ${limit}`)
  }
  try {
    const { rowCount } = await pool.query(...timedBy(now)(sql, [keepMs, limit]))
    return rowCount ?? 0
  } catch (error) {
    throw new StoreUnavailableError(`The ${what} failed: reap.`, error)
  }
}
