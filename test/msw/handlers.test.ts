import { HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'
import { samekey } from 'samekey/dialects'
import { createFetch } from 'samekey/fetch'
import { memoryStore } from 'samekey/memory'
import {
  accepted,
  commitThenDrop,
  createMockServer,
  cutBody,
  delay,
  dropBeforeCommit,
  handlers,
  type MockServer,
  redirect,
  status,
  together,
} from 'samekey/msw'
import { virtualClock } from 'samekey/testing'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { order } from './send.ts'

const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  vi.useRealTimers()
})

function installed(mock: MockServer) {
  const server = setupServer(...handlers(mock))
  server.listen({ onUnhandledFrame: 'error' })
  closing.push(() => server.close())
  return server
}

describe('with the client, through msw/node', () => {
  function client(mock: MockServer) {
    const { baseUrl, keysUrl } = mock
    const safeFetch = createFetch({
      dialect: samekey,
      baseUrl,
      keysUrl,
      anonymous: true,
      store: memoryStore(),
      retry: { baseMs: 1 },
    })
    closing.push(() => safeFetch.stop())
    return safeFetch
  }

  it('F5: commit, then drop: one order, and the replay is delivered', async () => {
    const mock = createMockServer()
    installed(mock)
    mock.faults.next(commitThenDrop())
    const { body = null } = order()
    const headers = { 'content-type': 'application/json' }
    const response = await client(mock)('/orders', { method: 'POST', headers, body, intent: 'checkout:42' })
    expect([response.status, await response.json()]).toEqual([201, { id: 1, item: 'tea' }])
    expect([mock.effects.total, mock.orders.length]).toEqual([1, 1])
    const [first, second, ...more] = mock.requests
    expect(more).toEqual([])
    expect([first?.decided, first?.delivered, second?.decided]).toEqual(['executed', 'lost', 'replayed'])
    expect([second?.key, second?.body]).toEqual([first?.key, first?.body])
  })
})

describe('handlers', () => {
  const send = (mock: MockServer, init: RequestInit = {}) => fetch(`${mock.baseUrl}/orders`, { ...order(), ...init })

  it('B128: the client sees a network error, before and after the commit, and half of a cut body', async () => {
    const mock = createMockServer()
    installed(mock)
    mock.faults.next(dropBeforeCommit(), commitThenDrop(), cutBody())
    await expect(send(mock)).rejects.toThrow(TypeError)
    expect(mock.effects.total).toBe(0)
    await expect(send(mock)).rejects.toThrow(TypeError)
    expect(mock.effects.total).toBe(1)
    const cut = await send(mock)
    expect([cut.status, cut.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    const reader = cut.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('{"id":1,"it')
    await expect(reader?.read()).rejects.toThrow(TypeError)
  })

  it('redirects and monitors pass', async () => {
    const mock = createMockServer()
    installed(mock)
    mock.faults.next(redirect(307, '/elsewhere'), accepted())
    const redirected = await send(mock, { redirect: 'manual' })
    expect([redirected.status, redirected.headers.get('location')]).toEqual([307, '/elsewhere'])
    const { headers } = await send(mock)
    const monitor = await fetch(new URL(headers.get('location') ?? '', mock.baseUrl))
    expect(await monitor.json()).toMatchObject({ status: 'processing' })
  })

  it('B126: a delay passes on the mock’s clock, or with the fake timers’ asynchronous helper', async () => {
    const clock = virtualClock()
    const virtual = createMockServer({ clock })
    installed(virtual)
    virtual.faults.next(delay(1000))
    const first = send(virtual)
    await vi.waitFor(() => expect(clock.pending()).toBeGreaterThan(0))
    await clock.advance(1000)
    expect((await first).status).toBe(201)
  })

  it('B126: and under fake timers', async () => {
    const mock = createMockServer()
    installed(mock)
    vi.useFakeTimers()
    mock.faults.next(delay(1000))
    const answer = send(mock)
    await vi.waitFor(() => expect(mock.requests.length).toBe(1))
    await vi.advanceTimersByTimeAsync(1000)
    expect((await answer).status).toBe(201)
  })

  it('what the mock does not serve is left to others', async () => {
    const mock = createMockServer()
    const server = installed(mock)
    server.use(http.get('https://api.test/health', () => HttpResponse.text('ok')))
    expect(await (await fetch('https://api.test/health')).text()).toBe('ok')
    expect(mock.requests).toEqual([])
  })

  it('a mistake of the test is an error of its own, not a lost connection', async () => {
    const mock = createMockServer()
    const [handler] = handlers(mock)
    mock.faults.next(together(status(204), cutBody()))
    const request = new Request(`${mock.baseUrl}/orders`, order())
    await expect(handler?.run({ request, requestId: '1' })).rejects.toThrow('no body to cut')
  })
})

describe('B127: installing the mock twice executes once', () => {
  it('two servers', async () => {
    const mock = createMockServer()
    installed(mock)
    installed(mock)
    const response = await fetch(`${mock.baseUrl}/orders`, order())
    expect([response.status, await response.json()]).toEqual([201, { id: 1, item: 'tea' }])
    expect([mock.effects.total, mock.requests.length]).toEqual([1, 1])
  })

  it('twice in one server, and once more at run time', async () => {
    const mock = createMockServer()
    const server = setupServer(...handlers(mock), ...handlers(mock))
    server.listen()
    closing.push(() => server.close())
    server.use(...handlers(mock))
    mock.faults.next(commitThenDrop())
    await expect(fetch(`${mock.baseUrl}/orders`, order())).rejects.toThrow(TypeError)
    expect((await fetch(`${mock.baseUrl}/orders`, order())).status).toBe(201)
    expect([mock.effects.total, mock.requests.length]).toEqual([1, 2])
  })

  it('one request that two installations see, as two workers of a page would', async () => {
    const mock = createMockServer()
    const [first, second] = [...handlers(mock), ...handlers(mock)]
    const run = async (handler = first, requestId = 'r-1') => {
      const request = new Request(`${mock.baseUrl}/orders`, order())
      return (await handler?.run({ request, requestId }))?.response
    }
    const [one, other] = await Promise.all([run(first), run(second)])
    expect([await one?.json(), await other?.json()]).toEqual([
      { id: 1, item: 'tea' },
      { id: 1, item: 'tea' },
    ])
    expect([mock.effects.total, mock.requests.length]).toEqual([1, 1])
    await run(first, 'r-2')
    expect(mock.requests.map(({ decided }) => decided)).toEqual(['executed', 'replayed'])
  })
})
