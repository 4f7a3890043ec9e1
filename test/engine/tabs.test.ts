import { describe, expect, it } from 'vitest'
import type { Note } from '../../src/engine/observer.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { knowsShop, shop, shopOrder } from '../support/shop.ts'
import { failure, within } from '../support/within.ts'
import {
  type Answer,
  answer,
  broken,
  created,
  day,
  hangs,
  honestServer,
  later,
  order,
  origin,
  problem,
  type Tab,
  type TabOptions,
  type World,
  world,
} from '../support/world.ts'

/** A plain-http page: no Web Locks, no BroadcastChannel; contexts meet in the store alone. */
const bare = {
  replace: { channel: () => ({ post() {}, onMessage: () => () => {}, close() {} }) },
} satisfies TabOptions

/** Counts how many requests of one key are on the wire at once. */
function counting(inner: Answer): { answer: Answer; most: () => number } {
  const live = new Map<string, number>()
  let most = 0
  const answerOne: Answer = async (call, request) => {
    const key = String(call.key)
    live.set(key, (live.get(key) ?? 0) + 1)
    most = Math.max(most, ...live.values())
    try {
      return await inner(call, request)
    } finally {
      live.set(key, (live.get(key) ?? 0) - 1)
    }
  }
  return { answer: answerOne, most: () => most }
}

/** What a subscriber in this tab hears about states, as `id state`. */
function hearing(tab: Tab): string[] {
  const heard: string[] = []
  tab.fetch.subscribe((note: Note) => {
    if (note.type === 'state' && note.from !== note.to) heard.push(`${note.intentId} ${note.to}`)
  })
  return heard
}

describe('P46: any context may submit, and all of the scope learn the outcome', () => {
  it('B44, F17: five tabs, one intent, back online in one moment: one POST, and all five see it settled', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(later(clock, 2000, server.answer))
    const tabs = Array.from({ length: 5 }, () => tab())
    for (const each of tabs) each.setOnline(false)
    const write = tabs[0]!.fetch('orders', order('checkout:1'))
    await within(clock, 1000, write.stored)
    const heard = tabs.map(hearing)
    const waits = tabs.map((each) => each.fetch.intents.wait('checkout:1'))
    expect(network.calls).toHaveLength(0)
    for (const each of tabs) each.setOnline(true)
    for (const wait of waits) expect((await within(clock, 10_000, wait)).state).toBe('succeeded')
    for (const states of heard) expect(states.at(-1)).toBe('checkout:1 succeeded')
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('P46: without a channel, who waits learns it from the store within about a second', async () => {
    const { clock, network, tab } = world()
    network.script(later(clock, 5000, honestServer().answer))
    const first = tab(bare)
    const second = tab(bare)
    await within(clock, 100, first.fetch('orders', order('checkout:1')).stored)
    const wait = second.fetch.intents.wait('checkout:1')
    const outcome = await within(clock, 7000, wait)
    expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ id: outcome.key })
    expect(network.writes()).toHaveLength(1)
  })

  it('P6, P46: the same id submitted in two tabs at once: one key, one POST, and an own copy of the answer for each', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(later(clock, 1000, server.answer))
    const tabs = [tab(), tab(bare)]
    const writes = tabs.map((each) => each.fetch('orders', order('checkout:1')).json())
    const [one, two] = await within(clock, 10_000, Promise.all(writes))
    expect(one).toEqual(two)
    expect(one).not.toBe(two)
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('H20: one tab acknowledges, another submits the same id: the stored outcome, no request', async () => {
    const { clock, network, tab } = world()
    network.script(honestServer().answer)
    const [first, second] = [tab(), tab()]
    await within(clock, 1000, first.fetch('orders', order('checkout:1')))
    await first.fetch.intents.acknowledge('checkout:1')
    expect((await within(clock, 1000, second.fetch('orders', order('checkout:1')))).status).toBe(201)
    expect(network.writes()).toHaveLength(1)
  })

  it('B36: two tabs add a hundred each at once, and both work: all two hundred, each sent once', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    const wire = counting(later(clock, 50, server.answer))
    network.script(wire.answer)
    const tabs = [tab(), tab(bare)]
    const writes = tabs.flatMap((each, t) =>
      Array.from({ length: 100 }, (_, n) => each.fetch('orders', { ...order(`${t}:${n}`, { t, n }), waitMs: day })),
    )
    const answers = await within(clock, 300_000, Promise.all(writes))
    expect(answers.every(({ status }) => status === 201)).toBe(true)
    expect(network.writes()).toHaveLength(200)
    expect(server.total()).toBe(200)
    expect(wire.most()).toBe(1)
  })

  for (const [kind, options] of Object.entries({ 'plain http': bare, 'with a channel': {} })) {
    it(`B45, B50 (${kind}): twelve tabs opened within 50 ms, ten intents: ten effects, one live attempt for each at a time`, async () => {
      const { clock, network, tab } = world()
      const server = honestServer()
      network.script(hangs())
      const dead = tab({ ...options, retry: { concurrency: 10 } })
      for (let n = 0; n < 10; n++) void dead.fetch('orders', order(`checkout:${n}`, { n }))
      await clock.advance(100)
      dead.kill()
      const lost = network.writes().length
      // Each answer is lost once, so that every intent is taken up again by somebody.
      const seen = new Set<string | null>()
      const wire = counting(
        later(clock, 700, async (call, request) => {
          const response = await server.answer(call, request)
          if (seen.has(call.key)) return response
          seen.add(call.key)
          throw new TypeError('cut')
        }),
      )
      network.script(wire.answer)
      const tabs: Tab[] = []
      for (let n = 0; n < 12; n++) {
        tabs.push(tab(options))
        await clock.advance(4)
      }
      await clock.advance(180_000)
      for (const each of tabs)
        expect((await each.fetch.intents.list({ states: ['succeeded'] })).intents).toHaveLength(10)
      expect(server.total()).toBe(10)
      expect(wire.most()).toBe(1)
      expect(network.writes()).toHaveLength(lost + 20)
      expect(new Set(network.writes().map(({ key }) => key)).size).toBe(10)
    })
  }
})

