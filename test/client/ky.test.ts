import ky from 'ky'
import { ConfigError, HTTPError, KeyConflictError, newIntent } from 'samekey'
import { describe, expect, it, vi } from 'vitest'
import { clientWorld } from '../support/client.ts'
import {
  answer,
  broken,
  commitThenDrop,
  created,
  honestServer,
  later,
  origin,
  problem,
  world,
} from '../support/world.ts'

vi.mock('../../src/platform/platform.ts', async (original) => {
  const { platformInUse } = await import('../support/platform-in-use.ts')
  return { ...(await original<object>()), systemPlatform: () => platformInUse() }
})

const proven = { 'idempotency-expires': 'Wed, 02 Dec 2026 12:00:00 GMT' }
const reason = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => ({ resolved: value }),
    (error: unknown) => error,
  )

describe("createClient: ky's ways", () => {
  it('post, put, patch and delete are safe writes, each with its method', async () => {
    const { client, network, pass } = clientWorld()
    const { api } = client()
    for (const method of ['post', 'put', 'patch', 'delete'] as const) {
      const write = api[method]('orders/1', { intent: `${method}:1`, json: { method } })
      await pass(1000)
      expect((await write).status).toBe(201)
    }
    expect(network.calls.map(({ method, url, body }) => [method, url, body])).toEqual(
      ['post', 'put', 'patch', 'delete'].map((method) => [
        method.toUpperCase(),
        `${origin}/orders/1`,
        JSON.stringify({ method }),
      ]),
    )
    expect(network.calls.every(({ key }) => key !== null)).toBe(true)
  })

  it.each([
    ['json', { id: 9 }],
    ['text', '{"id":9}'],
  ] as const)('the shortcut %s() works on the promise', async (shortcut, expected) => {
    const { client, pass } = clientWorld()
    const { api } = client()
    const value = api.post('orders', { intent: 'a', json: {} })[shortcut]()
    await pass(1000)
    expect(await value).toEqual(expected)
  })

  it('searchParams, headers, a base with a path, and an absolute address', async () => {
    const { client, network, pass } = clientWorld()
    const { api } = client({ baseUrl: `${origin}/v1/`, name: 'v1', ky: { headers: { 'x-app': 'shop' } } })
    void api.post('orders', { intent: 'a', json: {}, searchParams: { page: 1 }, headers: { 'x-tenant': 't' } })
    void api.post('/carts', { intent: 'b', json: { b: 1 } })
    void api.post('https://other.example.com/orders', { intent: 'c', json: { c: 1 } })
    void api.post(new URL('https://other.example.com/carts'), { intent: 'd', json: { d: 1 } })
    await pass(1000)
    expect(network.calls.map(({ url }) => url).sort()).toEqual([
      `${origin}/v1/carts`,
      `${origin}/v1/orders?page=1`,
      'https://other.example.com/carts',
      'https://other.example.com/orders',
    ])
    const call = network.calls.find(({ url }) => url.includes('page=1'))
    expect(call!.headers).toMatchObject({ 'x-app': 'shop', 'x-tenant': 't', 'content-type': 'application/json' })
  })

  it('B04, P2: reads pass through without a key and unstored, also after a write', async () => {
    const reads: Request[] = []
    const { client, network, pass } = clientWorld()
    const { api, tab } = client({
      fetch: async (request) => {
        reads.push(request)
        return Response.json({ read: true })
      },
    })
    const write = api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    await write
    expect(await api.get('orders').json()).toEqual({ read: true })
    expect((await api.head('orders')).status).toBe(200)
    expect(reads.map(({ method, url, headers }) => [method, url, headers.has('idempotency-key')])).toEqual([
      ['GET', `${origin}/orders`, false],
      ['HEAD', `${origin}/orders`, false],
    ])
    expect(network.calls).toHaveLength(1)
    expect(await tab.store.list(origin, { limit: 9 })).toHaveLength(1)
  })

  it('P2: a read is asked once: nothing of it is retried', async () => {
    const { client } = clientWorld()
    const reads = vi.fn(async () => new Response(null, { status: 503 }))
    const { api } = client({ fetch: reads })
    expect(await reason(api.get('orders'))).toMatchObject({ response: { status: 503 } })
    expect(reads).toHaveBeenCalledOnce()
  })

  it('what a write returns: the name at once, `stored` once durable, the outcome by value', async () => {
    const { client, network, pass } = clientWorld()
    network.script(broken(), created())
    const { api } = client()
    const write = api.post('orders', { intent: 'checkout:1', json: {} })
    expect(write.id).toBe('checkout:1')
    await pass(0)
    const { id, key } = await write.stored
    expect([id, key]).toEqual(['checkout:1', network.calls[0]!.key])
    await pass(60_000)
    expect(await write.outcome()).toMatchObject({ state: 'succeeded', id, key })
    expect(await write.json()).toEqual({ id: 9 })
  })

  it('P6, B02: two clicks in one tick are one order, whatever ky does in between', async () => {
    const { client, network, pass, clock } = clientWorld()
    const server = honestServer()
    network.script(later(clock, 500, server.answer))
    const { api } = client({
      ky: { hooks: { beforeRequest: [() => new Promise<void>((resolve) => void clock.timer(100, resolve))] } },
    })
    const clicks = [1, 2].map(() => api.post('orders', { intent: 'a', json: { item: 'tea' } }).json())
    await pass(10_000)
    const [one, two] = await Promise.all(clicks)
    expect(one).toEqual(two)
    expect([network.calls.length, server.total()]).toEqual([1, 1])
  })

  it('P3, H52: the scope is that of the click, not of the tick in which ky reaches fetch', async () => {
    const { client, pass, network } = clientWorld()
    let user = 'ann'
    const { api, tab } = client({
      scope: () => user,
      ky: {
        hooks: {
          beforeRequest: [
            () => {
              user = 'bob'
            },
          ],
        },
      },
    })
    void api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    expect(await tab.store.list(origin, { limit: 9 })).toMatchObject([{ scope: 'ann', id: 'a' }])
    expect(network.calls).toEqual([])
  })

  it('P36: signal and waitMs end the waiting only', async () => {
    const { client, network, pass } = clientWorld()
    network.script(broken(), broken(), created())
    const { api } = client({ retry: { baseMs: 10_000, capMs: 10_000 } })
    const abort = new AbortController()
    const aborted = api.post('orders', { intent: 'a', json: {}, signal: abort.signal })
    const short = api.post('orders', { intent: 'a', json: {}, waitMs: 500 })
    await pass(100)
    abort.abort()
    await pass(1000)
    expect(await reason(aborted)).toMatchObject({ name: 'AbortError', intentId: 'a', key: network.calls[0]!.key })
    expect(await reason(short)).toMatchObject({ code: 'still_open', inDoubt: true, key: network.calls[0]!.key })
    await pass(60_000)
    expect(await api.intents.get('a')).toMatchObject({ state: 'succeeded' })
  })

  it('a body of its own, a stream too', async () => {
    const { client, network, pass } = clientWorld()
    network.script(answer(503), created())
    const { api } = client()
    const body = new Blob(['streamed']).stream()
    const write = api.post('uploads', { intent: 'a', body })
    expect(body.locked).toBe(true)
    await pass(60_000)
    expect((await write).status).toBe(201)
    expect(network.calls.map((call) => call.body)).toEqual(['streamed', 'streamed'])
  })
})

