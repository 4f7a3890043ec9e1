/** Section 6 row by row, through the engine: what an attempt proved, what follows, and what the server was made to do. */
import { describe, expect, it } from 'vitest'
import type { IntentView } from '../../src/engine/view.ts'
import type { Dialect } from '../../src/protocol/dialects/dialect.ts'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import {
  type Answer,
  answer,
  broken,
  commitThenDrop,
  created,
  day,
  type HonestServer,
  hangs,
  honestServer,
  order,
  origin,
  problem,
  refusedConnection,
  type Tab,
  type TabOptions,
  type World,
  world,
} from '../support/world.ts'

const minute = 60_000
const portalPage = answer(200, { 'content-type': 'text/html' }, '<h1>Welcome to the airport</h1>')
/** An order that accepts JSON only, so that a foreign page gives itself away. */
const jsonOrder: RequestInit & { intent: string } = {
  ...order('checkout:1'),
  headers: { 'content-type': 'application/json', accept: 'application/json' },
}

interface Lived extends World {
  readonly only: Tab
  readonly server: HonestServer
  readonly view: IntentView
}

/** One intent, the scripted answers, and so much time. `honest` stands for the honest server. */
async function live(
  answers: readonly (Answer | 'honest' | 'lost')[],
  ms: number,
  options: TabOptions = {},
): Promise<Lived> {
  const small = world()
  const server = honestServer()
  const script = answers.map((one) => {
    if (one === 'honest') return server.answer
    return one === 'lost' ? commitThenDrop(server) : one
  })
  small.network.script(...script)
  const only = small.tab(options)
  await only.fetch('orders', jsonOrder).stored
  await small.pass(ms)
  return { ...small, only, server, view: (await only.fetch.intents.get('checkout:1'))! }
}

/** A 2xx whose body breaks off. */
function cutOff(status: number, headers: Record<string, string> = {}): Answer {
  return () => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"id":'))
        controller.error(new TypeError('terminated'))
      },
    })
    return new Response(body, { status, headers: { 'content-type': 'application/json', ...headers } })
  }
}

const proof = { 'idempotency-expires': formatHttpDate(Date.UTC(2026, 11, 2, 12)) }
const plainServer = ietf({ retentionMs: day })
const withKeys: TabOptions = { operations: { 'orders.create': { match: ({ url }) => url.pathname === '/orders' } } }

interface Row {
  readonly what: string
  readonly first: Answer
  readonly options?: TabOptions
  /** State right after the first attempt. */
  readonly next: Partial<IntentView>
  /** Where the server does not de-duplicate. */
  readonly elsewhere: Partial<IntentView>
}

const again = { state: 'waiting', attempts: 1, handedOver: true, inDoubt: true } as const
const unknown = { state: 'unknown', inDoubt: true } as const
const noEffect = { state: 'waiting', attempts: 1, inDoubt: false } as const

