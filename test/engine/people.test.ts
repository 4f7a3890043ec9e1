import { describe, expect, it } from 'vitest'
import type { IntentView } from '../../src/engine/view.ts'
import type { IntentStore, RowChange } from '../../src/ports.ts'
import { knowsShop, onWrites, type Shop, shop, shopOrder } from '../support/shop.ts'
import { failure, within } from '../support/within.ts'
import {
  type Answer,
  answer,
  created,
  day,
  hangs,
  honestServer,
  order,
  origin,
  problem,
  type Tab,
  type TabOptions,
  type World,
  world,
} from '../support/world.ts'

interface Scene extends World {
  readonly server: Shop
  readonly only: Tab
  readonly key: string
}

const waitAnHour = answer(503, { 'retry-after': '3600' })

/** One intent in doubt whose next try has an hour; the shop got it or not. */
async function inDoubt(committed: boolean, options: TabOptions = knowsShop): Promise<Scene> {
  const w = world()
  const server = shop(w.clock)
  w.network.script(async (call, request) => {
    if (committed) await server.answer(call, request)
    return waitAnHour(call, request)
  }, server.answer)
  const only = w.tab(options)
  const init = options === knowsShop ? shopOrder('checkout:1') : order('checkout:1')
  const { key } = await within(w.clock, 10, only.fetch('orders', init).stored)
  return { ...w, server, only, key }
}

async function viewIn({ clock, only }: Pick<Scene, 'clock' | 'only'>, ms = 10_000): Promise<IntentView | undefined> {
  await clock.advance(ms)
  return only.fetch.intents.get('checkout:1')
}

/** The first request, which sat in a proxy, arrives. */
function lateCopy({ network, server }: Scene): Promise<Response> {
  const [first] = network.writes()
  const { url, body, headers } = first!
  return Promise.resolve(server.answer(first!, new Request(url, { method: 'POST', body, headers })))
}

describe('P45: every action of a person is recorded with its time and note', () => {
  it('P45: check, retry, cancel, resolve, abandon, skip and resume; none deletes history', async () => {
    const w = world()
    w.network.script(waitAnHour)
    const only = w.tab()
    const lane = { lane: 'orders' }
    for (const id of ['a', 'b', 'c']) void only.fetch('orders', { ...order(id, { id }), ...lane })
    await w.clock.advance(10)
    const { intents, lanes } = only.fetch
    await intents.check('a', 'looked it up')
    await w.clock.advance(1000)
    await intents.retry('a', 'once more')
    await w.clock.advance(1000)
    await intents.abandon('a', 'gave up')
    await w.clock.advance(1000)
    await lanes.resume('orders', 'go on')
    await w.clock.advance(1000)
    await intents.resolve('a', 'succeeded', 'found in the shop’s list')

    const a = await intents.get('a')
    expect(a?.actions.map(({ action, note }) => [action, note])).toEqual([
      ['check', 'looked it up'],
      ['retry', 'once more'],
      ['abandon', 'gave up'],
      ['resume', 'go on'],
      ['resolve', 'found in the shop’s list'],
    ])
    expect(a?.actions.map(({ at }) => at - w.clock.now())).toEqual([-4000, -3000, -2000, -1000, 0])
    expect(a?.history.filter(({ event }) => event === 'ambiguous')).toHaveLength(2)

    await intents.cancel('c', 'never mind')
    expect((await intents.get('c'))?.actions).toEqual([{ at: w.clock.now(), action: 'cancel', note: 'never mind' }])
    await lanes.skip('b', 'stuck')
    expect((await intents.get('b'))?.actions).toEqual([{ at: w.clock.now(), action: 'skip', note: 'stuck' }])
  })

  it('P45: what a state does not allow is refused with what helps, and leaves no trace', async () => {
    const w = world()
    w.network.script(created())
    const only = w.tab()
    await within(w.clock, 1000, only.fetch('orders', order('checkout:1')))
    const { intents } = only.fetch
    const before = await intents.get('checkout:1')
    const refused = [
      () => intents.retry('checkout:1'),
      () => intents.cancel('checkout:1'),
      () => intents.resolve('checkout:1', 'succeeded'),
      () => intents.resolve('checkout:1', 'did_not_happen'),
      () => intents.abandon('checkout:1'),
      () => intents.abandon('checkout:1', 'really', { force: true }),
    ]
    for (const action of refused)
      expect(await failure(w.clock, 0, action())).toMatchObject({
        code: 'not_possible',
        state: 'succeeded',
        intentId: 'checkout:1',
        key: before?.key,
      })
    expect(await intents.check('checkout:1')).toEqual(before)
    expect(await failure(w.clock, 0, intents.cancel('checkout:2'))).toMatchObject({ code: 'not_possible' })
    expect(w.network.calls).toHaveLength(1)
  })

  it('P45: while an attempt is under way a person may cancel it; all else waits for its end', async () => {
    const w = world()
    w.network.script(hangs())
    const only = w.tab(knowsShop)
    await within(w.clock, 10, only.fetch('orders', shopOrder('checkout:1')).stored)
    const { intents } = only.fetch
    const refused = [
      () => intents.retry('checkout:1'),
      () => intents.resolve('checkout:1', 'did_not_happen'),
      () => intents.resolve('checkout:1', 'succeeded'),
      () => intents.abandon('checkout:1', '', { force: true }),
    ]
    for (const action of refused)
      expect(await failure(w.clock, 0, action())).toMatchObject({ code: 'not_possible', state: 'sending' })
    expect((await intents.check('checkout:1')).state).toBe('sending')
    expect((await intents.cancel('checkout:1')).state).toBe('cancelling')
    expect(w.network.writes()).toHaveLength(1)
  })

  it('P45, P47: an action that meets another writer is judged anew, and is neither lost nor taken twice', async () => {
    const scene = await inDoubt(false, {})
    // Between this person's look and the write, another tab's person acts.
    const other = scene.tab()
    await within(scene.clock, 0, other.fetch.ready)
    let meddled = false
    const meddling = (store: IntentStore): IntentStore => ({
      ...store,
      async update(change: RowChange, expected, blobs) {
        if (!meddled) {
          meddled = true
          await other.fetch.intents.check('checkout:1', 'theirs')
        }
        return store.update(change, expected, blobs)
      },
    })
    const mine = scene.tab({ wrapStore: meddling })
    const view = await within(scene.clock, 0, mine.fetch.intents.abandon('checkout:1', 'mine'))
    expect(meddled).toBe(true)
    expect(view.state).toBe('abandoned')
    expect(view.actions.map(({ note }) => note)).toEqual(['theirs', 'mine'])
  })

  it('P45: two people who act at once: both are recorded, and one of them decided', async () => {
    const scene = await inDoubt(false, {})
    const other = scene.tab()
    await within(scene.clock, 0, other.fetch.ready)
    const [one, two] = await Promise.allSettled([
      scene.only.fetch.intents.resolve('checkout:1', 'succeeded', 'found it'),
      other.fetch.intents.abandon('checkout:1', 'not found'),
    ])
    const view = await scene.only.fetch.intents.get('checkout:1')
    const taken = [one, two].filter(({ status }) => status === 'fulfilled').length
    expect(view?.actions).toHaveLength(taken)
    expect(view?.state).toBe('succeeded')
  })
})

