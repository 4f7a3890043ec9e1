/** What an earlier run left behind, and a start-up that finds it once. */
import { describe, expect, it } from 'vitest'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import {
  answer,
  broken,
  commitThenDrop,
  created,
  day,
  hangs,
  honestServer,
  later,
  order,
  origin,
  refusedConnection,
  type Tab,
  type World,
  world,
} from '../support/world.ts'

const hour = 3600_000

/** A tab that dies while its one attempt is under way. */
async function diedSending({ tab, pass }: World, options: Parameters<World['tab']>[0] = {}): Promise<Tab> {
  const first = tab(options)
  await first.fetch('orders', order('checkout:1')).stored
  await pass(1000)
  first.kill()
  return first
}

describe('P20, F6: found as sending, and the holder is gone', () => {
  it('P20, B22: is in doubt, not new: goes on by itself with the same key after the lease, and the order is made once', async () => {
    const { network, pass, tab, clock } = world()
    const server = honestServer()
    network.script(later(clock, 5000, server.answer), server.answer)
    const first = tab()
    const { key } = await first.fetch('orders', order('checkout:1')).stored
    await pass(1000)
    first.kill()

    const second = tab()
    await pass(1000)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'sending',
      inDoubt: true,
      handedOver: true,
    })
    await pass(60_000)

    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', key, attempts: 2 })
    expect(network.writes().map((call) => call.key)).toEqual([key, key])
    expect(new Set(network.writes().map(({ body }) => body)).size).toBe(1)
    expect(server.total()).toBe(1)
    expect(second.notes.filter((note) => note.type === 'state' && note.to === 'succeeded')).toHaveLength(1)
  })

  it('B23: no intent stays "sending" for ever: at once where the death is seen, else when the lease is over', async () => {
    for (const [visibleDeath, latest] of [
      [true, 1000],
      [false, 46_000],
    ] as const) {
      const small = world()
      const server = honestServer()
      small.network.script(hangs(), server.answer)
      await diedSending(small)
      const second = small.tab({ visibleDeath })
      await small.pass(latest)
      expect(await second.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
      expect(server.total()).toBe(1)
    }
  })

  it('P20: the lost attempt counts as one, and the next waits for its back-off', async () => {
    const small = world()
    small.network.script(hangs())
    await diedSending(small)
    const retry = { baseMs: 10_000, capMs: 10_000 }
    const second = small.tab({ visibleDeath: true, retry })
    await small.pass(0)
    const view = await second.fetch.intents.get('checkout:1')
    expect(view).toMatchObject({ state: 'waiting', detail: 'recovered', attempts: 1, inDoubt: true })
    expect(view?.dueAt).toBeGreaterThan(small.clock.now())
    expect(small.network.writes()).toHaveLength(1)
  })

  it('P20, P1, H15: where the server does not de-duplicate it is unknown, and nothing is sent again', async () => {
    const small = world()
    small.network.script(hangs())
    await diedSending(small, { dialect: none })
    const second = small.tab({ dialect: none, visibleDeath: true })
    await small.pass(hour)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'unknown',
      detail: 'server_does_not_deduplicate',
    })
    expect(small.network.writes()).toHaveLength(1)
  })

  it('B83, F13: found after the window it is listed as unknown, with its history, and neither sent nor deleted', async () => {
    const small = world()
    small.network.script(hangs())
    await diedSending(small)
    small.clock.jump(day)
    const second = small.tab()
    await small.pass(hour)
    small.clock.jump(7 * day)
    await small.pass(hour)
    const { intents } = await second.fetch.intents.list({ inbox: true })
    expect(intents).toMatchObject([{ id: 'checkout:1', state: 'unknown', detail: 'window_over', method: 'POST' }])
    expect(intents[0]?.url).toBe(`${origin}/orders`)
    expect(intents[0]?.history.length).toBeGreaterThan(0)
    expect(small.network.writes()).toHaveLength(1)
  })

  it('P20, P29: a process that dies in every attempt comes to an end: unknown, not a loop over restarts', async () => {
    const small = world()
    small.network.script(hangs())
    const options = { retry: { attempts: 3 }, visibleDeath: true }
    await diedSending(small, options)
    for (let restart = 0; restart < 6; restart++) {
      const next = small.tab(options)
      await small.pass(10_000)
      next.kill()
    }
    const last = small.tab(options)
    await small.pass(10_000)
    expect(await last.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'unknown',
      detail: 'attempts_spent',
      attempts: 3,
    })
    expect(small.network.writes()).toHaveLength(3)
  })
})

