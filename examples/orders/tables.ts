/**
 * The shop's tables, beside those of the kit: that they are in one database is what lets an order, its stock, its
 * e-mail and the answer to the customer commit together.
 */
import type { Pool } from 'pg'
import { migrate } from 'samekey/server/postgres'

/**
 * Nothing here makes a reference or an order's charge unique: a second one would be possible, and seen. A real shop
 * adds `unique (account, reference)`, because what must never happen twice needs an identity of its own besides the key.
 */
const TABLES = `
create table if not exists sessions (
  token text primary key,
  account text not null,
  expires_at timestamptz not null
);
create table if not exists stock (
  sku text primary key,
  quantity integer not null check (quantity >= 0)
);
create table if not exists orders (
  id bigint generated always as identity primary key,
  account text not null,
  reference text not null,
  currency text not null,
  total numeric not null,
  payment text not null check (payment in ('account', 'card', 'transfer', 'voucher')),
  -- accepted: not paid yet. refused: the payment was. cancelled: by the customer, before anything was charged.
  status text not null check (status in ('accepted', 'confirmed', 'refused', 'cancelled')),
  -- All of it, as the page sent it.
  document jsonb not null
);
create index if not exists orders_by_reference on orders (account, reference);
create table if not exists order_lines (
  order_id bigint not null references orders,
  line integer not null,
  sku text not null references stock,
  quantity integer not null,
  unit_price numeric not null,
  primary key (order_id, line)
);
-- What the shop believes to have been paid, or owed by the account.
create table if not exists charges (
  id bigint generated always as identity primary key,
  order_id bigint not null references orders,
  currency text not null,
  amount numeric not null,
  -- Number of the charge at the payment provider; null where the customer has an account with us.
  provider_charge text
);
create index if not exists charges_by_order on charges (order_id);
`

/** What the shop sells. */
const skus = [
  'BOOK-978-3-16',
  'CAKE-MATCHA',
  'CARAFE-Ø12',
  'CHAI-500',
  'CUP-ESP',
  'FILTER-100',
  'GIFT-50',
  'HONEY-LIME',
  'JAR-AIR',
  'KETTLE-1L7',
  'MUG-BLUE-3',
  'SAMPLE',
  'SCALE-01',
  'SPOON-Ag',
  'SUGAR-CUBE',
  'TEA-CEYLON-50',
  'TEA-SENCHA-100',
  'TOWEL',
  'TRAY-L',
  'YERBA-1',
]

/** Of each article, when the shop opens for the first time. */
const firstDelivery = 100_000

/** An arbitrary number: programs that start at once create the tables one after the other. */
const LOCK = 30_110_001

/** Creates what is missing. Safe to call at every start, from several processes at once. */
export async function prepare(pool: Pool): Promise<void> {
  await migrate(pool)
  const first = `insert into stock select unnest('{${skus.join(',')}}'::text[]), ${firstDelivery} on conflict do nothing`
  await createMissing(pool, TABLES + first)
}

/** Runs statements of "if not exists" in one transaction, for one process at a time: they are not safe by themselves. */
export async function createMissing(pool: Pool, sql: string): Promise<void> {
  await pool.query(`select pg_advisory_xact_lock(${LOCK}); ${sql}`)
}
