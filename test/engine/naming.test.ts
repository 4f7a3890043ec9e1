import { describe, expect, it, vi } from 'vitest'
import { ietf, none, stripe } from '../../src/dialects.ts'
import type { Dialect } from '../../src/protocol/dialects/dialect.ts'
import {
  answer,
  broken,
  commitThenDrop,
  created,
  hangs,
  honestServer,
  order,
  origin,
  refusedConnection,
  type Tab,
  world,
} from '../support/world.ts'

const stored = async (tab: Tab): Promise<number> => (await tab.store.list(origin, { limit: 99 })).length

describe('P1: de-duplication is declared', () => {
  it('P1, H4, F24, B52: with `none`, an ambiguous attempt ends unknown and is not repeated', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), server.answer)
    const only = tab({ dialect: none })
    const write = only.fetch('orders', order('checkout:1'))
    await pass(3_600_000)
    await expect(write).rejects.toMatchObject({ code: 'outcome_unknown', because: 'server_does_not_deduplicate' })
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', attempts: 1, inDoubt: true })
    expect(server.total()).toBe(1)
    // No key is sent, because none would be heard.
    expect(network.writes()).toMatchObject([{ key: null }])
  })

  it.each([
    ['refused without effect', answer(429)],
    ['never delivered', refusedConnection()],
  ])('P1: with `none`, "%s" is repeated', async (_what, first) => {
    const { network, tab, pass } = world()
    network.script(first, first, created({ id: 1 }))
    const only = tab({ dialect: none, transport: { provesNonDelivery: true } })
    const write = only.fetch('orders', order('checkout:1'))
    await pass(60_000)
    expect((await write).status).toBe(201)
    expect(network.writes()).toHaveLength(3)
  })

  it('H15, P20: with `none`, a crash while sending is not followed by a second send', async () => {
    const { network, tab, pass } = world()
    network.script(hangs())
    const first = tab({ dialect: none })
    void first.fetch('orders', order('checkout:1'))
    await pass(100)
    first.kill()
    network.script(created())
    const second = tab({ dialect: none })
    await pass(3_600_000)
    expect(network.writes()).toHaveLength(1)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'unknown',
      detail: 'server_does_not_deduplicate',
    })
  })

  it.each<[string, Dialect, string]>([
    ['PUT at a server that takes keys for POST only', stripe, 'PUT'],
    ['DELETE at a server that takes keys for POST and PATCH', ietf({ retentionMs: 86_400_000 }), 'DELETE'],
  ])('P1: %s is not repeated after an ambiguous attempt', async (_what, dialect, method) => {
    const { network, tab, pass } = world()
    network.script(broken(), created())
    const only = tab({ dialect })
    void only.fetch('orders/1', { ...order('put:1'), method })
    await pass(3_600_000)
    expect(network.calls).toHaveLength(1)
    expect(await only.fetch.intents.get('put:1')).toMatchObject({ state: 'unknown' })
  })

  it('P1: one operation of a client may be at a server that does not de-duplicate', async () => {
    const { network, tab, pass } = world()
    network.script(broken(), broken(), created())
    const only = tab({ operations: { 'mails.send': { dialect: none } } })
    void only.fetch('mails', { ...order('mail:1'), operation: 'mails.send' })
    void only.fetch('orders', order('checkout:1', { item: 'cup' }))
    await pass(60_000)
    expect(await only.fetch.intents.get('mail:1')).toMatchObject({ state: 'unknown', attempts: 1 })
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', attempts: 2 })
  })
})

