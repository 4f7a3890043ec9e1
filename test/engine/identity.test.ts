import { describe, expect, it } from 'vitest'
import type { Credentials } from '../../src/fetch.ts'
import {
  answer,
  broken,
  commitThenDrop,
  created,
  hangs,
  honestServer,
  order,
  origin,
  problem,
  type Tab,
  type TabOptions,
  world,
} from '../support/world.ts'

/** A device that people share: whoever is signed in, with a token that changes. */
function session(user: string | null = 'ann'): {
  user: string | null
  token: number
  asked: number
  readonly options: Pick<TabOptions, 'scope'> & { auth(): Promise<Credentials> }
} {
  const self = {
    user,
    token: 1,
    asked: 0,
    options: {
      scope: () => self.user,
      async auth(): Promise<Credentials> {
        self.asked++
        return { scope: self.user ?? '', headers: { authorization: `Bearer ${self.user}-${self.token}` } }
      },
    },
  }
  return self
}

/** 202 from behind the key, with a monitor to be asked in two seconds. */
const accepted = answer(
  202,
  { location: '/tasks/1', 'idempotency-expires': 'Wed, 02 Dec 2026 12:00:00 GMT', 'retry-after': '2' },
  '{}',
)

/** Everything that lies in the store: rows and the bytes beside them. */
async function dump({ store }: Tab): Promise<string> {
  const rows = await store.list(origin, { limit: 999 })
  const blobs = await Promise.all(
    rows.flatMap((row) => (['request', 'answer'] as const).map(async (name) => store.blob(row, name))),
  )
  return JSON.stringify(rows) + blobs.map((blob) => new TextDecoder().decode(blob)).join('\n')
}

