/** Back-off, budget, outages, offline hints, and what wakes the queue (P31, P33). */
import { describe, expect, it } from 'vitest'
import {
  type Answer,
  answer,
  broken,
  type Call,
  created,
  day,
  honestServer,
  later,
  order,
  origin,
  refusedConnection,
  type Tab,
  world,
} from '../support/world.ts'

const minute = 60_000

/** Most calls in any span of `ms`. */
function densest(calls: readonly Call[], ms: number): number {
  return Math.max(0, ...calls.map(({ at }) => calls.filter((other) => other.at >= at && other.at < at + ms).length))
}

async function submitMany(tab: Tab, count: number, path = 'orders'): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => tab.fetch(path, order(`${path}:${n}`, { n })).stored))
}

/** Answers like another, and keeps count of how many are under way at once. */
function counting(inner: Answer): { answer: Answer; most: () => number } {
  let now = 0
  let most = 0
  return {
    most: () => most,
    async answer(call, request) {
      most = Math.max(most, ++now)
      try {
        return await inner(call, request)
      } finally {
        now--
      }
    },
  }
}

describe('P31: back-off', () => {
  it('P31: waits grow with full jitter up to the cap, and are not the same twice', async () => {
    const { network, tab, pass } = world()
    network.script(answer(503))
    await tab({ retry: { attempts: 30, baseMs: 1000, capMs: 20_000 } }).fetch('orders', order('checkout:1')).stored
    await pass(10 * minute)
    const times = network.writes().map(({ at }) => at)
    const waits = times.slice(1).map((at, n) => at - times[n]!)
    expect(waits.length).toBe(29)
    for (const [n, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(50)
      // An outage may add a wait for the probe's turn.
      expect(wait).toBeLessThanOrEqual(Math.min(20_000, 1000 * 2 ** n) + 3000)
    }
    expect(new Set(waits).size).toBeGreaterThan(25)
  })

  it('B53: a server slower than our time limit is asked again with the same key, and its stored answer is the result', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const start = clock.now()
    // The first request goes on working after we hung up; until it commits, the key is in progress.
    network.script((call, request) =>
      clock.now() - start < 8000
        ? call.at === start
          ? later(clock, 8000, server.answer)(call, request)
          : new Response('{"code":"idempotency_in_progress"}', {
              status: 409,
              headers: { 'content-type': 'application/problem+json' },
            })
        : server.answer(call, request),
    )
    const only = tab({ attemptTimeoutMs: 3000 })
    const write = only.fetch('orders', order('checkout:1'))
    await pass(minute)
    const response = await write
    expect(response.status).toBe(201)
    expect(response.headers.get('idempotent-replayed')).toBe('true')
    expect(server.total()).toBe(1)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
  })

  it('B55: a proxy’s 504 while the origin goes on: not known, wait while in progress, then the replay', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const start = clock.now()
    let begun = false
    network.script((call, request) => {
      if (begun && clock.now() - start < 4000)
        return new Response('{"code":"idempotency_in_progress"}', {
          status: 409,
          headers: { 'content-type': 'application/problem+json' },
        })
      if (begun) return server.answer(call, request)
      begun = true
      clock.timer(4000, () => void server.answer(call, request))
      return later(clock, 2000, answer(504))(call, request)
    })
    const only = tab()
    const write = only.fetch('orders', order('checkout:1'))
    await pass(2500)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ inDoubt: true })
    await pass(minute)
    expect((await write).headers.get('idempotent-replayed')).toBe('true')
    expect(server.total()).toBe(1)
    expect(only.notes.map((note) => (note.type === 'state' ? note.to : ''))).not.toContain('rejected')
  })

  it('B56: connections cut after a second, work of three: attempts last until it ends, one order', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    let startedAt: number | null = null
    network.script((call, request) => {
      startedAt ??= call.at
      if (call.at - startedAt >= 3000) return server.answer(call, request)
      return later(clock, 1000, broken())(call, request)
    })
    const only = tab({ retry: { attempts: 4, baseMs: 2000 } })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(5 * minute)
    const view = await only.fetch.intents.get('checkout:1')
    expect(['succeeded', 'unknown']).toContain(view?.state)
    expect(server.total()).toBeLessThanOrEqual(1)
    expect(network.writes().length).toBeLessThanOrEqual(4)
  })

  it('B66: the second attempt has a fresh signal and the whole time limit', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(() => new Promise(() => {}), later(clock, 900, server.answer))
    const only = tab({ attemptTimeoutMs: 1000 })
    const write = only.fetch('orders', order('checkout:1'))
    await pass(10_000)
    expect((await write).status).toBe(201)
    const [first, second] = network.writes()
    expect(first?.signal.aborted).toBe(true)
    expect(second?.signal.aborted).toBe(false)
    expect(network.writes()).toHaveLength(2)
  })

  it('P26, H43: a black-holed connection that ignores its signal ends with the time limit, in doubt', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(() => new Promise(() => {}), server.answer)
    const only = tab({ attemptTimeoutMs: 5000 })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(5000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'waiting',
      detail: 'ambiguous',
      inDoubt: true,
    })
    await pass(10_000)
    expect(server.total()).toBe(1)
  })

  it('P26: the time limit covers the body: a body that never ends is cut off, and its replay asked for', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(async (call, request) => {
      const { headers } = await server.answer(call, request)
      return new Response(new ReadableStream(), { status: 201, headers })
    }, server.answer)
    const only = tab({ attemptTimeoutMs: 5000 })
    const write = only.fetch('orders', order('checkout:1'))
    await pass(10_000)
    expect(await (await write).json()).toMatchObject({ id: network.writes()[0]?.key })
    expect(server.total()).toBe(1)
    expect(network.writes()).toHaveLength(2)
  })
})

