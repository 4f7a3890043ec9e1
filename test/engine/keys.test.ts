import { describe, expect, it, vi } from 'vitest'
import { samekey } from '../../src/dialects.ts'
import type { IntentInit, KeyChoice } from '../../src/fetch.ts'
import { systemIds } from '../../src/platform/ids.ts'
import type { Ids } from '../../src/ports.ts'
import { derivedKey, type KeyRules } from '../../src/protocol/key.ts'
import { sha256Hex } from '../../src/protocol/sha256.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import {
  answer,
  broken,
  commitThenDrop,
  created,
  day,
  honestServer,
  order,
  origin,
  problem,
  refusedConnection,
  type Tab,
  world,
} from '../support/world.ts'

const hour = 3_600_000
const uuid = (version: number): RegExp =>
  new RegExp(`^[\\da-f]{8}-[\\da-f]{4}-${version}[\\da-f]{3}-[89ab][\\da-f]{3}-[\\da-f]{12}$`)
const dialectWith = (keyRules: KeyRules) => ({ dialect: { ...samekey, keyRules } })
const emptyStore = async ({ store }: Tab): Promise<boolean> => (await store.list(origin, { limit: 9 })).length === 0

describe('P5: a key is minted once and never replaced', () => {
  it('P5, B01: it rides unchanged on the first attempt and every later one, through restarts and tabs', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(refusedConnection(), answer(503), broken(), commitThenDrop(server), answer(504), server.answer)
    const first = tab({ retry: { baseMs: 10_000, capMs: 10_000 } })
    const { key } = await first.fetch('orders', order('checkout:1')).stored
    await pass(10_000)
    first.kill()
    const second = tab({ retry: { baseMs: 10_000, capMs: 10_000 } })
    const third = tab({ retry: { baseMs: 10_000, capMs: 10_000 } })
    await pass(20_000)
    second.kill()
    await pass(300_000)
    expect(network.writes()).toHaveLength(6)
    expect(new Set(network.writes().map((call) => call.key))).toEqual(new Set([key]))
    expect(server.effects).toEqual(new Map([[key, 1]]))
    expect(await third.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', key })
  })

  it.each<[string, RequestInit & IntentInit]>([
    ['by the option', { key: { value: 'k-1', since: 'new' } }],
    ['by the header', { headers: { 'Idempotency-Key': 'k-1' } }],
    ['by the header, quoted as a structured field', { headers: { 'Idempotency-Key': '"k-1"' } }],
    ['by both', { key: { value: 'k-1', since: 'new' }, headers: { 'Idempotency-Key': 'k-1' } }],
  ])('B01: a key given %s is adopted for every attempt, never replaced', async (_how, init) => {
    const { network, tab, pass } = world()
    network.script(answer(503), answer(503), created())
    const only = tab()
    const write = only.fetch('orders', { ...order('checkout:1'), ...init })
    await pass(60_000)
    expect((await write).status).toBe(201)
    expect(network.writes().map(({ key }) => key)).toEqual(['k-1', 'k-1', 'k-1'])
    expect(await write.stored).toMatchObject({ key: 'k-1' })
    expect(await write.outcome()).toMatchObject({ key: 'k-1', state: 'succeeded' })
  })

  it.each<[string, RequestInit & IntentInit]>([
    ['another key in the header', { key: { value: 'k-1', since: 'new' }, headers: { 'Idempotency-Key': 'k-2' } }],
    ['a derived key besides', { key: { derived: true, since: 'new' }, headers: { 'Idempotency-Key': 'k-2' } }],
  ])('P5: %s is refused: neither replaces the other', async (_what, init) => {
    const { network, tab, pass } = world()
    const only = tab()
    const write = only.fetch('orders', { ...order('checkout:1'), ...init })
    await pass(1000)
    await expect(write).rejects.toMatchObject({ code: 'config', option: 'key', intentId: 'checkout:1' })
    expect([network.calls.length, await emptyStore(only)]).toEqual([0, true])
  })

  it.each([
    ['k-1, k-1', 'two values, as when a browser adds its own (B133)'],
    ['k 1', 'a space'],
    ['"k-1', 'half a quote'],
    ['k'.repeat(256), '256 characters'],
  ])('B133, P12: the header value %j (%s) is refused before anything is stored', async (value) => {
    const { network, tab, pass } = world()
    const only = tab()
    const write = only.fetch('orders', { ...order('checkout:1'), headers: { 'Idempotency-Key': value } })
    await pass(1000)
    await expect(write).rejects.toMatchObject({ code: 'config', option: 'headers.idempotency-key' })
    expect([network.calls.length, await emptyStore(only)]).toEqual([0, true])
  })

  it('B133: exactly one value is on the wire, and what the caller said of age, since and scope is not', async () => {
    const { network, tab, pass } = world()
    const only = tab({ scope: () => 'ann', scopeTag: () => 'own' })
    const headers = {
      'Idempotency-Age': '77',
      'Idempotency-Since': 'Tue, 01 Jan 2019 00:00:00 GMT',
      'Idempotency-Scope': 'x',
    }
    const write = only.fetch('orders', { ...order('checkout:1'), headers })
    await pass(1000)
    const { key } = await write.stored
    expect(network.writes()).toMatchObject([{ key, age: '0', since: null, headers: { 'idempotency-scope': 'own' } }])
  })

  it('B04: a key belongs to its call: the next intent has another, and a read has none', async () => {
    const { network, tab, pass } = world()
    const reads: Request[] = []
    const only = tab({
      fetch: async (request) => {
        reads.push(request)
        return new Response()
      },
    })
    const init = { method: 'POST', body: 'x' }
    for (const intent of ['a', 'b']) {
      const write = only.fetch('orders', { ...init, intent })
      await pass(1000)
      await write
    }
    await only.fetch('orders')
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
    expect(reads.map(({ headers }) => headers.has('idempotency-key'))).toEqual([false])
  })

  it('P5: one key names one intent: a given key that another intent has is refused', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    void only.fetch('orders', { ...order('a'), key: { value: 'k-1', since: 'new' } })
    await pass(1000)
    const write = only.fetch('orders', { ...order('b'), key: { value: 'k-1', since: 'new' } })
    await pass(1000)
    await expect(write).rejects.toMatchObject({ code: 'config', option: 'key', intentId: 'b', key: 'k-1' })
    expect(network.writes()).toHaveLength(1)
  })

  it('P5: an id whose intent has a key does not take another one', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const { key } = await only.fetch('orders', order('checkout:1')).stored
    await pass(1000)
    const write = only.fetch('orders', { ...order('checkout:1'), key: { value: 'k-2', since: 'new' } })
    await pass(1000)
    await expect(write).rejects.toMatchObject({ code: 'intent_mismatch', intentId: 'checkout:1', key })
    expect(network.writes()).toHaveLength(1)
  })
})

