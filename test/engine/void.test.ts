import { describe, expect, it } from 'vitest'
import type { Outcome } from '../../src/engine/outcome.ts'
import { knowsShop, onWrites, operation, type Shop, shop, shopOrder } from '../support/shop.ts'
import { failure, within } from '../support/within.ts'
import {
  type Answer,
  answer,
  broken,
  commitThenDrop,
  day,
  hangs,
  later,
  order,
  origin,
  problem,
  type Tab,
  type World,
  world,
} from '../support/world.ts'

interface Scene extends World {
  readonly server: Shop
  readonly only: Tab
  readonly key: string
}

/** One intent in doubt: the shop got it or not, and no answer came; the next try has an hour. */
async function inDoubt(committed: boolean, then?: Answer): Promise<Scene> {
  const w = world()
  const server = shop(w.clock)
  w.network.script(committed ? commitThenWait(server) : waitAnHour)
  const only = w.tab(knowsShop)
  const { key } = await within(w.clock, 10, only.fetch('orders', shopOrder('checkout:1')).stored)
  w.network.script(then ?? server.answer)
  return { ...w, server, only, key }
}

/** Says nothing about what happened, and when to come back. */
const waitAnHour = answer(503, { 'retry-after': '3600' })

function commitThenWait(server: Shop): Answer {
  return async (call, request) => {
    await server.answer(call, request)
    return waitAnHour(call, request)
  }
}

function end({ clock, only }: Pick<Scene, 'clock' | 'only'>, ms = 120_000): Promise<Outcome> {
  return within(clock, ms, only.fetch.intents.wait('checkout:1', { waitMs: ms }))
}

function voids({ network }: World): number {
  return network.calls.filter(({ method }) => method === 'DELETE').length
}

