import { describe, expect, it } from 'vitest'
import { isSamekeyError, StoreFailure } from '../../src/errors.ts'
import type { IntentInit } from '../../src/fetch.ts'
import type { IntentStore } from '../../src/ports.ts'
import {
  type Answer,
  answer,
  broken,
  created,
  day,
  hangs,
  honestServer,
  later,
  order,
  origin,
  problem,
  type Tab,
  type TabOptions,
  world,
} from '../support/world.ts'

const proven = { 'idempotency-expires': 'Wed, 02 Dec 2026 12:00:00 GMT' }
const reason = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => ({ resolved: value }),
    (error: unknown) => error,
  )
const untouched = async ({ store }: Tab): Promise<boolean> => (await store.list(origin, { limit: 9 })).length === 0

describe('P13: the key leaves by every exit', () => {
  const exits: [exit: string, end: Answer, code: string, options?: TabOptions][] = [
    ['unknown', broken(), 'outcome_unknown', { retry: { attempts: 1 } }],
    ['still open', hangs(), 'still_open', { waitMs: 100 }],
  ]

  it.each(exits)('P13: %s', async (_exit, end, code, options) => {
    const { network, tab, pass } = world()
    network.script(end)
    const only = tab(options)
    const write = only.fetch('orders', order('a'))
    await pass(60_000)
    const { key } = await write.stored
    const error = await reason(write)
    expect(error).toMatchObject({ code, intentId: 'a', key })
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code, intentId: 'a', key, message: expect.any(String) })
    expect(isSamekeyError(error)).toBe(true)
  })

  it('P13: cancelled and abandoned', async () => {
    const { network, tab, pass } = world()
    network.script(answer(429, { 'retry-after': '60' }), broken())
    const only = tab({ retry: { attempts: 2 } })
    const cancelled = only.fetch('orders', order('a'))
    await pass(100)
    await only.fetch.intents.cancel('a')
    expect(await reason(cancelled)).toMatchObject({
      code: 'cancelled',
      intentId: 'a',
      key: (await cancelled.stored).key,
    })
    const abandoned = only.fetch('orders', { ...order('b'), waitMs: day })
    await pass(120_000)
    await only.fetch.intents.abandon('b')
    const again = only.fetch('orders', order('b'))
    await pass(1000)
    const { key } = await again.stored
    expect(await reason(abandoned)).toMatchObject({ intentId: 'b', key })
    expect(await reason(again)).toMatchObject({ code: 'abandoned', mayStillHappen: true, intentId: 'b', key })
  })

  it('P13: every outcome, every view, every event and every warning', async () => {
    const { network, tab, pass } = world()
    network.script(broken(), problem(422, 'nope', proven))
    const only = tab()
    const told: unknown[] = []
    only.fetch.subscribe((note) => told.push(note))
    const write = only.fetch('orders', order('a'))
    await pass(60_000)
    const { key } = await write.stored
    expect(await write.outcome()).toMatchObject({ id: 'a', key, state: 'rejected' })
    expect(await only.fetch.intents.get('a')).toMatchObject({ key })
    expect(await only.fetch.intents.wait('a')).toMatchObject({ key })
    const about = told.filter((note) => (note as { type: string }).type === 'state')
    expect(about.length).toBeGreaterThan(3)
    for (const note of about) expect(note).toMatchObject({ intentId: 'a', key })
    expect(only.notes.filter(({ type }) => type === 'state')).toEqual(about)
  })

  it('P13, P36: an abort while waiting stays an AbortError, with the key and what is known', async () => {
    const { network, tab, pass } = world()
    network.script(broken(), created())
    const only = tab({ retry: { baseMs: 20_000, capMs: 20_000 } })
    const abort = new AbortController()
    const write = only.fetch('orders', { ...order('a'), signal: abort.signal })
    await pass(100)
    abort.abort(new Error('the page was left'))
    const error = await reason(write)
    expect(error).toMatchObject({
      name: 'AbortError',
      intentId: 'a',
      key: (await write.stored).key,
      cause: abort.signal.reason,
    })
    expect(String(error)).toContain('may have been executed')
    await pass(60_000)
    // Only the waiting ended.
    expect(await only.fetch.intents.get('a')).toMatchObject({ state: 'succeeded' })
  })

  it('P13, P36: an abort before anything was stored says so, and is true', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const write = only.fetch('orders', { ...order('a'), signal: AbortSignal.abort() })
    await pass(60_000)
    const error = await reason(write)
    expect(error).toMatchObject({ name: 'AbortError', intentId: 'a', key: undefined })
    expect(String(error)).toContain('was not stored')
    expect([network.calls.length, await untouched(only)]).toEqual([0, true])
  })

  it('P36: an aborted caller does not disturb the others', async () => {
    const { network, tab, pass, clock } = world()
    network.script(later(clock, 2000, created()))
    const only = tab()
    const abort = new AbortController()
    const one = only.fetch('orders', { ...order('a'), signal: abort.signal })
    const two = only.fetch('orders', order('a'))
    await pass(100)
    abort.abort()
    await pass(5000)
    expect(await reason(one)).toMatchObject({ name: 'AbortError' })
    expect((await two).status).toBe(201)
    expect(network.writes()).toHaveLength(1)
    expect(network.writes()[0]!.signal.aborted).toBe(false)
  })

  it('fetch resolves with any final answer of the server, refusals and conflicts too', async () => {
    const { network, tab, pass } = world()
    network.script(answer(422, proven, 'no zip'), problem(409, 'idempotency_conflict'))
    const only = tab()
    const refused = only.fetch('orders', order('a'))
    await pass(1000)
    const conflict = only.fetch('orders', order('b', { item: 'cup' }))
    await pass(1000)
    expect([(await refused).status, await (await refused).text()]).toEqual([422, 'no zip'])
    expect((await conflict).status).toBe(409)
    expect(await conflict.outcome()).toMatchObject({ state: 'conflicted', key: (await conflict.stored).key })
  })
})