describe('P19: facts on disk', () => {
  it('P19: never handed over, handed over and in doubt are told apart after a restart', async () => {
    const { tab, network, pass } = world()
    network.script(answer(429, { 'retry-after': '3600' }), broken())
    const first = tab({ scope: () => 'ann', auth: async () => ({ scope: 'ann', headers: {} }) })
    await first.fetch('orders', order('refused')).stored
    await pass(0)
    await first.fetch('baskets', order('doubtful', { n: 2 })).stored
    await pass(20_000)
    first.kill()

    const asBob = tab({ scope: () => 'bob' })
    await asBob.fetch('orders', order('new', { n: 3 })).stored
    asBob.kill()

    const ann = tab({ scope: () => 'ann', autoStart: false })
    expect(await ann.fetch.intents.get('refused')).toMatchObject({ handedOver: true, inDoubt: false })
  })

  it('H48: an attempt that never was delivered leaves the intent as if it had not been: no window, cancelled for certain', async () => {
    const { tab, network, pass } = world()
    network.script(refusedConnection())
    const only = tab({ transport: { provesNonDelivery: true }, retry: { attempts: 1000, capMs: hour } })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(2 * day)
    const view = await only.fetch.intents.get('checkout:1')
    expect(view).toMatchObject({ state: 'waiting', detail: 'never_delivered', handedOver: false, inDoubt: false })
    expect(network.writes().every(({ age }) => age === '0')).toBe(true)
    expect(await only.fetch.intents.cancel('checkout:1')).toMatchObject({ state: 'cancelled' })
    expect(network.calls.filter(({ method }) => method === 'DELETE')).toHaveLength(0)
  })

  it('H54: a refused connection clears its own attempt only: the one before stays in doubt, and cancel says no', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), refusedConnection())
    const only = tab({ transport: { provesNonDelivery: true }, retry: { attempts: 4 } })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(5000)
    const view = await only.fetch.intents.get('checkout:1')
    expect(view).toMatchObject({ inDoubt: true })
    expect(view?.attempts).toBeGreaterThan(1)
    await expect(only.fetch.intents.cancel('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
    await pass(hour)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'attempts_spent' })
  })

  it('H55: a refusal for want of credentials starts no window: signed in three days later, it is sent', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(answer(401), server.answer)
    let user: string | null = 'ann'
    const only = tab({
      scope: () => user,
      auth: async () => ({ scope: user ?? '', headers: { authorization: 'Bearer 1' } }),
    })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(0)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', attempts: 1 })
    user = null
    await pass(3 * day)
    user = 'ann'
    only.fetch.authChanged()
    await pass(1000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect(network.writes().map(({ age }) => age)).toEqual(['0', '0'])
    expect(server.total()).toBe(1)
  })
})

