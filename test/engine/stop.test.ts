import { describe, expect, it } from 'vitest'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { knowsShop, shop, shopOrder } from '../support/shop.ts'
import { failure, within } from '../support/within.ts'
import {
  answer,
  commitThenDrop,
  hangs,
  honestServer,
  later,
  order,
  type Tab,
  type World,
  world,
} from '../support/world.ts'

/** Every observable of a client that has ended: nothing is armed, nothing is said, nothing is asked or stored any more. */
async function expectNothingLeft({ clock, network }: World, tab: Tab): Promise<void> {
  expect(clock.pending()).toBe(0)
  const [calls, notes, operations] = [network.calls.length, tab.notes.length, tab.operations()]
  tab.setOnline(true)
  tab.fetch.authChanged()
  await clock.advance(3600_000)
  expect(network.calls).toHaveLength(calls)
  expect(tab.notes).toHaveLength(notes)
  expect(tab.operations()).toBe(operations)
}

describe('stop(): ends cleanly, and nothing is lost', () => {
  it('P20, P48: an attempt under way is given time to end, and its outcome is stored and told', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = honestServer()
    network.script(later(clock, 3000, server.answer))
    const only = tab()
    const write = only.fetch('orders', order('checkout:1'))
    await within(clock, 1000, write.stored)
    await within(clock, 5000, only.fetch.stop())
    expect((await write).status).toBe(201)
    await expectNothingLeft(w, only)

    const next = tab()
    expect((await next.fetch.intents.get('checkout:1'))?.state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })

  it('P20: a hanging fetch is aborted after the grace: in doubt, and the next client goes on with the same key', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = honestServer()
    network.script(async (call, request) => {
      await server.answer(call, request)
      return hangs()(call, request)
    }, server.answer)
    const only = tab()
    const write = only.fetch('orders', order('checkout:1'))
    const { key } = await within(clock, 1000, write.stored)
    const stopping = only.fetch.stop({ graceMs: 2000 })
    await clock.advance(1999)
    expect(network.calls[0]?.signal.aborted).toBe(false)
    await within(clock, 1, stopping)
    expect(network.calls[0]?.signal.aborted).toBe(true)
    // The caller is told at once what is known, instead of when its own patience ends.
    expect(await failure(clock, 0, write)).toMatchObject({ code: 'still_open', inDoubt: true, key })
    await expectNothingLeft(w, only)

    const next = tab()
    expect(await next.fetch.intents.get('checkout:1')).toMatchObject({ inDoubt: true })
    expect((await within(clock, 60_000, next.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
    expect(new Set(network.writes().map((call) => call.key))).toEqual(new Set([key]))
    expect(server.total()).toBe(1)
  })

  it('P37: with polls under way, the next client asks the monitor', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = shop(clock)
    server.take('as_task')
    network.script(server.answer, hangs())
    const only = tab(knowsShop)
    const write = only.fetch('orders', shopOrder('checkout:1'))
    const { key } = await within(clock, 5000, write.stored)
    expect(network.calls.at(-1)?.method).toBe('GET')
    await within(clock, 5000, only.fetch.stop())
    await expectNothingLeft(w, only)

    network.script(server.answer)
    await server.finish(key)
    const next = tab(knowsShop)
    expect((await within(clock, 60_000, next.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('P44: with a void under way, the next client repeats the void', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = shop(clock)
    network.script((call, request) => (call.method === 'POST' ? answer(503)(call, request) : hangs()(call, request)))
    const only = tab(knowsShop)
    await within(clock, 1000, only.fetch('orders', shopOrder('checkout:1')).stored)
    await only.fetch.intents.cancel('checkout:1')
    await clock.advance(1000)
    expect(network.calls.at(-1)?.method).toBe('DELETE')
    await within(clock, 5000, only.fetch.stop())
    await expectNothingLeft(w, only)

    network.script(server.answer)
    const next = tab(knowsShop)
    expect((await within(clock, 60_000, next.fetch.intents.wait('checkout:1'))).state).toBe('cancelled')
    expect(server.total()).toBe(0)
  })

  it('P17: a submit that is on its way into the store is stored; it is sent by the next client', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = honestServer()
    network.script(server.answer)
    const only = tab({ wrapStore: (store) => ({ ...store, insert: slow(clock, store.insert) }) })
    const write = only.fetch('orders', order('checkout:1'))
    await within(clock, 5000, only.fetch.stop())
    expect(await write.stored).toMatchObject({ id: 'checkout:1' })
    expect(await failure(clock, 0, write)).toMatchObject({ code: 'still_open', inDoubt: false })
    expect(network.calls).toEqual([])
    await expectNothingLeft(w, only)

    const next = tab()
    expect((await within(clock, 60_000, next.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })

  it('P3: an auth() that never answers does not hold up the stop, and costs no attempt', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = honestServer()
    network.script(server.answer)
    const only = tab({ scope: () => 'ann', auth: () => new Promise(() => {}) })
    await within(clock, 1000, only.fetch('orders', order('checkout:1')).stored)
    await within(clock, 5000, only.fetch.stop())
    await expectNothingLeft(w, only)

    const next = tab({ scope: () => 'ann', auth: () => ({ scope: 'ann', headers: {} }) })
    expect((await within(clock, 1000, next.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
  })

  it('P28: an accept() that never answers holds neither the attempt beyond its lease nor the stop', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = honestServer()
    network.script(server.answer)
    const operations = { orders: { accept: () => new Promise<boolean>(() => {}) } }
    const first = tab({ operations })
    const write = first.fetch('orders', { ...order('checkout:1'), operation: 'orders' })
    // The marker decides without it.
    expect((await within(clock, 20_000, write)).status).toBe(201)
    await within(clock, 0, first.fetch.stop())
    await expectNothingLeft(w, first)

    const second = tab({ operations })
    const other = second.fetch('orders', { ...order('checkout:2'), operation: 'orders' })
    await within(clock, 1000, other.stored)
    await within(clock, 5000, second.fetch.stop())
    expect((await other).status).toBe(201)
    await expectNothingLeft(w, second)
    expect(network.writes()).toHaveLength(2)
  })

  it('P43: a reconcile() that never answers does not hold up the stop', async () => {
    const w = world()
    const { clock, network, tab } = w
    network.script(answer(503))
    const operations = { orders: { reconcile: () => new Promise<never>(() => {}) } }
    const only = tab({ operations, dialect: { ...samekey, byKey: false } })
    await within(clock, 1000, only.fetch('orders', { ...order('checkout:1'), operation: 'orders' }).stored)
    const checking = only.fetch.intents.check('checkout:1')
    await clock.advance(60_000)
    await within(clock, 5000, only.fetch.stop())
    expect((await within(clock, 0, checking)).id).toBe('checkout:1')
    await expectNothingLeft(w, only)
  })

  it('P36: everybody who waits is told, with what is known: callers, outcome() and wait()', async () => {
    const w = world()
    const { clock, network, tab } = w
    network.script(answer(503, { 'retry-after': '3600' }))
    const only = tab({ waitMs: 24 * 3600_000 })
    const write = only.fetch('orders', order('checkout:1'))
    const outcome = write.outcome()
    await write.stored
    const wait = only.fetch.intents.wait('checkout:1')
    await clock.advance(1000)
    await within(clock, 5000, only.fetch.stop())
    expect(await within(clock, 0, outcome)).toMatchObject({ state: 'waiting', inDoubt: true })
    expect(await within(clock, 0, wait)).toMatchObject({ state: 'waiting', inDoubt: true })
    expect(await failure(clock, 0, write)).toMatchObject({ code: 'still_open' })
    await expectNothingLeft(w, only)
  })

  it('stop() again and again is one stop, and it takes no time when nothing is under way', async () => {
    const w = world()
    const only = w.tab()
    await within(w.clock, 0, only.fetch.ready)
    const stopping = only.fetch.stop()
    expect(only.fetch.stop()).toBe(stopping)
    await within(w.clock, 0, stopping)
    await within(w.clock, 0, only.fetch.stop())
    await expectNothingLeft(w, only)
  })

  it('await using stops at the end of the block', async () => {
    const w = world()
    const { clock, network, tab } = w
    network.script(honestServer().answer)
    let used: Tab | undefined
    const block = async (): Promise<void> => {
      used = tab()
      await using client = used.fetch
      await client('orders', order('checkout:1'))
    }
    await within(clock, 10_000, block())
    await expectNothingLeft(w, used as Tab)
  })

  it('after stop, every call says so, and nothing is stored', async () => {
    const w = world()
    const { clock, network, tab } = w
    const only = tab()
    await within(clock, 0, only.fetch.stop())
    const calls = [
      () => only.fetch('orders', order('checkout:1')),
      () => only.fetch.start(),
      () => only.fetch.ready,
      () => only.fetch.intents.list(),
      () => only.fetch.intents.wait('checkout:1'),
    ]
    for (const call of calls) expect(await failure(clock, 0, call())).toMatchObject({ code: 'config', option: 'stop' })
    expect(network.calls).toEqual([])
    expect(await only.store.list('https://api.example.com', { limit: 10 })).toEqual([])
    await expectNothingLeft(w, only)
  })

  it('P4: the name is free again once stop() is through, and not before', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = honestServer()
    network.script(later(clock, 2000, commitThenDrop(server)), server.answer)
    const liveClients = new Set<string>()
    const first = tab({ replace: { liveClients } })
    await within(clock, 1000, first.fetch('orders', order('checkout:1')).stored)
    const stopping = first.fetch.stop()
    expect(() => tab({ replace: { liveClients } })).toThrow(/already/)
    await within(clock, 5000, stopping)
    const second = tab({ replace: { liveClients } })
    expect((await within(clock, 60_000, second.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })
})

describe('start()', () => {
  it('P21, B43: again and again, with events in between, is one start', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    const before = tab()
    network.script(hangs())
    await within(clock, 0, before.fetch('orders', order('checkout:1')).stored)
    before.kill()
    network.script(later(clock, 500, server.answer))
    const after = tab({ autoStart: false })
    await clock.advance(120_000)
    expect(network.writes()).toHaveLength(1)
    const starts = Array.from({ length: 5 }, () => {
      after.setOnline(true)
      after.fetch.authChanged()
      return after.fetch.start()
    })
    await within(clock, 120_000, Promise.all(starts))
    await within(clock, 0, after.fetch.start())
    expect(network.writes()).toHaveLength(2)
    expect(server.total()).toBe(1)
  })

  it('P22: wait(id) gives the outcome of an intent of an earlier page, settled before or after', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(server.answer)
    const first = tab()
    void first.fetch('orders', order('checkout:1'))
    await clock.advance(1000)
    first.kill()
    network.script(hangs())
    const second = tab()
    void second.fetch('orders', order('checkout:2', { n: 2 }))
    await clock.advance(1000)
    second.kill()
    network.script(server.answer)

    const third = tab()
    for (const id of ['checkout:1', 'checkout:2']) {
      const outcome = await within(clock, 120_000, third.fetch.intents.wait(id))
      expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ id: outcome.key })
    }
    expect(await failure(clock, 0, third.fetch.intents.wait('checkout:3'))).toMatchObject({ code: 'not_possible' })
  })
})

function slow<A extends unknown[], R>(
  clock: World['clock'],
  run: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  return (...args) => new Promise((resolve) => clock.timer(1000, () => resolve(run(...args))))
}
