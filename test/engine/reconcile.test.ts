import { describe, expect, it } from 'vitest'
import type { OperationOptions, Reconciliation } from '../../src/engine/options.ts'
import type { IntentView } from '../../src/engine/view.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { onWrites, operation, type Shop, shop, shopOrder } from '../support/shop.ts'
import { failure, within } from '../support/within.ts'
import { type Answer, answer, day, later, problem, type Tab, type World, world } from '../support/world.ts'

interface Scene extends World {
  readonly server: Shop
  readonly only: Tab
  readonly key: string
  /** What the app was asked with. */
  readonly asked: IntentView[]
}

interface Setting {
  /** The shop got the first attempt; its answer never came. */
  readonly committed: boolean
  readonly says: Reconciliation | (() => Reconciliation | Promise<Reconciliation>)
  /** Look-up and void by key are offered. Default is true. */
  readonly byKey?: boolean
  /** It has used up its attempts, so that only a person moves it. Default is false. */
  readonly unknown?: boolean
}

/** One intent in doubt, whose next try has an hour, and an app that can ask by business identity. */
async function inDoubt({ committed, says, byKey = true, unknown = false }: Setting): Promise<Scene> {
  const w = world()
  const server = shop(w.clock)
  const asked: IntentView[] = []
  const reconcile: OperationOptions['reconcile'] = async (intent) => {
    asked.push(intent)
    return typeof says === 'function' ? says() : says
  }
  w.network.script(async (call, request) => {
    if (committed) await server.answer(call, request)
    return answer(503, { 'retry-after': '3600' })(call, request)
  }, server.answer)
  const only = w.tab({
    operations: { [operation]: { reconcile } },
    dialect: { ...samekey, byKey },
    ...(unknown && { retry: { attempts: 1 } }),
  })
  const { key } = await within(w.clock, 10, only.fetch('orders', shopOrder('checkout:1')).stored)
  return { ...w, server, only, key, asked }
}

function check({ clock, only }: Scene): Promise<IntentView> {
  return within(clock, 1000, only.fetch.intents.check('checkout:1'))
}

async function viewIn({ clock, only }: Scene, ms = 60_000): Promise<IntentView | undefined> {
  await clock.advance(ms)
  return only.fetch.intents.get('checkout:1')
}

function methods({ network }: Scene): string[] {
  return network.calls.map(({ method }) => method)
}

const absent: Reconciliation = { found: false }

describe('P43: found', () => {
  it('P43: found under another identity: the key is voided besides, then succeeded with what the app found', async () => {
    const says = (): Reconciliation => ({ found: true, response: Response.json({ order: 77 }, { status: 200 }) })
    const scene = await inDoubt({ committed: false, says })
    await check(scene)
    const outcome = await within(scene.clock, 10_000, scene.only.fetch.intents.wait('checkout:1'))
    expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ order: 77 })
    expect(await scene.only.fetch.intents.get('checkout:1')).toMatchObject({ detail: 'reconcile' })
    expect(methods(scene)).toEqual(['POST', 'GET', 'DELETE'])
    // The first attempt arrives late: it makes no second order.
    const [late] = scene.network.writes()
    const { body, headers } = late!
    await scene.server.answer(late!, new Request(late!.url, { method: 'POST', body, headers }))
    expect(scene.server.total()).toBe(0)
  })

  it('P43, B101: the server knows the key: its answer settles, and the app is not asked', async () => {
    const scene = await inDoubt({ committed: true, says: absent })
    expect((await check(scene)).state).toBe('succeeded')
    expect(scene.asked).toEqual([])
    expect(methods(scene)).toEqual(['POST', 'GET'])
    expect(scene.server.total()).toBe(1)
  })

  it('P43: found by this very key: succeeded without a void', async () => {
    const says = (): Reconciliation => ({ found: true, byKey: true, response: Response.json({ order: 5 }) })
    const scene = await inDoubt({ committed: true, says, byKey: false })
    expect(await check(scene)).toMatchObject({ state: 'succeeded', detail: 'answer' })
    expect(methods(scene)).toEqual(['POST'])
    const outcome = await within(scene.clock, 0, scene.only.fetch.intents.wait('checkout:1'))
    expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ order: 5 })
  })

  it('P43: found, and no void is offered: succeeded all the same, and nothing is sent again', async () => {
    const scene = await inDoubt({ committed: true, says: { found: true }, byKey: false })
    expect(await check(scene)).toMatchObject({ state: 'succeeded', detail: 'reconcile' })
    expect((await viewIn(scene, day))?.state).toBe('succeeded')
    expect(methods(scene)).toEqual(['POST'])
    const outcome = await within(scene.clock, 0, scene.only.fetch.intents.wait('checkout:1'))
    if (outcome.state !== 'succeeded') throw new Error(outcome.state)
    expect(await failure(scene.clock, 0, outcome.response.json())).toMatchObject({ code: 'body_not_stored' })
  })

  it('P43: found, but the void cannot be had in time: found is found', async () => {
    const scene = await inDoubt({ committed: false, says: { found: true } })
    scene.network.script(answer(503))
    await check(scene)
    expect((await scene.only.fetch.intents.get('checkout:1'))?.detail).toBe('found')
    expect(await viewIn(scene, 2 * day)).toMatchObject({ state: 'succeeded', detail: 'reconcile' })
    expect(scene.network.writes()).toHaveLength(1)
  })

  it('P42, P43: what was abandoned is found after all: recorded and told, and nothing is sent', async () => {
    const scene = await inDoubt({ committed: true, says: { found: true }, byKey: false })
    await scene.only.fetch.intents.abandon('checkout:1', 'customer called off')
    scene.only.notes.length = 0
    expect(await check(scene)).toMatchObject({ state: 'succeeded', detail: 'reconcile' })
    expect(scene.only.notes).toContainEqual(expect.objectContaining({ from: 'abandoned', to: 'succeeded' }))
    await scene.clock.advance(day)
    expect(methods(scene)).toEqual(['POST'])
  })

  it('P42: what was abandoned and is known by its key is found by a check', async () => {
    const scene = await inDoubt({ committed: true, says: { found: 'undecided' } })
    scene.network.script(answer(405))
    await scene.only.fetch.intents.abandon('checkout:1')
    expect((await viewIn(scene, 5000))?.state).toBe('abandoned')
    scene.network.script(scene.server.answer)
    expect(await check(scene)).toMatchObject({ state: 'succeeded', detail: 'answer' })
    expect(scene.network.writes()).toHaveLength(1)
  })
})