describe('P29: attempts exhausted', () => {
  it('P29, H47: surely nothing happened: blocked on attempts until a person retries, and then the same key', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(answer(429))
    const only = tab({ retry: { attempts: 3 } })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(60 * minute)
    const view = await only.fetch.intents.get('checkout:1')
    expect(view).toMatchObject({ state: 'blocked', detail: 'attempts', inDoubt: false, attempts: 3 })
    expect(network.writes()).toHaveLength(3)
    only.fetch.authChanged()
    only.setOnline(true)
    await pass(60 * minute)
    expect(network.writes()).toHaveLength(3)

    network.script(server.answer)
    await only.fetch.intents.retry('checkout:1')
    await pass(1000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', key: view?.key })
    expect(server.total()).toBe(1)
  })

  it('P29, H47: or cancels, for certain and without asking the server', async () => {
    const { network, tab, pass } = world()
    network.script(answer(429))
    const only = tab({ retry: { attempts: 2 } })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(60 * minute)
    expect(await only.fetch.intents.cancel('checkout:1')).toMatchObject({ state: 'cancelled' })
    expect(network.calls).toHaveLength(2)
  })

  it('P29: in doubt means unknown, and a person’s retry goes on with the same key inside the window', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(broken())
    const only = tab({ retry: { attempts: 3 } })
    const { key } = await only.fetch('orders', order('checkout:1')).stored
    await pass(minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'attempts_spent' })
    network.script(server.answer)
    await only.fetch.intents.retry('checkout:1')
    await pass(minute)
    expect([...server.effects]).toEqual([[key, 1]])
  })
})

