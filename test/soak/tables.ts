/** The business rows: nothing about them is unique, so that a second one would be possible, and seen. */
import { createHash } from 'node:crypto'
import type { Pool } from 'pg'
import type { PgQueryable } from 'samekey/server/postgres'
import type { Order } from './words.ts'

export const TABLES = `
create table orders (
  id bigint generated always as identity primary key,
  intent text not null,
  key text not null,
  account text not null,
  -- placed, or taken back: by a void, or because a worker refused it.
  status text not null,
  made_by text not null,
  made_at timestamptz not null default clock_timestamp()
);
-- What workers do for accepted orders.
create table effects (
  id bigint generated always as identity primary key,
  intent text not null,
  key text not null,
  order_id bigint not null,
  epoch integer not null,
  made_by text not null,
  made_at timestamptz not null default clock_timestamp()
);
-- The servers' log. A request that found no database is missing here; nothing could be done for it.
create table requests (
  id bigint generated always as identity primary key,
  server text not null,
  method text not null,
  key text not null,
  body_digest text,
  status integer,
  at timestamptz not null default clock_timestamp()
);
create index on requests (key);`

export async function placeOrder(
  transaction: PgQueryable,
  { intent }: Order,
  from: { readonly key: string; readonly account: string; readonly madeBy: string },
): Promise<string> {
  const { rows } = await transaction.query<{ id: string }>(
    `insert into orders (intent, key, account, status, made_by) values ($1, $2, $3, 'placed', $4) returning id`,
    [intent, from.key, from.account, from.madeBy],
  )
  const [row] = rows
  if (row === undefined) throw new Error('The insert gave no row.')
  return row.id
}

/** Harmless when it is done twice: a step of a worker may be. */
export async function takeBack(transaction: PgQueryable, orderId: string): Promise<void> {
  await transaction.query(`update orders set status = 'taken back' where id = $1`, [orderId])
}

export async function bookEffect(
  transaction: PgQueryable,
  effect: {
    readonly intent: string
    readonly key: string
    readonly orderId: string
    readonly epoch: number
    readonly madeBy: string
  },
): Promise<void> {
  await transaction.query('insert into effects (intent, key, order_id, epoch, made_by) values ($1, $2, $3, $4, $5)', [
    effect.intent,
    effect.key,
    effect.orderId,
    effect.epoch,
    effect.madeBy,
  ])
}

/** Says that a request came. @returns its number, null where the database could not be reached. */
export async function logRequest(
  pool: Pool,
  request: { readonly server: string; readonly method: string; readonly key: string; readonly body: string | null },
): Promise<string | null> {
  const digest = request.body === null ? null : createHash('sha256').update(request.body).digest('hex')
  try {
    const { rows } = await pool.query<{ id: string }>(
      'insert into requests (server, method, key, body_digest) values ($1, $2, $3, $4) returning id',
      [request.server, request.method, request.key, digest],
    )
    return rows[0]?.id ?? null
  } catch {
    return null
  }
}

/** Says how it was answered, heard or not. */
export function logAnswer(pool: Pool, id: string | null, status: number): void {
  if (id !== null) pool.query('update requests set status = $2 where id = $1', [id, status]).catch(() => {})
}