describe('createClient: errors', () => {
  it("a refusal is ky's HTTPError, with intentId and key, and with the answer's data", async () => {
    const { client, network, pass } = clientWorld()
    network.script(answer(422, { ...proven, 'content-type': 'application/json' }, '{"field":"zip"}'))
    const seen: unknown[] = []
    const note = (error: Error): Error => {
      seen.push(error)
      return error
    }
    const { api } = client({ ky: { hooks: { beforeError: [({ error }) => note(error)] } } })
    const write = api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    const error = await reason(write)
    expect(error).toBeInstanceOf(HTTPError)
    expect(error).toMatchObject({
      intentId: 'a',
      key: network.calls[0]!.key,
      data: { field: 'zip' },
      response: { status: 422 },
    })
    expect(seen).toEqual([error])
    expect(await write.outcome()).toMatchObject({ state: 'rejected' })
  })

  it('P13: a conflict is a KeyConflictError of ours, with intentId and key', async () => {
    const { client, network, pass } = clientWorld()
    network.script(problem(409, 'idempotency_conflict'))
    const { api } = client()
    const write = api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    const error = await reason(write)
    expect(error).toBeInstanceOf(KeyConflictError)
    expect(error).toMatchObject({
      code: 'key_conflict',
      intentId: 'a',
      key: network.calls[0]!.key,
      cause: expect.any(HTTPError),
    })
    expect(network.calls).toHaveLength(1)
  })

  it("with ky's throwHttpErrors off, refusals and conflicts are answers", async () => {
    const { client, network, pass } = clientWorld()
    network.script(answer(422, proven), problem(409, 'idempotency_conflict'))
    const { api } = client({ ky: { throwHttpErrors: false } })
    const one = api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    const two = api.post('orders', { intent: 'b', json: { b: 1 } })
    await pass(1000)
    expect([(await one).status, (await two).status]).toEqual([422, 409])
  })

  it('typed errors of ours come through ky as they are', async () => {
    const { client, network, pass } = clientWorld()
    network.script(broken())
    const { api } = client({ retry: { attempts: 1 } })
    const unknown = api.post('orders', { intent: 'a', json: {} })
    await pass(60_000)
    const mismatch = api.post('orders', { intent: 'a', json: { edited: true } })
    await pass(1000)
    const { key } = await unknown.stored
    expect(await reason(unknown)).toMatchObject({ code: 'outcome_unknown', intentId: 'a', key })
    expect(await reason(unknown.json())).toMatchObject({ code: 'outcome_unknown' })
    expect(await reason(mismatch)).toMatchObject({ code: 'intent_mismatch', intentId: 'a', key })
    expect(await reason(mismatch.stored)).toMatchObject({ code: 'intent_mismatch' })
  })

  it.each([
    ['a function', { customer: { name: () => 'Ann' } }, 'customer.name'],
    ['a bigint', { amount: 10n }, 'amount'],
    ['NaN', { lines: [{ price: 1 }, { price: Number.NaN }] }, 'lines[1].price'],
    ['a hole in an array', { lines: [1, undefined] }, 'lines[1]'],
    ['a Map', { lines: new Map([['tea', 1]]) }, 'lines'],
    ['a file', { receipt: new Blob(['x']) }, 'receipt'],
    ['bytes', { receipt: new Uint8Array(3) }, 'receipt'],
    ['a promise that was not awaited', { customer: Promise.resolve('Ann') }, 'customer'],
    ['an invalid date', { due: new Date('tomorrow') }, 'due'],
    ['a symbol', { kind: Symbol('kind') }, 'kind'],
  ])('B15: json with %s names the field; nothing is stored or sent', async (_what, json, field) => {
    const { client, network, pass } = clientWorld()
    const { api, tab } = client()
    const write = api.post('orders', { intent: 'a', json })
    await pass(1000)
    const error = await reason(write)
    expect(error).toMatchObject({ code: 'unsupported_body', intentId: 'a' })
    expect(String(error)).toContain(`json: ${field} is`)
    expect(await reason(write.stored)).toBe(error)
    expect(await reason(write.outcome())).toBe(error)
    expect(await reason(write.json())).toBe(error)
    expect([network.calls.length, await tab.store.list(origin, { limit: 9 })]).toEqual([0, []])
  })

  it('B15: a cycle and bottomless nesting too', async () => {
    const { client, network, pass } = clientWorld()
    const { api } = client()
    const cycle: Record<string, unknown> = {}
    cycle.self = { cycle }
    let deep: unknown = 1
    for (let level = 0; level < 100_000; level++) deep = [deep]
    const writes = [api.post('orders', { intent: 'a', json: cycle }), api.post('orders', { intent: 'b', json: deep })]
    await pass(1000)
    for (const write of writes) expect(await reason(write)).toMatchObject({ code: 'unsupported_body' })
    expect(network.calls).toEqual([])
  })

  it('B20: what JSON leaves out on purpose is fine: undefined members, dates, boxed values, classes', async () => {
    const { client, network, pass } = clientWorld()
    const { api } = client()
    class Line {
      readonly sku = 'tea'
    }
    const json = {
      gone: undefined,
      at: new Date(0),
      boxed: Object('text'),
      line: new Line(),
      bare: Object.create(null),
    }
    const write = api.post('orders', { intent: 'a', json })
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(network.calls[0]!.body).toBe(
      '{"at":"1970-01-01T00:00:00.000Z","boxed":"text","line":{"sku":"tea"},"bare":{}}',
    )
  })

  it('B15: a plain object as body is refused; json is the option for it', async () => {
    const { client, network, pass } = clientWorld()
    const { api } = client()
    const write = api.post('orders', { intent: 'a', body: { item: 'tea' } as unknown as BodyInit })
    await pass(1000)
    expect(await reason(write)).toMatchObject({ code: 'unsupported_body', intentId: 'a' })
    expect(network.calls).toEqual([])
  })

  it('H63: nobody awaits, and no rejection is unhandled', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', note)
    try {
      const { client, network, pass } = clientWorld()
      network.script(answer(422, proven), broken())
      const { api } = client({
        retry: { attempts: 1 },
        ky: {
          hooks: {
            beforeRequest: [
              ({ request }) => {
                if (request.url.endsWith('hook')) throw new Error('hook')
              },
            ],
          },
        },
      })
      void api.post('orders', { intent: 'refused', json: {} })
      await pass(1000)
      void api.post('orders', { intent: 'unknown', json: { a: 1 } })
      void api.post('orders', { intent: '', json: {} })
      void api.post('orders', { intent: 'json', json: () => 1 })
      void api.post('hook', { intent: 'hook', json: {} })
      void api.post('orders', { intent: 'aborted', json: {}, signal: AbortSignal.abort() })
      await pass(120_000)
    } finally {
      process.off('unhandledRejection', note)
    }
    expect(unhandled).toEqual([])
  })
})