describe('P43: absent proves nothing by itself', () => {
  it('P43: absent settles after a void: cancelled, and nothing can come of it any more', async () => {
    const scene = await inDoubt({ committed: false, says: absent, unknown: true })
    await check(scene)
    expect(await viewIn(scene)).toMatchObject({ state: 'cancelled', detail: 'reconciled_absent' })
    expect(methods(scene)).toEqual(['POST', 'GET', 'DELETE'])
    expect(scene.server.store.rows().map(({ row }) => row.state)).toEqual(['voided'])
  })

  it('P43, H31: absent by mistake: the void finds the order, succeeded', async () => {
    const scene = await inDoubt({ committed: true, says: absent, unknown: true })
    // The look-up is lost, and the app looks in the wrong place.
    scene.network.script(answer(503), scene.server.answer)
    await check(scene)
    expect((await viewIn(scene))?.state).toBe('succeeded')
    expect(scene.server.total()).toBe(1)
  })

  it('P43: absent while it is still tried by itself is no news: a look does not cancel what the app wants', async () => {
    const scene = await inDoubt({ committed: false, says: absent })
    expect(await check(scene)).toMatchObject({ state: 'waiting', inDoubt: true })
    expect((await viewIn(scene, 3700_000))?.state).toBe('succeeded')
    expect(methods(scene)).toEqual(['POST', 'GET', 'POST'])
    expect(scene.server.total()).toBe(1)
  })

  it('P43: absent, and no void is offered: nothing changes, and the same key is asked again', async () => {
    const scene = await inDoubt({ committed: true, says: absent, byKey: false })
    expect(await check(scene)).toMatchObject({ state: 'waiting', inDoubt: true })
    expect((await viewIn(scene, 3700_000))?.state).toBe('succeeded')
    expect(new Set(scene.network.writes().map(({ key }) => key))).toEqual(new Set([scene.key]))
    expect(scene.server.total()).toBe(1)
  })

  it('H36: a look-up says 404 while the first transaction runs: nothing is concluded, the key stays the same', async () => {
    const w = world()
    const server = shop(w.clock)
    // The request hangs in a transaction of ten minutes; the connection is cut after one second.
    w.network.script(
      (call, request) => {
        void later(w.clock, 600_000, server.answer)(call, request)
        return Promise.reject(new TypeError('cut'))
      },
      onWrites(problem(409, 'idempotency_in_progress', { 'retry-after': '60' }), server.answer),
    )
    const only = w.tab({ operations: { [operation]: {} }, waitMs: day })
    const write = only.fetch('orders', shopOrder('checkout:1'))
    const { key } = await within(w.clock, 120_000, write.stored)
    const view = await within(w.clock, 1000, only.fetch.intents.check('checkout:1'))
    expect(w.network.calls.some(({ method }) => method === 'GET')).toBe(true)
    expect(view).toMatchObject({ state: 'waiting', inDoubt: true, key })
    await w.clock.advance(600_000)
    w.network.script(server.answer)
    expect((await within(w.clock, 120_000, write.outcome())).state).toBe('succeeded')
    expect(new Set(w.network.writes().map((call) => call.key))).toEqual(new Set([key]))
    expect(server.total()).toBe(1)
  })

  it('P43, H57: expired and absent while a copy may still be under way is unknown, and stays so where no server date says that the transit has passed', async () => {
    const scene = await inDoubt({ committed: false, says: absent })
    // The server has a short memory, by mistake: it calls the key expired at once.
    scene.network.script(onWrites(answer(503, { 'retry-after': '7200' }), problem(409, 'idempotency_expired')))
    await check(scene)
    expect((await viewIn(scene, 10_000))?.state).toBe('unknown')
    await check(scene)
    expect((await viewIn(scene, 10_000))?.state).toBe('unknown')
    await scene.clock.advance(600_000)
    await check(scene)
    expect((await viewIn(scene, 10_000))?.state).toBe('unknown')
    expect(scene.network.writes()).toHaveLength(1)
  })

  it('P19: what was never handed over is absent of course: that is no reason to cancel it', async () => {
    const w = world()
    const server = shop(w.clock)
    w.network.script(answer(429, { 'retry-after': '60' }), server.answer)
    const only = w.tab({ operations: { [operation]: { reconcile: async () => absent } }, waitMs: 300_000 })
    const write = only.fetch('orders', shopOrder('checkout:1'))
    await within(w.clock, 10, write.stored)
    expect((await within(w.clock, 10, only.fetch.intents.check('checkout:1'))).state).toBe('waiting')
    expect((await within(w.clock, 120_000, write)).status).toBe(201)
    expect(server.total()).toBe(1)
  })

  it('P43: the server says that it is at work on it: what is not to be found yet is no reason to void it', async () => {
    const scene = await inDoubt({ committed: false, says: absent })
    scene.server.take('as_task')
    const [call] = scene.network.writes()
    await scene.server.answer(
      call!,
      new Request(call!.url, { method: 'POST', body: call!.body, headers: call!.headers }),
    )
    expect((await check(scene)).state).toBe('processing')
    expect(scene.asked).toEqual([])
    await scene.server.finish(scene.key)
    expect((await viewIn(scene))?.state).toBe('succeeded')
    expect(methods(scene)).not.toContain('DELETE')
  })
})

