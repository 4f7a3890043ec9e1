import { describe, expect, it } from 'vitest'
import { none } from '../../src/protocol/dialects/none.ts'
import {
  type Answer,
  broken,
  commitThenDrop,
  created,
  type HonestServer,
  honestServer,
  order,
  type TabOptions,
  type World,
  world,
} from '../support/world.ts'

const minute = 60_000

type Script = (server: HonestServer) => Answer[]

const stories: Record<string, Script> = {
  'all goes well': (server) => [server.answer],
  'the answer is lost once': (server) => [commitThenDrop(server), server.answer],
  'the request is lost, then the answer': (server) => [broken(), commitThenDrop(server), server.answer],
}

/** How many store operations the whole life has. The points are what the engine really does, not typed by hand. */
async function storeOperations(live: (world: World, options: TabOptions) => Promise<unknown>): Promise<number> {
  let count = 0
  const small = world()
  await live(small, {
    wrapStore: (store) =>
      new Proxy(store, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name)
          if (typeof value !== 'function') return value
          return (...args: unknown[]) => {
            count++
            return (value as (...args: unknown[]) => unknown).apply(target, args)
          }
        },
      }),
  })
  await small.pass(10 * minute)
  return count
}

describe('P35, P47, P49, F17, H9: a tab that freezes at any operation, is overtaken, and thaws', () => {
  for (const [story, script] of Object.entries(stories)) {
    for (const [asleep, sleep] of [
      ['ten minutes', 10 * minute],
      ['three days', 3 * 24 * 60 * minute],
    ] as const) {
      it(`${story}, ${asleep}: one order, one key, the same bytes; nothing is sent on a mark that is old`, async () => {
        const live = async ({ tab }: World, options: TabOptions) => tab(options).fetch('orders', order('checkout:1'))
        const points = await storeOperations(async (small, options) => {
          small.network.script(...script(honestServer()))
          await Promise.all([live(small, options), small.pass(minute)])
        })
        expect(points).toBeGreaterThan(6)
        for (let freezeAt = 1; freezeAt <= points; freezeAt++) {
          const { clock, network, pass, tab } = world()
          const server = honestServer()
          network.script(...script(server))
          const sleeper = tab({ freezeAt })
          void sleeper.fetch('orders', order('checkout:1'))
          await pass(1000)
          const other = tab()
          void other.fetch('orders', order('checkout:1'))
          await pass(5 * minute)
          clock.jump(sleep)
          sleeper.thaw()
          await pass(5 * minute)

          const at = `${story}, frozen at ${freezeAt}`
          const view = await other.fetch.intents.get('checkout:1')
          expect(view?.state, at).toBe('succeeded')
          expect(server.total(), at).toBe(1)
          expect(new Set(network.writes().map(({ key }) => key)), at).toEqual(new Set([view?.key]))
          expect(new Set(network.writes().map(({ body }) => body)).size, at).toBe(1)
          // Whoever sends says the true age, and nobody sends when the key may be forgotten.
          const [first] = network.writes()
          for (const { at: sentAt, age } of network.writes()) {
            expect(sentAt - first!.at, at).toBeLessThan(24 * 60 * minute)
            expect(Number(age) * 1000, at).toBeGreaterThanOrEqual(sentAt - first!.at)
          }
        }
      })
    }
  }
})

describe('P34, H28: an old write never lands after a newer one, whoever freezes or dies when', () => {
  const put = (id: string, body: string) =>
    ({ intent: id, method: 'PUT', body, headers: { 'content-type': 'application/json' }, waitMs: 0 }) as const

  async function twoVersions({ tab, pass }: World, options: TabOptions): Promise<void> {
    const first = tab(options)
    void first.fetch('docs/1', put('v1', '1'))
    await pass(50)
    void first.fetch('docs/1', put('v2', '2'))
  }

  for (const end of ['freezes', 'dies'] as const) {
    it(`P34: two versions; the tab that submits them ${end} at any operation`, async () => {
      const points = await storeOperations(async (small, options) => {
        small.network.script(broken(), created())
        await twoVersions(small, options)
      })
      for (let point = 1; point <= points; point++) {
        const small = world()
        const applied: string[] = []
        const keys = new Set<string>()
        const apply: Answer = (call, request) => {
          if (!keys.has(call.key!)) applied.push(call.body)
          keys.add(call.key!)
          return created()(call, request)
        }
        small.network.script(broken(), apply)
        await twoVersions(
          small,
          end === 'freezes' ? { freezeAt: point } : { dieAt: { operation: point, when: 'after' } },
        )
        await small.pass(1000)
        small.tab()
        await small.pass(10 * minute)
        const at = `${end} at ${point}`
        expect(['', '1', '2', '12'], at).toContain(applied.join(''))
        expect(keys.size, at).toBe(applied.length)
      }
    })
  }
})

describe('P20, F24: killed at every step where the server does not de-duplicate', () => {
  for (const when of ['before', 'after'] as const) {
    it(`dying ${when} any operation leaves at most one order, and an honest word on it`, async () => {
      for (let operation = 1; operation <= 20; operation++) {
        const { network, pass, tab } = world()
        let orders = 0
        network.script((call, request) => {
          orders++
          return created()(call, request)
        })
        const first = tab({ dialect: none, dieAt: { operation, when } })
        void first.fetch('orders', order('checkout:1'))
        await pass(minute)
        const second = tab({ dialect: none })
        await pass(2 * minute)
        const view = await second.fetch.intents.get('checkout:1')
        const at = `${when} operation ${operation}`
        expect(orders, at).toBeLessThanOrEqual(1)
        if (view === undefined) expect(orders, at).toBe(0)
        else expect(['succeeded', 'unknown'], at).toContain(view.state)
        if (view?.state === 'succeeded') expect(orders, at).toBe(1)
      }
    })
  }
})