describe('createClient: names', () => {
  it.each<[string, unknown]>([
    ['no options', undefined],
    ['no name', { json: {} }],
    ['an empty name', { intent: '', json: {} }],
    ['no text', { intent: 42, json: {} }],
    ['null', null],
  ])('P2: a write with %s is a ConfigError, as a rejection; nothing is stored or sent', async (_what, options) => {
    const { client, network, pass } = clientWorld()
    const { api, tab } = client()
    const write = api.post('orders', options as { intent: string })
    await pass(1000)
    expect(await reason(write)).toMatchObject({ code: 'config', option: 'intent' })
    expect(await reason(write.stored)).toMatchObject({ code: 'config' })
    expect(await reason(write.json())).toMatchObject({ code: 'config' })
    expect([network.calls.length, await tab.store.list(origin, { limit: 9 })]).toEqual([0, []])
  })

  it('newIntent(): a one-off name that the caller holds: twice the same name is one order, two names are two', async () => {
    const { client, network, pass } = clientWorld()
    const { api } = client()
    const held = newIntent()
    expect(held).toMatch(/^once:[\da-f-]{36}$/)
    for (const intent of [held, held, newIntent()]) void api.post('orders', { intent, json: {} })
    await pass(1000)
    expect(network.calls).toHaveLength(2)
  })

  it('B06: newIntent() without a secure source is a ConfigError', () => {
    vi.stubGlobal('crypto', undefined)
    expect(() => newIntent()).toThrow(ConfigError)
  })

  it('B09: deeply frozen options and payload serve two intents; nothing is written into them', async () => {
    const { client, network, pass } = clientWorld()
    const { api } = client()
    const json = Object.freeze({ item: 'tea', lines: Object.freeze([Object.freeze({ sku: 1 })]) })
    const options = Object.freeze({
      json,
      headers: Object.freeze({ 'x-tenant': 't' }),
      searchParams: Object.freeze({ a: '1' }),
    })
    const before = JSON.stringify(options)
    const writes = ['a', 'b'].map((intent) => api.post('orders', Object.freeze({ ...options, intent })))
    await pass(1000)
    expect((await Promise.all(writes)).map(({ status }) => status)).toEqual([201, 201])
    expect(JSON.stringify(options)).toBe(before)
    expect(new Set(network.calls.map(({ key }) => key)).size).toBe(2)
  })

  it('P9: changes after the call, before ky reaches fetch, do not reach the wire', async () => {
    const { client, network, pass, clock } = clientWorld()
    const { api } = client()
    const json = { item: 'tea' }
    const headers: Record<string, string> = { 'x-tenant': 't-1' }
    const key = { value: 'k-1', since: new Date(clock.now() - 60_000) }
    const body = new TextEncoder().encode('one')
    const options = { intent: 'a', json, headers, key }
    const writes = [api.post('orders', options), api.post('uploads', { intent: 'b', body })]
    json.item = 'coffee'
    headers['x-tenant'] = 't-2'
    key.value = 'k-2'
    key.since.setTime(clock.now())
    options.intent = 'c'
    body.set(new TextEncoder().encode('two'))
    await pass(1000)
    expect((await Promise.all(writes)).map(({ status }) => status)).toEqual([201, 201])
    const [first, second] = network.calls
    expect(first).toMatchObject({ body: '{"item":"tea"}', key: 'k-1', age: '60', headers: { 'x-tenant': 't-1' } })
    expect(second).toMatchObject({ body: 'one' })
  })

  it('P11: key, operation, lane, again and sendBefore reach the intent through ky', async () => {
    const { client, network, pass, clock } = clientWorld()
    network.script(answer(422, proven), created())
    const { api } = client({ operations: { 'orders.create': {} } })
    const options = { intent: 'a', json: {}, operation: 'orders.create', lane: 'cart' }
    void api.post('orders', { ...options, sendBefore: new Date(clock.now() + 60_000) })
    await pass(1000)
    await api.lanes.resume('cart')
    const again = api.post('orders', { ...options, again: true, key: { derived: true, since: 'new' } })
    await pass(1000)
    expect((await again).status).toBe(201)
    const { intents } = await api.intents.list({ id: 'a' })
    expect(intents).toMatchObject([
      { operation: 'orders.create', lane: 'cart', sendBefore: clock.now() + 58_000, state: 'rejected' },
      { operation: 'orders.create', lane: 'cart', sendBefore: null, state: 'succeeded', keyOrigin: 'derived' },
    ])
  })
})