describe('P43: undecided, and an app whose code fails', () => {
  it('P43, P28: undecided, an exception or nonsense changes nothing and sends nothing', async () => {
    const failing: Setting['says'][] = [
      { found: 'undecided' },
      () => Promise.reject(new Error('database away')),
      () => {
        throw new Error('bug')
      },
      (() => undefined) as unknown as () => Reconciliation,
      (() => ({})) as unknown as () => Reconciliation,
    ]
    for (const says of failing) {
      const scene = await inDoubt({ committed: false, says, unknown: true })
      scene.network.script(answer(404))
      expect((await check(scene)).state).toBe('unknown')
      expect((await viewIn(scene))?.state).toBe('unknown')
      expect(scene.asked).toHaveLength(1)
      expect(methods(scene)).toEqual(['POST', 'GET'])
    }
  })

  it('P28: an exception is told to the app', async () => {
    const scene = await inDoubt({ committed: false, says: () => Promise.reject(new Error('database away')) })
    await check(scene)
    expect(scene.only.notes).toContainEqual(
      expect.objectContaining({ type: 'warning', code: 'app_code_failed', intentId: 'checkout:1', key: scene.key }),
    )
  })

  it('P43: the app is asked with the intent as it stands: its name, key and time', async () => {
    const scene = await inDoubt({ committed: false, says: { found: 'undecided' } })
    await check(scene)
    expect(scene.asked).toEqual([
      expect.objectContaining({ id: 'checkout:1', key: scene.key, operation, inDoubt: true, handedOver: true }),
    ])
  })

  it('P43, P27: an intent that ended unknown is settled by reconcile as well', async () => {
    const scene = await inDoubt({ committed: true, says: { found: true }, byKey: false })
    const silent: Answer = answer(503)
    scene.network.script(silent)
    expect((await viewIn(scene, 2 * day))?.state).toBe('unknown')
    const sent = scene.network.calls.length
    expect((await check(scene)).state).toBe('succeeded')
    expect(scene.network.calls).toHaveLength(sent)
  })
})
