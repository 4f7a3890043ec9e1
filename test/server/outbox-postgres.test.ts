import pg from 'pg'
import { decline, idempotent, json, refuse } from 'samekey/server'
import {
  migrate,
  type PgPool,
  type PgQueryable,
  parkedMessages,
  postgresServerStore,
  type RelayEvent,
  type RelayOptions,
  reapInbox,
  reapOutbox,
  receiveInTransaction,
  receiveOnce,
  retryMessage,
  skipMessage,
  startRelay,
  writeOutbox,
} from 'samekey/server/postgres'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { delivered } from '../../src/server/outbox/outbox-row.ts'
import { outboxStore } from '../../src/server/postgres/outbox-store.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { type Program, programOf } from '../support/processes.ts'
import { until } from '../support/until.ts'
import type { RelayJob } from './outbox-relay-program.ts'
import { DAY_MS, gate, HOUR_MS, post, scope } from './world.ts'

let postgres: TestPostgres
let pool: pg.Pool
const closing: (() => Promise<unknown> | unknown)[] = []

function newPool(options: pg.PoolConfig = {}, url = postgres.url): pg.Pool {
  const made = new pg.Pool({ connectionString: url, max: 20, ...options })
  // Connections that a test cuts on purpose while they are idle.
  made.on('error', () => {})
  closing.push(() => made.end())
  return made
}

beforeAll(async () => {
  postgres = await startPostgres()
  pool = newPool({ max: 60 })
  closing.length = 0
  await migrate(pool)
  await pool.query(`
    create table orders (id serial primary key, item text not null);
    create table steps (aggregate text not null, step int not null);
    create table deliveries (id serial primary key, text text not null, attempt int not null, epoch int not null);
    create table effects (id serial primary key, text text not null)`)
})

beforeEach(async () => {
  await pool.query(
    'truncate samekey_outbox, samekey_inbox, samekey_keys, orders, steps, deliveries, effects restart identity cascade',
  )
})

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

afterAll(async () => {
  await pool?.end()
  await postgres?.stop()
})

/** A relay that ends with the test. Its back-off is short, and its report is kept. */
function relay(part: Partial<RelayOptions> & Pick<RelayOptions, 'deliver'>): {
  readonly events: RelayEvent[]
  stop(): Promise<void>
} {
  const events: RelayEvent[] = []
  const running = startRelay({
    pool: newPool(),
    pollMs: HOUR_MS,
    retry: { baseMs: 1, capMs: 10 },
    report: (event) => events.push(event),
    ...part,
  })
  const stop = (): Promise<void> => running.stop({ graceMs: 0 })
  closing.push(stop)
  return { events, stop }
}

/** A client of its own with a transaction open; a test that fails leaves no lock behind. */
async function begun(): Promise<pg.PoolClient> {
  const client = await newPool({ max: 1 }).connect()
  let over = false
  const { release } = client
  client.release = (error) => {
    if (!over) release(error)
    over = true
  }
  closing.push(() => client.release(true))
  await client.query('begin')
  return client
}

/** A transaction of the business. */
async function inside<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const value = await work(client)
    await client.query('commit')
    return value
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

function write(text: string, aggregate: string | null = null, topic = 'orders.placed'): Promise<string> {
  return inside((client) => writeOutbox(client, { topic, aggregate, payload: text }))
}

async function states(): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ text: string; state: string }>(
    `select convert_from(payload, 'UTF8') as text, state from samekey_outbox order by id`,
  )
  return Object.fromEntries(rows.map(({ text, state }) => [text, state]))
}

const all = (state: string) => async (): Promise<boolean> =>
  (await pool.query('select from samekey_outbox where state <> $1 limit 1', [state])).rowCount === 0

async function count(table: string): Promise<number> {
  return (await pool.query(`select from ${table}`)).rowCount ?? 0
}

const untilWaiting = (waiting = 1): Promise<void> =>
  until(`${waiting} wait for a lock`, async () => {
    const { rowCount } = await pool.query(`select from pg_stat_activity where wait_event_type = 'Lock'`)
    return rowCount === waiting
  })

