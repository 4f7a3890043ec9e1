import { describe, expect, it } from 'vitest'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { knowsShop, shop, shopOrder } from '../support/shop.ts'
import { failure, within } from '../support/within.ts'
import {
  type Answer,
  answer,
  broken,
  commitThenDrop,
  day,
  hangs,
  honestServer,
  order,
  problem,
  type Tab,
  type World,
  world,
} from '../support/world.ts'

/** A few attempts only, so that the budget is soon spent. */
const impatient = { retry: { attempts: 3 } } as const

/** Days go by in which anything could wake it. */
async function daysGoBy({ clock }: World, tab: Tab): Promise<void> {
  for (let days = 0; days < 3; days++) {
    clock.jump(day)
    tab.setOnline(true)
    tab.fetch.authChanged()
    await clock.advance(3600_000)
  }
}

describe('P42: unknown is a state', () => {
  it('B100, B102, P29: the answer is lost on every attempt: unknown, told, listed, kept over restarts, and never sent again by itself', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = honestServer()
    network.script(commitThenDrop(server))
    const before = tab(impatient)
    const write = before.fetch('orders', order('checkout:1'))
    const outcome = await within(clock, 30_000, write.outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'attempts_spent' })
    expect(await failure(clock, 0, write)).toMatchObject({
      code: 'outcome_unknown',
      because: 'attempts_spent',
      intentId: 'checkout:1',
      key: outcome.key,
    })
    expect(before.notes).toContainEqual(
      expect.objectContaining({
        type: 'state',
        to: 'unknown',
        intentId: 'checkout:1',
        key: outcome.key,
        inDoubt: true,
      }),
    )
    await daysGoBy(w, before)
    before.kill()

    const after = tab(impatient)
    await daysGoBy(w, after)
    expect(network.writes()).toHaveLength(3)
    const { intents } = await after.fetch.intents.list({ inbox: true })
    expect(intents).toEqual([expect.objectContaining({ id: 'checkout:1', state: 'unknown', detail: 'attempts_spent' })])
    expect(intents[0]?.history.at(-1)).toMatchObject({ event: 'ambiguous', attempt: 3, detail: 'TypeError' })
    // Taking note of it is not settling it.
    expect((await after.fetch.intents.acknowledge('checkout:1')).acknowledgedAt).toBeNull()
    expect(await failure(clock, 0, after.fetch.intents.forget('checkout:1'))).toMatchObject({ code: 'not_possible' })
    expect((await after.fetch.intents.list({ inbox: true })).intents).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('B102, P5, P9: a person arms it again after a restart: same key, same bytes, one effect', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(commitThenDrop(server))
    const before = tab(impatient)
    await within(clock, 30_000, before.fetch('orders', order('checkout:1', { n: 1.5, text: 'ünï' })).outcome())
    before.kill()
    network.script(server.answer)
    const after = tab(impatient)
    await after.fetch.intents.retry('checkout:1', 'customer asks')
    const outcome = await within(clock, 60_000, after.fetch.intents.wait('checkout:1'))
    expect(outcome.state).toBe('succeeded')
    expect(new Set(network.writes().map(({ key }) => key))).toEqual(new Set([outcome.key]))
    expect(new Set(network.writes().map(({ body }) => body)).size).toBe(1)
    expect(server.total()).toBe(1)
  })

  it('P5, P7: submitting it again sends nothing and mints nothing: the caller learns that it is unknown', async () => {
    const { clock, network, tab } = world()
    network.script(commitThenDrop(honestServer()))
    const only = tab(impatient)
    await within(clock, 30_000, only.fetch('orders', order('checkout:1')).outcome())
    const again = only.fetch('orders', order('checkout:1'))
    expect(await failure(clock, 30_000, again)).toMatchObject({ code: 'outcome_unknown' })
    const edited = only.fetch('orders', order('checkout:1', { item: 'coffee' }))
    expect(await failure(clock, 30_000, edited)).toMatchObject({ code: 'intent_mismatch', state: 'unknown' })
    const forced = only.fetch('orders', { ...order('checkout:1'), again: true })
    expect(await failure(clock, 30_000, forced)).toMatchObject({ code: 'outcome_unknown' })
    expect(network.writes()).toHaveLength(3)
  })

  it('P42, P48: later proof is recorded and announced, and sends nothing', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    // The holder freezes over its attempt; for a server that does not de-duplicate, who finds it can only say unknown.
    const sleeper: Tab = tab({ dialect: none })
    network.script((call, request) => {
      sleeper.freeze()
      return server.answer(call, request)
    })
    void sleeper.fetch('orders', order('checkout:1'))
    await clock.advance(100)
    const other = tab({ dialect: none })
    await clock.advance(120_000)
    expect((await other.fetch.intents.get('checkout:1'))?.state).toBe('unknown')
    sleeper.thaw()
    await clock.advance(5000)
    expect((await other.fetch.intents.get('checkout:1'))?.state).toBe('succeeded')
    expect(sleeper.notes).toContainEqual(expect.objectContaining({ from: 'unknown', to: 'succeeded' }))
    await clock.advance(3600_000)
    expect(network.calls).toHaveLength(1)
  })

  it('F13, P35: the window ends in doubt: unknown; what is offered then is check, resolve and abandon, not retry', async () => {
    const w = world()
    const { clock, network, tab } = w
    const server = shop(clock)
    network.script(commitThenDrop(server))
    const only = tab(knowsShop)
    await within(clock, 1000, only.fetch('orders', shopOrder('checkout:1')).stored)
    only.setOnline(false)
    clock.jump(day)
    await clock.advance(120_000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'window_over' })
    expect(await failure(clock, 0, only.fetch.intents.retry('checkout:1'))).toMatchObject({ code: 'not_possible' })
    only.setOnline(true)
    network.script(server.answer)
    expect((await within(clock, 1000, only.fetch.intents.check('checkout:1'))).state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })

  it('F24, P1: a server that does not de-duplicate: one ambiguous attempt is unknown, and a person’s retry is refused', async () => {
    const { clock, network, tab } = world()
    network.script(broken())
    const only = tab({ dialect: none })
    const outcome = await within(clock, 30_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'server_does_not_deduplicate' })
    expect(await failure(clock, 0, only.fetch.intents.retry('checkout:1'))).toMatchObject({ code: 'not_possible' })
    await clock.advance(3600_000)
    expect(network.writes()).toHaveLength(1)
  })
})