describe('P31, B68: an outage is not made worse', () => {
  it('B68: sixty intents, and never more on the wire at once than the configured number', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const wire = counting(later(clock, 100, server.answer))
    network.script(wire.answer)
    const only = tab({ retry: { concurrency: 4 } })
    await submitMany(only, 60)
    await pass(minute)
    expect(server.total()).toBe(60)
    expect(wire.most()).toBe(4)
  })

  it('B68: nor when everything blocked is woken by authChanged', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const wire = counting(later(clock, 100, server.answer))
    network.script(answer(401))
    const only = tab({ retry: { concurrency: 4 } })
    await submitMany(only, 30)
    await pass(5000)
    network.script(wire.answer)
    only.fetch.authChanged()
    await pass(minute)
    expect(server.total()).toBe(30)
    expect(wire.most()).toBe(4)
  })

  it('P31: while everything fails, one probe at a time tests the origin, and no faster than one in a second', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({ retry: { attempts: 1000 } })
    await submitMany(only, 60)
    await pass(minute)
    const early = network.writes().filter(({ at }) => at < network.writes()[0]!.at + 10_000)
    // Those that were under way when the outage showed, and then probes.
    expect(early.length).toBeLessThanOrEqual(6 + 12)
    expect(densest(network.writes().slice(8), 1000)).toBeLessThanOrEqual(2)
  })

  it('P31: after the outage one probe goes first and the rest follow, spread out', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(broken())
    const only = tab({ retry: { attempts: 1000, capMs: 10_000 } })
    await submitMany(only, 20)
    await pass(2 * minute)
    const outage = network.writes().length
    const wire = counting(later(clock, 500, server.answer))
    network.script(wire.answer)
    await pass(3 * minute)
    const after = network.writes().slice(outage)
    expect(server.total()).toBe(20)
    const [probe, ...rest] = after
    // Until the probe is back nobody follows; then not all at once.
    expect(rest.every(({ at }) => at >= probe!.at + 500)).toBe(true)
    expect(densest(rest, 100)).toBeLessThan(6)
  })

  it('P31: what was put off while a probe was under way follows soon after its success, however long the outage was', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(broken())
    const only = tab({ retry: { attempts: 1000 } })
    await only.fetch('orders', order('old')).stored
    await pass(20 * minute)
    network.script(later(clock, 500, server.answer))
    await only.fetch('orders', order('probe', { n: 2 })).stored
    await pass(0)
    const probe = network.writes().at(-1)!
    expect(probe.body).toContain('"n":2')
    // A person is impatient: the old one is due now, and has to wait for the probe.
    await only.fetch.intents.retry('old')
    await pass(499)
    expect(network.writes().at(-1)).toBe(probe)
    await pass(2600)
    expect(server.total()).toBe(2)
  })

  it('P31: the retry budget of an origin bounds the retries of all its intents together', async () => {
    const { clock, network, tab, pass } = world()
    let served = 0
    // Every third answer is fine, so that no outage is seen: what limits is the budget.
    network.script((call, request) => (++served % 3 === 0 ? answer(400)(call, request) : answer(503)(call, request)))
    const only = tab({ retry: { attempts: 1000, baseMs: 50, capMs: 50, budget: 5 } })
    await submitMany(only, 40)
    await pass(0)
    const start = clock.now()
    const first = network.writes().length
    await pass(20_000)
    const retries = network.writes().filter(({ at }) => at > start).length
    expect(first + retries).toBeGreaterThan(40)
    // The burst, one more per second, and one more per success.
    const successes = served / 3
    expect(network.writes().length - 40).toBeLessThanOrEqual(5 + 20 + successes + 1)
  })

  it('B68: one 429 slows all intents of that origin, and no other origin', async () => {
    const { network, tab, pass, clock } = world()
    const server = honestServer()
    network.script((call, request) =>
      call.url.startsWith(origin) && server.total() === 0 && network.calls.length === 1
        ? answer(429, { 'retry-after': '120' })(call, request)
        : server.answer(call, request),
    )
    const only = tab()
    await only.fetch('orders', order('first')).stored
    await pass(0)
    const start = clock.now()
    await submitMany(only, 10)
    await only.fetch('https://other.example.com/orders', order('elsewhere')).stored
    await pass(100_000)
    expect(network.calls.slice(1).map(({ url }) => new URL(url).origin)).toEqual(['https://other.example.com'])
    await pass(3 * minute)
    const held = network.calls.slice(2)
    expect(held).toHaveLength(11)
    expect(held.every(({ at }) => at - start >= 120_000)).toBe(true)
    expect(new Set(held.map(({ at }) => at)).size).toBeGreaterThan(5)
  })

  it('B105: an intent that always fails delays none of another origin, and a long deferral does not hide what is due meanwhile', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script((call, request) =>
      call.url.startsWith(origin)
        ? answer(429, { 'retry-after': '3600' })(call, request)
        : answer(503, { 'retry-after': '20' })(call, request),
    )
    const only = tab()
    await only.fetch('orders', { ...order('slow'), waitMs: 0 }).stored
    await pass(0)
    await only.fetch('orders', { ...order('held', { n: 2 }), waitMs: 0 }).stored
    await only.fetch('https://other.example.com/orders', { ...order('elsewhere'), waitMs: 0 }).stored
    await pass(0)
    network.script(server.answer)
    await pass(25_000)
    expect(await only.fetch.intents.get('elsewhere')).toMatchObject({ state: 'succeeded' })
    expect(server.total()).toBe(1)
  })
})

