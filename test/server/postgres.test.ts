import { connect, createServer, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { decline, type ExecuteResult, json, refuse } from 'samekey/server'
import { migrate, migrations, type PgPool, type PgQueryable, postgresServerStore } from 'samekey/server/postgres'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { ORDERS_TABLE, postgresWorld } from './postgres-world.ts'
import { serverPromises } from './promises.ts'
import { codeOf, DAY_MS, gate, HOUR_MS, idOf, placeIt, post, shop, type World } from './world.ts'

let postgres: TestPostgres
let pool: pg.Pool
const closing: (() => Promise<unknown> | unknown)[] = []

function newPool(url = postgres.url, options: pg.PoolConfig = {}): pg.Pool {
  const made = new pg.Pool({ connectionString: url, max: 60, ...options })
  // Connections that a test cuts on purpose while they are idle.
  made.on('error', () => {})
  closing.push(() => made.end())
  return made
}

beforeAll(async () => {
  postgres = await startPostgres()
  pool = newPool()
  closing.length = 0
  await migrate(pool)
  await pool.query(ORDERS_TABLE)
})

beforeEach(async () => {
  await pool.query('truncate samekey_keys, orders restart identity cascade')
})

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

afterAll(async () => {
  await pool?.end()
  await postgres?.stop()
})

/** Counts through a pool of its own: that of the world may be broken. */
function worldOver(used: PgPool, now?: () => number): World<PgQueryable> {
  return { ...postgresWorld(used, now), orders: postgresWorld(pool).orders }
}

serverPromises('postgres', () => {
  let now = Date.UTC(2026, 11, 1, 12)
  const world = worldOver(pool, () => now)
  return Promise.resolve({
    ...world,
    pass(ms: number) {
      now += ms
    },
  })
})

describe('migrate', () => {
  it('may be called by many at once, and again', async () => {
    await pool.query('create schema fresh')
    const fresh = newPool(postgres.url, { options: '-c search_path=fresh' })
    const applied = await Promise.all([migrate(fresh), migrate(fresh), migrate(fresh)])
    expect(applied.flat()).toEqual(migrations.map(({ version }) => version))
    expect(await migrate(fresh)).toEqual([])
    expect((await shop(worldOver(fresh), { execute: () => json(200, {}) }).submit('k-1', {})).status).toBe(200)
  })

  it('a schema that came to be in front of the tables’ own does not get a second, empty set: keys would be forgotten', async () => {
    await pool.query('create schema home; create schema front')
    const path = newPool(postgres.url, { options: '-c search_path=front,home' })
    const home = newPool(postgres.url, { options: '-c search_path=home' })
    await migrate(home)
    await expect(migrate(path)).rejects.toThrow(/schema home, and the search_path now begins with front/)
    await expect(pool.query('select from front.samekey_keys')).rejects.toThrow(/does not exist/)
    expect(await migrate(home)).toEqual([])
  })

  it('a step that fails is rolled back whole, and its connection is not used again', async () => {
    await pool.query('create schema taken; create table taken.samekey_keys (id int)')
    const taken = newPool(postgres.url, { options: '-c search_path=taken' })
    await expect(migrate(taken)).rejects.toThrow(/already exists/)
    await expect(taken.query('select 1 from samekey_migrations')).rejects.toThrow(/does not exist/)
  })
})

describe('P54: the transaction', () => {
  it.each(['repeatable read', 'serializable'])('is READ COMMITTED although the database says %s', async (level) => {
    const strict = newPool(postgres.url, { options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` })
    expect((await strict.query('show default_transaction_isolation')).rows[0]).toEqual({
      default_transaction_isolation: level,
    })
    const world = worldOver(strict)
    const isolation: unknown[] = []
    const { submit, runs } = shop(world, {
      limits: { waitMs: Number.POSITIVE_INFINITY },
      async execute(context) {
        isolation.push((await context.transaction.query('show transaction_isolation')).rows[0])
        return placeIt(world)(context)
      },
    })
    const responses = await Promise.all(Array.from({ length: 20 }, () => submit('k-1', { item: 'tea' })))
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([201]))
    expect(isolation).toEqual([{ transaction_isolation: 'read committed' }])
    expect(runs()).toBe(1)
  })

  it('P61: synchronous_commit is on although the database says off; a stronger setting stays', async () => {
    expect((await pool.query('show synchronous_commit')).rows[0]).toEqual({ synchronous_commit: 'off' })
    const shown = async (used: pg.Pool, key: string) => {
      const { submit } = shop(worldOver(used), {
        async execute({ transaction }) {
          return json(200, (await transaction.query('show synchronous_commit')).rows[0])
        },
      })
      return (await submit(key, {})).json()
    }
    expect(await shown(pool, 'k-1')).toEqual({ synchronous_commit: 'on' })
    const stronger = newPool(postgres.url, { options: '-c synchronous_commit=remote_apply' })
    expect(await shown(stronger, 'k-2')).toEqual({ synchronous_commit: 'remote_apply' })
  })

  it('the limit of the wait is set for the key insert alone', async () => {
    const limited = newPool(postgres.url, { options: '-c lock_timeout=7s' })
    const { submit } = shop(worldOver(limited), {
      limits: { waitMs: 123 },
      async execute({ transaction }) {
        return json(200, (await transaction.query('show lock_timeout')).rows[0])
      },
    })
    expect(await (await submit('k-1', {})).json()).toEqual({ lock_timeout: '7s' })
    expect((await limited.query('show lock_timeout')).rows[0]).toEqual({ lock_timeout: '7s' })
  })

  it('B115, P49: a server that stands still in its transaction holds the key no longer than idleMs', async () => {
    const frozen = gate()
    const begun = gate()
    const world = worldOver(pool)
    const slow = shop(
      { ...world, store: postgresServerStore(pool, { idleMs: 200 }) },
      {
        async execute(context) {
          const answer = await placeIt(world)(context)
          begun.open()
          await frozen.opened
          return answer
        },
      },
    )
    const first = slow.submit('k-1', { item: 'tea' })
    await begun.opened
    const rival = shop(world, { limits: { waitMs: Number.POSITIVE_INFINITY } })
    expect((await rival.submit('k-1', { item: 'tea' })).status).toBe(201)
    frozen.open()
    expect((await first).status).toBe(503)
    expect(await world.orders()).toEqual(['tea'])
    expect((await slow.submit('k-1', { item: 'tea' })).headers.get('idempotent-replayed')).toBe('true')
  })

  it('a limit that the database has for idle transactions stays', async () => {
    const limited = newPool(postgres.url, { options: '-c idle_in_transaction_session_timeout=7s' })
    const shown = async (used: pg.Pool, key: string) => {
      const { submit } = shop(worldOver(used), {
        async execute({ transaction }) {
          return json(200, (await transaction.query('show idle_in_transaction_session_timeout')).rows[0])
        },
      })
      return Object.values((await (await submit(key, {})).json()) as object)
    }
    expect([await shown(pool, 'k-1'), await shown(limited, 'k-2')]).toEqual([['1min'], ['7s']])
    expect(() => postgresServerStore(pool, { idleMs: 0 })).toThrow(/idleMs/)
  })

  it('H41: a business statement that runs into a lock limit is "try again", never "in progress"', async () => {
    await pool.query(`insert into orders (item) values ('locked')`)
    const holder = await pool.connect()
    closing.push(() => holder.release())
    await holder.query('begin; select from orders for update')
    const { submit, lookup } = shop(worldOver(pool), {
      async execute({ transaction }) {
        await transaction.query(`set local lock_timeout = '20ms'`)
        await transaction.query(`update orders set item = 'mine'`)
        return json(200, {})
      },
    })
    const response = await submit('k-1', {})
    expect([response.status, await codeOf(response)]).toEqual([503, 'idempotency_unavailable'])
    await holder.query('rollback')
    expect((await lookup('k-1')).status).toBe(404)
    expect((await submit('k-1', {})).status).toBe(200)
  })

  it('two real transactions: the second waits in the database until the first has committed, then replays', async () => {
    const world = worldOver(pool)
    const { opened, open } = gate()
    const started = gate()
    const { submit } = shop(world, {
      async execute(context) {
        started.open()
        await opened
        return placeIt(world)(context)
      },
    })
    const first = submit('k-1', { item: 'tea' })
    await started.opened
    const second = submit('k-1', { item: 'tea' })
    await until(async () => {
      const { rowCount } = await pool.query(`select from pg_stat_activity where wait_event_type = 'Lock'`)
      return rowCount === 1
    })
    open()
    expect((await first).headers.get('idempotent-replayed')).toBeNull()
    expect((await second).headers.get('idempotent-replayed')).toBe('true')
    expect(await world.orders()).toEqual(['tea'])
  })

  it('a statement limit of the role that ends the wait is "in progress" too', async () => {
    const limited = newPool(postgres.url, { options: '-c statement_timeout=50ms' })
    const { opened, open } = gate()
    const started = gate()
    const first = shop(worldOver(pool), {
      async execute() {
        started.open()
        await opened
        return json(200, {})
      },
    }).submit('k-1', {})
    await started.opened
    const rival = await shop(worldOver(limited), { limits: { waitMs: 60_000 } }).submit('k-1', {})
    expect(await codeOf(rival)).toBe('idempotency_in_progress')
    open()
    await first
  })

  it('a failed statement whose error was swallowed rolls everything back', async () => {
    const world = worldOver(pool)
    const { submit, events } = shop(world, {
      async execute(context) {
        const placed = await placeIt(world)(context)
        await context.transaction.query('select 1 / 0').catch(() => {})
        return placed
      },
    })
    expect((await submit('k-1', { item: 'tea' })).status).toBe(500)
    expect(events).toMatchObject([{ kind: 'executeFailed', detail: expect.stringContaining('swallowed') }])
    expect(await world.orders()).toEqual([])
  })

  it('P56, P59: a unique violation can be turned into a remembered refusal', async () => {
    await pool.query('create table numbers (number text primary key)')
    closing.push(() => pool.query('drop table numbers'))
    await pool.query(`insert into numbers values ('n-1')`)
    const { submit, runs } = shop(worldOver(pool), {
      async execute({ transaction }) {
        try {
          await transaction.query(`insert into numbers values ('n-1')`)
          return json(201, {})
        } catch {
          return refuse(409, { reason: 'number taken' })
        }
      },
    })
    expect((await submit('k-1', {})).status).toBe(409)
    const replay = await submit('k-1', {})
    expect([replay.status, replay.headers.get('idempotent-replayed')]).toEqual([409, 'true'])
    expect(runs()).toBe(1)
  })

  it('execute cannot end the transaction, by slip or by trick', async () => {
    const world = worldOver(pool)
    const slips = [
      'commit',
      ' COMMIT;',
      '-- x\nrollback',
      '/* x */ begin',
      'end',
      'abort',
      'start  transaction',
      "prepare transaction 'x'",
    ]
    for (const [index, text] of slips.entries()) {
      const { submit, events } = shop(world, {
        async execute(context) {
          await placeIt(world)(context)
          await context.transaction.query(text)
          return json(200, {})
        },
      })
      expect((await submit(`k-${index}`, { item: 'tea' })).status).toBe(500)
      expect(events).toMatchObject([{ kind: 'executeFailed', detail: expect.stringContaining('P54') }])
    }
    expect(await world.orders()).toEqual([])
    const { submit } = shop(world, {
      async execute({ transaction }) {
        for (const text of ['savepoint mine', 'rollback to savepoint mine', 'ROLLBACK WORK TO mine', 'release mine']) {
          await transaction.query(text)
        }
        return json(200, {})
      },
    })
    expect((await submit('k-fine', {})).status).toBe(200)
  })

  it('F21: a trick that commits early is found before anything is answered, and leaves damage that is told', async () => {
    const { submit, events } = shop(worldOver(pool), {
      async execute({ transaction }) {
        await transaction.query('select 1; commit; begin')
        return json(200, {})
      },
    })
    // Not "rolled back": it was not.
    expect(await codeOf(await submit('k-1', {}))).toBe('outcome_unknown')
    expect(await codeOf(await submit('k-1', {}))).toBe('idempotency_inconsistent')
    expect(events.map(({ kind }) => kind)).toEqual(['commitUnknown', 'inconsistent'])
  })

  const late = [
    [
      'throws while a part of it goes on',
      (work: Promise<unknown>) => Promise.race([work, Promise.reject(new Error('too late'))]),
    ],
    [
      'refuses while a part of it goes on',
      (work: Promise<unknown>) => Promise.race([work, Promise.resolve(refuse(402, {}))]),
    ],
    ['answers and leaves a part of it running', () => json(201, {})],
  ] as const

  it.each(late)('P54: execute that %s has written nothing, then or later', async (_, ends) => {
    const world = worldOver(pool)
    let rest: Promise<unknown> = Promise.resolve()
    const { submit, events } = shop(world, {
      async execute({ transaction }) {
        const work = (async () => {
          for (let item = 1; item <= 5; item += 1) {
            await transaction.query('select pg_sleep(0.02)')
            await world.place(transaction, `part ${item}`)
          }
          return json(201, {})
        })()
        rest = work.catch((error: unknown) => error)
        await transaction.query('select 1')
        return ends(work) as Promise<ExecuteResult>
      },
    })
    expect(await codeOf(await submit('k-1', {}))).toBe('execution_failed')
    expect(await rest).toBeInstanceOf(Error)
    expect(await world.orders()).toEqual([])
    expect(events[0]?.kind).toBe('executeFailed')
    expect((await pool.query('select from samekey_keys')).rowCount).toBe(0)
  })

  it('P54: the kit’s own mark cannot be moved', async () => {
    const world = worldOver(pool)
    const { submit } = shop(world, {
      async execute(context) {
        await placeIt(world)(context)
        await context.transaction.query('savepoint samekey_mark')
        return refuse(402, {})
      },
    })
    expect((await submit('k-1', { item: 'tea' })).status).toBe(500)
    expect(await world.orders()).toEqual([])
  })

  it('what execute leaves running finds the transaction over', async () => {
    let leaked: PgQueryable | undefined
    const { submit } = shop(worldOver(pool), {
      execute({ transaction }) {
        leaked = transaction
        return json(200, {})
      },
    })
    await submit('k-1', {})
    await expect(leaked?.query('select 1')).rejects.toThrow(/over/)
  })

  it('a refusal that cannot be rolled back to, or an answer that cannot be saved, is 503 and nothing is executed', async () => {
    const world = worldOver(pool)
    for (const [key, result] of [
      ['k-1', refuse(402, {})],
      ['k-2', json(201, {})],
      ['k-3', decline(422, {})],
    ] as const) {
      const { submit } = shop(world, {
        async execute(context) {
          await placeIt(world)(context)
          await terminate(context.transaction)
          return result
        },
      })
      const { status } = await submit(key, { item: 'tea' })
      // A refusal that is not remembered needs no database any more.
      expect(key === 'k-3' ? [422, 503] : [503]).toContain(status)
    }
    expect(await world.orders()).toEqual([])
    expect((await pool.query('select from samekey_keys')).rowCount).toBe(0)
  })
})

describe('P61: a connection that dies in the tick in which it was made', () => {
  it('ends no process: nobody else listens to it yet', async () => {
    const dying = newPool()
    const store = postgresServerStore(dying)
    // What `pg` does when the end comes in one packet with the beginning.
    const once = (client: pg.PoolClient): void => {
      dying.removeListener('connect', once)
      client.emit('error', new Error('terminated by the administrator'))
    }
    await store.find(idOf('k-1'))
    await shop({ ...worldOver(dying), store }, { execute: () => json(200, {}) }).submit('k-0', {})
    for (const client of await Promise.all([dying.connect(), dying.connect()])) client.release(true)
    dying.on('connect', once)
    const { status } = await shop({ ...worldOver(dying), store }, { execute: () => json(200, {}) }).submit('k-1', {})
    expect([200, 503]).toContain(status)
  })
})

describe('P61: the primary alone', () => {
  // There is one server here: what a standby would say of itself is put into its mouth.
  const standby: PgPool = {
    connect: () => pool.connect(),
    async query(text, values) {
      const result = await pool.query(text, values)
      return { ...result, rows: result.rows.map((row) => ({ ...row, standby: true })) }
    },
  }

  it('a look-up on a standby is 503, not "absent": the row may be on its way', async () => {
    const { lookup, events } = shop(worldOver(standby))
    const response = await lookup('k-1')
    expect([response.status, await codeOf(response)]).toEqual([503, 'idempotency_unavailable'])
    expect(events.at(-1)?.error).toMatchObject({ message: expect.stringContaining('primary') })
  })

  it('a role whose default is read-only does not hinder it: BEGIN says READ WRITE', async () => {
    const readOnly = newPool(postgres.url, { options: '-c default_transaction_read_only=on' })
    expect((await shop(worldOver(readOnly)).submit('k-1', { item: 'tea' })).status).toBe(201)
  })
})

describe('P61: connections that break', () => {
  it('F4: lost in execute: 503, nothing executed, and the next request executes', async () => {
    const world = worldOver(pool)
    let cut = true
    const { submit, events } = shop(world, {
      async execute(context) {
        const placed = await placeIt(world)(context)
        if (cut) {
          await terminate(context.transaction)
          await context.transaction.query('select 1')
        }
        return placed
      },
    })
    const failed = await submit('k-1', { item: 'tea' })
    expect([failed.status, await codeOf(failed)]).toEqual([503, 'idempotency_unavailable'])
    expect(events).toMatchObject([{ kind: 'unavailable', id: idOf('k-1') }])
    cut = false
    expect((await submit('k-1', { item: 'tea' })).status).toBe(201)
    expect(await world.orders()).toEqual(['tea'])
  })

  it('F20: killed during COMMIT, before it took effect: it says that it does not know, and the row tells', async () => {
    // A check that is put off to the commit and takes its time there.
    await pool.query(`
      create function dawdle() returns trigger language plpgsql as 'begin perform pg_sleep(60); return null; end';
      create constraint trigger dawdle after insert on orders deferrable initially deferred
        for each row execute function dawdle()`)
    closing.push(() => pool.query('drop function if exists dawdle cascade'))
    const world = worldOver(pool)
    const { submit, void: voidKey, events } = shop(world)
    const committing = submit('k-1', { item: 'tea' })
    await until(async () => {
      const { rowCount } = await pool.query(`
        select pg_terminate_backend(pid) from pg_stat_activity where query = 'commit' and wait_event = 'PgSleep'`)
      return rowCount === 1
    })
    const response = await committing
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
    const problem = (await response.json()) as { code: string; title: string }
    expect(problem.code).toBe('outcome_unknown')
    expect(JSON.stringify(problem)).not.toMatch(/nothing was executed/)
    expect(events).toMatchObject([{ kind: 'commitUnknown', id: idOf('k-1') }])
    await pool.query('drop function dawdle cascade')
    expect((await submit('k-1', { item: 'tea' })).headers.get('idempotent-replayed')).toBeNull()
    expect(await (await voidKey('k-1')).json()).toMatchObject({ status: 'succeeded' })
    expect(await world.orders()).toEqual(['tea'])
  })

  it('F20: lost after COMMIT took effect: the same words, and the next request replays', async () => {
    const proxy = await cutAfterCommit()
    const world = worldOver(newPool(proxy.url, { max: 1 }))
    const { submit, runs } = shop(world)
    proxy.cutNext()
    const response = await submit('k-1', { item: 'tea' })
    expect([response.status, await codeOf(response)]).toEqual([503, 'outcome_unknown'])
    expect(response.headers.get('idempotency-expires')).toBeNull()
    const replay = await submit('k-1', { item: 'tea' })
    expect([replay.status, replay.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect(await world.orders()).toEqual(['tea'])
    expect(runs()).toBe(1)
  })

  it('F20: a COMMIT that is answered too late is not known either; its connection is given up', async () => {
    await pool.query(`
      create function dawdle() returns trigger language plpgsql as 'begin perform pg_sleep(0.5); return null; end';
      create constraint trigger dawdle after insert on orders deferrable initially deferred
        for each row execute function dawdle()`)
    closing.push(() => pool.query('drop function if exists dawdle cascade'))
    const hasty = newPool(postgres.url, { max: 1, query_timeout: 100 })
    const world = worldOver(hasty)
    expect(await codeOf(await shop(world).submit('k-1', { item: 'tea' }))).toBe('outcome_unknown')
    expect([hasty.totalCount, hasty.idleCount]).toEqual([0, 0])
    const replay = await shop(worldOver(pool)).submit('k-1', { item: 'tea' })
    expect(replay.headers.get('idempotent-replayed')).toBe('true')
    expect(await world.orders()).toEqual(['tea'])
  })

  it('F20: a void lost in COMMIT does not claim to have voided', async () => {
    const proxy = await cutAfterCommit()
    const { void: voidKey } = shop(worldOver(newPool(proxy.url, { max: 1 })))
    proxy.cutNext()
    expect(await codeOf(await voidKey('k-1'))).toBe('outcome_unknown')
    expect(await (await voidKey('k-1')).json()).toMatchObject({ status: 'voided' })
  })

  it('a constraint that fails at the commit is no doubt: rolled back, not remembered, and the connection lives on', async () => {
    await pool.query(`
      create table parts (id int primary key, whole int references parts deferrable initially deferred)`)
    closing.push(() => pool.query('drop table parts'))
    const single = newPool(postgres.url, { max: 1 })
    let whole = 9
    const { submit, events } = shop(worldOver(single), {
      async execute({ transaction }) {
        const { rows } = await transaction.query<{ pid: number }>('select pg_backend_pid() as pid')
        await transaction.query('insert into parts values (1, $1)', [whole])
        return json(201, rows[0])
      },
    })
    expect((await submit('k-1', {})).status).toBe(500)
    expect(events).toMatchObject([{ kind: 'executeFailed', error: { code: '23503' } }])
    whole = 1
    expect((await submit('k-1', {})).status).toBe(201)
    expect((await pool.query('select from parts')).rowCount).toBe(1)
  })

  it('B114: a database that is not there, or not migrated, is 503, and execute does not run', async () => {
    const away = newPool('postgres://nobody@127.0.0.1:1/none')
    const bare = newPool(postgres.url, { options: '-c search_path=pg_catalog' })
    for (const used of [away, bare]) {
      const { submit, lookup, void: voidKey, runs, events } = shop(worldOver(used))
      for (const response of [await submit('k-1', {}), await lookup('k-1'), await voidKey('k-1')]) {
        expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
        expect(await codeOf(response)).toBe('idempotency_unavailable')
      }
      expect(runs()).toBe(0)
      expect(events).toMatchObject([{ kind: 'unavailable' }, { kind: 'unavailable' }, { kind: 'unavailable' }])
      const { store } = worldOver(used)
      await expect(store.reap()).rejects.toMatchObject({ code: 'store_unavailable' })
    }
  })

  it('a pool without a free connection says so in time', async () => {
    const small = newPool(postgres.url, { max: 1, connectionTimeoutMillis: 50 })
    const { opened, open } = gate()
    const started = gate()
    const { submit } = shop(worldOver(small), {
      async execute() {
        started.open()
        await opened
        return json(200, {})
      },
    })
    const first = submit('k-1', {})
    await started.opened
    expect(await codeOf(await submit('k-2', {}))).toBe('idempotency_unavailable')
    open()
    expect((await first).status).toBe(200)
  })

  it('deadlocks are "try again"', async () => {
    await pool.query(`insert into orders (item) values ('a'), ('b')`)
    const meet = [gate(), gate()] as const
    const { submit } = shop(worldOver(pool), {
      async execute({ transaction, key }) {
        const [mine, theirs] = key === 'k-0' ? [0, 1] : [1, 0]
        await transaction.query(`update orders set item = item where id = ${mine + 1}`)
        meet[mine as 0 | 1].open()
        await meet[theirs as 0 | 1].opened
        await transaction.query(`update orders set item = item where id = ${theirs + 1}`)
        return json(200, {})
      },
    })
    const responses = await Promise.all([submit('k-0', {}), submit('k-1', {})])
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 503])
  })
})

describe('rows', () => {
  it('H11: a row that is reaped between insert and read: expired, not executed', async () => {
    const world = worldOver(reapingPool())
    await shop(worldOver(pool)).submit('k-1', { item: 'tea' })
    const { submit, void: voidKey, runs } = shop(world)
    expect(await codeOf(await submit('k-1', { item: 'tea' }))).toBe('idempotency_expired')
    expect(runs()).toBe(0)
    await shop(worldOver(pool)).submit('k-2', { item: 'tea' })
    expect(await codeOf(await voidKey('k-2'))).toBe('idempotency_expired')
  })

  it('the database keeps the time where nobody else does', async () => {
    const before = Date.now() - 1000
    const { submit, lookup } = shop(worldOver(pool), { retentionMs: DAY_MS })
    await submit('k-1', { item: 'tea' })
    const { resultExpiresAt } = (await (await lookup('k-1')).json()) as { resultExpiresAt: string }
    const createdAt = Date.parse(resultExpiresAt) - DAY_MS
    expect(createdAt).toBeGreaterThan(before)
    expect(createdAt).toBeLessThan(before + 60_000)
    const { rows } = await pool.query('select reap_at - expires_at = $1 as grace from samekey_keys', ['1 hour'])
    expect(rows).toEqual([{ grace: true }])
    expect(await worldOver(pool).store.reap()).toBe(0)
  })

  it('P57: a reaper waits for nobody: rows that another one holds are left to it', async () => {
    let now = Date.now()
    const world = worldOver(pool, () => now)
    const { submit } = shop(world)
    for (let i = 0; i < 3; i += 1) await submit(`k-${i}`, { item: 'tea' })
    now += DAY_MS + HOUR_MS
    const other = await pool.connect()
    closing.push(() => other.release())
    await other.query(`begin; select from samekey_keys where key = 'k-1' for update`)
    expect(await world.store.reap()).toBe(2)
    await other.query('rollback')
    expect(await world.store.reap()).toBe(1)
  })

  it('an identity of strange characters stays itself', async () => {
    const world = worldOver(pool)
    const scoped = (principal: string) =>
      shop(world, { operation: 'orders/ü "%', scope: () => ({ tenant: '💰', principal }) })
    await scoped(`o'hara`).submit(`it's`, { item: 'tea' })
    expect(await (await scoped(`o'hara`).lookup(`it's`)).json()).toMatchObject({ status: 'succeeded' })
    expect((await scoped('o"hara').lookup(`it's`)).status).toBe(404)
  })

  it('any client of pg will do for types: Pool and PoolClient fit the port', () => {
    const fits: PgPool = pool
    expect(fits).toBe(pool)
    expect(post('k', {}).method).toBe('POST')
  })
})

/** Ends the connection of a transaction from outside, as an administrator or a failover would. */
async function terminate(transaction: PgQueryable): Promise<void> {
  const { rows } = await transaction.query<{ pid: number }>('select pg_backend_pid() as pid')
  await pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
  await until(
    async () => (await pool.query('select from pg_stat_activity where pid = $1', [rows[0]?.pid])).rowCount === 0,
  )
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A pool whose clients find the row gone when they read it. */
function reapingPool(): PgPool {
  return {
    query: (text, values) => pool.query(text, values),
    async connect() {
      const client = await pool.connect()
      return {
        async query(text, values) {
          if (text.includes('left join')) await pool.query('delete from samekey_keys')
          return client.query(text, values)
        },
        release: (error) => client.release(error),
        on: (event, listener) => client.on(event, listener),
        removeListener: (event, listener) => client.removeListener(event, listener),
      }
    },
  }
}

/** A TCP proxy before PostgreSQL that passes a COMMIT on, waits for it to be answered, and then cuts both sides. */
async function cutAfterCommit(): Promise<{ readonly url: string; cutNext(): void }> {
  const target = new URL(postgres.url)
  const sockets = new Set<Socket>()
  let armed = false
  const proxy: Server = createServer((client) => {
    const server = connect(Number(target.port), target.hostname)
    let committing = false
    const cut = () => {
      client.destroy()
      server.destroy()
    }
    client.on('data', (chunk) => {
      if (armed && chunk.includes('commit\0')) committing = true
      server.write(chunk)
    })
    server.on('data', (chunk) => {
      if (!committing) return client.write(chunk)
      armed = false
      return cut()
    })
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', cut)
      socket.on('close', cut)
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const url = new URL(postgres.url)
  url.port = String(address.port)
  return {
    url: url.href,
    cutNext() {
      armed = true
    },
  }
}