describe('P47, P48: leases, takeovers and late answers', () => {
  /** A marks its attempt as handed over and falls asleep before the send, or over the answer. */
  function sleeper({ tab }: World, when: 'before the send' | 'over the answer', options: TabOptions = {}): Tab {
    const self: Tab = tab({
      ...options,
      wrapStore: (store) => ({
        ...store,
        async update(change, expected, blobs) {
          const row = await store.update(change, expected, blobs)
          if (change.state === 'sending' && when === 'before the send') self.freeze()
          return row
        },
      }),
    })
    return self
  }

  it('H9, F17: a holder that slept past its lease does not send three days later, and reads what became of it', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = honestServer()
    network.script(server.answer)
    const asleep = sleeper(w, 'before the send')
    void asleep.fetch('orders', order('checkout:1'))
    await clock.advance(1000)
    expect(network.calls).toHaveLength(0)
    const other = tab()
    expect((await within(clock, 120_000, other.fetch.intents.wait('checkout:1', { waitMs: day }))).state).toBe(
      'succeeded',
    )
    await clock.advance(3 * day)
    asleep.thaw()
    await clock.advance(120_000)
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
    expect((await within(clock, 0, asleep.fetch.intents.get('checkout:1')))?.state).toBe('succeeded')
  })

  it('P47: a holder that slept for less than the others need to take over gives its own mark back and sends afresh', async () => {
    const w = world()
    const { clock, network } = w
    const server = honestServer()
    network.script(server.answer)
    const asleep = sleeper(w, 'before the send')
    const write = asleep.fetch('orders', { ...order('checkout:1'), waitMs: day })
    await clock.advance(40_000)
    asleep.thaw()
    await clock.advance(0)
    // It freezes once more with the second mark.
    asleep.thaw()
    expect((await within(clock, 5000, write)).status).toBe(201)
    expect(network.writes()).toEqual([expect.objectContaining({ age: '0' })])
    expect(server.total()).toBe(1)
  })

  it('B46, H39, P48: the holder’s 201 comes after a takeover that got 409: adopted, succeeded, one effect', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    const a: Tab = tab()
    network.script(
      async (call, request) => {
        a.freeze()
        return server.answer(call, request)
      },
      problem(409, 'idempotency_in_progress', { 'retry-after': '3600' }),
    )
    void a.fetch('orders', order('checkout:1'))
    await clock.advance(100)
    const b = tab()
    await clock.advance(60_000)
    expect(await b.fetch.intents.get('checkout:1')).toMatchObject({ state: 'waiting', detail: 'in_progress' })
    const wait = b.fetch.intents.wait('checkout:1')
    a.thaw()
    const outcome = await within(clock, 5000, wait)
    expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ id: outcome.key })
    expect(network.writes()).toHaveLength(2)
    expect(server.total()).toBe(1)
  })

  it('P48: every late proof counts, also against a less far outcome; what proves nothing changes nothing', async () => {
    const proven = { 'idempotency-expires': 'Tue, 01 Dec 2037 12:00:00 GMT' }
    const lates: [Answer, Answer, string][] = [
      // The late answer, what the others came to, and the end.
      [created(), answer(500, { 'idempotent-replayed': 'true' }), 'succeeded'],
      [created(), problem(409, 'idempotency_voided'), 'succeeded'],
      [answer(422, proven), answer(500, { 'idempotent-replayed': 'true' }), 'rejected'],
      [problem(409, 'idempotency_voided'), answer(500, { 'idempotent-replayed': 'true' }), 'cancelled'],
      [answer(422, proven), created(), 'succeeded'],
      [answer(422), answer(500, { 'idempotent-replayed': 'true' }), 'unknown'],
      [answer(500), created(), 'succeeded'],
      [answer(401), created(), 'succeeded'],
      [broken(), answer(500, { 'idempotent-replayed': 'true' }), 'unknown'],
      [problem(409, 'idempotency_expired'), answer(500, { 'idempotent-replayed': 'true' }), 'unknown'],
    ]
    for (const [index, [late, others, end]] of lates.entries()) {
      const { clock, network, tab } = world()
      const a: Tab = tab()
      network.script((call, request) => {
        a.freeze()
        return late(call, request)
      }, others)
      void a.fetch('orders', order('checkout:1'))
      await clock.advance(100)
      const b = tab()
      await clock.advance(120_000)
      const calls = network.calls.length
      a.thaw()
      await clock.advance(3600_000)
      expect((await b.fetch.intents.get('checkout:1'))?.state, `case ${index}`).toBe(end)
      expect(network.calls, `case ${index}`).toHaveLength(calls)
    }
  })

  it('P47: a poller that slept past its lease asks nothing and disturbs nothing', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = shop(clock)
    server.take('as_task')
    network.script(server.answer)
    const asleep: Tab = tab({
      ...knowsShop,
      wrapStore: (store) => ({
        ...store,
        async update(change, expected, blobs) {
          const row = await store.update(change, expected, blobs)
          if (change.state === 'processing' && change.token !== null) asleep.freeze()
          return row
        },
      }),
    })
    const { key } = await within(clock, 1000, asleep.fetch('orders', shopOrder('checkout:1')).stored)
    await clock.advance(5000)
    expect(network.calls).toHaveLength(1)
    const other = tab(knowsShop)
    await server.finish(key)
    const wait = other.fetch.intents.wait('checkout:1', { waitMs: day })
    expect((await within(clock, 120_000, wait)).state).toBe('succeeded')
    const calls = network.calls.length
    asleep.thaw()
    await clock.advance(120_000)
    expect(network.calls).toHaveLength(calls)
    expect(server.total()).toBe(1)
  })
})