describe('P11: keys that outlive local storage', () => {
  const derived = (since: KeyChoice['since']): IntentInit => ({ key: { derived: true, since } })

  it('P11, F16: a derived key comes out the same after the storage was lost, and the server replays', async () => {
    const { network, tab, pass, clock } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), server.answer)
    const since = clock.now() - hour
    const first = tab({ retry: { baseMs: 60_000, capMs: 60_000 } })
    void first.fetch('orders', { ...order('checkout:1'), ...derived(since) })
    await pass(500)
    first.kill()
    await pass(hour)
    const second = tab({ store: memoryStore() })
    const write = second.fetch('orders', { ...order('checkout:1'), ...derived(since) })
    await pass(60_000)
    const expected = derivedKey({ origin, scope: 'anonymous', operation: 'POST /orders', intentId: 'checkout:1' })
    expect(await (await write).json()).toEqual({ id: expected })
    expect(expected).toMatch(uuid(5))
    expect(network.writes().map(({ key }) => key)).toEqual([expected, expected])
    expect(server.total()).toBe(1)
    // The age is that of the cart, not that of this life.
    expect(network.writes().map(({ age }) => Number(age))).toEqual([3600, expect.closeTo(7201, 0)])
  })

  it.each<[string, (since: number) => KeyChoice]>([
    ['H8: a derived key', (since) => ({ derived: true, since })],
    ['H50: a key that the app kept', (since) => ({ value: 'k-1', since })],
  ])('%s of a cart that is eight days old is not sent again after the storage was lost', async (_what, keyOf) => {
    const { network, tab, pass, clock } = world()
    const since = clock.now()
    const server = honestServer()
    network.script(commitThenDrop(server), server.answer)
    const first = tab({ retry: { attempts: 1 } })
    void first.fetch('orders', { ...order('checkout:1'), key: keyOf(since) })
    await pass(1000)
    first.kill()
    await pass(8 * day)
    const second = tab({ store: memoryStore() })
    const write = second.fetch('orders', { ...order('checkout:1'), key: keyOf(since) })
    await pass(60_000)
    await expect(write).rejects.toMatchObject({ code: 'outcome_unknown', because: 'window_over' })
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('P11, P27: with `since`, it is in doubt from its creation: a refusal without proof is not "rejected"', async () => {
    const { network, tab, pass, clock } = world()
    network.script(answer(422))
    const only = tab({ retry: { attempts: 2 } })
    void only.fetch('orders', { ...order('checkout:1'), ...derived(clock.now() - hour) })
    await pass(0)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ inDoubt: true })
    await pass(hour)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown' })
  })

  it("P11: since: 'new' is the caller's word: not in doubt, age 0, and a refusal is a refusal", async () => {
    const { network, tab, pass } = world()
    network.script(answer(422))
    const only = tab()
    const write = only.fetch('orders', { ...order('checkout:1'), ...derived('new') })
    await pass(1000)
    expect((await write).status).toBe(422)
    expect(network.writes()).toMatchObject([{ age: '0' }])
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'rejected' })
  })

  it('P11: `since` may be a Date', async () => {
    const { network, tab, pass, clock } = world()
    const only = tab()
    void only.fetch('orders', { ...order('checkout:1'), ...derived(new Date(clock.now() - 60_000)) })
    await pass(1000)
    expect(network.writes()).toMatchObject([{ age: '60' }])
  })

  it('P11: scope, operation, name and origin are in a derived key; the payload is not (P16)', async () => {
    const { network, tab, pass } = world()
    let user = 'ann'
    const only = tab({ scope: () => user, operations: { 'orders.create': {} } })
    const send = async (url: string, init: RequestInit & IntentInit & { intent: string }): Promise<string> => {
      const { key } = await only.fetch(url, { ...init, ...derived('new') }).stored
      await pass(1000)
      return key
    }
    const keys = [
      await send('orders', order('a')),
      await send('orders', order('b')),
      await send('orders', { ...order('c'), operation: 'orders.create' }),
      await send('https://other.example.com/orders', order('d')),
    ]
    user = 'bob'
    keys.push(await send('orders', order('a')))
    expect(new Set(keys).size).toBe(5)
    const again = tab({ scope: () => 'ann', store: memoryStore() })
    const write = again.fetch('orders', { ...order('a', { item: 'another payload' }), ...derived('new') })
    await pass(1000)
    expect((await write.stored).key).toBe(keys[0])
    expect(network.writes().map(({ key }) => key)).toEqual([...keys, keys[0]])
  })

  it('P11: a server that wants another UUID version makes a derived key a ConfigError', async () => {
    const { network, tab, pass } = world()
    const only = tab(dialectWith({ uuidVersion: 4 }))
    const write = only.fetch('orders', { ...order('checkout:1'), ...derived('new') })
    await pass(1000)
    await expect(write).rejects.toMatchObject({ code: 'config', option: 'key.derived' })
    expect([network.calls.length, await emptyStore(only)]).toEqual([0, true])
  })

  it('P8: a derived name is never freed: not after a refusal, not with `again`, not by forget', async () => {
    const { network, tab, pass } = world()
    network.script(problem(402, 'declined', { 'idempotency-expires': 'Wed, 02 Dec 2026 12:00:00 GMT' }))
    const only = tab()
    const { key } = await only.fetch('orders', { ...order('pay:1'), ...derived('new') }).stored
    await pass(1000)
    const edited = only.fetch('orders', { ...order('pay:1', { item: 'corrected' }), ...derived('new') })
    const again = only.fetch('orders', { ...order('pay:1'), ...derived('new'), again: true })
    await pass(1000)
    await expect(edited).rejects.toMatchObject({ code: 'intent_mismatch', key })
    expect((await again).status).toBe(402)
    await expect(only.fetch.intents.forget('pay:1')).rejects.toMatchObject({ code: 'not_possible', key })
    expect(network.writes()).toHaveLength(1)
  })

  it('H37: a derived key, the storage lost, another payload under the same name: nothing of the first payload is taken for it', async () => {
    const { network, tab, pass, clock } = world()
    const since = clock.now() - hour
    const options = { operations: { 'orders.create': {} }, retry: { baseMs: 60_000, capMs: 60_000 } }
    const init = { operation: 'orders.create', ...derived(since) }
    const answered = {
      id: 'x',
      status: 'succeeded',
      response: {
        status: 201,
        headers: { 'content-type': 'application/json' },
        body: '{"id":"tea"}',
        bodyEncoding: 'utf8',
      },
      requestDigest: sha256Hex(String(order('x').body)),
    }
    network.script(broken(), broken(), () => Response.json(answered))
    void tab(options).fetch('orders', { ...order('checkout:1'), ...init })
    await pass(100)
    const second = tab({ ...options, store: memoryStore() })
    void second.fetch('orders', { ...order('checkout:1', { item: 'coffee' }), ...init })
    await pass(100)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    const checked = await second.fetch.intents.check('checkout:1')
    expect(checked).toMatchObject({ state: 'unknown', detail: 'other_payload' })
    expect(network.calls.at(-1)).toMatchObject({ method: 'GET' })
    await expect(second.fetch.intents.wait('checkout:1')).resolves.toMatchObject({ state: 'unknown' })
  })
})