describe('P2: a write becomes an intent only by name', () => {
  const passed = (): {
    fetch: ReturnType<typeof vi.fn<(request: Request, init?: RequestInit) => Promise<Response>>>
  } => ({
    fetch: vi.fn(async () => new Response('passed')),
  })

  it.each<[string, string, RequestInit]>([
    ['a sign-in call', '/login', { method: 'POST', body: 'user=ann&password=secret' }],
    ['a GraphQL query', '/graphql', { method: 'POST', body: '{"query":"{ me { id } }"}' }],
    ['a read', '/orders', {}],
    ['a HEAD', '/orders', { method: 'HEAD' }],
    ['a DELETE', '/orders/1', { method: 'DELETE' }],
  ])('P2, H2: %s without a name passes through, untouched and unstored', async (_what, path, init) => {
    const { network, tab, pass } = world()
    const through = passed()
    const only = tab(through)
    const answered = await only.fetch(path, init)
    await pass(60_000)
    expect(await answered.text()).toBe('passed')
    expect(through.fetch).toHaveBeenCalledOnce()
    const [request] = through.fetch.mock.calls[0]!
    expect([request.method, request.url, await request.text()]).toEqual([
      init.method ?? 'GET',
      origin + path,
      String(init.body ?? ''),
    ])
    expect([...request.headers.keys()].filter((name) => name !== 'content-type')).toEqual([])
    expect(await stored(only)).toBe(0)
    expect(network.calls).toEqual([])
  })

  it('P2: what passes through keeps the options that a Request does not carry, and its network errors', async () => {
    const dispatcher = {}
    const through = passed()
    const only = world().tab(through)
    const init: RequestInit & { dispatcher: object } = { method: 'POST', body: 'x', dispatcher }
    await only.fetch('/graphql', init)
    expect(through.fetch.mock.calls[0]![1]).toEqual({ dispatcher })
    const lost = new TypeError('fetch failed')
    through.fetch.mockRejectedValueOnce(lost)
    await expect(only.fetch('/graphql', init)).rejects.toBe(lost)
  })

  it('P2, B14: an unnamed stream passes through as a stream', async () => {
    const through = passed()
    const only = world().tab(through)
    const body = new Blob(['abc']).stream()
    await only.fetch('/upload', { method: 'POST', body })
    expect(await through.fetch.mock.calls[0]![0].text()).toBe('abc')
  })

  it('P2: fetch(url, null) is fetch(url)', async () => {
    const through = passed()
    const only = world().tab(through)
    await (only.fetch as unknown as (url: string, init: null) => Promise<Response>)('/orders', null)
    expect(through.fetch).toHaveBeenCalledOnce()
  })

  it('H3: the retry loop of another library makes no second key', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), commitThenDrop(server), server.answer)
    const only = tab({ waitMs: 1000, retry: { baseMs: 2000 } })
    const send = (): Promise<Response> =>
      only.fetch('orders', { ...order('checkout:1'), headers: { 'content-type': 'application/json' } })
    const loop = send().catch(send).catch(send).catch(send).catch(send).catch(send).catch(send).catch(send)
    await pass(60_000)
    expect((await loop).status).toBe(201)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    expect(server.total()).toBe(1)
  })

  it('P2: the reserved header names it, and is neither stored nor sent', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const { intent: _intent, ...init } = order('x')
    const write = only.fetch('orders', { ...init, headers: { ...init.headers, 'samekey-intent': 'checkout:1' } })
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(Object.keys(network.writes()[0]!.headers)).not.toContain('samekey-intent')
    const [row] = await only.store.list(origin, { limit: 9 })
    expect(row).toMatchObject({ id: 'checkout:1' })
    expect(row!.data).not.toContain('samekey-intent')
  })

  it('P2: the reserved header on a read is removed, and the read passes through', async () => {
    const through = passed()
    const only = world().tab(through)
    await only.fetch('/orders', { headers: { 'samekey-intent': 'checkout:1', accept: 'text/plain' } })
    expect([...through.fetch.mock.calls[0]![0].headers]).toEqual([['accept', 'text/plain']])
    expect(await stored(only)).toBe(0)
  })

  it('P2: intentOf names writes, is not asked for reads, and lets pass what it does not know', async () => {
    const { network, tab, pass } = world()
    const through = passed()
    const intentOf = vi.fn((request: Request) => (request.url.endsWith('/orders') ? 'checkout:1' : undefined))
    const only = tab({ ...through, intentOf })
    const { intent: _intent, ...init } = order('x')
    await only.fetch('orders')
    expect(intentOf).not.toHaveBeenCalled()
    await only.fetch('logins', init)
    const write = only.fetch('orders', init)
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(through.fetch).toHaveBeenCalledTimes(2)
    expect(network.writes()).toMatchObject([{ body: init.body }])
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
  })

  it('P2, P5: a key in the request header names the intent when nothing else does', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const { intent: _intent, ...init } = order('x')
    const write = only.fetch('orders', { ...init, headers: { ...init.headers, 'Idempotency-Key': 'k-1' } })
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(network.writes()).toMatchObject([{ key: 'k-1' }])
    expect(await only.fetch.intents.get('k-1')).toMatchObject({ key: 'k-1', keyOrigin: 'given' })
  })

  it.each([
    ['that matches a registered operation', {}],
    ['that says its operation', { operation: 'orders.create' }],
    ['with a derived key', { key: { derived: true, since: 'new' } as const }],
    ['with a lane', { lane: 'cart' }],
    ['with again', { again: true }],
    ['with sendBefore', { sendBefore: 5 }],
    ['with waitMs', { waitMs: 5 }],
  ])('P2: a write %s but has no name is a ConfigError, and nothing is sent', async (_what, options) => {
    const { network, tab } = world()
    const through = passed()
    const only = tab({
      ...through,
      operations: { 'orders.create': { match: ({ method, url }) => method === 'POST' && url.pathname === '/orders' } },
    })
    const { intent: _intent, ...init } = order('x')
    const path = Object.keys(options).length === 0 ? 'orders' : 'other'
    await expect(only.fetch(path, { ...init, ...options })).rejects.toMatchObject({ code: 'config', option: 'intent' })
    expect([network.calls.length, through.fetch.mock.calls.length, await stored(only)]).toEqual([0, 0, 0])
  })
})