describe("createClient: ky's hooks and options", () => {
  it("B17, P9: hooks run once, at submit: key and body are the record's, whatever a hook makes of them; auth is fresh", async () => {
    const { client, network, pass } = clientWorld()
    network.script(answer(503), answer(503), created())
    let ran = 0
    let token = 0
    const { api } = client({
      scope: () => 'ann',
      auth: () => ({ scope: 'ann', headers: { authorization: `Bearer ${++token}` } }),
      ky: {
        hooks: {
          beforeRequest: [
            ({ request }) => {
              ran++
              request.headers.set('idempotency-key', `hook-${ran}`)
              request.headers.set('authorization', `stale ${ran}`)
              return new Request(request, { body: JSON.stringify({ edited: ran }) })
            },
          ],
        },
      },
    })
    const write = api.post('orders', { intent: 'a', json: { item: 'tea' } })
    await pass(60_000)
    expect((await write).status).toBe(201)
    expect(ran).toBe(1)
    expect(network.calls.map(({ key, body, headers }) => [key, body, headers.authorization])).toEqual([
      ['hook-1', '{"edited":1}', 'Bearer 1'],
      ['hook-1', '{"edited":1}', 'Bearer 2'],
      ['hook-1', '{"edited":1}', 'Bearer 3'],
    ])
  })

  it.each([
    ['throws', () => Promise.reject(new Error('hook'))],
    ['asks ky to retry', () => ky.retry()],
  ])('P28, B65: an afterResponse hook that %s causes no second request', async (_what, hook) => {
    const { client, network, pass } = clientWorld()
    const { api } = client({ ky: { hooks: { afterResponse: [hook] } } })
    const write = api.post('orders', { intent: 'a', json: {} })
    await pass(60_000)
    expect(await reason(write)).toBeInstanceOf(Error)
    expect(network.calls).toHaveLength(1)
    expect(await api.intents.get('a')).toMatchObject({ state: 'succeeded' })
  })

  it('a hook that answers by itself: nothing is stored or sent, and `stored` says so; the name is free', async () => {
    const { client, network, pass } = clientWorld()
    let answers = true
    const { api } = client({ ky: { hooks: { beforeRequest: [() => (answers ? new Response('mock') : undefined)] } } })
    const write = api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    expect(await write.text()).toBe('mock')
    expect(await reason(write.stored)).toMatchObject({ code: 'config', option: 'ky.hooks', intentId: 'a' })
    expect(network.calls).toEqual([])
    answers = false
    const next = api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    expect((await next).status).toBe(201)
  })

  it('a beforeRequest hook that throws frees the name', async () => {
    const { client, network, pass } = clientWorld()
    let fails = true
    const { api } = client({
      ky: {
        hooks: {
          beforeRequest: [
            () => {
              if (fails) throw new Error('no token')
            },
          ],
        },
      },
    })
    const first = api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    expect(await reason(first)).toMatchObject({ message: 'no token' })
    fails = false
    const second = api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    expect((await second).status).toBe(201)
    expect(network.calls).toHaveLength(1)
  })

  it.each(['fetch', 'retry', 'timeout', 'totalTimeout', 'baseUrl', 'prefix', 'method'])(
    'ky.%s is decided by samekey: a ConfigError, for the client and for one call',
    async (option) => {
      const { client, network, pass } = clientWorld()
      expect(() => client({ ky: { [option]: 1 } as object })).toThrow(
        expect.objectContaining({ code: 'config', option: `ky.${option}` }),
      )
      const { api } = client()
      const write = api.post('orders', { intent: 'a', json: {}, ...({ [option]: 1 } as object) })
      await pass(1000)
      expect(await reason(write)).toMatchObject({ code: 'config', option, intentId: 'a' })
      expect(network.calls).toEqual([])
    },
  )
})