describe('P45: check', () => {
  it('P45: what is processing is asked about at once, instead of when the server said; recorded as a check', async () => {
    const w = world()
    const server = shop(w.clock, { retryAfterSeconds: 3600 })
    server.take('as_task')
    w.network.script(server.answer)
    const only = w.tab(knowsShop)
    const { key } = await within(w.clock, 100, only.fetch('orders', shopOrder('checkout:1')).stored)
    await server.finish(key)
    expect(w.network.calls).toHaveLength(1)
    const view = await within(w.clock, 100, only.fetch.intents.check('checkout:1', 'customer on the phone'))
    expect(view).toMatchObject({ state: 'succeeded', actions: [{ action: 'check', note: 'customer on the phone' }] })
    expect(w.network.writes()).toHaveLength(1)
  })

  it('P44, P45: a void that waits for its next try is repeated at once, and stays what it was for', async () => {
    const scene = await inDoubt(false)
    scene.network.script(answer(503, { 'retry-after': '3600' }), scene.server.answer)
    await scene.only.fetch.intents.cancel('checkout:1')
    await scene.clock.advance(1000)
    const view = await within(scene.clock, 100, scene.only.fetch.intents.check('checkout:1'))
    expect(view).toMatchObject({ state: 'cancelled', detail: 'voided' })
  })

  it('P45: what nothing can be asked about is told as it stands, and nothing is sent for it', async () => {
    const scene = await inDoubt(true, {})
    const view = await within(scene.clock, 100, scene.only.fetch.intents.check('checkout:1', 'no luck'))
    expect(view).toMatchObject({ state: 'waiting', inDoubt: true, actions: [{ action: 'check', note: 'no luck' }] })
    expect(scene.network.calls).toHaveLength(1)
  })
})

