import { bearerScope, createMockServer, delay, noFault, status } from 'samekey/msw'
import { json, refuse } from 'samekey/server'
import { virtualClock } from 'samekey/testing'
import { describe, expect, it } from 'vitest'
import { codeOf, look, send, statusOf, voidKey } from './send.ts'

const HOUR_MS = 3_600_000

describe('the mock decides with the server’s own lines', () => {
  it('P55: a replay is equal, byte for byte and header for header, but for its marker and the time', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock })
    const [first, second] = [await send(mock), await send(mock)]
    expect(new Uint8Array(await second.arrayBuffer())).toEqual(new Uint8Array(await first.arrayBuffer()))
    const { 'idempotent-replayed': marker, ...rest } = Object.fromEntries(second.headers)
    expect([marker, rest]).toEqual(['true', Object.fromEntries(first.headers)])
    expect(mock.effects.total).toBe(1)
  })

  it('P14: the same order written another way is a replay, another order is a conflict', async () => {
    const mock = createMockServer()
    await send(mock, 'k-1', '{"item":"tea","count":1}')
    expect((await send(mock, 'k-1', '{ "count": 1.0, "item": "tea" }')).status).toBe(201)
    expect(await codeOf(await send(mock, 'k-1', '{"item":"tea","count":2}'))).toBe('idempotency_conflict')
    expect(mock.effects.total).toBe(1)
  })

  it('P58: a void before the request means that it is never executed; after it, it tells the answer', async () => {
    const mock = createMockServer()
    expect(await statusOf(await voidKey(mock, 'k-1'))).toBe('voided')
    expect(await codeOf(await send(mock, 'k-1'))).toBe('idempotency_voided')
    await send(mock, 'k-2')
    expect(await statusOf(await voidKey(mock, 'k-2'))).toBe('succeeded')
    expect([mock.effects.forKey('k-1'), mock.effects.forKey('k-2')]).toEqual([0, 1])
  })

  it('P57: a request that is older than the retention is expired once its row is gone, and not executed again', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock, retentionMs: 24 * HOUR_MS, transitMs: 60_000, graceMs: HOUR_MS })
    await send(mock)
    await clock.advance(24 * HOUR_MS)
    const late = { 'idempotency-age': String(24 * 3600) }
    expect((await send(mock, 'k-1', undefined, late)).headers.get('idempotent-replayed')).toBe('true')
    await clock.advance(HOUR_MS)
    expect(await codeOf(await send(mock, 'k-1', undefined, late))).toBe('idempotency_expired')
    expect(await codeOf(await voidKey(mock, 'k-1', late))).toBe('idempotency_expired')
    expect([mock.effects.total, mock.keys]).toEqual([1, []])
  })

  it('expire(key) does the same without waiting', async () => {
    const mock = createMockServer()
    await send(mock)
    mock.expire('k-1')
    expect(mock.keys).toEqual([])
    expect(await codeOf(await send(mock))).toBe('idempotency_expired')
    expect(await codeOf(await look(mock))).toBe('idempotency_expired')
    expect(mock.effects.total).toBe(1)
  })

  it('a missing, double or malformed key is refused as the real server refuses it', async () => {
    const mock = createMockServer()
    const bare = await mock.fetch('/orders', { method: 'POST', body: '{}' })
    expect([bare.status, await codeOf(bare)]).toEqual([400, 'idempotency_key_missing'])
    expect(await codeOf(await send(mock, 'a, b'))).toBe('idempotency_key_invalid')
    expect(mock.requests.map(({ key }) => key)).toEqual([null, null])
  })

  it('P53: keys belong to their scope, and a tag that is not the caller’s touches nothing', async () => {
    const mock = createMockServer({ scope: bearerScope })
    const as = (user: string) => ({ authorization: `Bearer ${user}` })
    await send(mock, 'k-1', undefined, as('ann'))
    await send(mock, 'k-1', undefined, as('bob'))
    expect([mock.effects.total, mock.orders.map(({ principal }) => principal)]).toEqual([2, ['ann', 'bob']])
    const other = await send(mock, 'k-2', undefined, { ...as('ann'), 'idempotency-scope': 'bob' })
    expect(await codeOf(other)).toBe('idempotency_scope_mismatch')
    expect((await send(mock, 'k-2', undefined, { ...as('ann'), 'idempotency-scope': 'ann' })).status).toBe(201)
    expect((await send(mock, 'k-3')).status).toBe(401)
    expect(mock.requests.map(({ decided }) => decided).slice(2)).toEqual([
      'idempotency_scope_mismatch',
      'executed',
      'unauthenticated',
    ])
  })

  it('P56: a refusal is remembered, and its business change and effect are taken back', async () => {
    const mock = createMockServer({
      operations: {
        'orders.create': {
          path: '/orders',
          execute({ createOrder }) {
            createOrder('gone')
            return refuse(422, { code: 'out_of_stock' })
          },
        },
      },
    })
    expect((await send(mock)).headers.has('idempotency-expires')).toBe(true)
    expect((await send(mock)).headers.get('idempotent-replayed')).toBe('true')
    expect([mock.effects.total, mock.orders]).toEqual([0, []])
  })
})

