/** What a person can do about messages: find the parked ones, try one again, skip one. */
import { ConfigError } from '../../errors.ts'
import { StoreUnavailableError } from '../errors.ts'
import { checkMessageId, type OutboxMessage } from '../outbox/message.ts'
import { type NotNow, type OutboxNote, type OutboxRow, retriedByHand, skippedByHand } from '../outbox/outbox-row.ts'
import type { PgPool } from './client.ts'
import type { OutboxTime } from './outbox.ts'
import { callNext, lockEnds } from './outbox-order.ts'
import { type DbMessage, messageOf, OUTBOX_COLUMNS, outboxRowOf, saveRows } from './outbox-rows.ts'
import { inTransaction } from './session.ts'
import { epochMs, timedBy } from './time.ts'

/** How long a person's word waits for a relay that is just saving the message, ms. */
const WAIT_MS = 10_000

/** A message that waits for a person. */
export interface ParkedMessage {
  readonly message: OutboxMessage
  /** Deliveries begun since it was written, or since a person last said "again". */
  readonly attempts: number
  /** What last went wrong. */
  readonly error: string | null
  /** What people did with it before, oldest first. */
  readonly notes: readonly OutboxNote[]
}

/**
 * What a person's word came to. `changed`: done. `delivering`: a relay has it at this moment, say it again a little
 * later. `settled`: it is delivered or skipped. `absent`: there is no such message, or none any more.
 */
export type PersonsWord = 'changed' | 'absent' | NotNow

const PARKED = `select ${OUTBOX_COLUMNS} from samekey_outbox as o where o.state = 'parked' order by o.id limit $1`
const FIND = 'select id::text as number, aggregate from samekey_outbox where message_id = $1'
const LOCK = `select ${epochMs('$NOW')} as now, ${OUTBOX_COLUMNS} from samekey_outbox as o where o.id = $1 for update`

/**
 * Messages that no relay tries any more, oldest first. What is behind them in their aggregates waits with them.
 *
 * @param limit Default 100.
 * @throws StoreUnavailableError
 */
export async function parkedMessages(pool: PgPool, limit = 100): Promise<readonly ParkedMessage[]> {
  try {
    const { rows } = await pool.query<DbMessage>(PARKED, [limit])
    return rows.map((db) => {
      const { attempts, error, notes } = outboxRowOf(db)
      return { message: messageOf(db), attempts, error, notes }
    })
  } catch (error) {
    throw new StoreUnavailableError('The outbox failed: find parked messages.', error)
  }
}

/**
 * Delivers a message again, at once and with all its tries before it: a parked one, or one that waits for its next try.
 *
 * @param note why, in words; kept with time.
 * @throws ConfigError for an id that is none, or an empty note.
 * @throws StoreUnavailableError nothing was changed.
 * @throws CommitUnknownError it may have been changed (P61); saying it again is harmless.
 */
export function retryMessage(
  pool: PgPool,
  messageId: string,
  note: string,
  time: OutboxTime = {},
): Promise<PersonsWord> {
  return say(pool, messageId, time, (row, now) => retriedByHand(row, now, note), note)
}

/**
 * Gives a message up: it is not tried any more, and those behind it in its aggregate go on. An earlier try that nobody
 * knows the end of may have delivered it, or may still arrive, after those behind it: for a message that was skipped,
 * order is not promised (P34).
 *
 * @param note why, in words; kept with time.
 * @throws ConfigError for an id that is none, or an empty note.
 * @throws StoreUnavailableError nothing was changed.
 * @throws CommitUnknownError it may have been changed (P61); saying it again is harmless.
 */
export function skipMessage(
  pool: PgPool,
  messageId: string,
  note: string,
  time: OutboxTime = {},
): Promise<PersonsWord> {
  return say(pool, messageId, time, (row, now) => skippedByHand(row, now, note), note)
}

async function say(
  pool: PgPool,
  messageId: string,
  { now }: OutboxTime,
  change: (row: OutboxRow, now: number) => OutboxRow | NotNow,
  note: string,
): Promise<PersonsWord> {
  const id = checkMessageId(messageId)
  if (typeof note !== 'string' || note.trim() === '') throw new ConfigError('note', 'say why: the next person will ask')
  const timed = timedBy(now)
  return inTransaction<PersonsWord>(pool, WAIT_MS, async ({ client }) => {
    const found = await client.query<{ number: string; aggregate: string | null }>(FIND, [id])
    const [message] = found.rows
    if (message === undefined) return { commit: false, value: 'absent' }
    const { number, aggregate } = message
    await lockEnds(client, aggregate)
    const { rows } = await client.query<DbMessage & { now: number }>(...timed(LOCK, [number]))
    const [db] = rows
    if (db === undefined) return { commit: false, value: 'absent' }
    const row = change(outboxRowOf(db), db.now)
    if (typeof row === 'string') return { commit: false, value: row }
    await saveRows(client, [{ number, row }])
    if (row.settledAt !== null) await callNext(client, timed, db)
    await client.query(`select pg_notify('samekey_outbox', '')`)
    return { commit: true, value: 'changed' }
  })
}
