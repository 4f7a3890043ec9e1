/** The shop's tables, and the one way an order gets into them. */
import type { PgQueryable } from 'samekey/server/postgres'
import { type Order, totalOf } from './orders.ts'

/**
 * Nothing here makes a reference unique: a second order of the same thing is possible, and would be seen. Each order
 * that takes effect charges the customer once.
 */
export const TABLES = `
create table orders (
  id bigint generated always as identity primary key,
  account text not null,
  reference text not null,
  customer text not null,
  currency text not null,
  total numeric not null,
  document jsonb not null,
  status text not null check (status in ('confirmed', 'accepted', 'charged')),
  accepted_under text
);
create table charges (
  id bigint generated always as identity primary key,
  order_id bigint not null references orders,
  currency text not null,
  amount numeric not null
);
create index on orders (account, reference);
create index on charges (order_id);
create index on orders (id) where status in ('accepted', 'charged');
`

const INSERT = `
insert into orders (account, reference, customer, currency, total, document, status, accepted_under)
values ($1, $2, $3, $4, $5, $6, $7, $8)
returning id, reference, currency, total`

const INSERT_AND_CHARGE = `
with placed as (${INSERT}),
charged as (insert into charges (order_id, currency, amount) select id, currency, total from placed)
select id, reference, currency, total from placed`

/** An order as the shop confirms it. */
export interface Placed {
  readonly id: string
  readonly reference: string
  readonly currency: string
  readonly total: string
}

/** Takes an order and charges for it. */
export function placeOrder(database: PgQueryable, account: string, order: Order): Promise<Placed> {
  return insert(database, INSERT_AND_CHARGE, account, order, 'confirmed', null)
}

/** Takes an order that is charged later; `acceptedUnder` says whom to answer then. */
export function acceptOrder(
  database: PgQueryable,
  account: string,
  order: Order,
  acceptedUnder: string,
): Promise<Placed> {
  return insert(database, INSERT, account, order, 'accepted', acceptedUnder)
}

async function insert(
  database: PgQueryable,
  sql: string,
  account: string,
  order: Order,
  status: string,
  acceptedUnder: string | null,
): Promise<Placed> {
  const { reference, customer, currency } = order
  const document = JSON.stringify(order)
  const values = [account, reference, customer.name, currency, totalOf(order), document, status, acceptedUnder]
  const { rows } = await database.query<Placed>(sql, values)
  const [placed] = rows
  if (placed === undefined) throw new Error('The insert gave no row.')
  return placed
}
