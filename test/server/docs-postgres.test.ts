import { readFileSync } from 'node:fs'
import pg from 'pg'
import { accepted } from 'samekey/server'
import { migrate, postgresServerStore } from 'samekey/server/postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { postgresWorld } from './postgres-world.ts'
import { shop } from './world.ts'

const SECRET = '4242 4242 4242 4242'
const document = readFileSync(new URL('../../docs/server.md', import.meta.url), 'utf8')
const statements = [...document.matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(([, sql = '']) => sql)
const id = { tenant: 'shop', principal: 'ann', operation: 'orders.create', key: 'the key' }

let postgres: TestPostgres
let pool: pg.Pool

beforeAll(async () => {
  postgres = await startPostgres()
  pool = new pg.Pool({ connectionString: postgres.url })
  await migrate(pool)
})

afterAll(async () => {
  await pool?.end()
  await postgres?.stop()
})

/** A key row that somebody wrote around the kit (F21). */
async function damage(): Promise<void> {
  await pool.query(
    `insert into samekey_keys (tenant, principal, operation, key, state, created_at, expires_at, reap_at)
     values ($1, $2, $3, $4, 'running', now(), now() + interval '1 day', now() + interval '2 days')`,
    Object.values(id),
  )
}

it('docs/server.md has the SQL for on-call', () => {
  expect(statements.length).toBeGreaterThan(6)
})

it.each(statements.filter((sql) => sql.startsWith('select')))('runs as it is, and shows no body: %s', async (sql) => {
  const submit = shop(postgresWorld(pool), { execute: () => accepted({ work: { card: SECRET } }) }).submit
  await submit('the key', { card: SECRET })
  await pool.query(`update samekey_tasks set status = 'unknown', due_at = null`)
  const { command, rows } = await pool.query(sql)
  expect(command).toBe('SELECT')
  expect(JSON.stringify(rows)).not.toContain(SECRET)
})

it('F21: the statement that settles damage makes the row one that is replayed', async () => {
  const [settling, ...others] = statements.filter((sql) => sql.startsWith('update'))
  expect(others).toEqual([])
  await damage()
  expect((await pool.query(settling ?? '')).rowCount).toBe(1)
  const { row } = await postgresServerStore(pool).find(id)
  expect(row).toMatchObject({ state: 'finished', answer: { status: 200 } })
  expect((await pool.query(settling ?? '')).rowCount).toBe(0)
})