/** The same numbers at every run. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state / 2 ** 31
  }
}

describe('writing', () => {
  const orders = (execute: Parameters<typeof idempotent<PgQueryable>>[0]['execute']) =>
    idempotent({
      store: postgresServerStore(pool),
      operation: 'orders.create',
      scope,
      report: () => {},
      execute,
    })

  async function placeAndTell(transaction: PgQueryable): Promise<void> {
    await transaction.query(`insert into orders (item) values ('tea')`)
    await writeOutbox(transaction, { topic: 'orders.placed', aggregate: 'order:1', payload: '{}' })
  }

  it('P66: a message commits with the business change, and a replay of the request writes no second one', async () => {
    const submit = orders(async ({ transaction }) => {
      await placeAndTell(transaction)
      return json(201, {})
    })
    expect([(await submit(post('k-1', {}))).status, (await submit(post('k-1', {}))).status]).toEqual([201, 201])
    expect([await count('orders'), await count('samekey_outbox')]).toEqual([1, 1])
  })

  it('P66, P54: a rollback, a refusal and a failure leave neither the business change nor a message', async () => {
    const ends = [
      () => refuse(402, {}),
      () => decline(422, {}),
      () => {
        throw new Error('no')
      },
    ]
    for (const [index, end] of ends.entries()) {
      const submit = orders(async ({ transaction }) => {
        await placeAndTell(transaction)
        return end()
      })
      expect((await submit(post(`k-${index}`, {}))).status).toBeGreaterThanOrEqual(400)
    }
    await expect(
      inside(async (client) => {
        await placeAndTell(client)
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    expect([await count('orders'), await count('samekey_outbox')]).toEqual([0, 0])
  })

  it('P66: outside of a transaction nothing is written: a pool is not one, nor is a client that has not begun', async () => {
    const message = { topic: 'orders.placed', payload: '{}' }
    const client = await pool.connect()
    for (const aggregate of [null, 'order:1']) {
      await expect(writeOutbox(pool, { ...message, aggregate })).rejects.toThrow(/business transaction/)
      await expect(writeOutbox(client, { ...message, aggregate })).rejects.toThrow(/business transaction/)
    }
    client.release()
    expect(await count('samekey_outbox')).toBe(0)
  })

  it('P66: what cannot be stored is refused before it could abort the transaction', async () => {
    await inside(async (client) => {
      const good = { topic: 'orders.placed', aggregate: null, payload: '{}' }
      for (const bad of [{ topic: 'a\0b' }, { aggregate: '' }, { payload: '\uD800' }, { messageId: '7' }]) {
        await expect(writeOutbox(client, { ...good, ...bad })).rejects.toMatchObject({ code: 'config' })
      }
      await writeOutbox(client, good)
    })
    expect(await count('samekey_outbox')).toBe(1)
  })

  it('P59: the same message id twice is one message, and the second transaction is rolled back whole', async () => {
    const messageId = '018F0F3E-7B1C-7CC2-9F5D-2D5A0C3B1E4F'
    const twice = () =>
      inside(async (client) => {
        await client.query(`insert into orders (item) values ('tea')`)
        return writeOutbox(client, { topic: 'orders.placed', aggregate: null, payload: '{}', messageId })
      })
    expect(await twice()).toBe(messageId.toLowerCase())
    await expect(twice()).rejects.toMatchObject({ code: '23505' })
    expect([await count('orders'), await count('samekey_outbox')]).toEqual([1, 1])
  })

  it('P12: ids of their own are random and differ', async () => {
    const ids = await Promise.all(Array.from({ length: 50 }, () => write('{}')))
    expect(new Set(ids).size).toBe(50)
    expect(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/.test(id))).toBe(true)
  })

  it('P66, P54: two that write to the same aggregates in turn are a deadlock: one is 503, and its retry is executed', async () => {
    const meet = [gate(), gate()] as const
    let first = true
    const submit = orders(async ({ transaction, key }) => {
      const [mine, theirs] = key === 'k-0' ? [0, 1] : [1, 0]
      const tell = (aggregate: number) =>
        writeOutbox(transaction, { topic: 'orders.placed', aggregate: `order:${aggregate}`, payload: `${key}` })
      await tell(mine as number)
      meet[mine as 0 | 1].open()
      if (first) await meet[theirs as 0 | 1].opened
      await tell(theirs as number)
      return json(201, {})
    })
    const statuses = (await Promise.all([submit(post('k-0', {})), submit(post('k-1', {}))])).map(({ status }) => status)
    expect([...statuses].sort()).toEqual([201, 503])
    expect(await count('samekey_outbox')).toBe(2)
    first = false
    expect((await submit(post(`k-${statuses.indexOf(503)}`, {}))).status).toBe(201)
    expect(await count('samekey_outbox')).toBe(4)
  })
})

describe('order', () => {
  it('P66: whoever writes to an aggregate waits for an open transaction that has, so numbers come in the order of commits', async () => {
    const seen: string[] = []
    relay({ deliver: async ({ text }) => void seen.push(text) })
    const first = await begun()
    await writeOutbox(first, { topic: 'orders.placed', aggregate: 'order:1', payload: 'first' })
    const second = write('second', 'order:1')
    await untilWaiting()
    // Without the wait, this one would be committed, seen and delivered by now.
    await write('elsewhere', 'order:2')
    await write('without order')
    await until('the others are delivered', () => seen.length === 2)
    expect((await states()).second).toBeUndefined()
    await first.query('commit')
    first.release()
    await second
    await until('all are delivered', () => seen.length === 4)
    expect(seen.slice(2)).toEqual(['first', 'second'])
  })

  it('P66: a savepoint that is rolled back lets the next writer go, with its message', async () => {
    const client = await begun()
    await client.query('savepoint mine')
    await writeOutbox(client, { topic: 'orders.placed', aggregate: 'order:1', payload: 'taken back' })
    await client.query('rollback to savepoint mine')
    await write('other', 'order:1')
    await client.query('commit')
    client.release()
    expect(await states()).toEqual({ other: 'waiting' })
  })

  it('P66: three relays, deliveries that fail, and writers at the same time: every aggregate in the order of its commits', async () => {
    const aggregates = Array.from({ length: 5 }, (_, index) => `order:${index}`)
    const perAggregate = 20
    const random = seeded(7)
    const underWay = new Set<string>()
    const arrived = new Map<string, number[]>(aggregates.map((name) => [name, []]))
    let tries = 0

    async function deliver({ aggregate, text }: { aggregate: string | null; text: string }): Promise<void> {
      const name = aggregate ?? ''
      tries += 1
      expect(underWay.has(name)).toBe(false)
      underWay.add(name)
      await pool.query('select 1')
      const fails = random() < 0.3
      if (!fails && text !== 'lock') arrived.get(name)?.push(Number(text))
      underWay.delete(name)
      if (fails) throw new Error('away')
    }
    for (let index = 0; index < 3; index += 1) relay({ deliver, concurrency: 3 })

    /** Numbers itself by what is committed before it: without the lock, two would get one number. */
    const step = (aggregate: string): Promise<unknown> =>
      inside(async (client) => {
        await writeOutbox(client, { topic: 'orders.changed', aggregate, payload: 'lock' })
        const { rows } = await client.query<{ step: number }>(
          'insert into steps select $1, count(*) + 1 from steps where aggregate = $1 returning step',
          [aggregate],
        )
        if (random() < 0.5) await client.query('select pg_sleep(0.002)')
        await writeOutbox(client, { topic: 'orders.changed', aggregate, payload: `${rows[0]?.step}` })
        if (random() < 0.1) throw new Error('rolled back')
      }).catch((error: Error) => {
        if (error.message !== 'rolled back') throw error
        return step(aggregate)
      })
    await Promise.all(aggregates.flatMap((name) => Array.from({ length: perAggregate }, () => step(name))))

    await until('all are delivered', all('delivered'))
    const inOrder = Array.from({ length: perAggregate }, (_, index) => index + 1)
    for (const name of aggregates) expect(arrived.get(name)).toEqual(inOrder)
    expect(tries).toBeGreaterThan(2 * perAggregate * aggregates.length)
  })

  it('P66: a message that always fails holds up its aggregate, and nobody else, however many are behind it', async () => {
    await write('poison', 'order:1')
    await inside(async (client) => {
      for (let index = 0; index < 120; index += 1) {
        await writeOutbox(client, { topic: 'orders.placed', aggregate: 'order:1', payload: `behind ${index}` })
      }
    })
    for (let index = 0; index < 20; index += 1) await write(`other ${index}`, `order:${index + 2}`)
    await write('without order')
    const seen: string[] = []
    const deliver = async ({ text }: { text: string }): Promise<void> => {
      if (text === 'poison') throw new Error('never')
      seen.push(text)
    }
    for (let index = 0; index < 2; index += 1) relay({ deliver, concurrency: 2 })
    await until('the others are delivered', () => seen.length === 21)
    expect(seen.some((text) => text.startsWith('behind'))).toBe(false)
    // Those behind are not looked at any more.
    await until('they are put behind', async () => {
      const { rowCount } = await pool.query(`select from samekey_outbox where state = 'waiting' and due_at is null`)
      return rowCount === 120
    })
    const { rows } = await pool.query<{ message_id: string }>(
      'select message_id from samekey_outbox order by id limit 1',
    )
    await until('it is skipped', async () => (await skipMessage(pool, rows[0]!.message_id, 'no')) === 'changed')
    await until('those behind it are delivered', () => seen.length === 141)
    expect(seen.slice(21)).toEqual(Array.from({ length: 120 }, (_, index) => `behind ${index}`))
  })

  it('P66: ends and looks at the same time call everyone: nothing stays behind for good', async () => {
    // Polls are an hour apart and the hints are over early: what is not called now would stay.
    const seen: string[] = []
    await inside(async (client) => {
      for (let index = 0; index < 400; index += 1) {
        await writeOutbox(client, { topic: 'orders.placed', aggregate: `order:${index % 4}`, payload: `${index}` })
      }
    })
    for (let index = 0; index < 4; index += 1) {
      relay({ deliver: async ({ text }) => void seen.push(text), concurrency: 4 })
    }
    await until('all are delivered', all('delivered'))
    expect(seen).toHaveLength(400)
    for (let lane = 0; lane < 4; lane += 1) {
      const own = seen.map(Number).filter((index) => index % 4 === lane)
      expect(own).toEqual([...own].sort((one, other) => one - other))
    }
  })

  it('P66: an aggregate is in order across topics, and a relay takes its own topics only', async () => {
    await write('placed', 'order:1', 'orders.placed')
    await write('paid', 'order:1', 'orders.paid')
    await write('other', null, 'orders.paid')
    const seen: string[] = []
    const deliver = async ({ text }: { text: string }): Promise<void> => void seen.push(text)
    relay({ deliver, topics: ['orders.paid', 'orders.paid'] })
    await until('its own is delivered', () => seen.length === 1)
    await until('the look is over', async () => {
      const { rows } = await pool.query(`select due_at from samekey_outbox where topic = 'orders.paid' order by id`)
      return rows[0].due_at === null && (await states()).other === 'delivered'
    })
    expect([seen, await states()]).toEqual([['other'], { placed: 'waiting', paid: 'waiting', other: 'delivered' }])
    relay({ deliver, topics: ['orders.placed'] })
    await until('all are delivered', () => seen.length === 3)
    expect(seen).toEqual(['other', 'placed', 'paid'])
    expect(() => relay({ deliver, topics: [] })).toThrow(/topics/)
  })
})

