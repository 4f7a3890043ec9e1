import { describe, expect, it } from 'vitest'
import type { Outcome } from '../../src/engine/outcome.ts'
import { isSamekeyError } from '../../src/errors.ts'
import { settled } from '../../src/testing/virtual-clock.ts'
import { knowsShop, onWrites, type Shop, shop, shopOrder, soldOut } from '../support/shop.ts'
import {
  type Answer,
  broken,
  commitThenDrop,
  order,
  type Tab,
  type TabOptions,
  type World,
  world,
} from '../support/world.ts'

/**
 * Longer stories than a single order, each told by a page that dies at every port operation (store calls and sends),
 * before it takes effect and after; the next page tells the story from its beginning, as apps do. Whatever the point, the
 * same sentences hold about what the server did and what the client says.
 */
interface Story {
  readonly options?: TabOptions
  /** How the network treats the requests, for as long as the story goes. */
  readonly network: (server: Shop, w: World) => readonly Answer[]
  /** What the page does, in the first life and in every later one. `notes` is what the app itself keeps on disk. */
  readonly play: (tab: Tab, notes: Set<string>) => Promise<unknown>
  /** States in which each intent may end. An intent that was never stored is not there, and has no effect. */
  readonly ends: Readonly<Record<string, readonly Outcome['state'][]>>
  /** Ids whose record the app itself may have forgotten. */
  readonly forgets?: readonly string[]
  /** Ids in the order in which their effects have to happen. */
  readonly inOrder?: readonly string[]
}

const aMinute = 60_000

/** What a call says when the intent has moved on, which is no failure of the story. */
async function tolerant<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (isSamekeyError(error)) return undefined
    throw error
  }
}

const put = (id: string, version: number): ReturnType<typeof shopOrder> => ({
  ...shopOrder(id, { version }),
  method: 'PUT',
})

const stories: Record<string, Story> = {
  'accepted, and polled to its end': {
    network: (server, { clock }) => {
      server.take('as_task')
      return [
        async (call, request) => {
          const response = await server.answer(call, request)
          if (response.status === 202) clock.timer(5000, () => void server.finish(String(call.key)))
          return response
        },
      ]
    },
    play: (tab) => tab.fetch('orders', shopOrder('a')).outcome(),
    ends: { a: ['succeeded'] },
  },

  'in doubt, not executed, cancelled': {
    network: (server) => [onWrites(broken(), server.answer), server.answer],
    play: async (tab) => {
      await tab.fetch('orders', shopOrder('a')).stored
      await tolerant(tab.fetch.intents.cancel('a'))
      await tab.fetch.intents.wait('a')
    },
    ends: { a: ['cancelled', 'succeeded'] },
  },

  'in doubt, executed, cancelled, and the void is lost once': {
    network: (server) => [commitThenDrop(server), onWrites(server.answer, broken()), server.answer],
    play: async (tab) => {
      const write = tab.fetch('orders', shopOrder('a'))
      await write.stored
      await tolerant(tab.fetch.intents.cancel('a'))
      await write.outcome()
    },
    ends: { a: ['cancelled', 'succeeded'] },
  },

  'rejected, then corrected under the same id': {
    network: (server) => [commitThenDrop(server), server.answer],
    play: async (tab) => {
      const first = await tolerant(tab.fetch('orders', shopOrder('a', { item: soldOut })).outcome())
      if (first === undefined || first.state === 'rejected') {
        await tolerant(tab.fetch('orders', shopOrder('a', { item: 'tea' })).outcome())
      }
    },
    ends: { a: ['succeeded'] },
  },

  'three in a lane, each answer lost once': {
    network: (server) => {
      const lost = new Set<string | null>()
      return [
        async (call, request) => {
          const response = await server.answer(call, request)
          if (lost.has(call.key)) return response
          lost.add(call.key)
          throw new TypeError('cut')
        },
      ]
    },
    play: async (tab) => {
      const writes = ['a', 'b', 'c'].map((id) => tab.fetch('orders', { ...shopOrder(id, { id }), lane: 'steps' }))
      await Promise.all(writes.map((write) => write.outcome()))
    },
    ends: { a: ['succeeded'], b: ['succeeded'], c: ['succeeded'] },
    inOrder: ['a', 'b', 'c'],
  },

  'three versions put to one address, the first request lost': {
    network: (server) => [broken(), server.answer],
    play: async (tab) => {
      const writes = [put('v1', 1), put('v2', 2), put('v3', 3)].map((init) => tab.fetch('docs/7', init))
      await Promise.all(writes.map((write) => write.outcome()))
    },
    ends: { v1: ['succeeded'], v2: ['succeeded'], v3: ['succeeded'] },
    inOrder: ['v1', 'v2', 'v3'],
  },

  'attempts used up, and a person retries what is unknown': {
    options: { retry: { attempts: 1 } },
    network: (server) => [commitThenDrop(server), server.answer],
    play: async (tab) => {
      let outcome = await tab.fetch('orders', shopOrder('a')).outcome()
      for (let tries = 0; outcome.state === 'unknown' && tries < 3; tries++) {
        await tolerant(tab.fetch.intents.retry('a', 'the customer asks'))
        outcome = await tab.fetch.intents.wait('a')
      }
    },
    ends: { a: ['succeeded'] },
  },

  'a server that does not void: given up, and by force ordered anew': {
    options: { operations: {} },
    network: (server) => [broken(), server.answer],
    play: async (tab, notes) => {
      await tab.fetch('orders', order('a')).stored
      if (!notes.has('given up')) {
        await tolerant(tab.fetch.intents.abandon('a', 'too slow', { force: true }))
        notes.add('given up')
      }
      await tolerant(tab.fetch('orders', order('a')).outcome())
    },
    ends: { a: ['succeeded', 'abandoned'] },
  },

  'succeeded, acknowledged and forgotten': {
    network: (server) => [commitThenDrop(server), server.answer],
    play: async (tab, notes) => {
      if (!notes.has('done')) {
        await tab.fetch('orders', shopOrder('a'))
        await tab.fetch.intents.acknowledge('a')
        notes.add('done')
      }
      await tolerant(tab.fetch.intents.forget('a'))
    },
    ends: { a: ['succeeded'] },
    forgets: ['a'],
  },
}