describe('P33: offline, and what wakes the queue', () => {
  it('P33, B67: started offline with two intents, resumed twice, both are sent when it is online again', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(refusedConnection())
    const before = tab({ transport: { provesNonDelivery: true } })
    await submitMany(before, 2)
    await pass(0)
    before.kill()
    network.script(server.answer)
    await pass(minute)

    const after = tab({ autoStart: false })
    after.setOnline(false)
    void after.fetch.start()
    void after.fetch.start()
    const sent = network.writes().length
    await pass(10_000)
    expect(network.writes()).toHaveLength(sent)
    after.setOnline(true)
    await pass(5000)
    expect(server.total()).toBe(2)
  })

  it('P31, P33: what was submitted offline goes out within seconds of `online`, not all at once', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(server.answer)
    const only = tab()
    only.setOnline(false)
    await submitMany(only, 5)
    await pass(10_000)
    expect(network.writes()).toHaveLength(0)
    const woken = clock.now()
    only.setOnline(true)
    await pass(2100)
    const times = network.writes().map(({ at }) => at - woken)
    expect(times).toHaveLength(5)
    expect(new Set(times).size).toBe(5)
  })

  it('P33: days offline spend no attempts, and there is no storm of useless ones', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(broken())
    const only = tab({ retry: { attempts: 3 } })
    only.setOnline(false)
    await only.fetch('orders', order('checkout:1')).stored
    await pass(day / 4)
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('waiting')
    // A try once in a while all the same, for the hint may be wrong.
    expect(network.writes().length).toBeGreaterThan(5)
    expect(network.writes().length).toBeLessThan(900)
    network.script(server.answer)
    only.setOnline(true)
    await pass(2 * minute)
    expect(server.total()).toBe(1)
  })

  it('P33: the hint never locks: a platform that wrongly says offline for ever delays, and does not block', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(server.answer)
    const only = tab()
    only.setOnline(false)
    const write = only.fetch('orders', order('checkout:1'))
    await pass(10_000)
    expect(network.writes()).toHaveLength(0)
    await pass(minute)
    expect((await write.outcome()).state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })

  it('P31: `online` wakes what waits for our own pace, with jitter, and not what the server told to wait', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(broken())
    const only = tab({ retry: { attempts: 1000, baseMs: 3600_000, capMs: 3600_000 } })
    await submitMany(only, 5)
    await pass(0)
    network.script(answer(503, { 'retry-after': '1800' }))
    await only.fetch('https://other.example.com/orders', order('told')).stored
    await pass(1000)
    network.script(server.answer)
    const woken = clock.now()
    only.setOnline(true)
    await pass(20_000)
    const after = network.writes().filter(({ at }) => at >= woken)
    expect(after.map(({ url }) => new URL(url).origin)).toEqual(Array(5).fill(origin))
    expect(new Set(after.map(({ at }) => at)).size).toBe(5)
    await pass(3600_000)
    expect(server.total()).toBe(6)
    expect(network.writes().at(-1)!.at - woken).toBeGreaterThan(1700_000)
  })

  it('P33: after every failure something is armed: each kind of failure is followed by another try without any event', async () => {
    const failures: readonly Answer[] = [
      broken(),
      refusedConnection(),
      answer(503),
      answer(429),
      answer(401),
      answer(403),
      answer(200),
      answer(302, { location: '/' }),
      () => {
        throw new Error('not even a promise')
      },
    ]
    for (const failure of failures) {
      const { network, tab, pass } = world()
      const server = honestServer()
      network.script(broken(), failure, server.answer)
      const only = tab()
      await only.fetch('orders', { ...order('checkout:1'), waitMs: 0 }).stored
      await pass(3 * minute)
      expect(server.total()).toBe(1)
    }
  })

  it('P33, F14, H44: a renewed token wakes what is blocked at once', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    let token = 'old'
    network.script((call, request) =>
      call.headers.authorization === 'Bearer new' ? server.answer(call, request) : answer(401)(call, request),
    )
    const only = tab({
      scope: () => 'ann',
      auth: async () => ({ scope: 'ann', headers: { authorization: `Bearer ${token}` } }),
    })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(1000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', detail: 'credentials' })
    token = 'new'
    only.fetch.authChanged()
    await pass(100)
    expect(server.total()).toBe(1)
  })

  it('P33, H44: without a word, a slow poll finds out within a minute or so', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(answer(401), server.answer)
    const only = tab()
    await only.fetch('orders', { ...order('checkout:1'), waitMs: 0 }).stored
    await pass(1000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', detail: 'credentials' })
    await pass(65_000)
    expect(server.total()).toBe(1)
  })

  it('P33, H44: a new submit that gets through wakes what is blocked, at once', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(answer(401), answer(401), server.answer)
    const only = tab()
    for (const n of [1, 2]) await only.fetch('orders', { ...order(`checkout:${n}`, { n }), waitMs: 0 }).stored
    await pass(1000)
    expect(network.writes()).toHaveLength(2)
    await only.fetch('orders', { ...order('checkout:3', { n: 3 }), waitMs: 0 }).stored
    await pass(1000)
    expect(server.total()).toBe(3)
  })

  it('P33: submits under bad credentials do not send everything that is blocked again and again', async () => {
    const { network, tab, pass } = world()
    network.script(answer(401))
    const only = tab({ scope: () => 'ann', auth: async () => ({ scope: 'ann', headers: {} }) })
    await submitMany(only, 30)
    await pass(5000)
    const before = network.writes().length
    for (let click = 0; click < 5; click++) {
      await only.fetch('carts', order(`cart:${click}`, { click })).stored
      await pass(100)
    }
    expect(network.writes().length - before).toBe(5)
  })

  it('P33, F15, H44: the owner who returns finds the intent going on', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(broken())
    let user: string | null = 'ann'
    const only = tab({ scope: () => user, auth: async () => ({ scope: user ?? '', headers: {} }) })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(0)
    user = 'bob'
    network.script(server.answer)
    only.fetch.authChanged()
    await pass(10 * minute)
    expect(server.total()).toBe(0)
    expect(await only.fetch.intents.list()).toMatchObject({ intents: [], elsewhere: 1 })
    user = 'ann'
    only.fetch.authChanged()
    await pass(minute)
    expect(server.total()).toBe(1)
  })

  it('P3, P33: authChanged() while auth() is being asked: the old answer is not used, and the new one is asked for at once', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(server.answer)
    let session = 1
    const only = tab({
      scope: () => 'ann',
      auth: () => {
        const asked = session
        return new Promise((resolve) =>
          clock.timer(500, () => resolve({ scope: 'ann', headers: { authorization: `Bearer ${asked}` } })),
        )
      },
    })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(250)
    session = 2
    only.fetch.authChanged()
    await pass(5000)
    expect(network.writes().map(({ headers }) => headers.authorization)).toEqual(['Bearer 2'])
    expect(server.total()).toBe(1)
  })

  it('P33: an auth() that never answers holds nothing up for good: the next authChanged() asks again', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(server.answer)
    let stuck = true
    const only = tab({
      scope: () => 'ann',
      retry: { concurrency: 1 },
      auth: () => (stuck ? new Promise(() => {}) : Promise.resolve({ scope: 'ann', headers: {} })),
    })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(1000)
    stuck = false
    only.fetch.authChanged()
    await pass(1000)
    expect(server.total()).toBe(1)

    stuck = true
    await only.fetch('orders', order('checkout:2', { n: 2 })).stored
    await pass(minute)
    expect(await only.fetch.intents.get('checkout:2')).toMatchObject({ state: 'blocked', detail: 'credentials' })
    stuck = false
    await pass(3 * minute)
    expect(server.total()).toBe(2)
  })

  it('P39, P33: authChanged() does not poll a monitor before its time', async () => {
    const { network, tab, pass } = world()
    network.script(answer(202, { location: '/tasks/1', 'retry-after': '600', 'idempotency-expires': 'x' }))
    const only = tab()
    await only.fetch('orders', order('checkout:1')).stored
    await pass(0)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'processing' })
    network.script(created())
    only.fetch.authChanged()
    await pass(500_000)
    expect(network.calls).toHaveLength(1)
  })
})

describe('B57, B132: what a page cannot tell apart', () => {
  for (const what of [
    'B57: a cross-origin 500 without CORS headers',
    'B132: a preflight that does not allow the key header',
  ]) {
    it(`${what}: not known, not "offline", same key, no fast loop, and a word on CORS`, async () => {
      const { network, tab, pass } = world()
      const server = honestServer()
      network.script(broken())
      const only = tab({ replace: { pageOrigin: 'https://shop.example.com' }, retry: { attempts: 1000 } })
      const { key } = await only.fetch('orders', order('checkout:1')).stored
      await pass(0)
      expect(await only.fetch.intents.get('checkout:1')).toMatchObject({
        state: 'waiting',
        detail: 'ambiguous',
        inDoubt: true,
        attempts: 1,
      })
      await pass(minute)
      expect(network.writes().length).toBeLessThan(20)
      const warnings = only.notes.filter((note) => note.type === 'warning' && note.code === 'cors_suspected')
      expect(warnings).toHaveLength(1)
      expect(warnings[0]).toMatchObject({ key, message: expect.stringContaining('Access-Control-Allow-Headers') })
      network.script(server.answer)
      await pass(3 * minute)
      expect([...server.effects]).toEqual([[key, 1]])
    })
  }
})
