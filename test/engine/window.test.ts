/** No attempt is made when the server may already have forgotten the key (P35), and a frozen holder does not send. */
import { describe, expect, it } from 'vitest'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import {
  answer,
  broken,
  commitThenDrop,
  created,
  day,
  hangs,
  honestServer,
  order,
  refusedConnection,
  type Tab,
  type World,
  world,
} from '../support/world.ts'

const minute = 60_000
const hour = 60 * minute
/** Retention less the time limit of an attempt and the transit. */
const windowMs = day - 30_000 - 5 * minute

/** An intent in doubt whose tab is gone. */
async function lostAndGone({ tab, network, pass }: World, options: Parameters<World['tab']>[0] = {}): Promise<void> {
  network.script(broken())
  const first = tab({ retry: { attempts: 1000 }, ...options })
  await first.fetch('orders', order('checkout:1')).stored
  await pass(0)
  first.kill()
}

describe('P35: the window', () => {
  it('P35, B82: a send just inside the window goes out with its age; at its end and ever after, none does', async () => {
    for (const [asleep, sends] of [
      [windowMs - 2000, 1],
      [windowMs, 0],
      [day, 0],
      [30 * day, 0],
    ] as const) {
      const small = world()
      const server = honestServer()
      await lostAndGone(small)
      small.network.script(server.answer)
      small.clock.jump(asleep)
      const next = small.tab()
      await small.pass(1000)
      expect(small.network.writes().slice(1)).toHaveLength(sends)
      const view = await next.fetch.intents.get('checkout:1')
      if (sends === 1) {
        expect(view?.state).toBe('succeeded')
        expect(small.network.writes()[1]?.age).toBe(String((windowMs - 2000) / 1000))
        continue
      }
      expect(view).toMatchObject({ state: 'unknown', detail: 'window_over', inDoubt: true })
      expect(next.notes).toContainEqual(expect.objectContaining({ type: 'state', to: 'unknown' }))
      await small.pass(hour)
      small.clock.jump(2 * day)
      await small.pass(hour)
      expect(small.network.writes()).toHaveLength(1)
      // Only a person settles it: sending is not offered any more.
      await expect(next.fetch.intents.retry('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
      await expect(next.fetch.intents.cancel('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
      expect(await next.fetch.intents.resolve('checkout:1', 'succeeded', 'seen in the back office')).toMatchObject({
        state: 'succeeded',
      })
    }
  })

  it('P35, F13: the caller who waits is told that it is unknown, and with what key', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({
      retry: { attempts: 1000 },
      operations: { orders: { match: () => true, retentionMs: 10 * minute } },
    })
    const write = only.fetch('orders', { ...order('checkout:1'), waitMs: hour })
    const { key } = await write.stored
    await pass(5 * minute)
    await expect(write).rejects.toMatchObject({ code: 'outcome_unknown', because: 'window_over', key })
  })

  it('B84: each operation has its own window: open for two hours, one of an hour is over, one of a day goes on', async () => {
    const small = world()
    const server = honestServer()
    const operations = {
      short: { match: ({ url }: { url: URL }) => url.pathname === '/short', retentionMs: hour },
      long: { match: ({ url }: { url: URL }) => url.pathname === '/long' },
    }
    small.network.script(broken())
    const first = small.tab({ operations })
    await first.fetch('short', order('a')).stored
    await first.fetch('long', order('b', { n: 2 })).stored
    await small.pass(0)
    first.kill()
    small.clock.jump(2 * hour)
    small.network.script(server.answer)
    const next = small.tab({ operations })
    await small.pass(minute)
    expect(await next.fetch.intents.get('a')).toMatchObject({ state: 'unknown', detail: 'window_over' })
    expect(await next.fetch.intents.get('b')).toMatchObject({ state: 'succeeded' })
    expect(server.total()).toBe(1)
  })

  it('P35: unknown retention means none is assumed: an ambiguous attempt is not repeated', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({ dialect: { ...ietf({ retentionMs: day }), retentionMs: null } })
    await only.fetch('orders', order('checkout:1')).stored
    await pass(minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'window_over' })
    expect(network.writes()).toHaveLength(1)
  })

  it('B85: persisted offline and never sent, it goes out after three days: the window counts from the first hand-over', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(refusedConnection())
    const only = tab({ transport: { provesNonDelivery: true }, retry: { attempts: 100_000, capMs: hour } })
    await only.fetch('orders', { ...order('checkout:1'), waitMs: 0 }).stored
    await pass(3 * day)
    network.script(commitThenDrop(server), server.answer)
    await pass(3 * hour)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect(server.total()).toBe(1)
    const [first, replay] = network.writes().slice(-2)
    expect(first?.age).toBe('0')
    expect(Number(replay?.age)).toBeLessThan(2 * 3600)
  })

  it('P11, P35: a key that may be older counts from `since`, from the first attempt on', async () => {
    const { clock, network, tab, pass } = world()
    network.script(created())
    const only = tab()
    const since = clock.now() - 20 * hour
    await only.fetch('orders', { ...order('young'), key: { value: 'k-1', since } }).stored
    await only.fetch('orders', { ...order('old', { n: 2 }), key: { value: 'k-2', since: clock.now() - day } }).stored
    await pass(1000)
    expect(await only.fetch.intents.get('young')).toMatchObject({ state: 'succeeded' })
    expect(await only.fetch.intents.get('old')).toMatchObject({ state: 'unknown', detail: 'window_over' })
    expect(network.writes().map(({ key, age }) => [key, age])).toEqual([['k-1', String(20 * 3600)]])
  })
})