describe('P44, F19: cancelling an intent in doubt voids its key', () => {
  it('P44: voided means that it never happened: cancelled, and a late copy is refused', async () => {
    const scene = await inDoubt(false)
    expect(await scene.only.fetch.intents.cancel('checkout:1', 'changed my mind')).toMatchObject({
      state: 'cancelling',
    })
    expect((await end(scene)).state).toBe('cancelled')
    expect(scene.network.calls.at(-1)).toMatchObject({
      method: 'DELETE',
      url: `${origin}/keys/${operation}/${scene.key}`,
    })
    // The request that sat in a proxy arrives now.
    const [late] = scene.network.writes()
    const { age, body, headers } = late!
    const copy = new Request(`${origin}/orders`, { method: 'POST', body, headers })
    const refused = await scene.server.answer(late!, copy)
    expect(refused.status).toBe(409)
    expect(await refused.json()).toMatchObject({ code: 'idempotency_voided' })
    expect(scene.server.total()).toBe(0)
    expect(age).toBe('0')
  })

  it('P44: executed after all: succeeded, with the stored answer', async () => {
    const scene = await inDoubt(true)
    await scene.only.fetch.intents.cancel('checkout:1')
    const outcome = await end(scene)
    expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ id: scene.key })
    expect(scene.server.total()).toBe(1)
    expect(scene.network.writes()).toHaveLength(1)
  })

  it('P44: refused after all: rejected, with the stored refusal', async () => {
    const w = world()
    const server = shop(w.clock)
    server.take('refuses')
    w.network.script(commitThenWait(server), server.answer)
    const only = w.tab(knowsShop)
    await within(w.clock, 10, only.fetch('orders', shopOrder('checkout:1')).stored)
    await only.fetch.intents.cancel('checkout:1')
    const outcome = await end({ ...w, only })
    expect(outcome.state === 'rejected' && outcome.response.status).toBe(422)
    expect(server.total()).toBe(0)
  })

  it('P44, H33: accepted after all is processing, not succeeded; what the work comes to decides', async () => {
    for (const status of [201, 422]) {
      const w = world()
      const server = shop(w.clock)
      server.take('as_task')
      w.network.script(commitThenWait(server), server.answer)
      const only = w.tab(knowsShop)
      const { key } = await within(w.clock, 10, only.fetch('orders', shopOrder('checkout:1')).stored)
      await only.fetch.intents.cancel('checkout:1')
      await w.clock.advance(10_000)
      expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('processing')
      await server.finish(key, status)
      expect((await end({ ...w, only })).state).toBe(status === 201 ? 'succeeded' : 'rejected')
      expect(server.total()).toBe(status === 201 ? 1 : 0)
      expect(w.network.writes()).toHaveLength(1)
    }
  })

  it('P44, H34: cancelling what is processing asks for a void; a task that goes on is never called cancelled', async () => {
    const w = world()
    const server = shop(w.clock)
    server.take('as_task')
    w.network.script(server.answer)
    const only = w.tab(knowsShop)
    const { key } = await within(w.clock, 5000, only.fetch('orders', shopOrder('checkout:1')).stored)
    expect((await only.fetch.intents.cancel('checkout:1')).state).toBe('cancelling')
    await w.clock.advance(5000)
    expect(voids(w)).toBe(1)
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('processing')
    await server.finish(key)
    expect((await end({ ...w, only })).state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })

  it('P44, B115: in progress is asked again until the rival has ended, and the rival decides', async () => {
    const scene = await inDoubt(true)
    scene.network.script(
      problem(409, 'idempotency_in_progress', { 'retry-after': '5' }),
      problem(409, 'idempotency_in_progress'),
      scene.server.answer,
    )
    await scene.only.fetch.intents.cancel('checkout:1')
    expect((await end(scene)).state).toBe('succeeded')
    expect(voids(scene)).toBe(3)
    const [first, second] = scene.network.calls.filter(({ method }) => method === 'DELETE')
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(5000)
  })

  it('P44: a void that is lost, fails or meets a foreign page is repeated until it is answered', async () => {
    const scene = await inDoubt(false)
    const portal = answer(200, { 'content-type': 'text/html' }, '<h1>Pay for Wi-Fi</h1>')
    scene.network.script(broken(), answer(503), portal, answer(404), answer(429), scene.server.answer)
    await scene.only.fetch.intents.cancel('checkout:1')
    expect((await end(scene, 600_000)).state).toBe('cancelled')
    expect(voids(scene)).toBe(6)
    expect(scene.network.writes()).toHaveLength(1)
  })

  it('P44, B75, F18: a stored 500 is unknown', async () => {
    const scene = await inDoubt(true)
    scene.network.script(() =>
      Response.json({ id: 'k', status: 'unknown', response: { status: 500, headers: {}, body: '' } }),
    )
    await scene.only.fetch.intents.cancel('checkout:1')
    expect(await end(scene)).toMatchObject({ state: 'unknown' })
  })

  it('P44, H1, P57: expired is unknown, never cancelled: the order may exist', async () => {
    const scene = await inDoubt(true, problem(409, 'idempotency_expired'))
    await scene.only.fetch.intents.cancel('checkout:1')
    expect(await end(scene)).toMatchObject({ state: 'unknown', because: 'expired_in_doubt' })
    expect(scene.server.total()).toBe(1)
  })

  it('P44, P35: no void is sent once the window is over: it could be a lie', async () => {
    const scene = await inDoubt(true)
    scene.network.script(broken())
    await scene.only.fetch.intents.cancel('checkout:1')
    await scene.clock.advance(2 * day)
    expect(await scene.only.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'unknown',
      detail: 'void_window_over',
    })
    const last = scene.network.calls.at(-1)!
    expect(last.at - scene.network.calls[0]!.at).toBeLessThan(day - 300_000 - 30_000)
    expect(await failure(scene.clock, 0, scene.only.fetch.intents.cancel('checkout:1'))).toMatchObject({
      code: 'not_possible',
      state: 'unknown',
    })
  })

  it('P44, P57: every void tells its age', async () => {
    const scene = await inDoubt(false)
    await scene.clock.advance(90_000)
    await scene.only.fetch.intents.cancel('checkout:1')
    await end(scene)
    expect(scene.network.calls.at(-1)).toMatchObject({ method: 'DELETE', age: '91' })
  })

  it('P44: a server that does not know how to void leaves the intent unknown, saying so', async () => {
    const scene = await inDoubt(false, answer(405))
    await scene.only.fetch.intents.cancel('checkout:1')
    expect(await end(scene)).toMatchObject({ state: 'unknown', because: 'void_not_offered' })
    expect(voids(scene)).toBe(1)
  })

  it('P44: where no void is offered, cancelling in doubt is refused and changes nothing', async () => {
    const w = world()
    w.network.script(waitAnHour)
    const only = w.tab()
    await within(w.clock, 10, only.fetch('orders', order('checkout:1')).stored)
    expect(await failure(w.clock, 0, only.fetch.intents.cancel('checkout:1'))).toMatchObject({
      code: 'not_possible',
      state: 'waiting',
      intentId: 'checkout:1',
    })
    expect((await only.fetch.intents.get('checkout:1'))?.actions).toEqual([])
  })

  it('P19: what was surely not executed is cancelled at once, without a question to the server', async () => {
    const w = world()
    const server = shop(w.clock)
    w.network.script(answer(429, { 'retry-after': '60' }))
    const only = w.tab(knowsShop)
    const write = only.fetch('orders', shopOrder('checkout:1'))
    await within(w.clock, 10, write.stored)
    expect((await only.fetch.intents.cancel('checkout:1')).state).toBe('cancelled')
    expect(await failure(w.clock, 0, write)).toMatchObject({ code: 'cancelled', intentId: 'checkout:1' })
    await w.clock.advance(600_000)
    expect(w.network.calls).toHaveLength(1)
    expect(server.total()).toBe(0)
  })
})