describe('P22: a body that is not there is a typed error, never an empty value', () => {
  it.each([
    ['kept out by the operation', { operations: { op: { storeAnswer: false } } }, created()],
    ['omitted by the server', { operations: { op: {} } }, answer(201, { ...proven, 'idempotency-body': 'omitted' })],
    ['larger than what is kept', { operations: { op: {} } }, answer(201, proven, 'x'.repeat(70_000))],
  ])('P22: %s', async (_why, options, said) => {
    const { network, tab, pass } = world()
    network.script(said)
    const first = tab(options)
    void first.fetch('orders', { ...order('a'), operation: 'op' })
    await pass(1000)
    first.kill()
    const again = tab(options).fetch('orders', { ...order('a'), operation: 'op' })
    await pass(1000)
    const response = await again
    expect([response.status, response.ok, response.headers.get('idempotency-expires')]).toEqual([
      201,
      true,
      expect.any(String),
    ])
    const known = { code: 'body_not_stored', intentId: 'a', key: (await again.stored).key }
    for (const read of ['json', 'text', 'arrayBuffer', 'blob', 'bytes', 'formData'] as const) {
      expect(await reason(response[read]())).toMatchObject(known)
    }
    expect(await reason(response.clone().text())).toMatchObject(known)
    expect(await reason(again.json())).toMatchObject(known)
    expect(await reason(response.body!.getReader().read())).toMatchObject(known)
    expect(network.writes()).toHaveLength(1)
  })
})