describe('P35, P47, H9: the last synchronous check', () => {
  /** Freezes the tab in the store write that marks the attempt, so that it thaws right before the call of fetch. */
  function freezingAtMark(
    { tab }: World,
    options: Parameters<World['tab']>[0] = {},
  ): { frozen: Tab; isFrozen: () => boolean } {
    let marked = false
    const frozen: Tab = tab({
      ...options,
      wrapStore: (store) =>
        new Proxy(store, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name)
            if (name !== 'update' || typeof value !== 'function') return value
            return (change: { state: string }, ...rest: unknown[]) => {
              if (change.state === 'sending' && !marked) {
                marked = true
                frozen.freeze()
              }
              return (value as (...args: unknown[]) => unknown).call(target, change, ...rest)
            }
          },
        }),
    })
    return { frozen, isFrozen: () => marked }
  }

  it('H9: a holder that slept past its lease sends nothing, and the one who took over is not disturbed', async () => {
    const small = world()
    const server = honestServer()
    small.network.script(server.answer)
    const { frozen, isFrozen } = freezingAtMark(small)
    await frozen.fetch('orders', order('checkout:1')).stored
    await small.pass(1000)
    expect(isFrozen()).toBe(true)
    expect(small.network.writes()).toHaveLength(0)

    const other = small.tab()
    await small.pass(2 * minute)
    expect(await other.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    const sent = small.network.writes().length
    small.clock.jump(3 * day)
    frozen.thaw()
    await small.pass(minute)
    expect(small.network.writes()).toHaveLength(sent)
    expect(server.total()).toBe(1)
    expect(await frozen.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
  })

  it('H9: nor does it when nobody took over and three days passed: what is known is that nothing was given to the network', async () => {
    const small = world()
    const server = honestServer()
    small.network.script(server.answer)
    const { frozen } = freezingAtMark(small)
    await frozen.fetch('orders', order('checkout:1')).stored
    await small.pass(1000)
    small.clock.jump(3 * day)
    frozen.thaw()
    await small.pass(minute)
    // It reads again, begins a new attempt with a new mark, and says age 0.
    expect(small.network.writes().map(({ age }) => age)).toEqual(['0'])
    expect(server.total()).toBe(1)
  })

  it('P35: frozen over the time of `sendBefore`, it does not send', async () => {
    const small = world()
    small.network.script(created())
    const { frozen } = freezingAtMark(small)
    await frozen.fetch('orders', { ...order('checkout:1'), sendBefore: small.clock.now() + 5000 }).stored
    await small.pass(1000)
    await small.pass(9000)
    frozen.thaw()
    await small.pass(minute)
    expect(small.network.writes()).toHaveLength(0)
    expect(await frozen.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'cancelled',
      detail: 'send_before_passed',
    })
  })

  it('P35: a clock that jumped forward in the same moment counts as sleep', async () => {
    const small = world()
    const server = honestServer()
    small.network.script(server.answer)
    const { frozen } = freezingAtMark(small)
    await frozen.fetch('orders', order('checkout:1')).stored
    await small.pass(100)
    small.clock.jump(10 * day)
    frozen.thaw()
    await small.pass(minute)
    expect(small.network.writes()).toHaveLength(1)
    const history = (await frozen.fetch.intents.get('checkout:1'))?.history
    expect(history).toContainEqual(expect.objectContaining({ event: 'notHandedOver', detail: 'lease' }))
    expect(server.total()).toBe(1)
  })

  it('P35: a clock that stepped back in the same moment sends nothing on a time it cannot know', async () => {
    const small = world()
    const server = honestServer()
    small.network.script(commitThenDrop(server), server.answer)
    const first = small.tab()
    await first.fetch('orders', order('checkout:1')).stored
    await small.pass(0)
    first.kill()
    const { frozen } = freezingAtMark(small)
    await small.pass(1000)
    small.clock.jump(-5 * day)
    frozen.thaw()
    await small.pass(day)
    expect(small.network.writes()).toHaveLength(1)
    expect(await frozen.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'age_unknown' })
    expect(server.total()).toBe(1)
  })

  it('P19: a client that was stopped before the call of fetch leaves no doubt behind', async () => {
    const small = world()
    const server = honestServer()
    small.network.script(server.answer)
    // The store takes its time over the mark, longer than the stop is willing to wait.
    const slow = small.tab({
      wrapStore: (store) => ({
        ...store,
        async update(change, ...rest) {
          if (change.state === 'sending') await new Promise<void>((resolve) => small.clock.timer(5000, resolve))
          return store.update(change, ...rest)
        },
      }),
    })
    await slow.fetch('orders', order('checkout:1')).stored
    await small.pass(100)
    const stopped = slow.fetch.stop({ graceMs: 1000 })
    await small.pass(6000)
    await stopped
    expect(small.network.calls).toHaveLength(0)
    const next = small.tab({ autoStart: false })
    expect(await next.fetch.intents.list()).toMatchObject({
      intents: [{ state: 'waiting', inDoubt: false, attempts: 0 }],
    })
    await next.fetch.start()
    await small.pass(1000)
    expect(server.total()).toBe(1)
  })

  it('P48, H39: the late answer of a holder whose lease was lost is adopted if it proves something', async () => {
    const small = world()
    const server = honestServer()
    let answerFirst: () => void = () => {}
    small.network.script(
      (call, request) =>
        new Promise((resolve) => {
          answerFirst = () => resolve(server.answer(call, request))
        }),
      answer(403),
    )
    const slow = small.tab()
    await slow.fetch('orders', order('checkout:1')).stored
    await small.pass(1000)
    // By the wall clock its lease is over, long before its answer is there.
    small.clock.jump(10 * minute)
    const other = small.tab({ retry: { attempts: 2 } })
    await small.pass(10_000)
    expect(await other.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown' })
    answerFirst()
    await small.pass(1000)
    expect(await other.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect(server.total()).toBe(1)
  })

  it('P48, H39: also when its body broke off: that it happened is known all the same', async () => {
    const small = world()
    let answerFirst: () => void = () => {}
    small.network.script(
      (call, request) =>
        new Promise((resolve) => {
          const whole = created()(call, request) as Response
          const body = new ReadableStream({ start: (controller) => controller.error(new TypeError('terminated')) })
          answerFirst = () => resolve(new Response(body, { status: 201, headers: whole.headers }))
        }),
      answer(403),
    )
    const slow = small.tab()
    await slow.fetch('orders', order('checkout:1')).stored
    await small.pass(1000)
    // By the wall clock its lease is over, long before its answer is there.
    small.clock.jump(10 * minute)
    const other = small.tab({ retry: { attempts: 2 } })
    await small.pass(10_000)
    expect(await other.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown' })
    answerFirst()
    await small.pass(1000)
    expect(await other.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
  })

  it('P49: a frozen tab blocks nobody for longer than its lease', async () => {
    const small = world()
    const server = honestServer()
    small.network.script(hangs(), server.answer)
    const slow = small.tab()
    await slow.fetch('orders', order('checkout:1')).stored
    await small.pass(0)
    slow.freeze()
    const other = small.tab()
    await small.pass(46_000)
    expect(await other.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
  })
})
