import { describe, expect, it } from 'vitest'
import type { IntentInit, OperationOptions } from '../../src/fetch.ts'
import { broken, created, order, type Tab, world } from '../support/world.ts'

type Init = RequestInit & IntentInit & { intent: string }

const json = (body: string, more: Partial<Init> = {}): Init => ({
  intent: 'a',
  method: 'POST',
  body,
  headers: { 'content-type': 'application/json' },
  ...more,
})

/** Submits both under one name: whether the second one joined the first. */
async function joins(
  [firstUrl, first]: [string, Init],
  [secondUrl, second]: [string, Init],
  operations: Record<string, OperationOptions> = {},
): Promise<boolean> {
  const { network, tab, pass } = world()
  network.script(broken())
  const only = tab({ operations, retry: { baseMs: 60_000, capMs: 60_000 } })
  const one = await stored(only, firstUrl, first)
  await pass(100)
  try {
    return (await stored(only, secondUrl, second)) === one
  } catch (error) {
    expect(error).toMatchObject({ code: 'intent_mismatch', intentId: 'a', key: one })
    expect(network.writes()).toHaveLength(1)
    return false
  }
}

const stored = async (only: Tab, url: string, init: Init): Promise<string> => (await only.fetch(url, init).stored).key

describe('P14: what counts as the same content', () => {
  it.each([
    ['the order of properties', '{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}'],
    ['white space', '{"a":1}', ' {\n"a" : 1 }'],
    ['the spelling of a number', '{"a":100}', '{"a":1e2}'],
    ['an escape', '{"a":"é"}', '{"a":"\\u00e9"}'],
  ])('P14: %s does not matter', async (_what, one, two) => {
    expect(await joins(['orders', json(one)], ['orders', json(two)])).toBe(true)
  })

  it.each([
    ['the order of an array', '[1,2]', '[2,1]'],
    ['null against absent', '{"a":null}', '{}'],
    ['a digit of a text', '{"amount":"10.00"}', '{"amount":"10.0"}'],
    ['a number against a text', '{"a":1}', '{"a":"1"}'],
    ['a composed against a decomposed letter', '{"a":"é"}', '{"a":"e\u0301"}'],
  ])('P14: %s matters', async (_what, one, two) => {
    expect(await joins(['orders', json(one)], ['orders', json(two)])).toBe(false)
  })

  it('P14: other bodies count by type and bytes', async () => {
    const plain = (body: string, type: string): Init => json(body, { headers: { 'content-type': type } })
    expect(await joins(['x', plain('{"a":1}', 'text/plain')], ['x', plain('{"a": 1}', 'text/plain')])).toBe(false)
    expect(await joins(['x', plain('a', 'text/plain')], ['x', plain('a', 'text/html')])).toBe(false)
    expect(await joins(['x', plain('a', 'text/plain')], ['x', plain('a', 'text/plain')])).toBe(true)
  })
})

