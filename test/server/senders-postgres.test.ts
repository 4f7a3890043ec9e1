import pg from 'pg'
import { migrate } from 'samekey/server/postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { type Fleet, fleetOf, type Member } from './kill/fleet.ts'
import { AMOUNT, type Heard, type OperationName, overHttp, type Send, submit } from './kill/shop.ts'
import type { ShopJob, ShopReady } from './kill/shop-program.ts'
import { OPENING_BALANCE, openAccount, TABLES } from './kill/tables.ts'

const SENDERS = 64
const ROUNDS = 200

let postgres: TestPostgres
let pool: pg.Pool

beforeAll(async () => {
  postgres = await startPostgres()
  pool = new pg.Pool({ connectionString: postgres.url, max: 4 })
  await migrate(pool)
  await pool.query(TABLES)
})

afterAll(async () => {
  await pool?.end()
  await postgres?.stop()
})

/** What one sender heard until it had its answer. */
interface Story {
  /** Other answers than the last one. */
  readonly before: readonly Heard[]
  readonly answer: Heard
}

/** Sends until it is told something else than "in progress", as clients do. */
async function sendUntilTold(
  send: Send,
  operation: OperationName,
  key: string,
  order: { readonly dwellMs?: number },
): Promise<Story> {
  const before: Heard[] = []
  for (;;) {
    const answer = await submit(send, operation, key, order)
    if (!isInProgress(answer)) return { before, answer }
    before.push(answer)
  }
}

function isInProgress(heard: Heard): boolean {
  return heard !== 'nothing' && heard.status === 409 && heard.body.includes('"idempotency_in_progress"')
}

/** One answer for all, unmarked for exactly one of them. */
function expectOneAnswer(stories: readonly Story[]): void {
  const answers = stories.map(({ answer }) => answer)
  const contents = new Set(answers.map((answer) => JSON.stringify(answer === 'nothing' || { ...answer, replayed: 0 })))
  expect([...contents]).toEqual([expect.stringContaining('"status":201')])
  expect(answers.filter((answer) => answer !== 'nothing' && !answer.replayed)).toHaveLength(1)
}

async function expectOneEffectEach(prefix: string, count: number): Promise<void> {
  const { rows } = await pool.query(
    `select count(*)::int as accounts, sum(o.orders)::int as orders, max(o.orders)::int as most,
       sum(o.entries)::int as entries, min(balance) as lowest, max(balance) as highest,
       (select count(*)::int from samekey_keys where state = 'finished' and key like $1) as keys
     from accounts, lateral (
       select count(distinct id) as orders, count(*) as entries from orders join journal on id = order_id where account = name
     ) as o
     where name like $1`,
    [`${prefix}%`],
  )
  const balance = OPENING_BALANCE - AMOUNT
  expect(rows).toEqual([
    { accounts: count, orders: count, most: 1, entries: count, lowest: balance, highest: balance, keys: count },
  ])
}

describe.each([
  ['more than the servers have connections', 10],
  ['fewer than the servers have connections', 40],
])('B113, F7, P54: 64 senders of one key at two servers, %s', (_name, max) => {
  let fleet: Fleet<ShopReady>
  let sends: readonly Send[]

  beforeAll(async () => {
    const program = new URL('kill/shop-program.ts', import.meta.url)
    fleet = fleetOf<ShopJob, ShopReady>(program, { databaseUrl: postgres.url, max }, 0)
    const servers: readonly Member<ShopReady>[] = [await fleet.take(), await fleet.take()]
    sends = servers.map(({ ready }) => overHttp(ready.url))
  })

  afterAll(() => fleet?.end())

  it(`${ROUNDS} rounds: one order each, no 5xx, and the same answer for all, some of them after "in progress"`, async () => {
    const key = (round: number): string => `rounds-${max}-${round}`
    let waited = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      await openAccount(pool, key(round))
      // Every fourth order takes longer than its rivals wait.
      const [operation, order] = round % 4 === 0 ? (['hasty', { dwellMs: 50 }] as const) : (['create', {}] as const)
      const stories = await Promise.all(
        Array.from({ length: SENDERS }, (_, sender) => {
          const send = sends[sender % sends.length] as Send
          return sendUntilTold(send, operation, key(round), order)
        }),
      )
      expectOneAnswer(stories)
      waited += stories.filter(({ before }) => before.length > 0).length
    }
    expect(waited).toBeGreaterThan(0)
    await expectOneEffectEach(`rounds-${max}-`, ROUNDS)
  }, 120_000)
})
