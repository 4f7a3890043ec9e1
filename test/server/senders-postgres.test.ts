import pg from 'pg'
import { migrate } from 'samekey/server/postgres'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { type Fleet, fleetOf } from './kill/fleet.ts'
import { AMOUNT, type Heard, type OperationName, overHttp, type Send, shopOf, submit, within } from './kill/shop.ts'
import type { ShopJob, ShopQuestion, ShopReady } from './kill/shop-program.ts'
import { OPENING_BALANCE, openAccount, TABLES } from './kill/tables.ts'
import { gate } from './world.ts'

const SENDERS = 64

let postgres: TestPostgres
let pool: pg.Pool
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  postgres = await startPostgres()
  pool = new pg.Pool({ connectionString: postgres.url, max: 4 })
  await migrate(pool)
  await pool.query(TABLES)
})

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

afterAll(async () => {
  await pool?.end()
  await postgres?.stop()
})

function fleetWith(max: number, spares = 0): Fleet<ShopReady> {
  const program = new URL('kill/shop-program.ts', import.meta.url)
  const fleet = fleetOf<ShopJob, ShopReady>(program, { databaseUrl: postgres.url, max }, spares)
  closing.push(() => fleet.end())
  return fleet
}

/** What one sender heard until it had its answer. */
interface Story {
  /** Other answers than the last one. */
  readonly before: readonly Heard[]
  readonly answer: Heard
}

/** Sends until it is told something else than "in progress", or nothing at all, as clients do; the next time elsewhere. */
async function sendUntilTold(
  sends: readonly Send[],
  operation: OperationName,
  key: string,
  order: object,
): Promise<Story> {
  const before: Heard[] = []
  for (;;) {
    const send = sends[before.length % sends.length] as Send
    const answer = await submit(send, operation, key, order)
    if (answer !== 'nothing' && !isInProgress(answer)) return { before, answer }
    before.push(answer)
  }
}

function isInProgress(heard: Heard): boolean {
  return heard !== 'nothing' && heard.status === 409 && heard.body.includes('"idempotency_in_progress"')
}

/** Half of the senders begin with the first server, the other half with the second one. */
function sendAll(sends: readonly [Send, Send], operation: OperationName, key: string, order: object): Promise<Story[]> {
  const [first, second] = sends
  return Promise.all(
    Array.from({ length: SENDERS }, (_, sender) =>
      sendUntilTold(sender % 2 === 0 ? [first, second] : [second, first], operation, key, order),
    ),
  )
}

/** One answer for all. */
function contentsOf(stories: readonly Story[]): string[] {
  return [...new Set(stories.map(({ answer }) => JSON.stringify(answer !== 'nothing' && { ...answer, replayed: 0 })))]
}

function unmarked(stories: readonly Story[]): number {
  return stories.filter(({ answer }) => answer !== 'nothing' && !answer.replayed).length
}

/** For every key that begins so: one order, one entry, one charge of the account, one key row. */
async function expectOneEffectEach(prefix: string, count: number): Promise<void> {
  const { rows } = await pool.query(
    `select count(*)::int as accounts, sum(o.orders)::int as orders, max(o.orders)::int as most,
       sum(o.entries)::int as entries, min(balance) as lowest, max(balance) as highest,
       (select count(*)::int from samekey_keys where state = 'finished' and key like $1) as keys
     from accounts, lateral (
       select count(distinct id) as orders, count(*) as entries
       from orders join journal on id = order_id where account = name
     ) as o
     where name like $1`,
    [`${prefix}%`],
  )
  const balance = OPENING_BALANCE - AMOUNT
  expect(rows).toEqual([
    { accounts: count, orders: count, most: 1, entries: count, lowest: balance, highest: balance, keys: count },
  ])
}

