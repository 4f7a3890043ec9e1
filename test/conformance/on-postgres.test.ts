import pg from 'pg'
import { migrate } from 'samekey/server/postgres'
import { serverConformance } from 'samekey/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { adapters } from '../support/adapters.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { postgresBench, shopTables } from './on-postgres.ts'

let postgres: TestPostgres
let pool: pg.Pool

beforeAll(async () => {
  postgres = await startPostgres()
  pool = new pg.Pool({ connectionString: postgres.url, max: 40 })
  pool.on('error', () => {})
  await migrate(pool)
  await pool.query(shopTables)
})

afterAll(async () => {
  await pool?.end()
  await postgres?.stop()
})

const declared = adapters.map((adapter) =>
  serverConformance(`PostgreSQL and ${adapter.name}, over HTTP`, () => postgresBench(pool, adapter), {
    describe,
    it,
    expect,
  }),
)

describe('conformance', () => {
  it('every bench here runs every case', () => {
    expect(declared.flatMap(({ skipped }) => skipped)).toEqual([])
    expect(new Set(declared.map(({ cases }) => cases)).size).toBe(1)
  })
})
