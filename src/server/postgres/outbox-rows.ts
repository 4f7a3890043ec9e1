/** Messages as PostgreSQL keeps them, and back. */
import { type OutboxMessage, payloadText } from '../outbox/message.ts'
import type { OutboxNote, OutboxRow } from '../outbox/outbox-row.ts'
import type { PgQueryable } from './client.ts'
import { epochMs, timestampOf } from './time.ts'

/** What {@link OUTBOX_COLUMNS} gives. */
export interface DbMessage {
  /** A bigint, as text: `pg` does not trust numbers with it. */
  readonly number: string
  readonly message_id: string
  readonly topic: string
  readonly aggregate: string | null
  readonly payload: Uint8Array
  readonly created_at: number
  readonly state: OutboxRow['state']
  readonly due_at: number | null
  readonly epoch: number
  readonly attempts: number
  readonly error: string | null
  readonly notes: string
  readonly settled_at: number | null
}

export const OUTBOX_COLUMNS: string = `o.id::text as number, o.message_id, o.topic, o.aggregate, o.payload,
  ${epochMs('o.created_at')} as created_at, o.state, ${epochMs('o.due_at')} as due_at, o.epoch, o.attempts, o.error,
  o.notes, ${epochMs('o.settled_at')} as settled_at`

export function messageOf(db: DbMessage): OutboxMessage {
  // A copy: `pg` cuts its values out of a buffer that it shares.
  const payload = new Uint8Array(db.payload)
  return {
    id: db.message_id,
    topic: db.topic,
    aggregate: db.aggregate,
    payload,
    text: payloadText(payload),
    createdAt: db.created_at,
  }
}

export function outboxRowOf(db: DbMessage): OutboxRow {
  return {
    state: db.state,
    dueAt: db.due_at,
    epoch: db.epoch,
    attempts: db.attempts,
    error: db.error,
    notes: JSON.parse(db.notes) as OutboxNote[],
    settledAt: db.settled_at,
  }
}

const SAVE = `
update samekey_outbox as o
set state = n.state, due_at = n.due_at, epoch = n.epoch, attempts = n.attempts, error = n.error, notes = n.notes,
  settled_at = n.settled_at
from unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::integer[], $5::integer[], $6::text[], $7::text[],
  $8::timestamptz[]) as n (id, state, due_at, epoch, attempts, error, notes, settled_at)
where o.id = n.id`

/** Saves locked rows. */
export async function saveRows(
  client: PgQueryable,
  rows: readonly { readonly number: string; readonly row: OutboxRow }[],
): Promise<void> {
  await client.query(SAVE, [
    rows.map(({ number }) => number),
    rows.map(({ row }) => row.state),
    rows.map(({ row }) => timestampOf(row.dueAt)),
    rows.map(({ row }) => row.epoch),
    rows.map(({ row }) => row.attempts),
    rows.map(({ row }) => row.error),
    rows.map(({ row }) => JSON.stringify(row.notes)),
    rows.map(({ row }) => timestampOf(row.settledAt)),
  ])
}