describe('B113, B118, B119, F7, P54: 64 senders of one key at two servers', () => {
  it.each([
    // With few connections most senders wait for one; with many, all of them wait for one lock.
    [150, 'fewer', 10],
    [50, 'more', 40],
  ])(
    '%i rounds, %s connections than senders: one order each, no 5xx, the same answer for all, to some after "in progress"',
    async (rounds, _fewer, max) => {
      const fleet = fleetWith(max)
      const [one, two] = [await fleet.take(), await fleet.take()]
      const sends = [overHttp(one.ready.url), overHttp(two.ready.url)] as const
      let waited = 0
      for (let round = 0; round < rounds; round += 1) {
        const key = `rounds-${max}-${round}`
        await openAccount(pool, key)
        // Every eighth order takes longer than its rivals wait.
        const [operation, order] = round % 8 === 0 ? (['hasty', { dwellMs: 50 }] as const) : (['create', {}] as const)
        const stories = await sendAll(sends, operation, key, order)
        expect(contentsOf(stories)).toEqual([expect.stringContaining('"status":201')])
        expect(unmarked(stories)).toBe(1)
        waited += stories.filter(({ before }) => before.length > 0).length
      }
      expect(waited).toBeGreaterThan(0)
      await expectOneEffectEach(`rounds-${max}-`, rounds)
    },
    // Some ten thousand requests.
    300_000,
  )

  it('F4, F5, B115: 8 rounds in which one of the servers is killed: one order each, and the same answer for all', async () => {
    const fleet = fleetWith(10, 1)
    const survivor = await fleet.take()
    for (let round = 0; round < 8; round += 1) {
      const key = `killed-${round}`
      await openAccount(pool, key)
      const victim = await fleet.take()
      // Anywhere among the statements of its 32 requests.
      await victim.ask({ arm: 40 + 20 * round } satisfies ShopQuestion)
      const stories = await sendAll([overHttp(victim.ready.url), overHttp(survivor.ready.url)], 'create', key, {})
      expect((await victim.ended).signal).toBe('SIGKILL')
      expect(contentsOf(stories)).toEqual([expect.stringContaining('"status":201')])
      // The one that executed it may be among those that nobody heard.
      expect(unmarked(stories)).toBeLessThanOrEqual(1)
    }
    await expectOneEffectEach('killed-', 8)
  }, 120_000)
})

describe('P54: what waiting costs', () => {
  // A known limit, see "Connections" in docs/server.md: every request that waits holds a connection of the pool.
  it.fails('B113, F7: an order that takes long keeps neither its rivals nor other orders from being answered', async () => {
    const small = new pg.Pool({ connectionString: postgres.url, max: 4, connectionTimeoutMillis: 300 })
    closing.push(() => small.end())
    const { opened, open } = gate()
    const started = gate()
    const shop = shopOf(small, {
      part: { limits: { waitMs: 200 } },
      async during({ key }) {
        if (key !== 'hot') return
        started.open()
        await opened
      },
    })
    for (const key of ['hot', 'other']) await openAccount(pool, key)
    const first = submit(within(shop), 'create', 'hot')
    await started.opened
    const rivals = Promise.all(Array.from({ length: SENDERS }, () => submit(within(shop), 'create', 'hot')))
    const other = await submit(within(shop), 'create', 'other')
    const heard = await rivals
    open()
    await first
    expect(other).toMatchObject({ status: 201 })
    expect(heard.filter((each) => !isInProgress(each))).toEqual([])
  })

  it('F7: the wait has its limit also where one rival after the other fails', async () => {
    const many = new pg.Pool({ connectionString: postgres.url, max: 12 })
    closing.push(() => many.end())
    const shop = shopOf(many, {
      part: { limits: { waitMs: 300 } },
      async during({ transaction }) {
        await transaction.query('select pg_sleep(0.2)')
        throw new Error('not today')
      },
    })
    await openAccount(pool, 'failing')
    const heard = await Promise.all(Array.from({ length: 12 }, () => submit(within(shop), 'create', 'failing')))
    // Without a limit for all of it, the last one would wait for eleven others.
    expect(heard.filter(isInProgress).length).toBeGreaterThan(0)
  })
})
