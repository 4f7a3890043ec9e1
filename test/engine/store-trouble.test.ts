import { describe, expect, it } from 'vitest'
import { isSamekeyError, StoreFailure } from '../../src/errors.ts'
import type { IntentStore } from '../../src/ports.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { settled, type VirtualClock } from '../../src/testing/virtual-clock.ts'
import { knowsShop, type Shop, shop, shopOrder } from '../support/shop.ts'
import { failure, within } from '../support/within.ts'
import {
  type Answer,
  answer,
  commitThenDrop,
  created,
  day,
  honestServer,
  later,
  order,
  origin,
  type Tab,
  world,
} from '../support/world.ts'

/** How one call of a store goes wrong (its failure contract, ports.ts). */
const faults = {
  'fails, nothing written': async () => {
    throw new StoreFailure('unavailable', 'no', 'the connection is closing')
  },
  'fails, but it was written': async (run: () => Promise<unknown>) => {
    await run()
    throw new StoreFailure('timeout', 'maybe', 'no answer in time')
  },
  'fails, perhaps written, and was not': async () => {
    throw new StoreFailure('timeout', 'maybe', 'no answer in time')
  },
} satisfies Record<string, (run: () => Promise<unknown>) => Promise<never>>

/** The store whose `nth` call of all goes wrong, and how many calls there were. */
function failingAt(store: IntentStore, nth: number, fault: (typeof faults)[keyof typeof faults]): IntentStore {
  let calls = 0
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const run = (): Promise<unknown> => (value as (...args: unknown[]) => Promise<unknown>).apply(target, args)
        calls += 1
        return calls === nth ? fault(run) : run()
      }
    },
  })
}

interface Story {
  readonly network: (server: Shop) => readonly Answer[]
  readonly after?: (tab: Tab) => Promise<unknown>
  readonly ends: readonly string[]
}

const stories: Record<string, Story> = {
  'an order whose answer is lost once': {
    network: (server) => [commitThenDrop(server), server.answer],
    ends: ['succeeded'],
  },
  'an order that is cancelled in doubt': {
    network: (server) => [
      async (call, request) => {
        await server.answer(call, request)
        return answer(503, { 'retry-after': '20' })(call, request)
      },
      server.answer,
    ],
    after: (tab) =>
      tab.fetch.intents.cancel('a', 'changed my mind').catch((error: unknown) => {
        // It has its end already.
        if (!isSamekeyError(error) || error.code !== 'not_possible') throw error
      }),
    // Where the mark "handed over" could not be stored yet, it is cancelled for certain.
    ends: ['succeeded', 'cancelled'],
  },
}

describe('B30, P17, P18: the store fails once, at every call in turn', () => {
  for (const [name, story] of Object.entries(stories)) {
    for (const [how, fault] of Object.entries(faults)) {
      it(`${name}; the call ${how}: nothing is sent without a record, nothing is lost, one effect`, async () => {
        const calls = await tell(story, 0, fault, name)
        expect(calls).toBeGreaterThan(10)
        for (let nth = 1; nth <= calls; nth++) await tell(story, nth, fault, `${name}: call ${nth} of ${calls} ${how}`)
      }, 60_000)
    }
  }

  async function tell(
    story: Story,
    nth: number,
    fault: (typeof faults)[keyof typeof faults],
    at: string,
  ): Promise<number> {
    const { clock, network, tab } = world()
    const server = shop(clock)
    network.script(...story.network(server))
    const only = tab({ ...knowsShop, waitMs: 120_000, wrapStore: (store) => failingAt(store, nth, fault) })
    let finished = false
    void (async () => {
      for (;;) {
        // An app that is told that its order could not be stored tries the same name again.
        const write = only.fetch('orders', shopOrder('a'))
        try {
          await write.stored
          await story.after?.(only)
          await write.outcome()
          finished = true
          return
        } catch (error) {
          if (!isSamekeyError(error)) throw error
          await new Promise<void>((resolve) => clock.timer(1000, resolve))
        }
      }
    })()
    await clock.advance(200_000)
    expect(finished, at).toBe(true)
    const operations = only.operations()
    const view = await tab(knowsShop).fetch.intents.get('a')
    expect(story.ends, at).toContain(view?.state)
    expect(server.total(), at).toBe(view?.state === 'succeeded' ? 1 : 0)
    for (const { key } of network.writes()) expect(key, at).toBe(view?.key)
    expect((await only.store.list(origin, { limit: 10 })).length, at).toBe(1)
    return operations
  }
})