describe('P12: limits of keys', () => {
  const ids = (key: Ids['key']): { replace: { ids: Ids } } => ({ replace: { ids: { ...systemIds(), key } } })

  it.each([
    ['too long', 'k'.repeat(300)],
    ['empty', ''],
    ['white space', '  '],
    ['not ASCII', 'schlüssel'],
    ['a control character', 'a\nb'],
    ['a path segment that URLs drop', '..'],
    ['no text at all', undefined as unknown as string],
  ])('B07, P12: a key from mintKey that is %s is refused before anything is stored', async (_what, key) => {
    const { network, tab, pass } = world()
    const only = tab(ids(() => key))
    const write = only.fetch('orders', order('checkout:1'))
    await pass(1000)
    await expect(write).rejects.toMatchObject({ code: 'config', option: 'mintKey', intentId: 'checkout:1' })
    expect([network.calls.length, await emptyStore(only)]).toEqual([0, true])
  })

  it.each<[string, KeyRules, string]>([
    ['the longest length', { maxLength: 8 }, 'k'.repeat(9)],
    ['the shortest length', { minLength: 16 }, 'short'],
    ['the pattern', { pattern: '[a-z]+' }, 'abc-1'],
    ['the UUID version', { uuidVersion: 4 }, '01890000-0000-7000-8000-000000000000'],
  ])(
    "B07, P12: %s that the server states holds for the caller's key and for minted ones",
    async (_what, rules, key) => {
      const { network, tab, pass } = world()
      const given = tab(dialectWith(rules)).fetch('orders', { ...order('a'), key: { value: key, since: 'new' } })
      const minted = tab({ ...dialectWith(rules), ...ids(() => key) }).fetch('orders', order('b'))
      await pass(1000)
      await expect(given).rejects.toMatchObject({ code: 'config', option: 'key' })
      await expect(minted).rejects.toMatchObject({ code: 'config', option: 'mintKey' })
      expect(network.calls).toEqual([])
    },
  )

  it('P12: an operation of its own dialect has its own limits', async () => {
    const { network, tab, pass } = world()
    const only = tab({ ...ids(() => 'k-123456789'), operations: { small: dialectWith({ maxLength: 4 }) } })
    const wide = only.fetch('orders', order('a'))
    const small = only.fetch('orders', { ...order('b', {}), operation: 'small' })
    await pass(1000)
    expect((await wide).status).toBe(201)
    await expect(small).rejects.toMatchObject({ code: 'config', option: 'mintKey' })
    expect(network.calls).toHaveLength(1)
  })
})