type Death = NonNullable<TabOptions['dieAt']>

/**
 * Tells the story in pages that die at these points, then in one that lives, and checks every sentence about the end.
 *
 * @returns how many operations the first page made.
 */
async function tell(story: Story, deaths: readonly Death[], at: string): Promise<number> {
  const w = world()
  const { clock, network, tab } = w
  const server = shop(clock)
  network.script(...story.network(server, w))
  const options = { ...knowsShop, waitMs: 2 * aMinute, ...story.options }
  const notes = new Set<string>()

  const stored = new Map<string, string>()
  const observer: TabOptions['observer'] = (note) => {
    if (note.type === 'state') stored.set(note.key, note.intentId)
  }

  let operations = 0
  for (const dieAt of deaths) {
    const page = tab({ ...options, observer, dieAt })
    story.play(page, notes).catch(() => {})
    await clock.advance(2 * aMinute)
    operations ||= page.operations()
    page.kill()
  }
  const last = tab({ ...options, observer })
  const told = story.play(last, notes).then(() => 'to its end', String)
  await clock.advance(4 * aMinute)
  expect(await Promise.race([told, settled().then(() => 'not to its end')]), at).toBe('to its end')
  operations ||= last.operations()

  const { intents } = await last.fetch.intents.list()
  const byKey = new Map(intents.map((view) => [view.key, view]))
  const writes = network.calls.filter(({ method }) => method === 'POST' || method === 'PUT')
  for (const { key } of writes) {
    expect(server.effects.get(String(key)) ?? 0, `${at}: effects of one key`).toBeLessThanOrEqual(1)
    const bodies = new Set(
      writes.filter((call) => call.key === key).map(({ method, url, body }) => method + url + body),
    )
    expect(bodies.size, `${at}: requests under one key`).toBe(1)
  }
  // Nothing vanishes: what was told to be stored, and whatever was sent, is there, or was forgotten on purpose.
  for (const key of new Set([...stored.keys(), ...writes.map((call) => String(call.key))])) {
    const mayBeGone = story.forgets?.includes(stored.get(key) ?? '') === true && server.effects.get(key) === 1
    if (!mayBeGone) expect(byKey.has(key), `${at}: ${key} vanished`).toBe(true)
  }
  for (const { key, state, id } of intents) {
    if (state === 'succeeded') expect(server.effects.get(key), `${at}: ${id} succeeded`).toBe(1)
    if (state === 'cancelled' || state === 'rejected') expect(server.effects.get(key), `${at}: ${id}`).toBeUndefined()
  }
  for (const [id, states] of Object.entries(story.ends)) {
    const current = intents.find((view) => view.id === id && view.current)
    if (current !== undefined) expect(states, `${at}: ${id} is ${current.state}`).toContain(current.state)
    else expect(story.forgets, `${at}: ${id} was never stored`).toContain(id)
  }
  const happened = [...server.effects.keys()].map((key) => stored.get(key))
  if (story.inOrder !== undefined) expect(happened, `${at}: order`).toEqual(story.inOrder)
  return operations
}

describe('P17, P20, P21, P34, P37, P44, P45, B21: longer stories, killed at every step and told again', () => {
  for (const [name, story] of Object.entries(stories)) {
    for (const when of ['before', 'after'] as const) {
      it(`${name}: dying ${when} any operation: one effect for a key, one request for a key, nothing lost, nothing claimed that is not so`, async () => {
        const points = await tell(story, [], name)
        expect(points).toBeGreaterThan(10)
        for (let operation = 1; operation <= points; operation++) {
          await tell(story, [{ operation, when }], `${name}, ${when} operation ${operation} of ${points}`)
        }
      }, 60_000)
    }

    it(`${name}: dying twice in a row`, async () => {
      const points = await tell(story, [], name)
      for (let first = 2; first <= points; first += 3) {
        const deaths: Death[] = [
          { operation: first, when: first % 2 === 0 ? 'before' : 'after' },
          { operation: 2 + ((first * 7) % points), when: first % 4 < 2 ? 'before' : 'after' },
        ]
        await tell(story, deaths, `${name}, ${JSON.stringify(deaths)}`)
      }
    }, 60_000)
  }
})
