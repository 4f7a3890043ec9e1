import pg from 'pg'
import { migrate } from 'samekey/server/postgres'
import { afterAll, beforeAll } from 'vitest'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { ORDERS_TABLE, postgresWorld } from '../postgres-world.ts'
import { taskPromises } from './promises.ts'

let postgres: TestPostgres
let pool: pg.Pool

beforeAll(async () => {
  postgres = await startPostgres()
  pool = new pg.Pool({ connectionString: postgres.url, max: 60 })
  pool.on('error', () => {})
  await migrate(pool)
  await pool.query(ORDERS_TABLE)
})

afterAll(async () => {
  await pool?.end()
  await postgres?.stop()
})

taskPromises('postgres', async () => {
  await pool.query('truncate samekey_keys, orders restart identity cascade')
  let now = Date.UTC(2026, 11, 1, 12)
  return {
    ...postgresWorld(pool, () => now),
    pass(ms) {
      now += ms
    },
  }
})