describe('P12, B06: randomness', () => {
  const real = globalThis.crypto
  const submit = async (
    mintKey?: () => string,
  ): Promise<{ error: unknown; keys: (string | null)[]; stored: boolean }> => {
    const { network, tab, pass } = world()
    const only = tab({ replace: { ids: systemIds(mintKey) } })
    const write = only.fetch('orders', order('checkout:1'))
    await pass(1000)
    const error = await write.then(
      () => null,
      (reason: unknown) => reason,
    )
    return { error, keys: network.writes().map(({ key }) => key), stored: !(await emptyStore(only)) }
  }

  it.each([
    ['crypto is absent', undefined],
    ['crypto has no getRandomValues', { subtle: real.subtle }],
  ])(
    'B06: where %s, the submit is refused, nothing is stored or sent, and no weaker source is taken',
    async (_what, crypto) => {
      vi.stubGlobal('crypto', crypto)
      const { error, keys, stored } = await submit()
      expect(error).toMatchObject({ code: 'config', option: 'mintKey', intentId: 'checkout:1' })
      expect([keys, stored]).toEqual([[], false])
    },
  )

  it("B06: the app's own mintKey works there, for keys and for leases", async () => {
    vi.stubGlobal('crypto', undefined)
    let minted = 0
    const { error, keys } = await submit(() => `own-${++minted}`)
    expect([error, keys]).toEqual([null, [expect.stringMatching(/^own-\d+$/)]])
  })

  it('B06: a page without randomUUID, as on plain http, works', async () => {
    vi.stubGlobal('crypto', { getRandomValues: real.getRandomValues.bind(real), subtle: real.subtle })
    const { error, keys } = await submit()
    expect([error, keys]).toEqual([null, [expect.stringMatching(uuid(7))]])
  })

  it('P12: a server that wants version 4 gets version 4', async () => {
    const { network, tab, pass } = world()
    const only = tab({ ...dialectWith({ uuidVersion: 4 }), replace: { ids: systemIds() } })
    void only.fetch('orders', order('checkout:1'))
    await pass(1000)
    expect(network.writes()[0]!.key).toMatch(uuid(4))
  })

  it('P12, P28: a mintKey that throws is a typed error, and nothing is stored or sent', async () => {
    const broken = new Error('no entropy')
    const { error, keys, stored } = await submit(() => {
      throw broken
    })
    expect(error).toMatchObject({ code: 'config', option: 'mintKey', cause: broken })
    expect([keys, stored]).toEqual([[], false])
  })
})