describe('P4: a client has a name', () => {
  it('P4, H7: two clients on one store: neither sends the records of the other, whoever starts first', async () => {
    const { network, tab, pass } = world()
    const shops = { name: 'shops', baseUrl: 'https://shops.example.com' }
    const bank = {
      name: 'bank',
      baseUrl: 'https://bank.example.com',
      scope: () => 'ann',
      auth: () => ({ scope: 'ann', headers: { authorization: 'Bearer bank' } }),
    }
    network.script(broken())
    const first = tab(shops)
    void first.fetch('orders', order('checkout:1'))
    const other = tab(bank)
    void other.fetch('transfers', order('checkout:1'))
    await pass(100)
    first.kill()
    other.kill()
    network.script(created())
    const before = network.calls.length
    const bankAgain = tab(bank)
    await pass(300_000)
    expect(new Set(network.calls.slice(before).map(({ url }) => new URL(url).origin))).toEqual(
      new Set(['https://bank.example.com']),
    )
    expect((await bankAgain.fetch.intents.list()).intents).toHaveLength(1)
    const shopsAgain = tab(shops)
    await pass(300_000)
    expect((await shopsAgain.fetch.intents.list()).intents).toMatchObject([{ state: 'succeeded' }])
    for (const { url, headers } of network.calls) {
      if (url.startsWith('https://shops')) expect(headers.authorization).toBeUndefined()
    }
  })

  it('P4: a second live client of the same name in one context is a ConfigError, until the first one stopped', async () => {
    const { tab } = world()
    const context = { liveClients: new Set<string>() }
    const first = tab({ replace: context })
    expect(() => tab({ replace: context })).toThrow(expect.objectContaining({ code: 'config', option: 'name' }))
    expect(() => tab({ replace: context, name: 'another' })).not.toThrow()
    await first.fetch.stop()
    expect(() => tab({ replace: context })).not.toThrow()
  })

  it('P4: the name comes from baseUrl, and another name does not see its records', async () => {
    const { tab, pass } = world()
    const only = tab()
    void only.fetch('orders', order('checkout:1'))
    await pass(1000)
    const [row] = await only.store.list(origin, { limit: 9 })
    expect(row).toMatchObject({ client: origin })
    expect((await tab({ name: 'another' }).fetch.intents.list()).intents).toEqual([])
  })
})

describe('baseUrl means one thing to client and fetch', () => {
  it.each(['https://api.example.com/v1', 'https://api.example.com/v1/'])(
    '%s: a relative address hangs under it',
    async (baseUrl) => {
      const { clock, network, tab } = world()
      const only = tab({ baseUrl })
      await Promise.all([only.fetch('orders', order('checkout:1')), clock.advance(1000)])
      await Promise.all([only.fetch('/orders', order('checkout:2')), clock.advance(1000)])
      expect(network.writes().map(({ url }) => url)).toEqual([
        'https://api.example.com/v1/orders',
        'https://api.example.com/orders',
      ])
    },
  )
})