describe('P45: retry', () => {
  it('P29, B102: surely nothing happened and the attempts are used up: blocked, until a person retries', async () => {
    const { clock, network, tab } = world()
    network.script(answer(429))
    const only = tab({ retry: { attempts: 2 } })
    await within(clock, 60_000, only.fetch('orders', order('checkout:1')).stored)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', detail: 'attempts' })
    await clock.advance(3600_000)
    expect(network.writes()).toHaveLength(2)
    const server = honestServer()
    network.script(server.answer)
    await only.fetch.intents.retry('checkout:1')
    expect((await within(clock, 60_000, only.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    expect(server.total()).toBe(1)
  })

  it('P32, P45: a person does not have to wait out what the server asked of the machine', async () => {
    const scene = await inDoubt(true)
    await scene.only.fetch.intents.retry('checkout:1')
    expect((await viewIn(scene, 1000))?.state).toBe('succeeded')
    expect(scene.network.writes()).toHaveLength(2)
    expect(scene.server.total()).toBe(1)
  })
})

describe('P45, H31: resolve', () => {
  it('P45: "it succeeded" is believed; what is sent stops', async () => {
    const scene = await inDoubt(true)
    expect(await scene.only.fetch.intents.resolve('checkout:1', 'succeeded', 'on the bank statement')).toMatchObject({
      state: 'succeeded',
      detail: 'person',
    })
    await scene.clock.advance(2 * 3600_000)
    expect(scene.network.calls).toHaveLength(1)
    // Told to whoever submits again; nobody has its answer.
    const again = await within(scene.clock, 0, scene.only.fetch('orders', shopOrder('checkout:1')))
    expect(again.status).toBe(200)
    expect(await failure(scene.clock, 0, again.json())).toMatchObject({ code: 'body_not_stored' })
  })

  it('H31: "it did not happen" voids first: a late copy is refused', async () => {
    const scene = await inDoubt(false)
    await scene.only.fetch.intents.resolve('checkout:1', 'did_not_happen', 'not in the list')
    expect((await viewIn(scene))?.state).toBe('cancelled')
    expect((await lateCopy(scene)).status).toBe(409)
    expect(scene.server.total()).toBe(0)
  })

  it('H31: "it did not happen" was wrong: the void finds the order: succeeded', async () => {
    const scene = await inDoubt(true)
    await scene.only.fetch.intents.resolve('checkout:1', 'did_not_happen')
    expect((await viewIn(scene))?.state).toBe('succeeded')
    expect(scene.server.total()).toBe(1)
  })

  it('P45: where it cannot be voided, "it did not happen" counts as abandoned: the id stays taken, later proof counts', async () => {
    for (const kind of ['no void offered', 'void refused', 'window over'] as const) {
      const scene = await inDoubt(true, kind === 'no void offered' ? {} : knowsShop)
      if (kind === 'void refused') scene.network.script(answer(405))
      if (kind === 'window over') {
        scene.network.script(waitAnHour)
        scene.clock.jump(2 * day)
        await scene.clock.advance(120_000)
      }
      await scene.only.fetch.intents.resolve('checkout:1', 'did_not_happen')
      expect(await viewIn(scene), kind).toMatchObject({ state: 'abandoned', detail: 'may_still_happen' })
      const init = kind === 'no void offered' ? order('checkout:1') : shopOrder('checkout:1')
      const again = scene.only.fetch('orders', init)
      expect(await failure(scene.clock, 1000, again)).toMatchObject({ code: 'abandoned', mayStillHappen: true })
      expect(scene.network.writes(), kind).toHaveLength(1)
    }
  })

  it('P45: "it did not happen" while a cancellation is asked for: where the void fails, it counts as abandoned', async () => {
    const scene = await inDoubt(false)
    scene.network.script(answer(503))
    await scene.only.fetch.intents.cancel('checkout:1')
    await scene.clock.advance(1000)
    expect(await scene.only.fetch.intents.resolve('checkout:1', 'did_not_happen')).toMatchObject({
      state: 'cancelling',
      detail: 'resolve',
    })
    expect(await viewIn(scene, 2 * day)).toMatchObject({ state: 'abandoned', detail: 'may_still_happen' })
  })
})

describe('P45, H30: abandon', () => {
  it('P45: voids first where it can: "cannot happen", and the id takes a new key after that', async () => {
    const scene = await inDoubt(false)
    await scene.only.fetch.intents.abandon('checkout:1', 'customer left')
    expect((await viewIn(scene))?.state).toBe('cancelled')
    expect((await lateCopy(scene)).status).toBe(409)
    const edited = scene.only.fetch('orders', shopOrder('checkout:1', { item: 'coffee' }))
    expect((await within(scene.clock, 1000, edited)).status).toBe(201)
    expect(scene.server.effects.get(scene.key)).toBeUndefined()
    expect(scene.server.total()).toBe(1)
  })

  it('H30: where it may still happen, only force frees the id; the first attempt’s late order is told, under its key', async () => {
    const scene = await inDoubt(false, {})
    expect(await scene.only.fetch.intents.abandon('checkout:1', 'customer left')).toMatchObject({
      state: 'abandoned',
      detail: 'may_still_happen',
    })
    const again = scene.only.fetch('orders', order('checkout:1'))
    expect(await failure(scene.clock, 0, again)).toMatchObject({ code: 'abandoned', mayStillHappen: true })
    const edited = scene.only.fetch('orders', order('checkout:1', { item: 'coffee' }))
    expect(await failure(scene.clock, 0, edited)).toMatchObject({ code: 'intent_mismatch', state: 'abandoned' })
    expect(await failure(scene.clock, 0, scene.only.fetch.intents.forget('checkout:1'))).toMatchObject({
      code: 'not_possible',
    })
    expect(scene.network.writes()).toHaveLength(1)

    expect(await scene.only.fetch.intents.abandon('checkout:1', 'takes the risk', { force: true })).toMatchObject({
      state: 'abandoned',
      detail: 'freed',
    })
    const fresh = scene.only.fetch('orders', order('checkout:1'))
    const { key, possibleDuplicates } = await within(scene.clock, 1000, fresh.stored)
    expect(key).not.toBe(scene.key)
    expect((await fresh).status).toBe(201)
    expect(possibleDuplicates).toEqual([])
    const { intents } = await scene.only.fetch.intents.list({ id: 'checkout:1' })
    expect(intents.map((view) => [view.key, view.state, view.current])).toEqual([
      [scene.key, 'abandoned', false],
      [key, 'succeeded', true],
    ])
  })

  it('P10, H30: another name with the content of an abandoned one is reported as a possible duplicate', async () => {
    const scene = await inDoubt(false, {})
    await scene.only.fetch.intents.abandon('checkout:1')
    const fresh = scene.only.fetch('orders', order('checkout:2'))
    expect((await within(scene.clock, 1000, fresh.stored)).possibleDuplicates).toEqual([
      { intentId: 'checkout:1', key: scene.key },
    ])
  })

  it('P45: a person who cannot wait for the void forces it: it may still happen, and says so', async () => {
    const scene = await inDoubt(false)
    scene.network.script(onWrites(created(), answer(503)))
    await scene.only.fetch.intents.cancel('checkout:1')
    await scene.clock.advance(5000)
    expect(await scene.only.fetch.intents.abandon('checkout:1', 'no patience', { force: true })).toMatchObject({
      state: 'abandoned',
      detail: 'freed',
    })
    const asked = scene.network.calls.length
    await scene.clock.advance(3600_000)
    expect(scene.network.calls).toHaveLength(asked)
  })

  it('P27, P42: what an earlier answer proved cannot be abandoned: it is succeeded', async () => {
    const { clock, network, tab } = world()
    const cutOff: Answer = (call, request) => {
      const whole = created()(call, request) as Response
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{"id"')),
        pull: (controller) => controller.error(new TypeError('cut')),
      })
      return new Response(body, { status: 201, headers: whole.headers })
    }
    network.script(cutOff, waitAnHour)
    const only = tab()
    await within(clock, 60_000, only.fetch('orders', order('checkout:1')).stored)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'waiting', inDoubt: true })
    expect((await only.fetch.intents.abandon('checkout:1')).state).toBe('succeeded')
  })
})