describe('operations of one’s own', () => {
  it('have names, patterns, limits and rows of their own', async () => {
    const mock = createMockServer({
      baseUrl: 'https://api.test/v1/',
      keysPath: '/idempotency/keys',
      operations: {
        'refunds.create': {
          method: 'put',
          path: '/orders/:order/refunds',
          limits: { key: { maxLength: 3 } },
          execute: ({ params, createOrder }) => json(200, createOrder({ refundOf: params.order })),
        },
      },
    })
    const put = { method: 'PUT', headers: { 'idempotency-key': 'k-1' } }
    const response = await mock.fetch('https://api.test/v1/orders/a%20b/refunds', put)
    expect(await response.json()).toMatchObject({ id: 1, value: { refundOf: 'a b' } })
    expect(mock.keysUrl).toBe('https://api.test/v1/idempotency/keys')
    expect(await statusOf(await mock.fetch(`${mock.keysUrl}/refunds.create/k-1`))).toBe('succeeded')
    expect([mock.effects.forOperation('refunds.create'), mock.effects.list()]).toMatchObject([1, [{ key: 'k-1' }]])
    expect((await mock.fetch('https://api.test/v1/orders', put)).status).toBe(404)
    expect((await mock.fetch('https://api.test/orders/1/refunds', put)).status).toBe(404)
    expect(
      await codeOf(
        await mock.fetch('https://api.test/v1/orders/1/refunds', { ...put, headers: { 'idempotency-key': 'long' } }),
      ),
    ).toBe('idempotency_key_invalid')
  })

  it('P43: the orders can be looked up by their business identity', async () => {
    const mock = createMockServer()
    await send(mock)
    expect(await (await mock.fetch('/orders')).json()).toMatchObject([{ id: 1, value: { item: 'tea' } }])
    expect(await (await mock.fetch('/orders/1')).json()).toMatchObject({ id: 1, key: 'k-1' })
    expect((await mock.fetch('/orders/2')).status).toBe(404)
    const own = createMockServer({ routes: (_request, path) => (path === '/health' ? new Response('ok') : null) })
    expect(await (await own.fetch('/health')).text()).toBe('ok')
    expect((await own.fetch('/orders')).status).toBe(404)
  })

  it('what is neither an operation nor a key is answered as the real server answers it, and scripted by itself', async () => {
    const mock = createMockServer()
    mock.faults.next(status(503))
    mock.faults.others.next(delay(0), status(502))
    const at = async (path: string, method = 'GET') => (await mock.fetch(path, { method })).status
    expect(await at('/keys/orders.create/k-1', 'PATCH')).toBe(405)
    expect(await at('/nothing')).toBe(502)
    expect([await at('/keys/orders.unknown/k-1'), await at('/keys/orders.create'), await at('/keys/%ff/k')]).toEqual([
      404, 404, 404,
    ])
    expect(await at('https://elsewhere.test/orders')).toBe(404)
    expect(mock.requests.map(({ kind }) => kind)).toEqual(Array(6).fill('other'))
    expect(mock.faults.left).toBe(1)
  })

  it('a mistake in one is told, and is no effect', async () => {
    const events: string[] = []
    const mock = createMockServer({
      report: ({ kind }) => events.push(kind),
      operations: {
        'orders.create': {
          path: '/orders',
          execute({ createOrder }) {
            createOrder('lost')
            throw new Error('a mistake')
          },
        },
      },
    })
    expect((await send(mock)).status).toBe(500)
    expect([events, mock.effects.total, mock.orders]).toEqual([['executeFailed'], 0, []])
  })

  it('wrong options are refused at once, by name', () => {
    const at = (path: string) => ({ operations: { a: { path } } })
    expect(() => createMockServer(at('orders'))).toThrow('operations.a.path')
    expect(() => createMockServer(at('/orders/*'))).toThrow('operations.a.path')
    expect(() => createMockServer({ operations: { a: { path: '/x' }, b: { path: '/x' } } })).toThrow('POST /x')
    expect(() => createMockServer({ operations: { '': { path: '/x' } } })).toThrow('operation')
    expect(() => createMockServer({ baseUrl: '/api' })).toThrow('baseUrl')
    expect(() => createMockServer({ keysPath: 'keys' })).toThrow('keysPath')
    expect(() => createMockServer({ latencyMs: -1 })).toThrow('latencyMs')
    expect(() => createMockServer({ retentionMs: 1000 })).toThrow('retentionMs')
  })
})

describe('the log', () => {
  it('has what was asked, what was decided and what was sent back', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock })
    const since = 'Tue, 01 Dec 2026 12:00:00 GMT'
    await send(mock, 'k-1', undefined, { 'idempotency-age': '7', 'idempotency-since': since })
    await voidKey(mock)
    await look(mock)
    expect(mock.requests).toMatchObject([
      {
        at: clock.now(),
        kind: 'submit',
        operation: 'orders.create',
        method: 'POST',
        url: 'https://api.test/orders',
        key: 'k-1',
        age: 7,
        since,
        scopeTag: null,
        headers: { 'content-type': 'application/json' },
        body: new TextEncoder().encode('{"item":"tea"}'),
        fault: null,
        decided: 'executed',
        answer: { status: 201, headers: { date: since } },
        delivered: 'whole',
      },
      { kind: 'void', key: 'k-1', age: null, decided: 'monitor succeeded' },
      { kind: 'lookup', key: 'k-1', decided: 'monitor succeeded' },
    ])
  })

  it('reset forgets everything, and what was under way cannot write into the new world', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock, latencyMs: 100 })
    const { effects, faults } = mock
    faults.next(noFault(), status(503))
    const old = send(mock).catch((error: unknown) => error)
    await clock.advance(10)
    mock.reset()
    expect(await old).toBeInstanceOf(TypeError)
    await clock.advance(1000)
    expect([mock.requests, mock.orders, mock.keys, mock.effects.total, clock.pending()]).toEqual([[], [], [], 0, 0])
    const next = send(mock)
    await clock.advance(100)
    expect(await (await next).json()).toMatchObject({ id: 1 })
    expect([effects.total, faults.left]).toEqual([1, 0])
  })
})