describe('P21: one start-up', () => {
  it('P21, B42: five starts, online and focus at the same time send each intent once', async () => {
    const { tab, network, pass, clock } = world()
    const server = honestServer()
    const before = tab({ autoStart: false, scope: () => 'ann' })
    for (const id of ['a', 'b', 'c']) {
      network.script(hangs())
      await before.fetch('orders', order(id, { id })).stored
    }
    before.kill()
    await pass(day / 2)
    const sentBefore = network.writes().length

    network.script(later(clock, 2000, server.answer))
    const after = tab({ scope: () => 'ann' })
    void Promise.all([1, 2, 3, 4, 5].map(() => after.fetch.start()))
    after.setOnline(true)
    after.show()
    after.setOnline(true)
    after.fetch.authChanged()
    await pass(1000)
    after.setOnline(true)
    after.show()
    void after.fetch.start()
    await pass(20_000)

    const keys = network.writes().slice(sentBefore)
    expect(keys).toHaveLength(3)
    expect(new Set(keys.map(({ key }) => key)).size).toBe(3)
    expect(server.total()).toBe(3)
  })

  it('P21, B43: an online event during start-up does not replay the queue twice', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    const before = tab()
    network.script(answer(429, { 'retry-after': '60' }))
    await before.fetch('orders', order('checkout:1')).stored
    await pass(0)
    before.kill()
    await pass(120_000)

    network.script(server.answer)
    const after = tab()
    after.setOnline(true)
    await Promise.resolve()
    after.setOnline(true)
    after.show()
    await pass(20_000)
    expect(network.writes()).toHaveLength(2)
    expect(server.total()).toBe(1)
  })

  it('P21, B108: twenty reloads within a minute make no extra attempt, and the count goes on', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(answer(503), answer(503), answer(503, { 'retry-after': '600' }), server.answer)
    const first = tab()
    await first.fetch('orders', order('checkout:1')).stored
    await pass(20_000)
    expect(network.writes()).toHaveLength(3)
    first.kill()

    for (let reload = 0; reload < 20; reload++) {
      const next = tab({ visibleDeath: true })
      await pass(3000)
      expect(await next.fetch.intents.get('checkout:1')).toMatchObject({ state: 'waiting', attempts: 3 })
      next.kill()
    }
    expect(network.writes()).toHaveLength(3)

    const last = tab()
    await pass(600_000)
    expect(await last.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', attempts: 4 })
    expect(server.total()).toBe(1)
    const [, , third, fourth] = network.writes()
    expect((fourth?.at ?? 0) - (third?.at ?? 0)).toBeGreaterThanOrEqual(600_000)
  })

  it('P21: what an earlier run left is gone through once, however long this one lasts', async () => {
    const { tab, pass } = world()
    let lists = 0
    tab({
      wrapStore: (store) => ({
        ...store,
        list(...args) {
          lists++
          return store.list(...args)
        },
      }),
    })
    await pass(30 * 60_000)
    expect(lists).toBe(1)
  })

  it('P21, P33: a store that cannot be read at the start is tried again, and what was left open goes on', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(hangs(), server.answer)
    const first = tab()
    await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()

    let failures = 3
    const second = tab({
      visibleDeath: true,
      wrapStore: (store) =>
        new Proxy(store, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name)
            if (typeof value !== 'function') return value
            return (...args: unknown[]) =>
              failures-- > 0
                ? Promise.reject(new Error('not yet'))
                : (value as (...args: unknown[]) => unknown).apply(target, args)
          },
        }),
    })
    await pass(60_000)
    expect(second.notes).toContainEqual(expect.objectContaining({ type: 'warning', code: 'store_failed' }))
    expect(server.total()).toBe(1)
  })
})

describe('P22, B25: the page that comes back learns the result', () => {
  it('B25: it was stored before it was told, can be read and awaited, and a new submit sends nothing', async () => {
    const { tab, network, pass, clock } = world()
    network.script(hangs(), later(clock, 500, created({ id: 9 })))
    const first = tab()
    await first.fetch('orders', order('checkout:1')).stored
    await pass(1000)
    first.kill()

    const second = tab({ visibleDeath: true })
    const awaited = second.fetch.intents.wait('checkout:1')
    await pass(30_000)
    const outcome = await awaited
    expect(outcome.state).toBe('succeeded')
    if (outcome.state === 'succeeded') expect(await outcome.response.json()).toEqual({ id: 9 })
    const sent = network.writes().length
    second.kill()

    const third = tab()
    expect(await third.fetch('orders', order('checkout:1')).json()).toEqual({ id: 9 })
    expect(network.writes()).toHaveLength(sent)
  })
})

describe('P24, B24: an operation that is not known on resume', () => {
  const operations = { 'orders.create': { match: ({ url }: { url: URL }) => url.pathname === '/orders' } }

  it('B24: is parked and reported, never sent by guess, and goes on once it is registered', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(hangs(), server.answer)
    const first = tab({ operations })
    await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()

    const second = tab({ visibleDeath: true })
    await pass(10 * 60_000)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', detail: 'operation' })
    expect(second.notes).toContainEqual(expect.objectContaining({ type: 'state', to: 'blocked' }))
    expect(second.notes.filter((note) => note.type === 'warning' && note.code === 'operation_unknown')).toHaveLength(1)
    expect(network.writes()).toHaveLength(1)

    second.fetch.register('orders.create', operations['orders.create'])
    await pass(1000)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect(server.total()).toBe(1)
  })

  it('B24: nothing is concluded about it from what holds for others: an attempt that was under way is parked in doubt', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), server.answer)
    const orders = { match: ({ url }: { url: URL }) => url.pathname === '/orders', dialect: samekey }
    const first = tab({ dialect: none, operations: { 'orders.create': orders }, retry: { baseMs: day, capMs: day } })
    network.script(hangs(), server.answer)
    const { key } = await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()

    const second = tab({ dialect: none, visibleDeath: true })
    await pass(2000)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'blocked',
      detail: 'operation',
      inDoubt: true,
    })
    await expect(second.fetch.intents.cancel('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
    second.fetch.register('orders.create', orders)
    await pass(5000)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect([...server.effects]).toEqual([[key, 1]])
  })

  it('P24: nor is a monitor read in another dialect: a failure that its server retries is no success', async () => {
    const { tab, network, pass } = world()
    const orders = { match: ({ url }: { url: URL }) => url.pathname === '/orders', dialect: samekey }
    network.script(answer(202, { location: '/tasks/1', 'retry-after': '5', 'idempotency-expires': 'x' }), () =>
      Response.json({ id: 't', status: 'failed_retryable' }),
    )
    const first = tab({ dialect: none, operations: { 'orders.create': orders } })
    await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()
    const second = tab({ dialect: none, visibleDeath: true })
    await pass(60_000)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({ state: 'processing' })
    expect(network.calls).toHaveLength(1)
    second.fetch.register('orders.create', orders)
    await pass(1000)
    expect(await second.fetch.intents.get('checkout:1')).toMatchObject({ state: 'processing', detail: 'retrying' })
  })

  it('B24: one that is never registered stays listed under its key, and is never sent', async () => {
    const { tab, network, pass } = world()
    network.script(hangs())
    const first = tab({ operations })
    await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()
    const second = tab({ visibleDeath: true })
    await pass(hour)
    const { intents } = await second.fetch.intents.list()
    expect(intents).toMatchObject([{ id: 'checkout:1', key: network.writes()[0]?.key }])
    expect(network.writes()).toHaveLength(1)
  })
})