const rows: readonly Row[] = [
  {
    what: 'the connection was never made, and the transport can be believed',
    first: refusedConnection(),
    options: { transport: { provesNonDelivery: true } },
    next: { ...noEffect, handedOver: false, detail: 'never_delivered' },
    elsewhere: { ...noEffect, handedOver: false },
  },
  {
    what: 'a refused connection through a transport that proves nothing',
    first: refusedConnection(),
    next: again,
    elsewhere: unknown,
  },
  { what: 'any other network error', first: broken(), next: { ...again, detail: 'ambiguous' }, elsewhere: unknown },
  { what: '2xx without proof where the dialect has a marker', first: portalPage, next: again, elsewhere: unknown },
  {
    what: '201 JSON without the marker',
    first: answer(201, { 'content-type': 'application/json' }, '{}'),
    next: again,
    elsewhere: { state: 'succeeded' },
  },
  { what: '408', first: answer(408), next: again, elsewhere: unknown },
  { what: '500', first: answer(500), next: again, elsewhere: unknown },
  { what: '502', first: answer(502), next: again, elsewhere: unknown },
  { what: '503', first: answer(503), next: again, elsewhere: unknown },
  { what: '504', first: answer(504), next: again, elsewhere: unknown },
  { what: '599', first: answer(599), next: again, elsewhere: unknown },
  { what: '425', first: answer(425), next: noEffect, elsewhere: noEffect },
  { what: '429', first: answer(429), next: noEffect, elsewhere: noEffect },
  {
    what: '401',
    first: answer(401),
    next: { state: 'blocked', detail: 'credentials', inDoubt: false },
    elsewhere: { state: 'blocked' },
  },
  {
    what: 'a redirect to another origin',
    first: answer(307, { location: 'https://login.example.net/' }),
    next: again,
    elsewhere: unknown,
  },
  {
    what: 'a redirect that changes the method',
    first: answer(302, { location: '/login' }),
    next: again,
    elsewhere: unknown,
  },
  { what: 'a 303 without proof', first: answer(303, { location: '/login' }), next: again, elsewhere: unknown },
  {
    what: '202 without a way to ask',
    first: answer(202, proof),
    next: { ...again, detail: 'accepted_unmonitored' },
    elsewhere: unknown,
  },
  {
    what: '202 with a way to ask',
    first: answer(202, { ...proof, location: '/tasks/1' }),
    next: { state: 'processing', inDoubt: true },
    elsewhere: { state: 'processing' },
  },
]