describe('P15: what is in the fingerprint and what is not', () => {
  it.each<[string, [string, Init], [string, Init]]>([
    ['the method', ['orders', json('{}')], ['orders', json('{}', { method: 'PUT' })]],
    ['the path', ['orders', json('{}')], ['orders/1', json('{}')]],
    ['the query', ['orders?a=1', json('{}')], ['orders?a=2', json('{}')]],
    ['the origin', ['orders', json('{}')], ['https://other.example.com/orders', json('{}')]],
    ['the API version', ['orders', header('stripe-version', '1')], ['orders', header('stripe-version', '2')]],
    ['the tenant', ['orders', header('x-tenant', '1')], ['orders', header('x-tenant', '2')]],
    ['a precondition', ['orders', header('if-match', '"1"')], ['orders', header('if-match', '"2"')]],
  ])('P15: %s is in it', async (_what, one, two) => {
    expect(await joins(one, two)).toBe(false)
  })

  it.each(['traceparent', 'x-request-id', 'accept', 'user-agent', 'x-b3-traceid'])(
    'P15: %s is not in it',
    async (name) => {
      expect(await joins(['orders', header(name, '1')], ['orders', header(name, '2')])).toBe(true)
    },
  )

  function header(name: string, value: string): Init {
    return json('{}', { headers: { 'content-type': 'application/json', [name]: value } })
  }

  it('P15: an operation leaves fields out, and an explicit default equals an absent one', async () => {
    const operations = {
      'orders.create': {
        fingerprint: {
          omit: ['/clientTime', 'header:x-attempt', 'query:nocache'],
          defaults: { '/currency': 'EUR' },
        },
      },
    }
    const call = (url: string, body: object, attempt: string): [string, Init] => [
      url,
      json(JSON.stringify(body), {
        operation: 'orders.create',
        headers: { 'content-type': 'application/json', 'x-attempt': attempt },
      }),
    ]
    const first = call('orders?nocache=1', { amount: 3, clientTime: 1 }, '1')
    expect(
      await joins(first, call('orders?nocache=2', { amount: 3, currency: 'EUR', clientTime: 2 }, '2'), operations),
    ).toBe(true)
    expect(await joins(first, call('orders?nocache=2', { amount: 3, currency: 'USD' }, '2'), operations)).toBe(false)
    expect(await joins(first, call('orders?nocache=2', { amount: 4 }, '2'), operations)).toBe(false)
  })

  it('P15: the operation is in it', async () => {
    const operations = { one: {}, two: {} }
    const call = (operation: string): [string, Init] => ['orders', json('{}', { operation })]
    expect(await joins(call('one'), call('two'), operations)).toBe(false)
  })
})

describe('P16: a later release', () => {
  const release = async (
    before: Record<string, OperationOptions>,
    after: Record<string, OperationOptions>,
    second: string,
  ) => {
    const { network, tab, pass } = world()
    network.script(broken(), created())
    const pace = { retry: { baseMs: 30_000, capMs: 30_000 } }
    const old = tab({ operations: before, ...pace })
    const { key } = await old.fetch('orders', order('a', { amount: 3, clientTime: 1 })).stored
    await pass(100)
    old.kill()
    const next = tab({ operations: after, ...pace })
    const again = next.fetch('orders', { ...order('a'), body: second })
    await pass(120_000)
    return { key, again, network }
  }
  const create = (more: OperationOptions = {}): Record<string, OperationOptions> => ({
    'orders.create': { match: ({ url }) => url.pathname === '/orders', ...more },
  })

  it('P16: rules of today do not judge what was stored under those of yesterday', async () => {
    const omitting = create({ fingerprint: { omit: ['/clientTime'] } })
    const { key, again, network } = await release(omitting, create(), '{"amount":3,"clientTime":2}')
    expect((await again.stored).key).toBe(key)
    expect((await again).status).toBe(201)
    expect(network.writes().map(({ body }) => body)).toEqual([
      '{"amount":3,"clientTime":1}',
      '{"amount":3,"clientTime":1}',
    ])
  })

  it('P16: and the other way round, what differed then differs now', async () => {
    const omitting = create({ fingerprint: { omit: ['/clientTime'] } })
    const { again } = await release(create(), omitting, '{"amount":3,"clientTime":2}')
    await expect(again).rejects.toMatchObject({ code: 'intent_mismatch' })
  })

  it('P16, P24: registering the operation in a later release does not make another intent of an open one', async () => {
    const { key, again, network } = await release({}, create(), '{"amount":3,"clientTime":1}')
    expect((await again.stored).key).toBe(key)
    expect((await again).status).toBe(201)
    expect(new Set(network.writes().map((call) => call.key)).size).toBe(1)
  })

  it('P16: and does not make one intent of two', async () => {
    const { again } = await release({}, create(), '{"amount":4,"clientTime":1}')
    await expect(again).rejects.toMatchObject({ code: 'intent_mismatch' })
  })

  it('P16: no key is made of the payload: equal contents have different keys', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    for (const intent of ['a', 'b']) void only.fetch('orders', order(intent))
    await pass(1000)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
  })
})