describe('P44: cancelling and the world around it', () => {
  it('H35: cancelling is stored first: another page repeats the void and never sends again', async () => {
    const scene = await inDoubt(false)
    scene.network.script(hangs())
    await scene.only.fetch.intents.cancel('checkout:1')
    await scene.clock.advance(1000)
    expect(voids(scene)).toBe(1)
    scene.only.kill()
    scene.network.script(scene.server.answer)
    const other = scene.tab(knowsShop)
    expect((await end({ ...scene, only: other })).state).toBe('cancelled')
    expect(scene.network.writes()).toHaveLength(1)
    expect(scene.server.total()).toBe(0)
  })

  it('H35: a tab that had the intent before it was cancelled elsewhere does not send', async () => {
    const scene = await inDoubt(false)
    const other = scene.tab(knowsShop)
    await within(scene.clock, 0, other.fetch.ready)
    scene.network.script(onWrites(commitThenDrop(scene.server), broken()))
    await scene.only.fetch.intents.cancel('checkout:1')
    await scene.clock.advance(2 * 3600_000)
    expect(scene.network.writes()).toHaveLength(1)
    scene.network.script(scene.server.answer)
    expect((await end({ ...scene, only: other })).state).toBe('cancelled')
  })

  it('P48, F19: cancelled while the attempt is under way: the late answer counts, whichever comes first', async () => {
    for (const [answerMs, voidMs] of [
      [2000, 5000],
      [5000, 2000],
    ] as const) {
      const w = world()
      const server = shop(w.clock)
      // The server works at once, the answers take their time.
      const slowly =
        (ms: number): Answer =>
        async (call, request) => {
          const response = await server.answer(call, request)
          return later(w.clock, ms, () => response)(call, request)
        }
      w.network.script(onWrites(slowly(answerMs), slowly(voidMs)))
      const only = w.tab(knowsShop)
      const write = only.fetch('orders', shopOrder('checkout:1'))
      await within(w.clock, 100, write.stored)
      expect((await only.fetch.intents.cancel('checkout:1')).state).toBe('cancelling')
      const outcome = await within(w.clock, 10_000, write.outcome())
      expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ id: outcome.key })
      expect(server.total()).toBe(1)
      expect(w.network.writes()).toHaveLength(1)
    }
  })

  it('P48, F19: cancelled while the attempt is under way, and the void is first at the server: the attempt is refused', async () => {
    const w = world()
    const server = shop(w.clock)
    w.network.script(onWrites(later(w.clock, 5000, server.answer), server.answer))
    const only = w.tab(knowsShop)
    const write = only.fetch('orders', shopOrder('checkout:1'))
    await within(w.clock, 100, write.stored)
    await only.fetch.intents.cancel('checkout:1')
    expect((await within(w.clock, 1000, write.outcome())).state).toBe('cancelled')
    await w.clock.advance(10_000)
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('cancelled')
    expect(server.total()).toBe(0)
  })

  it('P45: cancelling twice hastens the void and is no second one; both are recorded', async () => {
    const scene = await inDoubt(false, answer(503, { 'retry-after': '30' }))
    await scene.only.fetch.intents.cancel('checkout:1', 'first')
    await scene.clock.advance(1000)
    scene.network.script(scene.server.answer)
    await scene.only.fetch.intents.cancel('checkout:1', 'second')
    expect((await end(scene, 1000)).state).toBe('cancelled')
    expect(voids(scene)).toBe(2)
    expect((await scene.only.fetch.intents.get('checkout:1'))?.actions.map(({ note }) => note)).toEqual([
      'first',
      'second',
    ])
  })

  it('P47: a holder that slept past its lease sends no void either, and reads again', async () => {
    const scene = await inDoubt(false)
    scene.network.script((call, request) => scene.server.answer(call, request))
    // It falls asleep between marking the void and sending it.
    const sleepy = scene.tab({
      ...knowsShop,
      autoStart: false,
      wrapStore: (store) => ({
        ...store,
        async update(change, expected, blobs) {
          const row = await store.update(change, expected, blobs)
          if (change.state === 'cancelling' && change.token !== null) sleepy.freeze()
          return row
        },
      }),
    })
    scene.only.kill()
    await sleepy.fetch.intents.cancel('checkout:1')
    await scene.clock.advance(1000)
    expect(voids(scene)).toBe(0)
    const other = scene.tab(knowsShop)
    expect((await end({ ...scene, only: other })).state).toBe('cancelled')
    expect(voids(scene)).toBe(1)
    await scene.clock.advance(3 * day)
    sleepy.thaw()
    await scene.clock.advance(60_000)
    expect(voids(scene)).toBe(1)
    expect((await within(scene.clock, 0, sleepy.fetch.intents.get('checkout:1')))?.state).toBe('cancelled')
  })
})