describe('P3: whose intent it is', () => {
  it('P3, H52: the scope is read in the tick of submit; who signs in afterwards does not get the intent', async () => {
    const { network, tab, pass } = world()
    const who = session()
    const only = tab(who.options)
    const write = only.fetch('orders', order('checkout:1'))
    who.user = 'bob'
    await pass(1000)
    expect(await only.store.list(origin, { scope: 'bob', limit: 9 })).toEqual([])
    expect(await only.store.list(origin, { scope: 'ann', limit: 9 })).toHaveLength(1)
    expect(network.calls).toEqual([])
    who.user = 'ann'
    only.fetch.authChanged()
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(network.writes()).toMatchObject([{ headers: { authorization: 'Bearer ann-1' } }])
  })

  it('P3, H6: the user switches while the token is awaited: nothing is sent with the wrong one', async () => {
    const { network, tab, pass, clock } = world()
    const who = session()
    const only = tab({
      ...who.options,
      auth: () =>
        new Promise<Credentials>((resolve) =>
          clock.timer(500, () => resolve({ scope: 'ann', headers: { authorization: 'Bearer ann' } })),
        ),
    })
    void only.fetch('orders', order('checkout:1'))
    await pass(100)
    who.user = 'bob'
    await pass(600_000)
    expect(network.calls).toEqual([])
    who.user = 'ann'
    only.fetch.authChanged()
    await pass(10_000)
    expect(network.writes()).toMatchObject([{ headers: { authorization: 'Bearer ann' } }])
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', attempts: 1 })
  })

  it('P3: credentials of another scope than the record are not sent', async () => {
    const { network, tab, pass } = world()
    const only = tab({ scope: () => 'ann', auth: () => ({ scope: 'bob', headers: { authorization: 'Bearer bob' } }) })
    void only.fetch('orders', order('checkout:1'))
    await pass(600_000)
    expect(network.calls).toEqual([])
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', detail: 'scope' })
  })

  it('P3, P33: authChanged() while the token is awaited voids it, and a fresh one is asked for at once', async () => {
    const { network, tab, pass, clock } = world()
    const who = session()
    let auths = 0
    const only = tab({
      ...who.options,
      auth: () =>
        new Promise<Credentials>((resolve) => {
          const token = `Bearer ${++auths}`
          clock.timer(500, () => resolve({ scope: 'ann', headers: { authorization: token } }))
        }),
    })
    const write = only.fetch('orders', order('checkout:1'))
    await pass(100)
    only.fetch.authChanged()
    await pass(3000)
    expect(network.writes()).toMatchObject([{ headers: { authorization: 'Bearer 2' } }])
    expect((await write).status).toBe(201)
  })

  it('P3, P33: authChanged() while a poll awaits its token does not lose the poll for a minute', async () => {
    const { network, tab, pass, clock } = world()
    const who = session()
    let auths = 0
    network.script(
      answer(
        202,
        { location: '/tasks/1', 'idempotency-expires': 'Wed, 02 Dec 2026 12:00:00 GMT', 'retry-after': '5' },
        '{}',
      ),
      () => Response.json({ id: '1', status: 'processing' }),
    )
    const only = tab({
      ...who.options,
      auth: () =>
        new Promise<Credentials>((resolve) => {
          const token = `Bearer ${++auths}`
          clock.timer(500, () => resolve({ scope: 'ann', headers: { authorization: token } }))
        }),
    })
    void only.fetch('orders', order('checkout:1'))
    await pass(5800)
    expect([auths, network.calls.length]).toEqual([2, 1])
    only.fetch.authChanged()
    await pass(5000)
    expect(network.calls[1]).toMatchObject({ method: 'GET', headers: { authorization: 'Bearer 3' } })
  })

  it.each([
    ['an attempt', 'sending', [created()], 2000],
    ['a poll', 'processing', [accepted, created()], 10_000],
  ])(
    'P3, P33: authChanged() while the mark of %s is being stored: asked with fresh credentials, and soon',
    async (_what, state, script, ms) => {
      const { network, tab, pass } = world()
      let token = 0
      let marks = 0
      network.script(...script)
      const only: Tab = tab({
        scope: () => 'ann',
        auth: () => ({ scope: 'ann', headers: { authorization: `Bearer ${++token}` } }),
        wrapStore: (store) => ({
          ...store,
          update: async (...args) => {
            const [change] = args
            // Under a lease: the exchange is about to begin.
            if (change.state === state && change.token !== null && ++marks === 1) only.fetch.authChanged()
            return store.update(...args)
          },
        }),
      })
      void only.fetch('orders', order('checkout:1'))
      await pass(ms)
      // What was asked for before the change is not sent.
      const sent = network.calls.slice(0, 2).map(({ method, headers }) => [method, headers.authorization])
      expect(sent).toEqual(
        state === 'sending'
          ? [['POST', 'Bearer 2']]
          : [
              ['POST', 'Bearer 1'],
              ['GET', 'Bearer 3'],
            ],
      )
    },
  )

  it.each([
    ['null', () => null],
    ['undefined', () => undefined],
    ['an empty text', () => ''],
    ['a number', () => 42 as unknown as string],
    ['an exception', (): string => (null as unknown as { id: string }).id],
    ['text that no store keeps', () => 'a\0b'],
  ])(
    'P3: nobody known (%s) is not anonymous: the submit is refused, nothing is stored or sent',
    async (_what, scope) => {
      const { network, tab, pass } = world()
      const only = tab({ scope })
      const write = only.fetch('orders', order('checkout:1'))
      await pass(60_000)
      await expect(write).rejects.toMatchObject({ code: 'config', option: 'scope', intentId: 'checkout:1' })
      await expect(only.fetch.intents.list()).rejects.toMatchObject({ code: 'config', option: 'scope' })
      expect(await only.store.list(origin, { limit: 9 })).toEqual([])
      expect(network.calls).toEqual([])
    },
  )

  it('P3, P28: scope() that fails in the tick of hand-over sends nothing, and leaves nothing in doubt', async () => {
    const { network, tab, pass } = world()
    let signedIn = true
    const only = tab({
      scope: () => {
        if (!signedIn) throw new Error('no session')
        return 'ann'
      },
      auth: async () => {
        signedIn = false
        return { scope: 'ann', headers: {} }
      },
    })
    void only.fetch('orders', order('checkout:1'))
    await pass(1000)
    signedIn = true
    expect(network.calls).toEqual([])
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ inDoubt: false, handedOver: false, attempts: 0 })
  })

  it('P3, B96, F15: the next user of the device sends nothing of the last one; the owner goes on with the old key', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    const who = session('ann')
    network.script(commitThenDrop(server), server.answer)
    const first = tab(who.options)
    const key = (await first.fetch('orders', order('checkout:1')).stored).key
    await pass(100)
    who.user = 'bob'
    first.kill()
    const second = tab(who.options)
    await pass(3_600_000)
    expect(network.writes()).toHaveLength(1)
    expect(await second.fetch.intents.list()).toMatchObject({ intents: [], elsewhere: 1 })
    who.user = 'ann'
    who.token = 2
    second.fetch.authChanged()
    await pass(60_000)
    expect(network.writes().map((call) => [call.key, call.headers.authorization])).toEqual([
      [key, 'Bearer ann-1'],
      [key, 'Bearer ann-2'],
    ])
    expect(server.total()).toBe(1)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
  })

  it('P6, P50: two users may use the same name: two intents, two keys', async () => {
    const { network, tab, pass } = world()
    const who = session('ann')
    const only = tab(who.options)
    void only.fetch('orders', order('checkout:1'))
    await pass(1000)
    who.user = 'bob'
    const write = only.fetch('orders', order('checkout:1', { item: 'coffee' }))
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
  })

  it('H5: the tag of the account goes with every attempt, and a mismatch blocks without spending an attempt', async () => {
    const { network, tab, pass } = world()
    const who = session('ann')
    network.script(problem(403, 'idempotency_scope_mismatch'), created())
    const only = tab({ scope: who.options.scope!, scopeTag: (scope) => `tag-${scope}` })
    void only.fetch('orders', order('checkout:1'))
    await pass(1000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'blocked',
      detail: 'scope',
      inDoubt: false,
    })
    only.fetch.authChanged()
    await pass(1000)
    expect(network.writes().map(({ headers }) => headers['idempotency-scope'])).toEqual(['tag-ann', 'tag-ann'])
  })
})

