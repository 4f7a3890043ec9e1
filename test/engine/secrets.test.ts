import { describe, expect, it } from 'vitest'
import { knowsShop, operation, shop, shopOrder } from '../support/shop.ts'
import { failure, within } from '../support/within.ts'
import {
  type Answer,
  answer,
  broken,
  created,
  day,
  hangs,
  order,
  origin,
  type Tab,
  type TabOptions,
  world,
} from '../support/world.ts'

/** Everything that lies in the store, as text: rows with their records, and both blobs of each. */
async function dump({ store }: Tab): Promise<string> {
  const rows = await store.list(origin, { limit: 1000 })
  const blobs = rows.flatMap((row) =>
    (['request', 'answer'] as const).map(async (name) => {
      const bytes = await store.blob(row, name)
      return `${name} of ${row.id}: ${bytes === undefined ? 'none' : new TextDecoder().decode(bytes)}`
    }),
  )
  return JSON.stringify([rows, await Promise.all(blobs)])
}

/** A session whose every credential holds the word "secret". */
const signedIn = {
  scope: () => 'ann',
  auth: () => ({
    scope: 'ann',
    headers: { authorization: 'Bearer secret-token', cookie: 'sid=secret-cookie', 'x-shop-session': 'secret-session' },
  }),
  credentialHeaders: ['x-shop-session'],
} satisfies TabOptions

/** A secret in a header that was given along the call. */
const carelessOrder = (intent: string): ReturnType<typeof order> => ({
  ...order(intent),
  headers: { 'content-type': 'application/json', Authorization: 'Bearer secret-inline', 'X-API-Key': 'secret-key' },
})

function withCookies(inner: Answer): Answer {
  return async (call, request) => {
    const response = await inner(call, request)
    response.headers.append('set-cookie', 'sid=secret-new-cookie; HttpOnly')
    response.headers.append('set-cookie', 'csrf=secret-csrf')
    return response
  }
}

/** Repeats what it got, as debug pages of servers do. */
const echoes: Answer = (call) =>
  new Response(JSON.stringify({ error: 'boom', headers: call.headers, body: 'secret-echo' }), {
    status: 500,
    headers: { 'content-type': 'application/json' },
  })

const talkative: Answer = () =>
  Promise.reject(
    Object.assign(new TypeError('could not reach https://ann:secret-password@api.example.com/?token=secret-query'), {
      cause: Object.assign(new Error('secret-cause'), { code: 'ECONNRESET' }),
    }),
  )