describe('delivering', () => {
  it('P66: 1000 messages, four relays: every one is delivered, once while nobody dies', async () => {
    const seen: string[] = []
    for (let index = 0; index < 4; index += 1) {
      relay({ deliver: async ({ text }) => void seen.push(text), concurrency: 8 })
    }
    const texts = Array.from({ length: 1000 }, (_, index) => `${index}`)
    await Promise.all(
      Array.from({ length: 10 }, (_, tenth) =>
        inside(async (client) => {
          for (const text of texts.slice(tenth * 100, tenth * 100 + 100)) {
            const aggregate = Number(text) % 2 === 0 ? null : `order:${tenth}-${Number(text) % 40}`
            await writeOutbox(client, { topic: 'orders.placed', aggregate, payload: text })
          }
        }),
      ),
    )
    await until('all are delivered', all('delivered'))
    expect([...seen].sort()).toEqual([...texts].sort())
  })

  it('P66: the payload arrives byte for byte, on every delivery', async () => {
    const texts = ['', '{"nul":"\\u0000"}', 'raw NUL \0', '\uFEFFä ß 茶 \u{1F375} \u2028', '{"a":1,"a":2}', '1.0']
    const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index)
    const large = new Uint8Array(2 ** 20).fill(7)
    const payloads = [...texts, everyByte, large]
    await inside(async (client) => {
      for (const payload of payloads) {
        await writeOutbox(client, { topic: 'orders.placed', aggregate: 'order:1', payload })
      }
    })
    const seen: { text: string; bytes: Uint8Array }[] = []
    relay({
      async deliver({ text, payload }, { attempt }) {
        seen.push({ text, bytes: payload })
        if (attempt === 1) throw new Error('once more')
      },
    })
    await until('all are delivered', all('delivered'))
    const twice = payloads.flatMap((payload) => [payload, payload])
    expect(seen).toHaveLength(twice.length)
    for (const [index, payload] of twice.entries()) {
      const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload
      expect(Buffer.compare(seen[index]!.bytes, bytes)).toBe(0)
      if (typeof payload === 'string') expect(seen[index]!.text).toBe(payload)
    }
  })

  it('P66: deliver gets what was written, and the same id on every try', async () => {
    const seen: unknown[] = []
    const id = await write('{"order":1}', 'order:1')
    relay({
      async deliver(message, { attempt, epoch }) {
        seen.push([message.id, message.topic, message.aggregate, message.text, attempt, epoch])
        expect(Math.abs(message.createdAt - Date.now())).toBeLessThan(60_000)
        if (attempt < 3) throw new Error('away')
      },
    })
    await until('it is delivered', all('delivered'))
    expect(seen).toEqual([1, 2, 3].map((number) => [id, 'orders.placed', 'order:1', '{"order":1}', number, number]))
  })

  it('P51: what is kept of a failure is its message, also where it holds what a text column refuses', async () => {
    await write('bad')
    const { events } = relay({
      retry: { baseMs: HOUR_MS, capMs: HOUR_MS },
      deliver: () => Promise.reject(Object.assign(new Error('a\0b \uD800'), { token: 'secret' })),
    })
    await until('it is written down', async () => {
      const { rows } = await pool.query('select error from samekey_outbox')
      return rows[0].error === 'ab \uFFFD'
    })
    expect(events.map(({ kind }) => kind)).toEqual(['deliveryFailed'])
  })

  it('P66: a hint wakes a relay whose poll is an hour away', async () => {
    const seen: string[] = []
    relay({ deliver: async ({ text }) => void seen.push(text) })
    await until('it listens', async () => {
      const { rowCount } = await pool.query(`select from pg_stat_activity where query = 'listen samekey_outbox'`)
      return rowCount === 1
    })
    await write('one')
    await until('it is delivered', () => seen.length === 1)
    await inside((client) => {
      const { query } = client
      // As `execute` and `step` hand it over: with nothing but `query`.
      const bare = { query: query.bind(client) } as PgQueryable
      return writeOutbox(bare, { topic: 'orders.placed', aggregate: 'order:1', payload: 'two' })
    })
    await until('it is delivered', () => seen.length === 2)
  })

  const cutListener = (): Promise<void> =>
    until('the listening connection is cut', async () => {
      const { rowCount } = await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen samekey_outbox'`,
      )
      return rowCount === 1
    })
  /** The pause before listening again, as long as the test wants. */
  const listenAgainIn = (wanted: number) => ({
    ...systemClock,
    timer: (ms: number, run: () => void, hold?: boolean) => systemClock.timer(ms === 5000 ? wanted : ms, run, hold),
  })

  it('P66: whose listening connection was killed listens again, and looks for what it missed', async () => {
    const seen: string[] = []
    relay({ deliver: async ({ text }) => void seen.push(text), clock: listenAgainIn(20) })
    await write('one')
    await until('it is delivered', () => seen.length === 1)
    await cutListener()
    await write('two')
    await until('it is delivered', () => seen.length === 2)
    await cutListener()
    await write('three')
    await until('it is delivered', () => seen.length === 3)
  })

  it('P66: without any hint, polling finds everything', async () => {
    const seen: string[] = []
    relay({ deliver: async ({ text }) => void seen.push(text), clock: listenAgainIn(HOUR_MS), pollMs: 10 })
    await cutListener()
    await write('one')
    await until('it is delivered', () => seen.length === 1)
  })

  it('P66: a failed delivery comes again when it is due, not at the next poll', async () => {
    const seen: number[] = []
    await write('one')
    relay({
      retry: { baseMs: 60, capMs: 60 },
      random: () => 1,
      async deliver(_, { attempt }) {
        seen.push(attempt)
        if (attempt < 3) throw new Error('away')
      },
    })
    await until('it is delivered', all('delivered'))
    expect(seen).toEqual([1, 2, 3])
  })

  it('P66: a graceful stop lets what runs end, and gives back what will not', async () => {
    const letGo = gate()
    const started: string[] = []
    const running = startRelay({
      pool: newPool(),
      report: () => {},
      async deliver({ text }, { signal }) {
        started.push(text)
        if (text === 'ends') await letGo.opened
        else await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    await write('ends')
    await write('hangs')
    await until('both run', () => started.length === 2)
    const stopped = running.stop({ graceMs: 50 })
    letGo.open()
    await stopped
    expect(await states()).toEqual({ ends: 'delivered', hangs: 'waiting' })
    const seen: [string, number][] = []
    relay({ deliver: async ({ text }, { attempt }) => void seen.push([text, attempt]) })
    await until('the next relay need not wait for the lease', () => seen.length === 1)
    expect(seen).toEqual([['hangs', 1]])
  })

  it('B114: a database that is not there, or not migrated, is told and asked less and less often, without a crash', async () => {
    for (const used of [
      newPool({}, 'postgres://nobody@127.0.0.1:1/none'),
      newPool({ options: '-c search_path=pg_catalog' }),
    ]) {
      const { events, stop } = relay({ pool: used, deliver: async () => {}, pollMs: 1 })
      await until('it was told thrice', () => events.length === 3)
      expect(events.every(({ kind, error }) => kind === 'relayTrouble' && error instanceof Error)).toBe(true)
      await stop()
    }
  })

  it('P66, F12: a database that dies under four relays and comes back: nothing is lost, and no relay ends', async () => {
    const fragile = await startPostgres({ durable: true })
    closing.push(() => fragile.stop())
    const own = newPool({}, fragile.url)
    await migrate(own)
    const seen = new Map<string, number>()
    const half = gate()
    const relays = Array.from({ length: 4 }, () =>
      startRelay({
        pool: newPool({}, fragile.url),
        leaseMs: 1000,
        pollMs: 50,
        report: () => {},
        async deliver({ id }) {
          seen.set(id, (seen.get(id) ?? 0) + 1)
          if (seen.size === 100) half.open()
        },
      }),
    )
    closing.push(() => Promise.all(relays.map((running) => running.stop({ graceMs: 0 }))))
    const client = await own.connect()
    await client.query('begin')
    for (let index = 0; index < 200; index += 1) {
      await writeOutbox(client, { topic: 'orders.placed', aggregate: `order:${index % 20}`, payload: '{}' })
    }
    await client.query('commit')
    client.release()
    await half.opened
    await fragile.crash()
    await until('all are delivered', async () => {
      const { rowCount } = await own.query(`select from samekey_outbox where state = 'delivered'`).catch(() => ({
        rowCount: 0,
      }))
      return rowCount === 200
    })
    expect(seen.size).toBe(200)
  })
})

describe('F12: a relay that dies', () => {
  let program: Program<RelayJob, null>
  beforeAll(() => {
    program = programOf(new URL('./outbox-relay-program.ts', import.meta.url))
  })
  afterAll(() => program?.end())

  it('F12, P66: between deliver and its mark: delivered twice, one effect at a receiver that uses receiveOnce', async () => {
    await write('first', 'order:1')
    await write('second', 'order:1')
    const dying = await program.start({ url: postgres.url, aheadMs: 0, dies: true })
    expect((await dying.ended).signal).toBe('SIGKILL')
    expect([await count('deliveries'), await count('effects')]).toEqual([1, 1])
    expect(await states()).toEqual({ first: 'delivering', second: 'waiting' })

    const other = await program.start({ url: postgres.url, aheadMs: 2 * 60_000, dies: false })
    await until('all are delivered', all('delivered'))
    await other.kill()
    const { rows } = await pool.query('select text, attempt, epoch from deliveries order by id')
    expect(rows).toEqual([
      { text: 'first', attempt: 1, epoch: 1 },
      { text: 'first', attempt: 2, epoch: 2 },
      { text: 'second', attempt: 1, epoch: 1 },
    ])
    expect((await pool.query('select text from effects order by id')).rows).toEqual([
      { text: 'first' },
      { text: 'second' },
    ])
  })

  it('F12, F10: the mark of a relay that was overtaken is refused, and frees nobody behind it', async () => {
    let now = Date.now()
    const store = outboxStore(pool, { topics: null, now: () => now, clock: systemClock })
    const at = { now: () => now }
    for (const payload of ['first', 'second']) {
      await inside((client) => writeOutbox(client, { topic: 'orders.placed', aggregate: 'order:1', payload }, at))
    }
    const [slow] = (await store.claim(10, 1000)).messages
    expect((await store.claim(10, 1000)).messages).toEqual([])
    now += 1000
    const [fast] = (await store.claim(10, 1000)).messages
    expect([slow?.message.text, fast?.message.text, fast?.claimed.epoch]).toEqual(['first', 'first', 2])

    const mark = (claimed: NonNullable<typeof slow>) =>
      store.change(claimed, (row, time) => delivered(row, claimed.claimed.epoch, time))
    expect(await mark(slow!)).toEqual({ kind: 'late' })
    expect(await states()).toEqual({ first: 'delivering', second: 'waiting' })
    expect((await store.claim(10, 1000)).messages).toEqual([])
    expect(await mark(fast!)).toMatchObject({ kind: 'written' })
    expect(await mark(fast!)).toMatchObject({ kind: 'written', row: { state: 'delivered' } })
    expect((await store.claim(10, 1000)).messages.map(({ message }) => message.text)).toEqual(['second'])
  })
})

describe('P45: people', () => {
  it('P66, P45: a parked message waits with its aggregate, is tried again by hand, or skipped; notes are kept', async () => {
    const one = await write('one', 'order:1')
    let broken = true
    const seen: string[] = []
    const { events } = relay({
      retry: { baseMs: 1, capMs: 1, maxAttempts: 2 },
      async deliver({ text }) {
        if (broken) throw new Error(`${text} is refused`)
        seen.push(text)
      },
    })
    await until('it is parked', async () => (await parkedMessages(pool)).length === 1)
    expect(await parkedMessages(pool)).toMatchObject([
      { message: { id: one, text: 'one' }, attempts: 2, error: 'one is refused', notes: [] },
    ])
    const two = await write('two', 'order:1')
    await write('three', 'order:1')
    await until('what comes later waits behind it', async () => {
      const { rowCount } = await pool.query(`select from samekey_outbox where state = 'waiting' and due_at is null`)
      return rowCount === 2
    })
    expect(await retryMessage(pool, one, 'is it mended?')).toBe('changed')
    await until('it is parked again', async () => (await parkedMessages(pool))[0]?.notes.length === 1)
    expect(await skipMessage(pool, one, 'it is not')).toBe('changed')
    await until('the next one is parked', async () => (await parkedMessages(pool))[0]?.message.id === two)
    broken = false
    expect(await retryMessage(pool, two.toUpperCase(), 'now it is')).toBe('changed')
    await until('the rest is delivered', async () => (await states()).three === 'delivered')
    expect([seen, await states()]).toEqual([['two', 'three'], { one: 'skipped', two: 'delivered', three: 'delivered' }])
    const { rows } = await pool.query<{ notes: string }>('select notes from samekey_outbox order by id')
    expect(rows.map(({ notes }) => JSON.parse(notes))).toEqual([
      [
        { at: expect.any(Number), action: 'retry', note: 'is it mended?' },
        { at: expect.any(Number), action: 'skip', note: 'it is not' },
      ],
      [{ at: expect.any(Number), action: 'retry', note: 'now it is' }],
      [],
    ])
    expect(events.filter(({ kind }) => kind === 'messageParked')).toHaveLength(3)
    for (const word of [retryMessage, skipMessage]) {
      expect(await word(pool, one, 'once more')).toBe('settled')
      expect(await word(pool, '018f0f3e-7b1c-7cc2-9f5d-2d5a0c3b1e4f', 'who?')).toBe('absent')
      await expect(word(pool, one, ' ')).rejects.toMatchObject({ code: 'config', option: 'note' })
    }
  })

  it('P34: nothing by hand while a relay has it', async () => {
    const id = await write('one', 'order:1')
    const { opened, open } = gate()
    const started = gate()
    relay({
      async deliver() {
        started.open()
        await opened
      },
    })
    await started.opened
    expect([await retryMessage(pool, id, 'now'), await skipMessage(pool, id, 'now')]).toEqual([
      'delivering',
      'delivering',
    ])
    open()
    await until('it is delivered', all('delivered'))
  })

  it('P45: one that waits for its next try is tried at once when a person says so, and may be skipped', async () => {
    const [id, other] = [await write('one'), await write('two')]
    const seen: [string, number][] = []
    relay({
      retry: { baseMs: HOUR_MS, capMs: HOUR_MS },
      random: () => 1,
      async deliver({ text }, { attempt }) {
        seen.push([text, attempt])
        throw new Error('away')
      },
    })
    await until('both failed', async () => {
      const { rowCount } = await pool.query(`select from samekey_outbox where state = 'waiting' and attempts = 1`)
      return rowCount === 2
    })
    expect(await skipMessage(pool, other, 'no')).toBe('changed')
    expect(await retryMessage(pool, id, 'it is back')).toBe('changed')
    await until('it was tried again', () => seen.length === 3)
    expect(seen[2]).toEqual(['one', 1])
  })
})

describe('receiving', () => {
  const message = { consumer: 'billing', messageId: 'm-1' }
  const bill = (transaction: PgQueryable) => transaction.query(`insert into effects (text) values ('bill')`)

  it('P66: many deliveries at once are one effect: the others wait for the first, and then see it', async () => {
    const { opened, open } = gate()
    let runs = 0
    const all = Array.from({ length: 10 }, () =>
      receiveInTransaction(pool, message, async (transaction) => {
        runs += 1
        await bill(transaction)
        await opened
        return 'billed'
      }),
    )
    await untilWaiting(9)
    open()
    const results = await Promise.all(all)
    expect(results.filter(({ ran }) => ran)).toEqual([{ ran: true, value: 'billed' }])
    expect([runs, await count('effects'), await count('samekey_inbox')]).toEqual([1, 1, 1])
  })

  it('P66: one that waited for a transaction that was rolled back does the work itself', async () => {
    const first = await begun()
    await receiveOnce(first, message, () => bill(first))
    const second = inside((client) => receiveOnce(client, message, () => bill(client)))
    await untilWaiting()
    await first.query('rollback')
    first.release()
    expect((await second).ran).toBe(true)
    expect(await count('effects')).toBe(1)
    expect((await inside((client) => receiveOnce(client, message, bill))).ran).toBe(false)
    expect(await count('effects')).toBe(1)
  })

  it('P66: two at a time on one client would take each other’s effects back: the second is refused', async () => {
    const other = { consumer: 'billing', messageId: 'm-other' }
    const [first, second] = await inside((client) =>
      Promise.allSettled([
        receiveOnce(client, { consumer: 'billing', messageId: 'm-first' }, () => client.query('select 1')),
        receiveOnce(client, other, () => client.query('select 1')),
      ]),
    )
    expect(first).toMatchObject({ status: 'fulfilled', value: { ran: true } })
    expect(second).toMatchObject({
      status: 'rejected',
      reason: { message: expect.stringContaining('one message after') },
    })
    expect((await inside((client) => receiveOnce(client, other, () => 1))).ran).toBe(true)
  })

  it('P66: work that fails is not received, even where its error is swallowed and the rest commits', async () => {
    for (const statement of ['select 1 / 0', 'select 1']) {
      await inside(async (client) => {
        await client.query(`insert into orders (item) values ('tea')`)
        const failing = receiveOnce(client, message, async (transaction) => {
          await bill(transaction)
          await transaction.query(statement)
          throw new Error('no')
        })
        await expect(failing).rejects.toThrow()
      })
    }
    await expect(
      receiveInTransaction(pool, message, async (transaction) => {
        await bill(transaction)
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    expect([await count('orders'), await count('effects'), await count('samekey_inbox')]).toEqual([2, 0, 0])
    expect((await receiveInTransaction(pool, message, bill)).ran).toBe(true)
  })

  it('P66: each consumer takes a message once', async () => {
    for (const consumer of ['billing', 'mail', 'billing']) {
      await receiveInTransaction(pool, { consumer, messageId: 'm-1' }, (transaction) =>
        transaction.query('insert into effects (text) values ($1)', [consumer]),
      )
    }
    expect((await pool.query('select text from effects order by id')).rows).toEqual([
      { text: 'billing' },
      { text: 'mail' },
    ])
  })

  it('P66: outside of a transaction nothing is received: a pool is not one', async () => {
    let runs = 0
    const client = await pool.connect()
    for (const none of [pool, client]) {
      await expect(receiveOnce(none, message, () => (runs += 1))).rejects.toThrow(/receiveInTransaction/)
    }
    client.release()
    expect([runs, await count('samekey_inbox')]).toEqual([0, 0])
  })

  it('P54: waits for another delivery only so long, and the work has the usual lock limit', async () => {
    const { opened, open } = gate()
    const started = gate()
    const limited = newPool({ options: '-c lock_timeout=7s' })
    const first = receiveInTransaction(
      limited,
      message,
      async (transaction) => {
        started.open()
        await opened
        return (await transaction.query('show lock_timeout')).rows[0]
      },
      { waitMs: 30 },
    )
    await started.opened
    await expect(receiveInTransaction(pool, message, bill, { waitMs: 30 })).rejects.toMatchObject({
      code: 'store_unavailable',
    })
    open()
    expect(await first).toEqual({ ran: true, value: { lock_timeout: '7s' } })
    await expect(receiveInTransaction(pool, message, bill, { waitMs: Number.NaN })).rejects.toThrow(/waitMs/)
    await expect(receiveOnce(pool, { consumer: '', messageId: 'm' }, bill)).rejects.toThrow(/consumer/)
  })

  it('F12, P66: relay and receiver together: twice delivered, one effect', async () => {
    await write('bill', 'order:1')
    let deliveries = 0
    relay({
      async deliver({ id }, { attempt }) {
        deliveries += 1
        await receiveInTransaction(pool, { consumer: 'billing', messageId: id }, bill)
        if (attempt === 1) throw new Error('the answer was lost')
      },
    })
    await until('it is delivered', all('delivered'))
    expect([deliveries, await count('effects')]).toEqual([2, 1])
  })
})

describe('reaping', () => {
  it('P66: what was delivered or skipped long ago goes, in batches; what is to come or parked stays', async () => {
    let now = Date.now()
    const at = { now: () => now }
    const store = outboxStore(pool, { topics: null, now: () => now, clock: systemClock })
    const put = (payload: string, aggregate: string | null = null) =>
      inside((client) => writeOutbox(client, { topic: 'orders.placed', aggregate, payload }, at))
    for (const text of ['delivered', 'delivered too', 'delivered also']) await put(text)
    for (const { claimed, ...rest } of (await store.claim(10, 1000)).messages) {
      await store.change({ claimed, ...rest }, (row, time) => delivered(row, claimed.epoch, time))
    }
    expect(await skipMessage(pool, await put('skipped'), 'no', at)).toBe('changed')
    await put('parked', 'order:1')
    const [parked] = (await store.claim(10, 1000)).messages
    await store.change(parked!, (row) => ({ ...row, state: 'parked', dueAt: null }))
    await put('behind', 'order:1')
    await put('waiting')

    now += 7 * DAY_MS - 1
    expect(await reapOutbox(pool, { keepMs: 7 * DAY_MS, ...at })).toBe(0)
    now += 1
    const batches = [await reapOutbox(pool, { keepMs: 7 * DAY_MS, limit: 3, ...at })]
    batches.push(await reapOutbox(pool, { keepMs: 7 * DAY_MS, limit: 3, ...at }))
    expect(batches).toEqual([3, 1])
    now += 1000 * DAY_MS
    expect(await reapOutbox(pool, { keepMs: 0, ...at })).toBe(0)
    expect(await states()).toEqual({ parked: 'parked', behind: 'waiting', waiting: 'waiting' })
  })

  it('P66: the inbox forgets after as long as it is told', async () => {
    let now = Date.now()
    const at = { now: () => now }
    const receive = (messageId: string) =>
      receiveInTransaction(pool, { consumer: 'billing', messageId }, () => null, at)
    for (const id of ['m-1', 'm-2', 'm-3']) await receive(id)
    now += DAY_MS - 1
    expect(await reapInbox(pool, { keepMs: DAY_MS, ...at })).toBe(0)
    now += 1
    await receive('m-4')
    expect(await reapInbox(pool, { keepMs: DAY_MS, limit: 2, ...at })).toBe(2)
    expect(await reapInbox(pool, { keepMs: DAY_MS, limit: 2, ...at })).toBe(1)
    expect(await receive('m-4')).toEqual({ ran: false })
    for (const bad of [{ keepMs: -1 }, { keepMs: Number.POSITIVE_INFINITY }, { keepMs: 1, limit: 0 }]) {
      await expect(reapInbox(pool, bad)).rejects.toMatchObject({ code: 'config' })
    }
    const away: PgPool = newPool({}, 'postgres://nobody@127.0.0.1:1/none')
    await expect(reapOutbox(away, { keepMs: 1 })).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(parkedMessages(away)).rejects.toMatchObject({ code: 'store_unavailable' })
  })
})