describe('P3, P4, P9: credentials', () => {
  it('B97, P51, F14: they are asked for at each attempt: a token that expired does not stick', async () => {
    const { network, tab, pass } = world()
    let token = 0
    network.script(answer(401), broken(), created())
    const only = tab({
      scope: () => 'ann',
      auth: () => ({ scope: 'ann', headers: { authorization: `Bearer ${++token}` } }),
    })
    void only.fetch('orders', order('checkout:1'))
    await pass(1000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', detail: 'credentials' })
    only.fetch.authChanged()
    await pass(60_000)
    expect(network.writes().map(({ headers }) => headers.authorization)).toEqual(['Bearer 1', 'Bearer 2', 'Bearer 3'])
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
  })

  it('P9, H27: a header of auth() that chooses the account is refused, and nothing is sent', async () => {
    const { network, tab, pass } = world()
    let account = 'shop-1'
    const only = tab({
      scope: () => 'ann',
      auth: () => ({ scope: 'ann', headers: { authorization: 'Bearer a', 'Stripe-Account': account } }),
    })
    void only.fetch('charges', order('charge:1'))
    await pass(1000)
    account = 'shop-2'
    await pass(600_000)
    expect(network.calls).toEqual([])
    expect(only.notes).toContainEqual(expect.objectContaining({ code: 'auth_header_refused' }))
    expect(await only.fetch.intents.get('charge:1')).toMatchObject({ state: 'blocked', detail: 'credentials' })
  })

  it('P9, H27: such a header in the request is fixed at submit, and another account is another content', async () => {
    const { network, tab, pass } = world()
    network.script(broken(), broken(), created())
    const only = tab()
    const charge = (account: string): Promise<Response> =>
      only.fetch('charges', {
        ...order('charge:1'),
        headers: { 'content-type': 'application/json', 'Stripe-Account': account },
      })
    const write = charge('shop-1')
    await pass(300)
    await expect(charge('shop-2')).rejects.toMatchObject({ code: 'intent_mismatch' })
    await pass(60_000)
    expect((await write).status).toBe(201)
    expect(network.writes().map(({ headers }) => headers['stripe-account'])).toEqual(['shop-1', 'shop-1', 'shop-1'])
  })

  it('P9: names in credentialHeaders count as credentials', async () => {
    const { network, tab, pass } = world()
    const only = tab({
      scope: () => 'ann',
      credentialHeaders: ['X-Session'],
      auth: () => ({ scope: 'ann', headers: { 'X-Session': 's-1' } }),
    })
    const write = only.fetch('orders', { ...order('checkout:1'), headers: { 'x-session': 'from the caller' } })
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(network.writes()).toMatchObject([{ headers: { 'x-session': 's-1' } }])
    expect(await dump(only)).not.toMatch(/x-session|from the caller/)
  })

  it('P4: credentials go to declared origins only', async () => {
    const { network, tab, pass } = world()
    const who = session()
    const only = tab(who.options)
    void only.fetch('https://elsewhere.example.com/orders', order('checkout:1'))
    void only.fetch('orders', order('checkout:2', { item: 'cup' }))
    await pass(1000)
    const sent = Object.fromEntries(
      network.writes().map(({ url, headers }) => [new URL(url).host, headers.authorization]),
    )
    expect(sent).toEqual({ 'elsewhere.example.com': undefined, 'api.example.com': 'Bearer ann-1' })
  })

  it('P4, P51: a credential that the caller gives for an origin that gets none is refused, not dropped', async () => {
    const { network, tab, pass } = world()
    const who = session()
    const only = tab(who.options)
    const write = only.fetch('https://elsewhere.example.com/orders', {
      ...order('checkout:1'),
      headers: { authorization: 'x' },
    })
    await pass(1000)
    await expect(write).rejects.toMatchObject({ code: 'config', option: 'headers.authorization' })
    expect(network.calls).toEqual([])
  })

  it.each([
    'authorization',
    'cookie',
    'x-api-key',
    'x-amz-security-token',
    'proxy-authorization',
    'signature',
    'apikey',
  ])(
    'P51: without auth(), the header %s is a ConfigError before anything is stored: credentials are stored nowhere',
    async (name) => {
      const { network, tab, pass } = world()
      const only = tab()
      const headers = new Headers()
      headers.set(name, 'secret')
      const write = only.fetch('orders', { ...order('checkout:1'), headers })
      await pass(1000)
      // A browser drops some of these by itself, Node does not.
      await expect(write).rejects.toMatchObject({ code: 'config', option: `headers.${name}` })
      expect(await dump(only)).not.toContain('secret')
      expect(network.calls).toEqual([])
    },
  )

  it('P51, B99: no token, cookie or echo of either lies in the store, before or after settlement', async () => {
    const { network, tab, pass } = world()
    const who = session()
    const secrets = /ann-1|c00kie|s3cret-echo/
    network.script(
      () =>
        Promise.reject(Object.assign(new TypeError('fetch failed at https://x/?s3cret-echo'), { code: 'ECONNRESET' })),
      answer(500, { 'set-cookie': 'c00kie', 'content-type': 'text/plain' }, 's3cret-echo'),
      hangs(),
    )
    const only = tab(who.options)
    void only.fetch('orders', {
      ...order('checkout:1', { card: '4242' }),
      headers: { 'content-type': 'application/json', authorization: 'Bearer ann-1', cookie: 'c00kie' },
    })
    await pass(20_000)
    expect(network.writes().length).toBeGreaterThan(1)
    const open = await dump(only)
    expect(open).toContain('4242')
    expect(open).not.toMatch(secrets)
    network.script(created({ id: 9 }, { 'set-cookie': 'c00kie' }))
    await pass(120_000)
    const settled = await dump(only)
    expect(settled).toContain('succeeded')
    expect(settled).not.toMatch(secrets)
    // The request's bytes are gone with their purpose (P52).
    expect(settled).not.toContain('4242')
  })

  it('P52: the request is kept while unknown', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({ retry: { attempts: 1 } })
    void only.fetch('orders', order('checkout:1', { card: '4242' }))
    await pass(60_000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown' })
    expect(await dump(only)).toContain('4242')
  })

  it('P3, F14: auth() that fails blocks, says so, and costs no attempt', async () => {
    const { network, tab, pass } = world()
    let works = false
    const only = tab({
      scope: () => 'ann',
      auth: async () => {
        if (!works) throw new Error('refresh token s3cret is over')
        return { scope: 'ann', headers: {} }
      },
    })
    void only.fetch('orders', order('checkout:1'))
    await pass(1000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', attempts: 0 })
    expect(only.notes).toContainEqual(expect.objectContaining({ code: 'auth_failed', key: expect.any(String) }))
    expect(await dump(only)).not.toContain('s3cret')
    works = true
    await pass(120_000)
    expect(network.writes()).toHaveLength(1)
  })
})
