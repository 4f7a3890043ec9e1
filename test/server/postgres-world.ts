import type { PgPool, PgQueryable } from 'samekey/server/postgres'
import { postgresServerStore } from 'samekey/server/postgres'
import type { World } from './world.ts'

/** The table of the orders of a {@link postgresWorld}. */
export const ORDERS_TABLE = 'create table orders (id serial primary key, item text not null)'

/** Keys and orders in one database. Time is the database's, unless a test owns it: epoch ms. */
export function postgresWorld(pool: PgPool, now?: () => number): World<PgQueryable> {
  return {
    store: postgresServerStore(pool, now === undefined ? {} : { now }),
    async place(transaction, item) {
      const { rows } = await transaction.query<{ id: number }>('insert into orders (item) values ($1) returning id', [
        item,
      ])
      return rows[0]?.id ?? 0
    },
    async orders() {
      const { rows } = await pool.query<{ item: string }>('select item from orders order by id')
      return rows.map(({ item }) => item)
    },
    now: now ?? (() => Date.now()),
    pass() {
      throw new Error('This world has no time of its own.')
    },
    after: (_, promise) => promise,
  }
}