describe('an existing ky instance', () => {
  it('becomes safe in one line: ky.extend({ fetch: safeFetch, retry: 0, timeout: false })', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), server.answer)
    const only = tab()
    const existing = ky.create({
      prefix: origin,
      headers: { 'x-app': 'shop' },
      hooks: { beforeRequest: [({ request }) => request.headers.set('x-hook', '1')] },
    })
    const safe = existing.extend({ fetch: only.fetch, retry: 0, timeout: false })
    const order = safe.post('orders', { json: { item: 'tea' }, headers: { 'samekey-intent': 'checkout:1' } }).json()
    await pass(60_000)
    expect(await order).toEqual({ id: network.calls[0]!.key })
    expect([network.calls.length, server.total()]).toEqual([2, 1])
    for (const { headers } of network.calls) {
      expect(headers).toMatchObject({ 'x-app': 'shop', 'x-hook': '1' })
      expect(headers).not.toHaveProperty('samekey-intent')
    }
  })

  it('passes what it does not know of an intent on: the name as an option', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const safe = ky.create({ fetch: only.fetch, retry: 0, timeout: false })
    const options = { json: {}, intent: 'checkout:1', key: { value: 'k-1', since: 'new' } }
    const write = safe.post(`${origin}/orders`, options)
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(network.calls).toMatchObject([{ key: 'k-1' }])
  })

  it("the client's own fetch serves it too", async () => {
    const { client, network, pass } = clientWorld()
    const { api } = client()
    const safe = ky.create({ fetch: api.fetch, retry: 0, timeout: false })
    const write = safe.post(`${origin}/orders`, { json: {}, headers: { 'samekey-intent': 'a' } })
    const direct = api.post('orders', { intent: 'a', json: {} })
    await pass(1000)
    expect([(await write).status, (await direct).status]).toEqual([201, 201])
    expect(network.calls).toHaveLength(1)
  })
})