describe('P51, B99, H2: what lies on disk', () => {
  it('P51, B99: no credential, no cookie and no echo of one, before settlement, after it, and in no history', async () => {
    const { clock, network, tab } = world()
    network.script(echoes, talkative, withCookies(answer(401)), withCookies(hangs()), withCookies(created({ id: 9 })))
    const only = tab(signedIn)
    const write = only.fetch('orders', carelessOrder('checkout:1'))
    const seen: string[] = []
    for (let minutes = 0; minutes < 5; minutes++) {
      await clock.advance(minutes === 0 ? 0 : 20_000)
      seen.push(await dump(only))
    }
    only.fetch.authChanged()
    expect(
      (
        await within(
          clock,
          120_000,
          write.stored.then(() => only.fetch.intents.wait('checkout:1')),
        )
      ).state,
    ).toBe('succeeded')
    seen.push(await dump(only))
    for (const text of seen) {
      expect(text).not.toMatch(/secret/i)
      expect(text).not.toMatch(/set-cookie|authorization|x-api-key|x-shop-session/i)
    }
    expect(seen.some((text) => text.includes('request of checkout:1: {'))).toBe(true)
    // The network got them, each time.
    for (const call of network.calls)
      expect(call.headers).toMatchObject({ authorization: 'Bearer secret-token', 'x-shop-session': 'secret-session' })
  })

  it('P51: history holds events, numbers, statuses and error classes: no bodies, no messages', async () => {
    const { clock, network, tab } = world()
    network.script(echoes, talkative, answer(429), created())
    const only = tab(signedIn)
    await within(clock, 60_000, only.fetch('orders', order('checkout:1')))
    const view = await only.fetch.intents.get('checkout:1')
    for (const line of view?.history ?? []) {
      expect(
        Object.keys(line).filter((name) => !['at', 'event', 'attempt', 'status', 'detail'].includes(name)),
      ).toEqual([])
    }
    expect(view?.history.flatMap(({ detail }) => detail ?? [])).toEqual(['TypeError:ECONNRESET'])
    expect(view?.history.flatMap(({ status }) => status ?? [])).toEqual([500, 429, 201])
  })

  it('P51: an auth() that fails leaves the class of its error, not its message', async () => {
    const { clock, tab } = world()
    const only = tab({
      scope: () => 'ann',
      auth: () => {
        throw new RangeError('refresh token secret-refresh is over')
      },
    })
    await within(clock, 1000, only.fetch('orders', order('checkout:1')).stored)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', detail: 'credentials' })
    const text = await dump(only)
    expect(text).toContain('RangeError')
    expect(text).not.toContain('secret')
  })

  it('P51: Set-Cookie is kept from no kind of answer: refusals, replays by key, and what reconcile gives', async () => {
    const cookied = { headers: { 'set-cookie': 'sid=secret', 'x-kind': 'stored' } }
    const answers: [string, TabOptions, Answer[]][] = [
      ['a refusal', {}, [withCookies(answer(422, { 'idempotency-expires': 'Tue, 01 Dec 2037 12:00:00 GMT' }, 'no'))]],
      [
        'a look-up by key',
        knowsShop,
        [
          answer(503, { 'retry-after': '3600' }),
          withCookies(() =>
            Response.json({
              id: 'k',
              status: 'succeeded',
              response: { status: 201, body: '{}', headers: { 'Set-Cookie': 'sid=secret', 'x-kind': 'stored' } },
            }),
          ),
        ],
      ],
      [
        'reconcile',
        {
          operations: {
            [operation]: {
              reconcile: async () => ({ found: true, byKey: true, response: Response.json({}, cookied) }),
            },
          },
        },
        [answer(503, { 'retry-after': '3600' }), answer(404)],
      ],
    ]
    for (const [kind, options, script] of answers) {
      const { clock, network, tab } = world()
      network.script(...script)
      const only = tab(options)
      const init = kind === 'a refusal' ? order('checkout:1') : shopOrder('checkout:1')
      await within(clock, 1000, only.fetch('orders', init).stored)
      await only.fetch.intents.check('checkout:1')
      const outcome = await within(clock, 10_000, only.fetch.intents.wait('checkout:1'))
      if (!('response' in outcome)) throw new Error(`${kind}: ${outcome.state}`)
      expect(outcome.response.headers.get('set-cookie'), kind).toBeNull()
      expect(await dump(only), kind).not.toMatch(/secret|set-cookie/i)
    }
  })

  it('P51: a credential that would have to be stored is refused by name where there is no auth()', async () => {
    const { clock, network, tab } = world()
    const only = tab()
    const write = only.fetch('orders', carelessOrder('checkout:1'))
    expect(await failure(clock, 1000, write)).toMatchObject({ code: 'config', option: 'headers.authorization' })
    expect(await dump(only)).toBe(JSON.stringify([[], []]))
    expect(network.calls).toEqual([])
  })

  it('H2: what was not named is neither stored nor held back', async () => {
    const { clock, network, tab } = world()
    network.script(() => Response.json({ token: 'secret' }))
    const only = tab({ fetch: async (request) => Response.json({ sent: await request.text() }) })
    const response = await within(clock, 0, only.fetch('https://id.example.com/login', { method: 'POST', body: 'pw' }))
    expect(await response.json()).toEqual({ sent: 'pw' })
    expect(await dump(only)).toBe(JSON.stringify([[], []]))
    expect(network.calls).toEqual([])
  })
})