describe('P49: nobody blocks a record for good', () => {
  it('P49: a crashed holder blocks it no longer than the lease, in tabs that were open all along', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(hangs())
    const dead = tab()
    void dead.fetch('orders', order('checkout:1'))
    const witness = tab()
    await clock.advance(100)
    dead.kill()
    network.script(server.answer)
    // The lease: the time limit of an attempt and half of it more.
    await clock.advance(44_000)
    expect(network.writes()).toHaveLength(1)
    await clock.advance(4000)
    expect(server.total()).toBe(1)
    expect((await witness.fetch.intents.get('checkout:1'))?.state).toBe('succeeded')
  })

  it('P49: where deaths are seen, the next start takes over at once; what lives is left alone', async () => {
    const { clock, network, tab } = world()
    network.script(hangs())
    const dead = tab({ visibleDeath: true })
    const alive = tab({ visibleDeath: true })
    void dead.fetch('orders', order('checkout:1', { n: 1 }))
    void alive.fetch('orders', order('checkout:2', { n: 2 }))
    await clock.advance(100)
    dead.kill()
    network.script(honestServer().answer)
    const next = tab({ visibleDeath: true })
    await clock.advance(2000)
    expect((await next.fetch.intents.get('checkout:1'))?.state).toBe('succeeded')
    expect((await next.fetch.intents.get('checkout:2'))?.state).toBe('sending')
  })

  it('P49: a frozen tab that seems to live blocks nobody beyond its lease', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    const frozen: Tab = tab({ visibleDeath: true })
    network.script(() => {
      frozen.freeze()
      return new Promise(() => {})
    }, server.answer)
    void frozen.fetch('orders', order('checkout:1'))
    await clock.advance(100)
    const next = tab({ visibleDeath: true })
    await clock.advance(60_000)
    expect((await next.fetch.intents.get('checkout:1'))?.state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })

  it('P49, P35, H53: a holder that crashed under a clock years ahead blocks nobody until then', async () => {
    for (const dialect of [undefined, none]) {
      const { clock, network, tab } = world()
      const server = honestServer()
      const years = 10 * 365 * day
      network.script(hangs())
      clock.jump(years)
      const dead = tab(dialect && { dialect })
      void dead.fetch('orders', order('checkout:1'))
      await clock.advance(100)
      dead.kill()
      clock.jump(-years)
      network.script(server.answer)
      const next = tab(dialect && { dialect })
      await clock.advance(3600_000)
      const view = await next.fetch.intents.get('checkout:1')
      // By this clock its age is not known: a person has to say, and is told so.
      expect(view?.state).toBe('unknown')
      expect(network.writes()).toHaveLength(1)
    }
  })

  it('P47: a lease that another device’s clock calls long is respected all the same', async () => {
    const { clock, network, tab } = world()
    network.script(hangs())
    const fast = tab({
      replace: { clock: { ...clock, now: () => clock.now() + 20_000 } },
    })
    void fast.fetch('orders', order('checkout:1'))
    await clock.advance(100)
    tab()
    await clock.advance(20_000)
    expect(network.writes()).toHaveLength(1)
  })
})

