import { describe, expect, it } from 'vitest'
import { StoreFailure } from '../../src/errors.ts'
import { createClient } from '../../src/index.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { failure, within } from '../support/within.ts'
import { answer, created, day, honestServer, later, order, origin, type Tab, world } from '../support/world.ts'

async function inbox(tab: Tab): Promise<string[]> {
  const { intents } = await tab.fetch.intents.list({ inbox: true })
  return intents.map(({ id }) => id)
}

describe('P22: outcomes are stored, then told, then kept until somebody took note', () => {
  it('P22, B25: the page that comes back learns the new order’s id, without a request', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(later(clock, 5000, server.answer))
    const before = tab()
    void before.fetch('orders', order('checkout:1'))
    await clock.advance(1000)
    before.kill()
    network.script(server.answer)
    const after = tab()
    await clock.advance(120_000)
    const calls = network.calls.length

    expect(await inbox(after)).toEqual(['checkout:1'])
    const outcome = await within(clock, 0, after.fetch.intents.wait('checkout:1'))
    expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ id: outcome.key })
    const again = await within(clock, 0, after.fetch('orders', order('checkout:1')))
    expect(await again.json()).toEqual({ id: outcome.key })
    expect(network.calls).toHaveLength(calls)
    expect(server.total()).toBe(1)
  })

  it('P22: what is announced is on disk already, and so is what a caller is given', async () => {
    const { clock, network, tab } = world()
    network.script(honestServer().answer)
    const seen: Promise<string | undefined>[] = []
    const only = tab({
      observer: (note) => {
        if (note.type !== 'state') return
        seen.push(only.store.current(origin, 'anonymous', note.intentId).then((row) => `${note.to} ${row?.state}`))
      },
    })
    const write = only.fetch('orders', order('checkout:1'))
    const stateOnDelivery = write.then(async () => (await only.store.current(origin, 'anonymous', 'checkout:1'))?.state)
    expect(await within(clock, 1000, stateOnDelivery)).toBe('succeeded')
    for (const pair of await Promise.all(seen)) {
      const [told, stored] = String(pair).split(' ')
      expect(stored).toBe(told)
    }
  })

  it('P22: delivery to a caller that awaits takes note; an answer that nobody took stays in the inbox', async () => {
    const taking: Record<string, (tab: Tab, id: string) => Promise<unknown>> = {
      awaited: async (tab, id) => await tab.fetch('orders', order(id)),
      'read by a shortcut': (tab, id) => tab.fetch('orders', order(id)).json(),
      'asked for its outcome': (tab, id) => tab.fetch('orders', order(id)).outcome(),
      'one of several': (tab, id) => Promise.all([tab.fetch('orders', order(id))]),
      'waited for by name': async (tab, id) => {
        await tab.fetch('orders', order(id)).stored
        return tab.fetch.intents.wait(id)
      },
    }
    for (const [how, take] of Object.entries(taking)) {
      const { clock, network, tab } = world()
      network.script(honestServer().answer)
      const only = tab()
      await within(clock, 1000, take(only, 'checkout:1'))
      await clock.advance(0)
      expect(await inbox(only), how).toEqual([])
    }
    const { clock, network, tab } = world()
    network.script(honestServer().answer)
    const only = tab()
    const untaken = only.fetch('orders', order('checkout:1'))
    await within(clock, 1000, untaken.stored)
    await clock.advance(60_000)
    expect(await inbox(only)).toEqual(['checkout:1'])
    // Later is not too late.
    await untaken
    await clock.advance(0)
    expect(await inbox(only)).toEqual([])
  })

  it('P22: through ky as well: `.stored` alone leaves the outcome in the inbox, awaiting takes note', async () => {
    const store = memoryStore()
    const api = createClient({
      baseUrl: origin,
      dialect: samekey,
      anonymous: true,
      store,
      fetch: async () => created()({ at: Date.now() } as never, new Request(origin)),
    })
    const untaken = api.post('orders', { intent: 'a', json: { n: 1 } })
    await untaken.stored
    await api.post('orders', { intent: 'b', json: { n: 2 } }).json()
    await api.post('orders', { intent: 'c', json: { n: 3 } })
    await api.stop()
    const later = createClient({ baseUrl: origin, dialect: samekey, anonymous: true, store, name: origin })
    const ids = (await later.intents.list({ inbox: true })).intents.map(({ id }) => id)
    await later.stop()
    expect(ids).toEqual(['a'])
  })

  it('P22: acknowledging clears the inbox and nothing else; the outcome stays readable as long as it is remembered', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(server.answer)
    const only = tab()
    void only.fetch('orders', order('checkout:1'))
    await clock.advance(1000)
    expect((await only.fetch.intents.acknowledge('checkout:1')).acknowledgedAt).toBe(clock.now())
    expect(await inbox(only)).toEqual([])
    clock.jump(6 * day)
    await clock.advance(60_000)
    expect((await within(clock, 0, only.fetch('orders', order('checkout:1')))).status).toBe(201)
    expect(network.calls).toHaveLength(1)
  })

  it('P22: what nobody acknowledged is never forgotten', async () => {
    const { clock, network, tab } = world()
    network.script(honestServer().answer)
    const only = tab()
    void only.fetch('orders', order('checkout:1'))
    await clock.advance(1000)
    for (let weeks = 0; weeks < 10; weeks++) {
      clock.jump(7 * day)
      await clock.advance(120_000)
    }
    expect(await inbox(only)).toEqual(['checkout:1'])
  })

  it('P22: without a stored body, reading it is a typed error and never an empty value; the outcome is known', async () => {
    const { clock, network, tab } = world()
    network.script(created({ token: 'x'.repeat(70_000) }))
    const before = tab()
    const live = await within(clock, 1000, before.fetch('orders', order('checkout:1')))
    expect((await live.text()).length).toBeGreaterThan(70_000)
    before.kill()

    const after = tab()
    const outcome = await within(clock, 0, after.fetch.intents.wait('checkout:1'))
    if (outcome.state !== 'succeeded') throw new Error(outcome.state)
    expect(outcome.response.status).toBe(201)
    for (const read of ['json', 'text', 'arrayBuffer', 'blob'] as const) {
      const error = await failure(clock, 0, outcome.response[read]())
      expect(error).toMatchObject({ code: 'body_not_stored', intentId: 'checkout:1', key: outcome.key })
    }
  })

  it('P22: an observer or subscriber that throws, or whose promise rejects, harms nothing and nobody', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(answer(503), server.answer)
    const told: string[] = []
    const only = tab({
      observer: () => {
        throw new Error('bug in the app')
      },
    })
    only.fetch.subscribe(() => {
      throw new Error('another bug')
    })
    const rejects = (): unknown => Promise.reject(new Error('a bug that comes later'))
    only.fetch.subscribe(rejects)
    const unsubscribe = only.fetch.subscribe((note) => {
      if (note.type === 'state' && note.from !== note.to) told.push(note.to)
    })
    expect((await within(clock, 60_000, only.fetch('orders', order('checkout:1')))).status).toBe(201)
    expect(told).toEqual(['queued', 'sending', 'waiting', 'sending', 'succeeded'])
    expect(network.writes()).toHaveLength(2)
    unsubscribe()
    await within(clock, 60_000, only.fetch('orders', order('checkout:2', { n: 2 })))
    expect(told).toHaveLength(5)
    expect(server.total()).toBe(2)
  })

  it('P22: a write that is said to have failed but landed is announced like any other', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(server.answer)
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        async update(change, expected, blobs) {
          const row = await store.update(change, expected, blobs)
          if (!lied.has(change.state)) {
            lied.add(change.state)
            throw new StoreFailure('timeout', 'maybe', 'took too long')
          }
          return row
        },
      }),
    })
    const lied = new Set<string>()
    expect((await within(clock, 10_000, only.fetch('orders', order('checkout:1')))).status).toBe(201)
    const states = only.notes.flatMap((note) => (note.type === 'state' && note.from !== note.to ? [note.to] : []))
    expect(states).toEqual(['queued', 'sending', 'succeeded'])
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })
})