describe('P17, P18, F1: the store cannot keep it', () => {
  const failing =
    (method: 'insert' | 'current' | 'nextDueAt' | 'update', failure: () => Error) => (store: IntentStore) => ({
      ...store,
      [method]: () => Promise.reject(failure()),
    })
  const quota = () => new StoreFailure('quota', 'no', 'The disk is full.')

  it('B32, F1: a full store: a typed error, not success and not for ever; 0 requests, also later', async () => {
    const { network, tab, pass } = world()
    const only = tab({ wrapStore: failing('insert', quota) })
    const write = only.fetch('orders', order('a'))
    await pass(3_600_000)
    const error = await reason(write)
    expect(error).toMatchObject({
      code: 'store_write',
      stored: 'no',
      intentId: 'a',
      key: expect.any(String),
      cause: { reason: 'quota' },
    })
    expect(String(error)).toContain('The disk is full')
    expect(await reason(write.stored)).toBe(error)
    expect(await reason(write.outcome())).toBe(error)
    expect([network.calls.length, await untouched(only)]).toEqual([0, true])
  })

  it('B32, F1: after space was made, the same id is submitted again and happens once', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(server.answer)
    let full = true
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        insert: (...args) => (full ? Promise.reject(quota()) : store.insert(...args)),
      }),
    })
    expect(await reason(Promise.all([only.fetch('orders', order('a')), pass(1000)]))).toMatchObject({
      code: 'store_write',
    })
    full = false
    const write = only.fetch('orders', order('a'))
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(server.total()).toBe(1)
  })

  it.each([
    [
      'opening fails (private mode)',
      'nextDueAt',
      () => new StoreFailure('unavailable', 'no', 'There is no IndexedDB.'),
    ],
    ['reading fails', 'current', () => new StoreFailure('timeout', 'no', 'The store did not answer.')],
    ['it throws something of its own', 'current', () => new RangeError('oops')],
    ['it is closed', 'insert', () => new StoreFailure('closed', 'no', 'The store is closed.')],
  ] as const)(
    'B33, F1: where %s, the submit is a StoreWriteError: nothing was sent and nothing will be',
    async (_what, method, failure) => {
      const { network, tab, pass } = world()
      const only = tab({ wrapStore: failing(method, failure) })
      const write = only.fetch('orders', order('a'))
      await pass(600_000)
      expect(await reason(write)).toMatchObject({ code: 'store_write', stored: 'no', intentId: 'a' })
      expect([network.calls.length, await untouched(only)]).toEqual([0, true])
    },
  )

  it('B33: whether the store can be used is known before the first submit', async () => {
    const { tab, pass } = world()
    const cannot = () => new StoreFailure('unavailable', 'no', 'There is no IndexedDB.')
    const only = tab({ wrapStore: failing('nextDueAt', cannot) })
    await pass(0)
    expect(await reason(only.fetch.ready)).toMatchObject({ code: 'store_failure', reason: 'unavailable' })
    expect(only.notes).toContainEqual(expect.objectContaining({ code: 'store_failed' }))
    const usable = tab({ name: 'usable' })
    await usable.fetch.ready
    expect(usable.notes).toContainEqual(expect.objectContaining({ code: 'store_not_durable' }))
  })

  it('B33, P33: a store that works later is used then', async () => {
    const { network, tab, pass } = world()
    let works = false
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        nextDueAt: (...args) =>
          works ? store.nextDueAt(...args) : Promise.reject(new StoreFailure('unavailable', 'no', 'not yet')),
      }),
    })
    expect(await reason(Promise.all([only.fetch('orders', order('a')), pass(1000)]))).toMatchObject({
      code: 'store_write',
    })
    works = true
    const write = only.fetch('orders', order('a'))
    await pass(60_000)
    expect((await write).status).toBe(201)
    expect(network.writes()).toHaveLength(1)
  })

  it.each([
    [
      'another failure that promises nothing',
      () => new StoreFailure('timeout', 'maybe', 'The store did not answer in time.'),
    ],
    ['an error of another kind', () => new Error('socket closed')],
  ])('P18: after %s the error says that it may be stored and may be sent', async (_what, failure) => {
    const { tab, pass } = world()
    const only = tab({ wrapStore: failing('insert', failure) })
    const write = only.fetch('orders', order('a'))
    await pass(1000)
    const error = await reason(write)
    expect(error).toMatchObject({ code: 'store_write', stored: 'maybe', intentId: 'a', key: expect.any(String) })
    expect(String(error)).toContain('Submit the same id again')
  })

  it.each([
    ['before the caller submits again', 500],
    ['after the caller submitted again', 5000],
  ])('H18, P18: a write that timed out lands %s: the same id joins it, one order', async (_when, landsAfterMs) => {
    const { network, tab, pass, clock } = world()
    const server = honestServer()
    network.script(server.answer)
    let slow = true
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        insert: (...args) => {
          if (!slow) return store.insert(...args)
          slow = false
          clock.timer(landsAfterMs, () => void store.insert(...args))
          return Promise.reject(new StoreFailure('timeout', 'maybe', 'The store did not answer in time.'))
        },
      }),
    })
    const first = only.fetch('orders', order('a'))
    await pass(1000)
    const error = (await reason(first)) as { key: string }
    expect(error).toMatchObject({ stored: 'maybe' })
    const again = only.fetch('orders', order('a'))
    await pass(300_000)
    expect((await again).status).toBe(201)
    expect(server.total()).toBe(1)
    expect((await only.store.list(origin, { limit: 9 })).length).toBe(1)
    if (landsAfterMs < 1000) expect((await again.stored).key).toBe(error.key)
  })

  it('H18, P18: left alone, what landed late is found and sent once, under the key that the error named', async () => {
    const { network, tab, pass, clock } = world()
    const server = honestServer()
    network.script(server.answer)
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        insert: (...args) => {
          clock.timer(500, () => void store.insert(...args))
          return Promise.reject(new StoreFailure('timeout', 'maybe', 'The store did not answer in time.'))
        },
      }),
    })
    const first = only.fetch('orders', order('a'))
    await pass(300_000)
    const error = (await reason(first)) as { key: string }
    expect(server.effects).toEqual(new Map([[error.key, 1]]))
  })

  it('P18: with another content, the id stays with what landed late', async () => {
    const { network, tab, pass, clock } = world()
    let slow = true
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        insert: (...args) => {
          if (!slow) return store.insert(...args)
          slow = false
          clock.timer(500, () => void store.insert(...args))
          return Promise.reject(new StoreFailure('timeout', 'maybe', 'The store did not answer in time.'))
        },
      }),
    })
    void only.fetch('orders', order('a'))
    await pass(1000)
    const edited = only.fetch('orders', order('a', { item: 'edited' }))
    await pass(120_000)
    expect(await reason(edited)).toMatchObject({ code: 'intent_mismatch' })
    expect(network.writes().map(({ body }) => body)).toEqual([order('a').body])
  })

  it('P17: no byte leaves before both the record and the mark "handed over" are stored', async () => {
    const { network, tab, pass } = world()
    const only = tab({ wrapStore: failing('update', quota) })
    const write = only.fetch('orders', order('a'))
    await pass(60_000)
    expect(network.calls).toEqual([])
    expect(await reason(write)).toMatchObject({ code: 'still_open', state: 'queued', inDoubt: false })
    expect(only.notes).toContainEqual(expect.objectContaining({ code: 'store_failed', intentId: 'a' }))
  })

  it('P17: the record is durable before the first byte leaves, and the mark "handed over" is too', async () => {
    const { network, tab, pass, clock } = world()
    const steps: string[] = []
    const slowly = async <T>(name: string, write: () => Promise<T>): Promise<T> => {
      await new Promise<void>((resolve) => clock.timer(500, resolve))
      const result = await write()
      steps.push(name)
      return result
    }
    network.script((call, request) => {
      steps.push('send')
      return created()(call, request)
    })
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        insert: (...args) => slowly('record', () => store.insert(...args)),
        update: (...args) => slowly(args[0].state, () => store.update(...args)),
      }),
    })
    void only.fetch('orders', order('a'))
    await pass(10_000)
    expect(steps.slice(0, 4)).toEqual(['record', 'sending', 'send', 'succeeded'])
  })

  it('P17, P22: the outcome is stored before any caller hears of it', async () => {
    const { tab, pass } = world()
    let heard = false
    let storedFirst: boolean | null = null
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        update: async (...args) => {
          if (args[0].state === 'succeeded' && storedFirst === null) storedFirst = !heard
          return store.update(...args)
        },
      }),
    })
    only.fetch.subscribe((note) => {
      if (note.type === 'state' && note.to === 'succeeded') heard = true
    })
    const write = only.fetch('orders', order('a'))
    await pass(1000)
    await write
    expect([heard, storedFirst]).toEqual([true, true])
  })
})

