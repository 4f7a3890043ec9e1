import { cors, idempotencyRoutes, idempotent, json, memoryServerStore } from 'samekey/server'
import { describe, expect, it } from 'vitest'
import { codeOf, post, scope } from './world.ts'

const handler = (operation: string) =>
  idempotent({ store: memoryServerStore(), operation, scope, execute: () => json(200, { operation }) })

describe('idempotencyRoutes', () => {
  const orders = handler('orders.create')
  const strange = handler('a/b c')
  const routes = idempotencyRoutes({ keysUrl: 'https://api.test/v1/keys/', operations: [orders, strange] })
  const ask = (path: string, method = 'GET') =>
    routes(new Request(`https://api.test${path}`, { method, headers: { authorization: 'ann' } }))

  it('finds operation and key, percent-encoded, below the path of keysUrl', async () => {
    await strange(post('x/y%', {}))
    expect(await (await ask('/v1/keys/a%2Fb%20c/x%2Fy%25'))?.json()).toMatchObject({ id: 'x/y%', status: 'succeeded' })
    expect(await (await ask('/v1/keys/orders.create/k-1', 'DELETE'))?.json()).toMatchObject({ status: 'voided' })
    expect(await codeOf(await orders(post('k-1', {})))).toBe('idempotency_voided')
  })

  it('leaves every other path alone', async () => {
    for (const path of ['/', '/v1/keys', '/v1/keysx/orders.create/k-1', '/keys/orders.create/k-1']) {
      expect(await ask(path)).toBeNull()
    }
  })

  it('knows nothing of other operations and shapes', async () => {
    for (const path of ['/none/k-1', '/orders.create', '/orders.create/k-1/x', '/%zz/k-1', '/orders.create/%zz']) {
      const response = await ask(`/v1/keys${path}`)
      expect([path, response?.status]).toEqual([path, 404])
    }
  })

  it('P12: a key that cannot be one is refused', async () => {
    expect((await ask('/v1/keys/orders.create/a%20b'))?.status).toBe(400)
    expect((await ask('/v1/keys/orders.create/'))?.status).toBe(400)
  })

  it('a key is looked up and voided, nothing else', async () => {
    const response = await ask('/v1/keys/orders.create/k-2', 'POST')
    expect([response?.status, response?.headers.get('allow')]).toEqual([405, 'GET, HEAD, DELETE'])
  })

  it('HEAD is GET without the body (RFC 9110, 9.3.2)', async () => {
    await orders(post('k-3', {}))
    const [head, get] = [await ask('/v1/keys/orders.create/k-3', 'HEAD'), await ask('/v1/keys/orders.create/k-3')]
    expect([head?.status, Object.fromEntries(head?.headers ?? []), await head?.text()]).toEqual([
      200,
      Object.fromEntries(get?.headers ?? []),
      '',
    ])
  })

  it('two handlers of one name are refused at the start', () => {
    const operations = [orders, handler('orders.create')]
    expect(() => idempotencyRoutes({ keysUrl: '/keys', operations })).toThrow(/operations/)
  })
})

describe('options', () => {
  const base = { store: memoryServerStore(), operation: 'orders.create', scope, execute: () => json(200, {}) }
  const wrong = [
    ['operation', { operation: '' }],
    ['operation', { operation: '..' }],
    ['retentionMs', { retentionMs: 0 }],
    ['retentionMs', { retentionMs: 1.5 }],
    ['retentionMs', { retentionMs: 300_000 }],
    ['transitMs', { transitMs: Number.NaN }],
    ['graceMs', { graceMs: 300_000 }],
    ['limits.waitMs', { limits: { waitMs: -1 } }],
    ['limits.requestBytes', { limits: { requestBytes: Number.NaN } }],
    ['limits.key', { limits: { key: { pattern: '(' } } }],
    ['fingerprint', { fingerprint: { omit: ['nothing'] } }],
    ['publicOrigin', { publicOrigin: 'shop' }],
  ] as const

  it.each(wrong)('a wrong %s is refused when the handler is made, and named', (option, part) => {
    expect(() => idempotent({ ...base, ...part })).toThrow(expect.objectContaining({ code: 'config', option }))
  })

  it('the handler says whose it is', () => {
    expect(idempotent({ ...base, publicOrigin: 'https://shop.test/x' }).operation).toBe('orders.create')
  })
})

describe('cors', () => {
  const page = 'https://shop.example'
  const preflight = (origin: string) =>
    new Request('https://api.test/orders', {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'idempotency-key' },
    })

  it('B132: a preflight allows the protocol’s headers, and the usual ones', async () => {
    const response = await cors({ origins: [page] })(handler('orders.create'))(preflight(page))
    expect(response.status).toBe(204)
    expect(Object.fromEntries(response.headers)).toEqual({
      'access-control-allow-origin': page,
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers':
        'Idempotency-Key, Idempotency-Age, Idempotency-Since, Idempotency-Scope, Accept, Authorization, Content-Type',
      'access-control-max-age': '600',
      vary: 'Origin',
    })
  })

  it('P41: answers show the proof, the markers and the hints', async () => {
    const answers = cors({ origins: [page], credentials: true, expose: ['X-Total'] })(handler('orders.create'))
    const request = post('k-1', {})
    request.headers.set('origin', page)
    const response = await answers(request)
    expect(response.status).toBe(200)
    expect(response.headers.get('access-control-allow-credentials')).toBe('true')
    expect(response.headers.get('access-control-expose-headers')).toBe(
      'Idempotent-Replayed, Idempotency-Expires, Idempotency-Body, Retry-After, Location, Date, X-Total',
    )
    expect(await response.json()).toEqual({ operation: 'orders.create' })
  })

  it('another origin gets no leave, and no cache mixes them up', async () => {
    const answers = cors({ origins: [page] })(handler('orders.create'))
    for (const request of [preflight('https://evil.example'), post('k-1', {})]) {
      const response = await answers(request)
      expect(response.headers.get('access-control-allow-origin')).toBeNull()
      expect(response.headers.get('vary')).toBe('Origin')
    }
  })

  it('any origin, without credentials', async () => {
    const answers = cors({ origins: ['*'], methods: ['POST'], headers: [], maxAgeSeconds: 5 })(handler('orders.create'))
    const response = await answers(preflight('https://any.example'))
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(response.headers.get('access-control-allow-methods')).toBe('POST')
    expect(() => cors({ origins: ['*'], credentials: true })).toThrow(TypeError)
  })

  it('an OPTIONS that is no preflight belongs to the app', async () => {
    const answers = cors({ origins: [page] })(() => new Response('mine'))
    const response = await answers(new Request('https://api.test/', { method: 'OPTIONS' }))
    expect(await response.text()).toBe('mine')
  })
})