describe('P25, section 6: what one attempt proved, and what comes next', () => {
  for (const { what, first, options = {}, next, elsewhere } of rows) {
    it(`${what}: same key where the server de-duplicates, and never a second send on a guess elsewhere`, async () => {
      const { view, network, pass, only, server } = await live([first, 'honest'], 0, options)
      expect(view).toMatchObject(next)
      expect(network.writes()).toHaveLength(1)
      if (view.state === 'waiting') {
        await pass(minute)
        expect(await only.fetch.intents.get('checkout:1')).toMatchObject({
          state: 'succeeded',
          key: view.key,
          attempts: 2,
        })
        expect([...server.effects]).toEqual([[view.key, 1]])
        expect(new Set(network.writes().map(({ body }) => body)).size).toBe(1)
      }

      const plain = await live([first, 'honest'], 0, { ...options, dialect: none })
      expect(plain.view).toMatchObject(elsewhere)
      await plain.pass(minute / 2)
      const sent = plain.network.writes().length
      expect(sent).toBe(plain.view.state === 'waiting' ? 2 : 1)
    })
  }

  it('H24, B77: a captive portal is not success; the order is made once when the real server is reached', async () => {
    for (const dialect of [samekey, plainServer]) {
      const { view, server, network } = await live([portalPage, portalPage, 'honest'], minute, { dialect })
      expect(view).toMatchObject({ state: 'succeeded', attempts: 3 })
      expect(server.total()).toBe(1)
      expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    }
  })

  it('section 6: without a marker, 204, an empty 201 and a wanted media type are believed; a page is not', async () => {
    const of = (status: number, headers: Record<string, string>, body: string | null = null) =>
      live([answer(status, headers, body)], 0, { dialect: plainServer })
    expect((await of(204, {})).view.state).toBe('succeeded')
    expect((await of(201, {})).view.state).toBe('succeeded')
    expect((await of(200, { 'content-type': 'application/json' }, '{}')).view.state).toBe('succeeded')
    expect((await of(200, { 'content-type': 'text/html' }, '<p>')).view.state).toBe('waiting')
  })

  it('P25: the word of `accept` counts where no marker is seen, either way', async () => {
    const accept = (response: Response) => response.headers.get('x-order') === 'made'
    const operations = { order: { match: () => true, accept } }
    const made = await live([answer(200, { 'x-order': 'made' }, 'ok')], 0, { operations })
    expect(made.view.state).toBe('succeeded')
    const not = await live([answer(200, {}, 'a page'), created({ id: 9 }, { 'x-order': 'made' })], 0, { operations })
    expect(not.view).toMatchObject({ state: 'waiting', inDoubt: true })
    await not.pass(minute)
    expect(await not.only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', attempts: 2 })
    const proven = await live([created()], 0, { operations })
    expect(proven.view.state, 'section 6: with proof it is done, whatever the app thinks').toBe('succeeded')
  })

  it('P26, H58: a cut-off body is asked for again under the same key, and the replay gives it', async () => {
    const { only, view, server, network, pass } = await live([cutOff(201, proof), 'honest'], 0)
    expect(view).toMatchObject({ state: 'waiting', detail: 'answer_incomplete', inDoubt: true })
    await pass(minute)
    const response = await only.fetch('orders', jsonOrder)
    expect(await response.json()).toEqual({ id: view.key })
    expect(server.total()).toBe(1)
    expect(network.writes()).toHaveLength(2)
  })

  it('P26: where the replay cannot be had before the window ends, it is succeeded without body, never unknown', async () => {
    const { only, network } = await live([cutOff(201, proof), broken()], 2 * day, {
      retry: { attempts: 10_000, capMs: day / 24 },
    })
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    const sent = network.writes().length
    const response = await only.fetch('orders', jsonOrder)
    expect(response.status).toBe(201)
    await expect(response.json()).rejects.toMatchObject({ code: 'body_not_stored', intentId: 'checkout:1' })
    expect(network.writes()).toHaveLength(sent)
  })

  it('H58: with dialect none, a 2xx whose body is cut off is succeeded without body, and never asked for again', async () => {
    const { only, view, network, pass } = await live([cutOff(201)], 0, { dialect: none })
    expect(view.state).toBe('succeeded')
    await pass(minute)
    expect(network.writes()).toHaveLength(1)
    const response = await only.fetch('orders', jsonOrder)
    await expect(response.text()).rejects.toMatchObject({ code: 'body_not_stored' })
  })

  it('section 6: 202 with a way to ask is polled, and never sent again', async () => {
    const { only, view, network, pass, clock } = await live(
      [answer(202, { ...proof, location: '/tasks/1', 'retry-after': '2' })],
      0,
    )
    expect(view).toMatchObject({ state: 'processing', detail: 'running' })
    network.script(() =>
      Response.json({ id: 't1', status: 'succeeded', response: { status: 201, headers: {}, body: '{"id":9}' } }),
    )
    const before = clock.now()
    await pass(minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect(network.calls.slice(1).map(({ method, url }) => `${method} ${url}`)).toEqual([`GET ${origin}/tasks/1`])
    expect(network.calls[1]!.at - before).toBeGreaterThanOrEqual(2000)
  })

  it('section 6: 401 and a 403 of credentials spend no attempt, however often', async () => {
    const dialect: Dialect = { ...samekey, statuses: { 403: 'needsCredentials' } }
    const { only, view, pass, network } = await live([answer(401), answer(403)], 30 * minute, {
      dialect,
      retry: { attempts: 2 },
    })
    expect(view).toMatchObject({ state: 'blocked', detail: 'credentials', inDoubt: false })
    expect(view.attempts).toBeGreaterThan(5)
    network.script(created())
    only.fetch.authChanged()
    await pass(1000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
  })

  it('section 6, H5: 403 idempotency_scope_mismatch blocks on the scope; nothing of this attempt is in doubt', async () => {
    const { view } = await live([problem(403, 'idempotency_scope_mismatch')], 0)
    expect(view).toMatchObject({ state: 'blocked', detail: 'scope', inDoubt: false, handedOver: true })
  })

  it('P25: the body may say that nothing was executed: 503 idempotency_unavailable leaves no doubt', async () => {
    const { view } = await live([problem(503, 'idempotency_unavailable')], 0)
    expect(view).toMatchObject({ state: 'waiting', detail: 'refused_for_now', inDoubt: false })
    const lost = await live(['lost', problem(503, 'idempotency_unavailable')], 10_000, { retry: { attempts: 3 } })
    expect(lost.view).toMatchObject({ state: 'unknown', detail: 'attempts_spent' })
  })

  it('B74: 409 in progress waits at its own pace, spends no attempt, and ends in the stored answer', async () => {
    const busy = problem(409, 'idempotency_in_progress', { 'retry-after': '1' })
    const { view, server } = await live(['lost', busy, busy, busy, busy, 'honest'], 5 * minute, {
      retry: { attempts: 2 },
    })
    expect(view).toMatchObject({ state: 'succeeded' })
    expect(server.total()).toBe(1)
  })

  it('section 6: 409 in progress is bounded by the window: unknown, not an endless question', async () => {
    const operations = { orders: { match: () => true, retentionMs: 60 * minute } }
    const { view, network, pass } = await live([problem(409, 'idempotency_in_progress')], 60 * minute, { operations })
    expect(view).toMatchObject({ state: 'unknown', detail: 'window_over' })
    const sent = network.writes().length
    await pass(60 * minute)
    expect(network.writes()).toHaveLength(sent)
  })

  it('F8, H22: a conflict is final for a first attempt, and unknown for an intent in doubt', async () => {
    const conflict = problem(409, 'idempotency_conflict')
    const first = await live([conflict], 0)
    expect(first.view).toMatchObject({ state: 'conflicted', inDoubt: false })
    await first.pass(60 * minute)
    expect(first.network.writes()).toHaveLength(1)
    const doubtful = await live(['lost', conflict], minute)
    expect(doubtful.view).toMatchObject({ state: 'unknown', detail: 'conflict_in_doubt' })
    await doubtful.pass(60 * minute)
    expect(doubtful.network.writes()).toHaveLength(2)
  })

  it('section 6: expired is rejected for a first attempt, and unknown for an intent in doubt', async () => {
    const expired = problem(409, 'idempotency_expired')
    expect((await live([expired], 0)).view).toMatchObject({ state: 'rejected' })
    expect((await live(['lost', expired], minute)).view).toMatchObject({ state: 'unknown', detail: 'expired_in_doubt' })
  })

  it('section 6: voided is cancelled, in doubt or not', async () => {
    const voided = problem(409, 'idempotency_voided')
    expect((await live([voided], 0)).view).toMatchObject({ state: 'cancelled', detail: 'voided' })
    expect((await live([broken(), voided], minute)).view).toMatchObject({ state: 'cancelled', detail: 'voided' })
  })

  it('F18, B75: a replayed 500 stops at once: unknown, and never a loop', async () => {
    const { view, network, pass } = await live([answer(500), answer(500, { 'idempotent-replayed': 'true' })], minute)
    expect(view).toMatchObject({ state: 'unknown', detail: 'stored_failure' })
    await pass(60 * minute)
    expect(network.writes()).toHaveLength(2)
  })

  it('section 6: "already done" with a pointer is followed within the attempt, and succeeded', async () => {
    const dialect: Dialect = {
      ...plainServer,
      pointer: ({ status, header }) => (status === 409 ? header('location') : null),
    }
    const { only, view, network } = await live(
      [answer(409, { location: '/orders/9' }), answer(200, { 'content-type': 'application/json' }, '{"id":9}')],
      0,
      { dialect },
    )
    expect(view.state).toBe('succeeded')
    expect(network.calls.map(({ method, url }) => `${method} ${url}`)).toEqual([
      `POST ${origin}/orders`,
      `GET ${origin}/orders/9`,
    ])
    expect(await only.fetch('orders', jsonOrder).json()).toEqual({ id: 9 })
  })

  it('P26, P47: following a pointer does not outlast the time limit of the attempt, nor its lease', async () => {
    const dialect: Dialect = { ...plainServer, pointer: ({ header }) => header('location') }
    const small = world()
    small.network.script(
      (call, request) =>
        new Promise((resolve, reject) =>
          small.clock.timer(29_000, () =>
            Promise.resolve(answer(409, { location: '/orders/9' })(call, request)).then(resolve, reject),
          ),
        ),
      hangs(),
    )
    const only = small.tab({ dialect })
    await only.fetch('orders', jsonOrder).stored
    await small.pass(30_500)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
  })

  it('B107: 400, 404 and 413 for a first attempt: one attempt, rejected with the body exposed, none after a reload', async () => {
    for (const status of [400, 404, 413]) {
      const { only, view, network, tab, pass } = await live(
        [answer(status, { 'content-type': 'text/plain' }, 'no such tea')],
        minute,
      )
      expect(view).toMatchObject({ state: 'rejected', inDoubt: false, answer: { status } })
      only.kill()
      const next = tab()
      await pass(minute)
      const response = await next.fetch('orders', jsonOrder)
      expect([response.status, await response.text()]).toEqual([status, 'no such tea'])
      expect(network.writes()).toHaveLength(1)
    }
  })
})

describe('P27: nothing that may have taken effect is reported as rejected, failed or cancelled', () => {
  for (const status of [400, 403, 404, 405, 410, 413, 422, 431]) {
    it(`H25, H26: ${status} after an attempt whose answer was lost says nothing about it: same key later, one order, the truth`, async () => {
      const { view, server, network } = await live(['lost', answer(status), 'honest'], minute)
      expect(view).toMatchObject({ state: 'succeeded', attempts: 3 })
      expect(server.total()).toBe(1)
      expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    })
  }

  for (const status of [401, 425, 429]) {
    it(`H26: ${status} after an attempt whose answer was lost clears its own attempt only`, async () => {
      const { only, view, server, network, pass } = await live(['lost', answer(status)], 10_000, {
        retry: { attempts: 1000 },
      })
      expect(view).toMatchObject({ inDoubt: true })
      await expect(only.fetch.intents.cancel('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
      network.script(server.answer)
      only.fetch.authChanged()
      await pass(5 * minute)
      expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
      expect(server.total()).toBe(1)
    })
  }

  it('H25, P27: a refusal that never changes ends unknown at the end of the window, never rejected', async () => {
    const { view, network, pass } = await live(['lost', answer(403)], day, {
      retry: { attempts: 10_000, capMs: 60 * minute },
    })
    expect(view).toMatchObject({ state: 'unknown', detail: 'window_over' })
    const sent = network.writes().length
    await pass(60 * minute)
    expect(network.writes()).toHaveLength(sent)
  })

  it('H61: where the server voids, such a refusal is settled: voided means rejected with this answer, for certain', async () => {
    const small = world()
    small.network.script(broken(), answer(422, { 'content-type': 'text/plain' }, 'too much tea'), () =>
      Response.json({ id: 'k', status: 'voided' }),
    )
    const only = small.tab(withKeys)
    await only.fetch('orders', jsonOrder).stored
    await small.pass(minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'rejected', answer: { status: 422 } })
    expect(small.network.calls.map(({ method }) => method)).toEqual(['POST', 'POST', 'DELETE'])
    const response = await only.fetch('orders', jsonOrder)
    expect(await response.text()).toBe('too much tea')
    await small.pass(60 * minute)
    expect(small.network.calls).toHaveLength(3)
  })

  it('H61: a derived key refused with a plain 422 is not asked about for a day: one void, then rejected', async () => {
    const small = world()
    small.network.script(answer(422, {}, 'no'), () => Response.json({ id: 'k', status: 'voided' }))
    const only = small.tab(withKeys)
    const key = { derived: true, since: small.clock.now() - minute } as const
    await only.fetch('orders', { ...jsonOrder, key }).stored
    await small.pass(minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'rejected' })
    expect(small.network.calls.map(({ method }) => method)).toEqual(['POST', 'DELETE'])
  })

  it('H61: where the void finds the stored answer, that decides', async () => {
    const small = world()
    const server = honestServer()
    small.network.script(commitThenDrop(server), answer(422, {}, 'no'), () =>
      Response.json({ id: 'k', status: 'succeeded', response: { status: 201, headers: {}, body: '{"id":9}' } }),
    )
    const only = small.tab(withKeys)
    await only.fetch('orders', jsonOrder).stored
    await small.pass(minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect(await only.fetch('orders', jsonOrder).json()).toEqual({ id: 9 })
    expect(server.total()).toBe(1)
  })

  it('section 6: the same 4xx with proof comes from behind the key, so it is rejected although in doubt', async () => {
    const { view, network } = await live(
      [broken(), answer(422, { ...proof, 'content-type': 'text/plain' }, 'declined')],
      minute,
    )
    expect(view).toMatchObject({ state: 'rejected', inDoubt: false })
    expect(network.writes()).toHaveLength(2)
  })

  it('F21: a row without a finished answer: waits with back-off, then unknown', async () => {
    const { view, network, pass } = await live([problem(500, 'idempotency_inconsistent')], 10_000, {
      retry: { attempts: 4 },
    })
    expect(view).toMatchObject({ state: 'unknown', detail: 'attempts_spent', attempts: 4 })
    await pass(60 * minute)
    expect(network.writes()).toHaveLength(4)
  })

  it('F20: the connection is lost in COMMIT, and the server says so: in doubt, and the next request reads the row', async () => {
    for (const committed of [true, false]) {
      const small = world()
      const server = honestServer()
      small.network.script((call, request) => {
        if (committed) void server.answer(call, request)
        return problem(503, 'idempotency_commit_unknown', { 'retry-after': '1' })(call, request)
      }, server.answer)
      const only = small.tab()
      await only.fetch('orders', jsonOrder).stored
      await small.pass(0)
      expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'waiting', inDoubt: true })
      await small.pass(minute)
      expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
      expect(server.total()).toBe(1)
    }
  })

  it('F24, B52: a server that does not de-duplicate: unknown after an ambiguous attempt, retried where it does', async () => {
    const operations = { legacy: { match: ({ url }: { url: URL }) => url.pathname === '/legacy', dialect: none } }
    const small = world()
    const server = honestServer()
    small.network.script(commitThenDrop(server), commitThenDrop(server), server.answer)
    const only = small.tab({ operations })
    await only.fetch('legacy', order('legacy:1')).stored
    await small.pass(0)
    await only.fetch('orders', order('checkout:1')).stored
    await small.pass(60 * minute)
    expect(await only.fetch.intents.get('legacy:1')).toMatchObject({
      state: 'unknown',
      detail: 'server_does_not_deduplicate',
    })
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect(small.network.writes().map(({ url }) => new URL(url).pathname)).toEqual(['/legacy', '/orders', '/orders'])
    await expect(only.fetch.intents.retry('legacy:1')).rejects.toMatchObject({ code: 'not_possible' })
  })
})

describe('P30: a transport that repeats by itself', () => {
  const repeats: TabOptions = { transport: { provesNonDelivery: true, repeats: true } }

  it('P30, H17: takes away the proof of "never delivered"', async () => {
    const { view } = await live([refusedConnection()], 0, repeats)
    expect(view).toMatchObject({ inDoubt: true, handedOver: true, detail: 'ambiguous' })
  })

  it('H49: a refusal without proof leaves the intent in doubt: the other copy may have committed', async () => {
    for (const status of [403, 422]) {
      const { view, server } = await live(
        [
          async (call, request) => {
            await server0.answer(call, request)
            return answer(status)(call, request)
          },
          (call, request) => server0.answer(call, request),
        ],
        minute,
        repeats,
      )
      expect(view).toMatchObject({ state: 'succeeded', attempts: 2 })
      expect(server.total()).toBe(0)
    }
  })

  it('P30: 401 and 429 clear nothing of the copies either: cancel is refused', async () => {
    for (const status of [401, 429]) {
      const { only, view } = await live([answer(status)], 0, repeats)
      expect(view).toMatchObject({ inDoubt: true })
      await expect(only.fetch.intents.cancel('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
    }
  })

  it('P30, P1: with dialect none, such a refusal is unknown, not rejected', async () => {
    expect((await live([answer(422)], 0, { ...repeats, dialect: none })).view).toMatchObject({ state: 'unknown' })
  })

  const server0 = honestServer()
})

describe('P41, H59: markers that a cross-origin page cannot read', () => {
  it('H59: two such answers stop it: unknown, with the reason and the CORS lines; never an order a minute for a day', async () => {
    const small = world()
    const unmarked = answer(201, { 'content-type': 'application/json' }, '{"id":9}')
    small.network.script(unmarked)
    const only = small.tab({ replace: { pageOrigin: 'https://shop.example.com' } })
    await only.fetch('orders', jsonOrder).stored
    await small.pass(60 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'markers_unreadable' })
    expect(small.network.writes()).toHaveLength(2)
    const warnings = only.notes.filter((note) => note.type === 'warning' && note.code === 'markers_unreadable')
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatchObject({ message: expect.stringContaining('Access-Control-Expose-Headers') })
  })

  it('P41: on the own origin a missing marker is somebody else’s page: it goes on with the same key', async () => {
    const { view, server } = await live([portalPage, portalPage, portalPage, 'honest'], minute)
    expect(view.state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })
})

describe('H62, P9: what is fixed goes with every attempt', () => {
  it('H62: fetch’s credentials, mode and referrer policy go with the resumed request too', async () => {
    const small = world()
    small.network.script(hangs(), created())
    const first = small.tab()
    await first.fetch('orders', { ...jsonOrder, credentials: 'include', referrerPolicy: 'no-referrer' }).stored
    await small.pass(0)
    first.kill()
    small.tab({ visibleDeath: true })
    await small.pass(minute)
    expect(small.network.writes().map(({ credentials, mode }) => [credentials, mode])).toEqual([
      ['include', 'cors'],
      ['include', 'cors'],
    ])
  })
})

describe('H16, P27: what follows a redirect says nothing of the request before it', () => {
  /** Commits, and answers with a redirect to the same place. */
  const commitsAndRedirects =
    (server: HonestServer): Answer =>
    async (call, request) => {
      await server.answer(call, request)
      return answer(307, { location: call.url })(call, request)
    }

  it.each([
    ['401', answer(401)],
    ['429', answer(429)],
    ['a refusal without proof', answer(422)],
    ['expired', problem(409, 'idempotency_expired')],
    ['another payload', problem(409, 'idempotency_conflict')],
  ])('%s after a redirect that came after the commit: never rejected or cancelled', async (_what, second) => {
    const small = world()
    const server = honestServer()
    small.network.script(commitsAndRedirects(server), second, hangs())
    const only = small.tab({ dialect: { ...samekey, byKey: false } })
    await only.fetch('orders', order('checkout:1')).stored
    await small.pass(100)
    const view = await only.fetch.intents.get('checkout:1')
    expect(['waiting', 'blocked', 'unknown', 'sending']).toContain(view?.state)
    expect(view?.inDoubt).toBe(true)
    await expect(only.fetch.intents.cancel('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
    expect(server.total()).toBe(1)
  })

  it('and the same key finds out: one effect, succeeded', async () => {
    const small = world()
    const server = honestServer()
    small.network.script(commitsAndRedirects(server), answer(429), server.answer)
    const only = small.tab()
    const write = only.fetch('orders', order('checkout:1'))
    await small.pass(5 * minute)
    expect((await write).status).toBe(201)
    expect(server.total()).toBe(1)
  })

  it.each([
    ['P36: its send-by time has passed', (small: World, _only: Tab) => small.clock.advance(20_000)],
    [
      'P3: somebody else has signed in',
      async (_small: World, _only: Tab, signIn: (who: string) => void) => signIn('B'),
    ],
  ])('%s while the redirect was on its way: it is not followed', async (_what, meanwhile) => {
    const small = world()
    let redirect: (response: Response) => void = () => {}
    small.network.script(() => new Promise((resolve) => (redirect = resolve)), hangs())
    let who = 'A'
    const only = small.tab({ scope: () => who, attemptTimeoutMs: 60_000, retry: { attempts: 1 } })
    await only.fetch('orders', { ...order('checkout:1'), sendBefore: small.clock.now() + 10_000 }).stored
    await small.pass(100)
    await meanwhile(small, only, (next) => {
      who = next
    })
    redirect(new Response(null, { status: 307, headers: { location: '/orders' } }))
    await small.pass(100)
    expect(small.network.calls.map(({ method }) => method)).toEqual(['POST'])
  })
})