describe('K8: what is easily read wrongly', () => {
  const conflict = problem(422, 'idempotency_key_reused')

  it('B74: 409 in progress after a cut attempt is waited for: succeeded, and "failed" never appears', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    const busy = problem(409, 'idempotency_in_progress', { 'retry-after': '1' })
    network.script(commitThenDrop(server), busy, busy, server.answer)
    const only = tab()
    const outcome = await within(clock, 30_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome.state).toBe('succeeded')
    const states = new Set(only.notes.flatMap((note) => (note.type === 'state' ? [note.to] : [])))
    expect([...states].sort()).toEqual(['queued', 'sending', 'succeeded', 'waiting'])
    expect(server.total()).toBe(1)
  })

  it('B75, F18: a failure, then the same one as a replay: it stops there, and no key is made by itself', async () => {
    const w = world()
    const { clock, network, tab } = w
    network.script(answer(500), answer(500, { 'idempotent-replayed': 'true' }))
    const only = tab()
    const outcome = await within(clock, 30_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'stored_failure' })
    await daysGoBy(w, only)
    expect(network.writes().map(({ key }) => key)).toEqual([outcome.key, outcome.key])
  })

  it('F18, P45: a stored 500 that a person retries is asked once more, and stops again', async () => {
    const { clock, network, tab } = world()
    network.script(answer(500, { 'idempotent-replayed': 'true' }))
    const only = tab()
    await within(clock, 30_000, only.fetch('orders', order('checkout:1')).outcome())
    await only.fetch.intents.retry('checkout:1')
    await clock.advance(3600_000)
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('unknown')
    expect(network.writes()).toHaveLength(2)
  })

  it('B76: 422 of a validation is rejected with its body; 422 of a reused key is a conflict: one attempt each', async () => {
    const { clock, network, tab } = world()
    const invalid: Answer = () => Response.json({ amount: 'too small' }, { status: 422 })
    network.script(invalid, conflict)
    const only = tab({ dialect: ietf({ retentionMs: day }) })
    const rejected = await within(clock, 1000, only.fetch('orders', order('checkout:1')).outcome())
    expect(rejected.state === 'rejected' && (await rejected.response.json())).toEqual({ amount: 'too small' })
    const conflicted = await within(clock, 1000, only.fetch('orders', order('checkout:2', { n: 2 })).outcome())
    expect(conflicted.state).toBe('conflicted')
    expect(only.notes).toContainEqual(expect.objectContaining({ to: 'conflicted', intentId: 'checkout:2' }))
    await clock.advance(3600_000)
    expect(network.writes()).toHaveLength(2)
  })

  it('B76, H22: the same conflict in doubt is unknown: the first attempt may have been executed', async () => {
    const { clock, network, tab } = world()
    network.script(broken(), conflict)
    const only = tab({ dialect: ietf({ retentionMs: day }) })
    const outcome = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'conflict_in_doubt' })
    expect(network.writes()).toHaveLength(2)
  })

  it('B77, H24, H51: a captive portal or a login page is no success: the same key again, later', async () => {
    const portals: Answer[] = [
      answer(200, { 'content-type': 'text/html' }, '<h1>Pay for Wi-Fi</h1>'),
      answer(302, { location: 'https://portal.example.net/' }),
      answer(303, { location: 'https://portal.example.net/' }),
      () => Response.json({ login: true }),
    ]
    for (const portal of portals) {
      const { clock, network, tab } = world()
      const server = honestServer()
      network.script(portal, portal, server.answer)
      const only = tab()
      const outcome = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
      expect(outcome.state).toBe('succeeded')
      expect(new Set(network.writes().map(({ key }) => key))).toEqual(new Set([outcome.key]))
      expect(server.total()).toBe(1)
    }
  })

  it('B78: a resumed intent that meets a 500 is kept and tried again', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(hangs())
    const before = tab()
    void before.fetch('orders', order('checkout:1'))
    await clock.advance(1000)
    before.kill()
    network.script(answer(500), answer(500), server.answer)
    const after = tab()
    const wait = after.fetch.intents.wait('checkout:1', { waitMs: 300_000 })
    expect((await within(clock, 300_000, wait)).state).toBe('succeeded')
    expect(network.writes()).toHaveLength(4)
    expect(server.total()).toBe(1)
  })

  it('F21: a row without a finished answer is waited for, and unknown at the end of the attempts', async () => {
    const { clock, network, tab } = world()
    network.script(problem(500, 'idempotency_inconsistent'))
    const only = tab(impatient)
    const outcome = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'attempts_spent' })
    expect(network.writes()).toHaveLength(3)
  })
})