describe('what a void is for decides what "voided" means', () => {
  it('P36: after sendBefore in doubt, the key is voided: cancelled because of the time', async () => {
    const w = world()
    const server = shop(w.clock)
    w.network.script(onWrites(broken(), server.answer))
    const only = w.tab(knowsShop)
    const write = only.fetch('orders', { ...shopOrder('checkout:1'), sendBefore: w.clock.now() + 60_000 })
    await within(w.clock, 5000, write.stored)
    await w.clock.advance(120_000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'cancelled',
      detail: 'send_before_passed',
    })
    expect(server.total()).toBe(0)
  })

  it('section 6, H61: a refusal without proof, in doubt: voided means rejected with this refusal', async () => {
    const w = world()
    const server = shop(w.clock)
    const gateway = answer(403, { 'content-type': 'application/json' }, '{"error":"forbidden"}')
    w.network.script(broken(), onWrites(gateway, server.answer))
    const only = w.tab(knowsShop)
    const outcome = await within(w.clock, 60_000, only.fetch('orders', shopOrder('checkout:1')).outcome())
    expect(outcome.state === 'rejected' && (await outcome.response.json())).toEqual({ error: 'forbidden' })
    expect(server.total()).toBe(0)
    expect(voids(w)).toBe(1)
  })

  it('section 6, H25: the same refusal after a commit: succeeded with the stored answer, never rejected', async () => {
    const w = world()
    const server = shop(w.clock)
    w.network.script(commitThenDrop(server), onWrites(answer(403), server.answer))
    const only = w.tab(knowsShop)
    const outcome = await within(w.clock, 60_000, only.fetch('orders', shopOrder('checkout:1')).outcome())
    expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ id: outcome.key })
    expect(server.total()).toBe(1)
  })

  it('section 6, P27: the same refusal, and the void says expired: unknown, and the refusal is no answer of it', async () => {
    const w = world()
    w.network.script(
      broken(),
      onWrites(answer(403, { 'content-type': 'text/plain' }, 'no'), problem(409, 'idempotency_expired')),
    )
    const only = w.tab(knowsShop)
    const outcome = await within(w.clock, 60_000, only.fetch('orders', shopOrder('checkout:1')).outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'expired_in_doubt' })
    expect((await only.fetch.intents.get('checkout:1'))?.answer).toBeNull()
    const key = { client: origin, scope: 'anonymous', key: outcome.key }
    expect(await only.store.blob(key, 'answer')).toBeUndefined()
  })

  it('P34: skipping a lane’s head in doubt voids it first, and the next one goes only then', async () => {
    const w = world()
    const server = shop(w.clock)
    w.network.script(waitAnHour)
    const only = w.tab(knowsShop)
    void only.fetch('orders', { ...shopOrder('a', { n: 1 }), lane: 'orders' })
    void only.fetch('orders', { ...shopOrder('b', { n: 2 }), lane: 'orders' })
    await w.clock.advance(1000)
    w.network.script(onWrites(server.answer, later(w.clock, 5000, server.answer)))
    expect(await only.fetch.lanes.skip('a')).toEqual({ order: 'kept' })
    await w.clock.advance(4000)
    expect(w.network.writes()).toHaveLength(1)
    await w.clock.advance(60_000)
    expect((await only.fetch.intents.get('a'))?.state).toBe('cancelled')
    expect((await only.fetch.intents.get('b'))?.state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })
})
