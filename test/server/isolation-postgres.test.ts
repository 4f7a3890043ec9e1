import pg from 'pg'
import { workOnce } from 'samekey/server'
import { migrate, migrations, postgresServerStore } from 'samekey/server/postgres'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { programOf } from '../support/processes.ts'
import { type Origin, origins, poolWith } from './kill/defaults.ts'
import { PROVIDER_TABLES } from './kill/provider.ts'
import type { ProviderJob, ProviderReady } from './kill/provider-program.ts'
import { AMOUNT, byKey, type Heard, shopOf, submit, within } from './kill/shop.ts'
import { factsOf, OPENING_BALANCE, openAccount, TABLES } from './kill/tables.ts'
import { acceptJob, type Job, taskTruthOf, unlessOver } from './kill/tasks.ts'
import { truthOf } from './kill/truth.ts'
import { workHandler } from './kill/work.ts'

const SENDERS = 64
const LEVELS = ['repeatable read', 'serializable'] as const
const WITHOUT_LIMIT = { waitMs: Number.POSITIVE_INFINITY, voidWaitMs: Number.POSITIVE_INFINITY }

const providers = programOf<ProviderJob, ProviderReady>(new URL('kill/provider-program.ts', import.meta.url))
let postgres: TestPostgres
let admin: pg.Pool
let providerUrl: string
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  postgres = await startPostgres()
  const plain = '-c default_transaction_isolation=read\\ committed -c default_transaction_read_only=off'
  admin = new pg.Pool({ connectionString: postgres.url, max: 4, options: plain })
  await migrate(admin)
  await admin.query(`${TABLES}; ${PROVIDER_TABLES}`)
  providerUrl = (await providers.start({ databaseUrl: postgres.url })).ready.url
})

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

afterAll(async () => {
  await providers.end()
  await admin?.end()
  await postgres?.stop()
})

let keys = 0
async function freshKey(): Promise<string> {
  keys += 1
  await openAccount(admin, `key-${keys}`)
  return `key-${keys}`
}

async function defaulted(origin: Origin, setting: string, value: string): Promise<pg.Pool> {
  const config = { connectionString: postgres.url, max: SENDERS + 6 }
  const { pool, end } = await poolWith(admin, config, origin, [setting, value])
  closing.push(end)
  return pool
}

function all<T>(count: number, run: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, run))
}

const statusesOf = (answers: readonly Heard[]): Set<unknown> =>
  new Set(answers.map((heard) => heard !== 'nothing' && heard.status))

const cases = origins.flatMap((origin) => LEVELS.map((level) => [level, origin] as const))

describe('P54, B113: under another isolation level by default', () => {
  it.each(cases)('%s by %s: 64 senders of one key: one order, one answer, no 5xx', async (level, origin) => {
    const pool = await defaulted(origin, 'default_transaction_isolation', level)
    const levels = new Set<unknown>()
    const shop = shopOf(pool, {
      part: { limits: WITHOUT_LIMIT },
      async during({ transaction }) {
        levels.add((await transaction.query<{ transaction_isolation: string }>('show transaction_isolation')).rows[0])
      },
    })
    const send = within(shop)
    const key = await freshKey()
    const [answers, looks] = await Promise.all([
      all(SENDERS, () => submit(send, 'create', key)),
      all(8, () => byKey(send, 'GET', 'create', key)),
    ])
    const contents = new Set(answers.map((heard) => JSON.stringify(heard !== 'nothing' && { ...heard, replayed: 0 })))
    expect([...contents]).toEqual([expect.stringContaining('"status":201')])
    expect(answers.filter((heard) => heard !== 'nothing' && !heard.replayed)).toHaveLength(1)
    expect([...statusesOf(looks)].filter((status) => status !== 200 && status !== 404)).toEqual([])
    expect(await truthOf(admin, key)).toMatchObject({ orders: 1, journal: 1, keys: ['finished'] })
    expect([...levels]).toEqual([{ transaction_isolation: 'read committed' }])
  })

  it.each(cases)('P58: %s by %s: voids and submits of one key are told the same story', async (level, origin) => {
    const pool = await defaulted(origin, 'default_transaction_isolation', level)
    const send = within(shopOf(pool, { part: { limits: WITHOUT_LIMIT } }))
    const key = await freshKey()
    const [submits, voids] = await Promise.all([
      all(SENDERS / 2, () => submit(send, 'create', key)),
      all(SENDERS / 2, () => byKey(send, 'DELETE', 'create', key)),
    ])
    const { orders, balance, keys: states } = await factsOf(admin, key)
    const isVoided = orders.length === 0
    expect(states).toEqual([isVoided ? 'voided' : 'finished'])
    expect(balance).toBe(OPENING_BALANCE - orders.length * AMOUNT)
    expect(statusesOf(submits)).toEqual(new Set([isVoided ? 409 : 201]))
    const told = voids.map((heard) => heard !== 'nothing' && (JSON.parse(heard.body) as { status: string }).status)
    expect(new Set(told)).toEqual(new Set([isVoided ? 'voided' : 'succeeded']))
  })

  it.each(cases)(
    'P62, P63: %s by %s: work for which eight workers come at once is done once',
    async (level, origin) => {
      const pool = await defaulted(origin, 'default_transaction_isolation', level)
      const plan = { provider: 'takesKeys', packs: true, fails: false, isRefused: false } as const
      const operation = `work-${await freshKey()}`
      const jobs: Job[] = []
      for (let number = 1; number <= 4; number += 1) {
        jobs.push(await acceptJob(pool, operation, `${operation}-${number}`, plan))
      }
      const handler = workHandler({
        providerUrl,
        transitMs: 60_000,
        callTimeoutMs: 30_000,
        reach: () => {},
        followed: (running) => running,
        renew: () => Promise.resolve(),
      })
      const store = postgresServerStore(pool)
      const taken = await all(8, () => workOnce({ store, work: { [operation]: handler }, report: () => {} }))
      expect(taken.reduce((sum, count) => sum + count, 0)).toBe(jobs.length)
      for (const job of jobs) {
        expect(await unlessOver(admin, job)).toEqual([])
        expect(await taskTruthOf(admin, job.key)).toMatchObject({ status: 'succeeded', packed: 1, journal: 1 })
      }
    },
  )

  it.each(LEVELS)('P57: %s: several reapers may come at once', async (level) => {
    const pool = await defaulted('the connection', 'default_transaction_isolation', level)
    const store = postgresServerStore(pool)
    for (let round = 1; round <= 5; round += 1) {
      await admin.query('delete from samekey_keys')
      await admin.query(
        `insert into samekey_keys (tenant, principal, operation, key, state, created_at, expires_at, reap_at)
         select 'acme', 'ann', 'create', number::text, 'voided', '2000-01-01', '2000-01-02', '2000-01-03'
         from generate_series(1, 40) as number`,
      )
      const counts = await all(8, () => store.reap(5))
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(40)
    }
  })

  it.each(LEVELS)('%s: several processes may migrate at once', async (level) => {
    const schema = `fresh_${level.replace(' ', '_')}`
    await admin.query(`create schema ${schema}`)
    const options = `-c search_path=${schema} -c default_transaction_isolation=${level.replace(' ', '\\ ')}`
    const fresh = new pg.Pool({ connectionString: postgres.url, options })
    closing.push(() => fresh.end())
    const applied = await all(4, () => migrate(fresh))
    expect(applied.flat()).toEqual(migrations.map(({ version }) => version))
  })
})

