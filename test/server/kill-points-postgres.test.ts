import pg from 'pg'
import { migrate } from 'samekey/server/postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { type Fleet, fleetOf } from './kill/fleet.ts'
import { HOLDING_UP, holdCommits, untilCommitting } from './kill/held-commits.ts'
import { killAt, pointsOfPath } from './kill/kill.ts'
import { LANES, missingOf, statementsOf, throughAll } from './kill/lanes.ts'
import { paths, rivalOf, type Stage } from './kill/paths.ts'
import { overHttp, submit } from './kill/shop.ts'
import type { ShopJob, ShopReady } from './kill/shop-program.ts'
import { openAccount, TABLES } from './kill/tables.ts'
import { truthOf } from './kill/truth.ts'

let postgres: TestPostgres
let pool: pg.Pool
let fleet: Fleet<ShopReady>
let stage: Stage

beforeAll(async () => {
  postgres = await startPostgres()
  pool = new pg.Pool({ connectionString: postgres.url, max: 20 })
  pool.on('error', () => {})
  await migrate(pool)
  await pool.query(TABLES)
  stage = { pool, rival: rivalOf(pool) }
  const program = new URL('kill/shop-program.ts', import.meta.url)
  fleet = fleetOf<ShopJob, ShopReady>(program, { databaseUrl: postgres.url, max: 4 }, LANES + 1)
})

afterAll(async () => {
  await fleet?.end()
  await pool?.end()
  await postgres?.stop()
})

describe('a server that is killed at any point of', () => {
  it.each(paths.map((path, index) => [path.title, path, index] as const))('%s', async (_title, path, number) => {
    const { points, complaints } = await pointsOfPath(path, stage, fleet, `path-${number}`)
    expect(complaints).toEqual([])
    expect(points[0]).toBe('a request arrives')
    expect(points.at(-1)).toBe('the answer is on the wire')
    expect(missingOf(statementsOf(points), path.shows)).toBeNull()
    const wrong = await throughAll(points, [...points.keys()], fleet.take, (victim, heir, index) =>
      killAt(path, stage, { victim, heir }, { points, index, key: `path-${number}-${index}` }),
    )
    expect(wrong, points.join('\n')).toEqual([])
  })
})

describe('a server that is killed while the database commits', () => {
  beforeAll(() => pool.query(HOLDING_UP))
  afterAll(() => pool.query('drop function hold_up cascade'))

  async function killInCommit(key: string) {
    await openAccount(pool, key)
    const victim = await fleet.take()
    const held = await holdCommits(pool)
    const heard = submit(overHttp(victim.ready.url), 'create', key)
    const backend = await untilCommitting(pool, victim.name)
    await victim.kill()
    expect(await heard).toBe('nothing')
    const heir = await fleet.take()
    const send = overHttp(heir.ready.url)
    // Nobody knows yet, and nobody guesses: neither a second order nor a void.
    expect(await submit(send, 'hasty', key)).toMatchObject({ status: 409 })
    expect(await truthOf(pool, key)).toMatchObject({ orders: 0, keys: [] })
    return { held, backend, send }
  }

  it('F20, P61: its COMMIT takes effect all the same, and the next request replays', async () => {
    const { held, send } = await killInCommit('committed')
    const answer = submit(send, 'create', 'committed')
    held.release()
    expect(await answer).toMatchObject({ status: 201, replayed: true })
    expect(await truthOf(pool, 'committed')).toMatchObject({ orders: 1, journal: 1, keys: ['finished'] })
  })

  it('F20, P61: its COMMIT fails in the end, and the next request executes', async () => {
    const { held, backend, send } = await killInCommit('failed')
    await pool.query('select pg_terminate_backend($1)', [backend])
    const answer = submit(send, 'create', 'failed')
    held.release()
    expect(await answer).toMatchObject({ status: 201, replayed: false })
    expect(await submit(send, 'create', 'failed')).toMatchObject({ status: 201, replayed: true })
    expect(await truthOf(pool, 'failed')).toMatchObject({ orders: 1, journal: 1, keys: ['finished'] })
  })
})