describe('the store goes away while something is under way', () => {
  it('B34: an old tab whose store was closed loses nothing: another one takes its attempt up, one effect', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(later(clock, 5000, server.answer), server.answer)
    let closed = false
    const closing = (store: IntentStore): IntentStore =>
      new Proxy(store, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name)
          if (!closed || typeof value !== 'function') return value
          return () => Promise.reject(new StoreFailure('closed', 'no', 'a newer version has opened the database'))
        },
      })
    const old = tab({ wrapStore: closing, waitMs: 60_000 })
    const write = old.fetch('orders', order('checkout:1'))
    await within(clock, 1000, write.stored)
    closed = true
    const newer = tab()
    await clock.advance(50_000)
    expect((await newer.fetch.intents.get('checkout:1'))?.state).toBe('succeeded')
    // The old tab cannot know, and says so.
    expect(await failure(clock, 30_000, write)).toMatchObject({ code: 'still_open', inDoubt: true })
    expect(old.notes).toContainEqual(expect.objectContaining({ code: 'store_failed' }))
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    expect(server.total()).toBe(1)
  })

  it('P17, P22: an outcome that cannot be stored is kept and tried while the lease lasts; the server is not asked again', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(server.answer)
    let full = true
    const only = tab({
      waitMs: 120_000,
      wrapStore: (store) => ({
        ...store,
        update: (change, expected, blobs) =>
          full && change.state === 'succeeded'
            ? Promise.reject(new StoreFailure('quota', 'no', 'full'))
            : store.update(change, expected, blobs),
      }),
    })
    const write = only.fetch('orders', order('checkout:1'))
    let told = false
    void write.then(() => {
      told = true
    })
    await within(clock, 20_000, write.stored)
    expect(told).toBe(false)
    full = false
    expect((await within(clock, 10_000, write)).status).toBe(201)
    expect(network.writes()).toHaveLength(1)
  })

  it('P17, P20: an outcome that could not be stored for longer than the lease is asked for again under the same key', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(server.answer)
    let full = true
    const only = tab({
      waitMs: day,
      wrapStore: (store) => ({
        ...store,
        update: (change, expected, blobs) =>
          full && change.state === 'succeeded'
            ? Promise.reject(new StoreFailure('quota', 'no', 'full'))
            : store.update(change, expected, blobs),
      }),
    })
    const write = only.fetch('orders', order('checkout:1'))
    await within(clock, 180_000, write.stored)
    full = false
    expect((await within(clock, 120_000, write)).status).toBe(201)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    expect(server.total()).toBe(1)
  })

  it('P42, P48: a success that cannot be stored outlives the lease: it corrects what others made of the silence', async () => {
    const { clock, network, tab } = world()
    let full = true
    network.script(created())
    const holder = tab({
      dialect: none,
      wrapStore: (store) => ({
        ...store,
        update: (change, expected, blobs) =>
          full && change.state === 'succeeded'
            ? Promise.reject(new StoreFailure('quota', 'no', 'full'))
            : store.update(change, expected, blobs),
      }),
    })
    await within(clock, 100, holder.fetch('orders', order('checkout:1')).stored)
    const other = tab({ dialect: none })
    await clock.advance(120_000)
    expect((await other.fetch.intents.get('checkout:1'))?.state).toBe('unknown')
    full = false
    await clock.advance(10_000)
    expect((await other.fetch.intents.get('checkout:1'))?.state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
  })

  it('P47, P18: a write that is said to have failed is not mistaken for the very same write of another tab', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    const dead = tab()
    dead.setOnline(false)
    await within(clock, 0, dead.fetch('orders', order('checkout:1')).stored)
    dead.kill()
    network.script(later(clock, 10_000, server.answer))
    // In the same millisecond both mark the same first attempt; one's write fails, and the other's is there.
    let isThere = (): void => {}
    const theOthers = new Promise<void>((resolve) => {
      isThere = resolve
    })
    const unlucky = tab({
      wrapStore: (store) => ({
        ...store,
        async update(change, expected, blobs) {
          if (change.state !== 'sending') return store.update(change, expected, blobs)
          await theOthers
          throw new StoreFailure('timeout', 'maybe', 'no answer in time')
        },
      }),
    })
    const lucky = tab({
      wrapStore: (store) => ({
        ...store,
        async update(change, expected, blobs) {
          const row = await store.update(change, expected, blobs)
          isThere()
          return row
        },
      }),
    })
    await clock.advance(5000)
    expect(unlucky.notes).toContainEqual(expect.objectContaining({ code: 'store_failed' }))
    expect(network.writes()).toHaveLength(1)
    expect((await within(clock, 10_000, lucky.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })

  it('P33: a store that cannot be read for an hour makes no loop, and everything goes on after it', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    let away = false
    let calls = 0
    network.script(answer(503), server.answer)
    const only = tab({
      waitMs: day,
      wrapStore: (store) =>
        new Proxy(store, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name)
            if (typeof value !== 'function' || !away) return value
            calls += 1
            return () => Promise.reject(new StoreFailure('unavailable', 'no', 'away'))
          },
        }),
    })
    const write = only.fetch('orders', order('checkout:1'))
    await within(clock, 10, write.stored)
    away = true
    await clock.advance(3600_000)
    expect(calls).toBeLessThan(3600 * 2)
    away = false
    expect((await within(clock, 120_000, write)).status).toBe(201)
    expect(server.total()).toBe(1)
    await settled()
  })

  describe('P13: a store that fails under what a person does', () => {
    /** An order that waits for its next try, and a store that fails from its `nth` call of these kinds on. */
    async function waiting(failing: readonly string[], nth: number): Promise<{ only: Tab; clock: VirtualClock }> {
      const { clock, network, tab } = world()
      network.script(answer(503), created())
      let calls = 0
      let armed = false
      const only = tab({
        waitMs: day,
        wrapStore: (store) =>
          new Proxy(store, {
            get(target, name) {
              const value: unknown = Reflect.get(target, name)
              const fails = armed && failing.includes(String(name)) && ++calls >= nth
              return fails ? () => Promise.reject(new StoreFailure('unavailable', 'no', 'away')) : value
            },
          }),
      })
      const write = only.fetch('orders', order('checkout:1'))
      await within(clock, 10, write.stored)
      armed = true
      return { only, clock }
    }

    it.each([
      ['cannot be read', ['current'], {}],
      ['cannot be written', ['update'], { key: expect.stringMatching(/^key-/) }],
    ])('and %s says for which intent, and which key where one is known', async (_how, failing, known) => {
      const { only, clock } = await waiting(failing, 1)
      for (const act of ['retry', 'check', 'abandon'] as const) {
        const error = await failure(clock, 10, only.fetch.intents[act]('checkout:1'))
        expect(error).toMatchObject({ code: 'store_failure', written: 'no', intentId: 'checkout:1', ...known })
      }
    })

    it('P45: what was done is not reported as failed because it cannot be read again', async () => {
      const { only, clock } = await waiting(['current'], 2)
      const view = await within(clock, 10, only.fetch.intents.retry('checkout:1'))
      expect(view).toMatchObject({ id: 'checkout:1', state: 'waiting' })
      expect(view.actions).toHaveLength(1)
    })

    it('P22: an outcome that is known is told although the note of it cannot be stored', async () => {
      // Written before: that it is sent again, and how it ended.
      const { only, clock } = await waiting(['update'], 3)
      const outcome = await within(clock, 200_000, only.fetch.intents.wait('checkout:1', { waitMs: day }))
      expect(outcome.state).toBe('succeeded')
      const view = await within(clock, 10, only.fetch.intents.get('checkout:1'))
      expect(view?.acknowledgedAt).toBeNull()
    })

    it('P22: an outcome that is known is told although its body cannot be read; reading that is a typed error', async () => {
      // Read before: the request's body, to send it again.
      const { only, clock } = await waiting(['blob'], 2)
      await within(clock, 200_000, only.fetch.intents.wait('checkout:1', { waitMs: day }))
      const again = await within(clock, 10, only.fetch.intents.wait('checkout:1'))
      if (again.state !== 'succeeded') throw new Error(`it is ${again.state}`)
      await expect(again.response.json()).rejects.toMatchObject({ code: 'body_not_stored', intentId: 'checkout:1' })
    })
  })
})