describe('P50: whose', () => {
  /** Ann ordered and her answer is lost; then Ben signs in on the same device. */
  async function annThenBen(): Promise<World & { only: Tab; user: { name: string }; server: { total(): number } }> {
    const w = world()
    const server = honestServer()
    const user = { name: 'ann' }
    w.network.script(async (call, request) => {
      await server.answer(call, request)
      return answer(503, { 'retry-after': '60' })(call, request)
    }, server.answer)
    const only = w.tab({
      scope: () => user.name,
      auth: () => ({ scope: user.name, headers: { authorization: `Bearer ${user.name}` } }),
    })
    await within(w.clock, 100, only.fetch('orders', order('checkout:ann')).stored)
    user.name = 'ben'
    only.fetch.authChanged()
    return { ...w, only, user, server }
  }

  it('H45, B96, F15: Ben sees a count, and nothing of Ann’s is sent, listed, read, awaited or told', async () => {
    const { clock, network, only, tab, user } = await annThenBen()
    const heard = hearing(only)
    const told = hearing(tab({ scope: () => user.name }))
    await clock.advance(3600_000)
    expect(network.writes()).toHaveLength(1)
    expect(await only.fetch.intents.list()).toMatchObject({ intents: [], setAside: [], elsewhere: 1 })
    expect(await only.fetch.intents.get('checkout:ann')).toBeUndefined()
    for (const action of ['wait', 'check', 'retry', 'cancel', 'forget', 'acknowledge'] as const)
      expect(await failure(clock, 0, only.fetch.intents[action]('checkout:ann'))).toMatchObject({
        code: 'not_possible',
      })
    expect(heard).toEqual([])
    expect(told).toEqual([])
  })

  it('B96: Ben’s own intent of the same name is another one, under another key', async () => {
    const { clock, network, only, server } = await annThenBen()
    expect((await within(clock, 1000, only.fetch('orders', order('checkout:ann')))).status).toBe(201)
    const [anns, bens] = network.writes()
    expect(bens?.key).not.toBe(anns?.key)
    expect([anns?.headers.authorization, bens?.headers.authorization]).toEqual(['Bearer ann', 'Bearer ben'])
    expect(server.total()).toBe(2)
  })

  it('B96, F15: Ann comes back: hers goes on with her credentials and its old key', async () => {
    const { clock, network, only, user, server } = await annThenBen()
    await clock.advance(600_000)
    user.name = 'ann'
    only.fetch.authChanged()
    const outcome = await within(clock, 10_000, only.fetch.intents.wait('checkout:ann'))
    expect(outcome.state).toBe('succeeded')
    expect(network.writes().map(({ key }) => key)).toEqual([outcome.key, outcome.key])
    expect(network.writes().map(({ headers }) => headers.authorization)).toEqual(['Bearer ann', 'Bearer ann'])
    expect(server.total()).toBe(1)
  })

  it('H45: an answer for Ann that comes while Ben is signed in is stored for her, and Ben’s subscribers hear nothing', async () => {
    const { clock, network, tab } = world()
    const user = { name: 'ann' }
    network.script(later(clock, 5000, honestServer().answer))
    const only = tab({ scope: () => user.name })
    await within(clock, 100, only.fetch('orders', order('checkout:ann')).stored)
    const other = tab({ scope: () => user.name })
    await clock.advance(100)
    user.name = 'ben'
    only.fetch.authChanged()
    const heard = [hearing(only), hearing(other)]
    await clock.advance(10_000)
    expect(heard).toEqual([[], []])
    user.name = 'ann'
    only.fetch.authChanged()
    expect((await only.fetch.intents.get('checkout:ann'))?.state).toBe('succeeded')
  })

  it('P50, H45: channels carry ids and revisions only', async () => {
    const { clock, network, tab } = world()
    network.script(answer(503), honestServer().answer)
    const messages: unknown[] = []
    const only = tab({
      scope: () => 'ann-secret-id',
      replace: {
        channel: () => ({ post: (message) => void messages.push(message), onMessage: () => () => {}, close() {} }),
      },
    })
    const write = only.fetch('orders', order('checkout:ann', { item: 'medicine' }))
    await within(clock, 10_000, write)
    const { key } = await write.stored
    expect(messages.length).toBeGreaterThan(3)
    for (const message of messages) {
      expect(Object.keys(message as object).sort()).toEqual(['client', 'key', 'revision'])
      expect(message).toMatchObject({ client: origin, key, revision: expect.any(Number) })
    }
  })

  it('P50: nobody signed in: nothing is shown, and what waits stays', async () => {
    const { clock, network, only, user } = await annThenBen()
    user.name = ''
    only.fetch.authChanged()
    await clock.advance(3600_000)
    expect(await failure(clock, 0, only.fetch.intents.list())).toMatchObject({ code: 'config', option: 'scope' })
    expect(network.writes()).toHaveLength(1)
  })

  it('P4, H7: another client on the same store neither works nor sees nor counts what is not its own', async () => {
    const { clock, network, tab } = world()
    network.script(answer(503, { 'retry-after': '60' }))
    const shop1 = tab({ name: 'shop' })
    await within(clock, 100, shop1.fetch('orders', order('checkout:1')).stored)
    shop1.kill()
    const bank = tab({ name: 'bank' })
    const heard = hearing(bank)
    await clock.advance(3600_000)
    expect(network.writes()).toHaveLength(1)
    expect(await bank.fetch.intents.list()).toMatchObject({ intents: [], setAside: [], elsewhere: 0 })
    expect(heard).toEqual([])
  })
})