describe('H38: forget, and what comes late', () => {
  it('H38: a stale holder’s answer for the old key settles nothing of the new intent', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    const stale: Tab = tab()
    network.script(
      (call, request) => {
        stale.freeze()
        return server.answer(call, request)
      },
      problem(409, 'idempotency_voided'),
    )
    void stale.fetch('orders', order('checkout:1'))
    await clock.advance(10)
    const other = tab()
    await clock.advance(60_000)
    expect((await other.fetch.intents.get('checkout:1'))?.state).toBe('cancelled')
    await other.fetch.intents.forget('checkout:1')
    network.script(hangs())
    const { key } = await within(clock, 100, other.fetch('orders', order('checkout:1', { item: 'coffee' })).stored)
    stale.thaw()
    await clock.advance(1000)
    const view = await other.fetch.intents.get('checkout:1')
    expect(view).toMatchObject({ key, state: 'sending' })
    expect(await other.store.list(origin, { limit: 10 })).toHaveLength(1)
  })

  it('P8: forgetting frees the id for a new key, and only once it is settled', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(server.answer)
    const only = tab()
    await within(clock, 1000, only.fetch('orders', order('checkout:1')))
    await only.fetch.intents.forget('checkout:1')
    expect(await only.fetch.intents.get('checkout:1')).toBeUndefined()
    await within(clock, 1000, only.fetch('orders', order('checkout:1')))
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
    network.script(answer(503))
    await within(clock, 1000, only.fetch('orders', order('checkout:2', { n: 2 })).stored)
    expect(await failure(clock, 0, only.fetch.intents.forget('checkout:2'))).toMatchObject({ code: 'not_possible' })
  })
})