describe('P54: where transactions are read-only unless they say otherwise', () => {
  it.each(origins)('by %s: a submit executes, and is replayed', async (origin) => {
    const pool = await defaulted(origin, 'default_transaction_read_only', 'on')
    const send = within(shopOf(pool))
    const key = await freshKey()
    expect(await submit(send, 'create', key)).toMatchObject({ status: 201, replayed: false })
    expect(await submit(send, 'create', key)).toMatchObject({ status: 201, replayed: true })
  })
})

describe('P54: an execute that changes the isolation level', () => {
  /** One connection, so that what is left on it is met again. */
  async function trying(statement: string) {
    const pool = new pg.Pool({ connectionString: postgres.url, max: 1 })
    closing.push(() => pool.end())
    const levels: unknown[] = []
    let isFirst = true
    const shop = shopOf(pool, {
      async during({ transaction }) {
        levels.push((await transaction.query('show transaction_isolation')).rows[0])
        const text = isFirst ? statement : 'select 1'
        isFirst = false
        await transaction.query(text)
      },
    })
    return { send: within(shop), levels, key: await freshKey(), next: await freshKey() }
  }

  it.each([
    'set transaction isolation level serializable',
    'set transaction isolation level repeatable read',
    `set local transaction_isolation = 'serializable'`,
    `select set_config('transaction_isolation', 'repeatable read', true)`,
  ])('%s: the database refuses, everything is rolled back, and the same key executes later', async (statement) => {
    const { send, key } = await trying(statement)
    expect(await submit(send, 'create', key)).toMatchObject({ status: 500 })
    expect(await truthOf(admin, key)).toMatchObject({ orders: 0, keys: [] })
    expect(await submit(send, 'create', key)).toMatchObject({ status: 201, replayed: false })
    expect(await truthOf(admin, key)).toMatchObject({ orders: 1, keys: ['finished'] })
  })

  it.each([
    'set session characteristics as transaction isolation level serializable',
    `set default_transaction_isolation = 'repeatable read'`,
    `select set_config('default_transaction_isolation', 'serializable', false)`,
  ])('%s: stays with the connection, and the next transaction says its own', async (statement) => {
    const { send, levels, key, next } = await trying(statement)
    expect(await submit(send, 'create', key)).toMatchObject({ status: 201, replayed: false })
    expect(await submit(send, 'create', next)).toMatchObject({ status: 201, replayed: false })
    expect(await submit(send, 'create', key)).toMatchObject({ status: 201, replayed: true })
    expect(levels).toEqual([{ transaction_isolation: 'read committed' }, { transaction_isolation: 'read committed' }])
  })
})
