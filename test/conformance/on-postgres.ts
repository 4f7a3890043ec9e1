/** Benches on PostgreSQL, over real sockets, through each way to mount the kit. */
import type pg from 'pg'
import { type PgQueryable, postgresServerStore } from 'samekey/server/postgres'
import type { ServerBench } from 'samekey/testing'
import type { Adapter } from '../support/adapters.ts'
import { shopOnStore } from './bench.ts'
import { keysPath, type Rows } from './shop.ts'

/** The tables of the shop. An item is JSON text, because PostgreSQL's own text cannot hold every character. */
export const shopTables = `
  create table orders (id serial primary key, item text not null);
  create table effects (id serial primary key)`

const emptyTables = 'truncate samekey_keys, orders, effects restart identity cascade'

function rowsIn(pool: pg.Pool): Rows<PgQueryable> {
  return {
    async place(transaction, item) {
      await transaction.query('insert into effects default values')
      const insert = 'insert into orders (item) values ($1) returning id'
      const { rows } = await transaction.query<{ id: number }>(insert, [JSON.stringify(item)])
      return rows[0]?.id ?? 0
    },
    async cancel(transaction, item) {
      await transaction.query('insert into effects default values')
      await transaction.query('delete from orders where item = $1', [JSON.stringify(item)])
    },
    async count(item) {
      const { rowCount } = await pool.query('select from orders where item = $1', [JSON.stringify(item)])
      return rowCount ?? 0
    },
  }
}

/** The shop on this database, served by this adapter. One at a time: it empties the tables. */
export async function postgresBench(pool: pg.Pool, adapter: Adapter): Promise<ServerBench> {
  await pool.query(emptyTables)
  let at = Date.UTC(2026, 11, 1, 12)
  const now = () => at
  const store = postgresServerStore(pool, { now })
  const { handlers, withCors, ...abilities } = shopOnStore(store, rowsIn(pool), now)
  const app = { handlers, keysUrl: keysPath, wrap: withCors }
  const running = await adapter.start(app)
  return {
    ...abilities,
    fetch: (path, init) => fetch(running.url + path, init),
    async effects() {
      const { rowCount } = await pool.query('select from effects')
      return rowCount ?? 0
    },
    now,
    async passMs(ms) {
      at += ms
      await store.reap()
    },
    close: () => running.close(),
  }
}