describe('P51, P52: how long bodies are kept', () => {
  it('P52: request bytes are kept while anything is open or unknown, and purged at settlement', async () => {
    const { clock, network, tab } = world()
    network.script(broken())
    const only = tab({ retry: { attempts: 2 } })
    const { key } = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).stored)
    const at = { client: origin, scope: 'anonymous', key }
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('unknown')
    clock.jump(30 * day)
    await clock.advance(120_000)
    expect(new TextDecoder().decode(await only.store.blob(at, 'request'))).toBe('{"item":"tea","amount":3}')
    await only.fetch.intents.resolve('checkout:1', 'succeeded')
    expect(await only.store.blob(at, 'request')).toBeUndefined()
  })

  it('P52: every way to an end purges them', async () => {
    const ends: Record<string, (tab: Tab) => Promise<unknown>> = {
      cancelled: (tab) => tab.fetch.intents.cancel('checkout:1'),
      abandoned: (tab) => tab.fetch.intents.abandon('checkout:1'),
      succeeded: (tab) => tab.fetch.intents.retry('checkout:1'),
    }
    for (const [state, act] of Object.entries(ends)) {
      const { clock, network, tab } = world()
      network.script(
        state === 'cancelled' ? answer(429, { 'retry-after': '600' }) : answer(503, { 'retry-after': '600' }),
        created(),
      )
      const only = tab()
      const { key } = await within(clock, 100, only.fetch('orders', order('checkout:1')).stored)
      await act(only)
      await clock.advance(5000)
      expect((await only.fetch.intents.get('checkout:1'))?.state).toBe(state)
      expect(await only.store.blob({ client: origin, scope: 'anonymous', key }, 'request'), state).toBeUndefined()
    }
  })

  it('P51: an answer’s body is kept up to 64 KiB, to the byte; a larger one only for who awaits it', async () => {
    for (const [length, kept] of [
      [64 * 1024, true],
      [64 * 1024 + 1, false],
    ] as const) {
      const { clock, network, tab } = world()
      network.script((call) => {
        const headers = new Headers((created()(call, new Request(origin)) as Response).headers)
        headers.set('content-type', 'text/plain')
        return new Response('x'.repeat(length), { status: 201, headers })
      })
      const only = tab()
      const live = await within(clock, 1000, only.fetch('orders', order('checkout:1')))
      expect(await live.text()).toHaveLength(length)
      only.kill()
      const later = await within(clock, 1000, tab().fetch('orders', order('checkout:1')))
      if (kept) expect(await later.text()).toHaveLength(length)
      else expect(await failure(clock, 0, later.text())).toMatchObject({ code: 'body_not_stored' })
      expect(network.calls).toHaveLength(1)
    }
  })

  it('P51: storeAnswer: false keeps the body out of the store; who awaits it gets it all the same', async () => {
    const { clock, network, tab } = world()
    network.script(created({ card: '4111 1111' }))
    const operations = { [operation]: { storeAnswer: false } }
    const only = tab({ operations })
    const [one, two] = [only.fetch('orders', shopOrder('checkout:1')), only.fetch('orders', shopOrder('checkout:1'))]
    for (const write of [one, two])
      expect(await (await within(clock, 1000, write)).json()).toEqual({ card: '4111 1111' })
    expect(await dump(only)).not.toContain('4111')
    const later = await within(clock, 1000, tab({ operations }).fetch('orders', shopOrder('checkout:1')))
    expect(later.status).toBe(201)
    expect(await failure(clock, 0, later.json())).toMatchObject({ code: 'body_not_stored' })
  })

  it('P51: storeAnswer: false holds for answers that come by key and by monitor too', async () => {
    const { clock, network, tab } = world()
    const server = shop(clock)
    server.take('as_task')
    network.script(server.answer)
    const only = tab({ operations: { [operation]: { storeAnswer: false } } })
    const write = only.fetch('orders', shopOrder('checkout:1'))
    const { key } = await within(clock, 5000, write.stored)
    await server.finish(key)
    expect(await (await within(clock, 10_000, write)).json()).toEqual({ id: key })
    expect(await only.store.blob({ client: origin, scope: 'anonymous', key }, 'answer')).toBeUndefined()
  })

  it('P60: what the server does not keep is said so, and never an empty value', async () => {
    const { clock, network, tab } = world()
    network.script((call) => {
      const { headers } = created()(call, new Request(origin)) as Response
      return new Response(null, {
        status: 201,
        headers: { ...Object.fromEntries(headers), 'idempotency-body': 'omitted' },
      })
    })
    const only = tab()
    const response = await within(clock, 1000, only.fetch('orders', order('checkout:1')))
    expect(await failure(clock, 0, response.json())).toMatchObject({ code: 'body_not_stored' })
  })

  it('P51, P8: the stored body goes with the record, once it is acknowledged and no longer remembered', async () => {
    const { clock, network, tab } = world()
    network.script(created({ id: 9 }))
    const only = tab()
    const write = only.fetch('orders', order('checkout:1'))
    await within(clock, 1000, write)
    const { key } = await write.stored
    const at = { client: origin, scope: 'anonymous', key }
    clock.jump(6 * day)
    await clock.advance(120_000)
    expect(await only.store.blob(at, 'answer')).toBeDefined()
    clock.jump(2 * day)
    await clock.advance(120_000)
    expect(await only.store.byKey(at)).toBeUndefined()
    expect(await only.store.blob(at, 'answer')).toBeUndefined()
  })
})
