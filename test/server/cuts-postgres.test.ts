import pg from 'pg'
import { migrate } from 'samekey/server/postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startCuttingProxy } from '../support/cutting-proxy.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { type CutStage, cutAt, cutsOf, exchangesOfPath } from './kill/cuts.ts'
import { HOLDING_UP, holdCommits, untilCommitting } from './kill/held-commits.ts'
import { missingOf } from './kill/lanes.ts'
import { paths, rivalOf } from './kill/paths.ts'
import { type Heard, shopOf, submit, within } from './kill/shop.ts'
import { openAccount, TABLES } from './kill/tables.ts'
import { truthOf } from './kill/truth.ts'

let postgres: TestPostgres
let pool: pg.Pool
let behindProxy: pg.Pool
let stage: CutStage

beforeAll(async () => {
  postgres = await startPostgres()
  pool = new pg.Pool({ connectionString: postgres.url, max: 10 })
  await migrate(pool)
  await pool.query(TABLES)
  const proxy = await startCuttingProxy(postgres.url)
  behindProxy = new pg.Pool({ connectionString: proxy.url, max: 1, application_name: 'behind-proxy' })
  behindProxy.on('error', () => {})
  stage = { pool, behindProxy, proxy, rival: rivalOf(pool) }
})

afterAll(async () => {
  await behindProxy?.end()
  await stage?.proxy.close()
  await pool?.end()
  await postgres?.stop()
})

/** Those that one process walks alone. */
const alone = paths.filter(({ isBehindRival }) => isBehindRival !== true)

describe('F4, F20, P61, B114, B116: a connection that is cut at any place of', () => {
  it.each(alone.map((path, index) => [path.title, path, index] as const))('%s', async (_title, path, number) => {
    const { exchanges, complaints } = await exchangesOfPath(path, stage, `path-${number}`)
    expect(complaints).toEqual([])
    const list = exchanges.map(({ label, answerBytes }) => `${label} (${answerBytes} bytes)`).join('\n')
    expect(
      missingOf(
        exchanges.map(({ label }) => label),
        path.shows,
      ),
    ).toBeNull()
    const wrong: string[] = []
    for (const [index, cut] of cutsOf(exchanges).entries()) {
      const found = await cutAt(path, stage, { exchanges, cut, key: `path-${number}-${index}` })
      const where = `${JSON.stringify(cut)} (${exchanges[cut.exchange]?.label})`
      wrong.push(...found.map((complaint) => `${where}: ${complaint}`))
    }
    expect(wrong, list).toEqual([])
  })
})

describe('P61: a COMMIT that is still under way', () => {
  beforeAll(() => pool.query(HOLDING_UP))
  afterAll(() => pool.query('drop function hold_up cascade'))

  /** Sends through the proxy; resolves while the database commits. */
  async function sendAndHold(key: string) {
    await openAccount(pool, key)
    const held = await holdCommits(pool)
    const heard = submit(within(shopOf(behindProxy)), 'create', key)
    const backend = await untilCommitting(pool, 'behind-proxy')
    return { held, heard, backend, send: within(shopOf(pool)) }
  }

  it('F20: the connection is cut, and it takes effect: not known, then in progress, then a replay', async () => {
    const { held, heard, send } = await sendAndHold('cut')
    stage.proxy.cutAll()
    expect(codeIn(await heard)).toBe('outcome_unknown')
    expect(codeIn(await submit(send, 'hasty', 'cut'))).toBe('idempotency_in_progress')
    const answer = submit(send, 'create', 'cut')
    held.release()
    expect(await answer).toMatchObject({ status: 201, replayed: true })
    expect(await truthOf(pool, 'cut')).toMatchObject({ orders: 1, keys: ['finished'] })
  })

  it('F20: an administrator ends its connection, and it fails: not known, and the next request executes', async () => {
    const { held, heard, backend, send } = await sendAndHold('ended')
    await pool.query('select pg_terminate_backend($1)', [backend])
    expect(codeIn(await heard)).toBe('outcome_unknown')
    held.release()
    expect(await submit(send, 'create', 'ended')).toMatchObject({ status: 201, replayed: false })
    expect(await truthOf(pool, 'ended')).toMatchObject({ orders: 1, keys: ['finished'] })
  })

  it('F4: it is cancelled: nothing was executed, which is known and said', async () => {
    const { held, heard, backend, send } = await sendAndHold('cancelled')
    await pool.query('select pg_cancel_backend($1)', [backend])
    expect(codeIn(await heard)).toBe('idempotency_unavailable')
    expect(await truthOf(pool, 'cancelled')).toMatchObject({ orders: 0, keys: [] })
    held.release()
    expect(await submit(send, 'create', 'cancelled')).toMatchObject({ status: 201, replayed: false })
    expect(await truthOf(pool, 'cancelled')).toMatchObject({ orders: 1, keys: ['finished'] })
  })
})

describe('P61: a database that loses its power', () => {
  it('F5, F20: what was answered is there afterwards, and what was not answered is executed once', async () => {
    const durable = await startPostgres({ durable: true })
    const first = new pg.Pool({ connectionString: durable.url, application_name: 'first' })
    first.on('error', () => {})
    try {
      await migrate(first)
      await first.query(`alter system set synchronous_commit = off`)
      await first.query(`select pg_reload_conf()`)
      await first.query(`${TABLES}; ${HOLDING_UP}`)
      const send = within(shopOf(first))
      await openAccount(first, 'answered')
      await openAccount(first, 'open')
      const answered = await submit(send, 'create', 'answered')
      const held = await holdCommits(first)
      const heard = submit(send, 'create', 'open')
      await untilCommitting(first, 'first')
      await durable.crash()
      expect(codeIn(await heard)).toBe('outcome_unknown')
      held.release()
      expect(await submit(send, 'create', 'answered')).toEqual({ ...(answered as object), replayed: true })
      expect(await submit(send, 'create', 'open')).toMatchObject({ status: 201, replayed: false })
      expect(await submit(send, 'create', 'open')).toMatchObject({ status: 201, replayed: true })
      for (const key of ['answered', 'open']) {
        expect(await truthOf(first, key)).toMatchObject({ orders: 1, journal: 1, keys: ['finished'] })
      }
    } finally {
      await first.end()
      await durable.stop()
    }
  })
})

function codeIn(heard: Heard): unknown {
  return heard === 'nothing' ? heard : (JSON.parse(heard.body) as { readonly code?: unknown }).code
}