describe('B109, P23: records of other versions', () => {
  it('B109: a newer one is left as it is and reported, sent by nobody, and costs no loop; the others go on', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(server.answer)
    const writer = tab({ autoStart: false })
    const future = {
      client: origin,
      scope: 'anonymous',
      id: 'from-the-future',
      key: 'k-future',
      token: null,
      leaseUntil: null,
      state: 'hovering',
      open: true,
      dueAt: 0,
      lane: null,
      laneHolds: false,
      laneWaits: false,
      twin: null,
      format: 99,
      data: '{"whatever":true}',
    }
    await writer.store.insert(future, {})
    writer.kill()

    const next = tab()
    await next.fetch('orders', order('checkout:1')).stored
    await pass(60_000)
    expect(server.total()).toBe(1)
    expect(network.writes().map(({ key }) => key)).not.toContain('k-future')
    expect(await next.store.byKey({ client: origin, scope: 'anonymous', key: 'k-future' })).toMatchObject(future)
    expect(next.notes.filter((note) => note.type === 'warning' && note.code === 'record_set_aside')).toHaveLength(1)
    expect((await next.fetch.intents.list()).setAside).toEqual([
      { id: 'from-the-future', key: 'k-future', reason: 'newer' },
    ])
    await expect(next.fetch('orders', order('from-the-future'))).rejects.toMatchObject({ code: 'record_set_aside' })
    expect(next.operations()).toBeLessThan(400)
  })
})

describe('F2, F4, F5', () => {
  it('F2: stored and never sent, it is sent on start with the same key', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(server.answer)
    // The fourth operation of a life is the insert: it dies right after.
    let key = ''
    for (let operation = 1; key === ''; operation++) {
      const dying = tab({ dieAt: { operation, when: 'after' } })
      void dying.fetch('orders', order('checkout:1')).stored.catch(() => {})
      await pass(0)
      key = (await dying.store.current(origin, 'anonymous', 'checkout:1'))?.key ?? ''
    }
    expect(network.writes()).toHaveLength(0)
    const next = tab()
    await pass(1000)
    expect(await next.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', key, attempts: 1 })
    expect(network.writes().map((call) => [call.key, call.age])).toEqual([[key, '0']])
  })

  it('F3, F4: the request is lost, or the server dies before its commit: the same key executes once', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(broken(), server.answer)
    const only = tab()
    const { key } = await only.fetch('orders', order('checkout:1')).stored
    await pass(10_000)
    expect([...server.effects]).toEqual([[key, 1]])
  })

  it('F5: the server commits and the answer is lost: the same key, the stored answer, one order', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), server.answer)
    const only = tab()
    const write = only.fetch('orders', order('checkout:1'))
    const { key } = await write.stored
    await pass(10_000)
    const response = await write
    expect(response.headers.get('idempotent-replayed')).toBe('true')
    expect([...server.effects]).toEqual([[key, 1]])
  })

  it('F5 with another dialect: a plain server that only knows keys gets the same one', async () => {
    const { tab, network, pass } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), server.answer)
    const only = tab({ dialect: ietf({ retentionMs: day }) })
    const { key } = await only.fetch('orders', order('checkout:1')).stored
    await pass(10_000)
    expect([...server.effects]).toEqual([[key, 1]])
    expect(network.writes().map(({ age }) => age)).toEqual([null, null])
  })
})