describe('H63: nobody awaits', () => {
  it.each<[string, TabOptions, RequestInit & IntentInit & { intent: string }]>([
    ['a write that ends unknown', { retry: { attempts: 1 } }, order('a')],
    ['a wrong call', {}, { ...order('a'), waitMs: -1 }],
    ['a body that cannot be stored', {}, { ...order('a'), body: '{"a":1,"a":2}' }],
    [
      'a store that fails',
      { wrapStore: (store) => ({ ...store, insert: () => Promise.reject(new Error('gone')) }) },
      order('a'),
    ],
    ['nobody signed in', { scope: () => null }, order('a')],
    ['an aborted write', {}, { ...order('a'), signal: AbortSignal.abort() }],
  ])('H63: %s is no unhandled rejection', async (_what, options, init) => {
    const unhandled: unknown[] = []
    const note = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', note)
    try {
      const { network, tab, pass } = world()
      network.script(broken())
      const only = tab(options)
      const write = only.fetch('orders', init)
      const other = only.fetch('orders', init)
      await pass(120_000)
      expect(await reason(write)).not.toHaveProperty('resolved')
      await only.fetch.stop()
      const late = only.fetch('orders', order('late'))
      await pass(1000)
      expect(await reason(late)).toMatchObject({ code: 'config', option: 'stop', intentId: 'late' })
      void other
    } finally {
      process.off('unhandledRejection', note)
    }
    expect(unhandled).toEqual([])
  })
})
