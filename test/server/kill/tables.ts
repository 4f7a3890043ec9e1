/** Business rows that tell once from twice: nothing about them is unique, and the balance remembers every change. */
import type pg from 'pg'
import type { PgQueryable } from '../../../src/server/postgres/client.ts'

export const TABLES = `
create table accounts (name text primary key, balance integer not null);
create table orders (
  id serial primary key, account text not null references accounts, item text not null, packed boolean not null default false);
create table journal (order_id integer not null references orders on delete cascade, amount integer not null)`

export const OPENING_BALANCE = 100

/** An account for one key, of the same name. */
export async function openAccount(pool: pg.Pool, key: string): Promise<void> {
  await pool.query('insert into accounts values ($1, $2)', [key, OPENING_BALANCE])
}

/** Three statements, the first of which would be felt if it happened twice. */
export async function placeOrder(transaction: PgQueryable, account: string, amount: number): Promise<number> {
  await transaction.query('update accounts set balance = balance - $2 where name = $1', [account, amount])
  const { rows } = await transaction.query<{ id: number }>(
    `insert into orders (account, item) values ($1, 'tea') returning id`,
    [account],
  )
  const id = rows[0]?.id ?? 0
  await transaction.query('insert into journal values ($1, $2)', [id, amount])
  return id
}

/** The other way round. */
export async function takeBack(transaction: PgQueryable, orderId: number): Promise<void> {
  await transaction.query(
    `update accounts set balance = balance + amount from journal join orders on id = order_id
     where order_id = $1 and name = account`,
    [orderId],
  )
  await transaction.query('delete from orders where id = $1', [orderId])
}

/** Everything that the database knows about one key. */
export interface Facts {
  readonly orders: readonly number[]
  readonly journal: number
  readonly balance: number
  /** One for each key row: there must never be two. */
  readonly keys: readonly string[]
  readonly tasks: readonly { readonly status: string; readonly epoch: number }[]
}

export async function factsOf(pool: pg.Pool, key: string): Promise<Facts> {
  // One statement, and so one moment.
  const { rows } = await pool.query<Facts>(
    `select
       array(select id from orders where account = $1 order by id) as orders,
       (select count(*)::int from journal join orders on id = order_id where account = $1) as journal,
       (select balance from accounts where name = $1) as balance,
       array(select state from samekey_keys where key = $1) as keys,
       coalesce((select json_agg(json_build_object('status', status, 'epoch', epoch))
         from samekey_tasks where key = $1), '[]') as tasks`,
    [key],
  )
  const [facts] = rows
  if (facts === undefined) throw new Error('no facts')
  return facts
}
