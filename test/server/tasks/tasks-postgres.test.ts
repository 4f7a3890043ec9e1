import pg from 'pg'
import { migrate, postgresServerStore } from 'samekey/server/postgres'
import { afterAll, beforeAll } from 'vitest'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { taskPromises } from './promises.ts'

let postgres: TestPostgres
let pool: pg.Pool

beforeAll(async () => {
  postgres = await startPostgres()
  pool = new pg.Pool({ connectionString: postgres.url, max: 60 })
  pool.on('error', () => {})
  await migrate(pool)
  await pool.query('create table orders (id serial primary key, item text not null)')
})

afterAll(async () => {
  await pool?.end()
  await postgres?.stop()
})

taskPromises('postgres', async () => {
  await pool.query('truncate samekey_keys, orders restart identity cascade')
  let now = Date.UTC(2026, 11, 1, 12)
  return {
    store: postgresServerStore(pool, { now: () => now }),
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
    now: () => now,
    pass(ms) {
      now += ms
    },
    after: (_, promise) => promise,
  }
})
