/** The app's own limit on sending (P36, H29, B85). */
import { describe, expect, it } from 'vitest'
import { answer, broken, created, day, order, type TabOptions, world } from '../support/world.ts'

const minute = 60_000
const hour = 60 * minute
const withKeys: TabOptions = { operations: { 'orders.create': { match: ({ url }) => url.pathname === '/orders' } } }

describe('P36: sendBefore', () => {
  it('P36, B85: not in doubt when the time comes: cancelled, reported, and never sent again', async () => {
    const { clock, network, tab, pass } = world()
    network.script(answer(429, { 'retry-after': '7200' }))
    const only = tab()
    const write = only.fetch('orders', { ...order('checkout:1'), sendBefore: clock.now() + hour, waitMs: 2 * hour })
    await write.stored
    await pass(hour - 1000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'waiting' })
    // Not when the wait is over that the server asked for, but when the app's patience is.
    await pass(2000)
    await expect(write).rejects.toMatchObject({ code: 'cancelled', intentId: 'checkout:1' })
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'cancelled',
      detail: 'send_before_passed',
      inDoubt: false,
    })
    await pass(hour)
    expect(network.writes()).toHaveLength(1)
  })

  it('B85: stored offline and stale when the network is back: not sent, reported', async () => {
    const { clock, network, tab, pass } = world()
    network.script(created())
    const before = tab()
    before.setOnline(false)
    await before.fetch('orders', { ...order('checkout:1'), sendBefore: new Date(clock.now() + 2 * day) }).stored
    before.kill()
    clock.jump(3 * day)
    const after = tab()
    await pass(minute)
    expect(await after.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'cancelled',
      detail: 'send_before_passed',
    })
    expect((await after.fetch.intents.list({ inbox: true })).intents).toHaveLength(1)
    expect(network.calls).toHaveLength(0)
  })

  it('H29: in doubt where the server voids: voided, and so cancelled for certain, twenty hours before a late retry', async () => {
    const { clock, network, tab, pass } = world()
    network.script(broken())
    const only = tab({ ...withKeys, retry: { attempts: 1000 } })
    await only.fetch('orders', { ...order('checkout:1'), sendBefore: clock.now() + 10 * minute }).stored
    await pass(10 * minute - 1)
    const sent = network.writes().length
    network.script(() => Response.json({ id: 'k', status: 'voided' }))
    await pass(2 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'cancelled',
      detail: 'send_before_passed',
    })
    expect(network.writes()).toHaveLength(sent)
    expect(network.calls.at(-1)?.method).toBe('DELETE')
    await pass(hour)
    expect(network.writes()).toHaveLength(sent)
  })

  it('H29: in doubt where the server does not void: unknown, and never sent again by itself', async () => {
    const { clock, network, tab, pass } = world()
    network.script(broken())
    const only = tab({ retry: { attempts: 1000 } })
    const limit = clock.now() + 10 * minute
    await only.fetch('orders', { ...order('checkout:1'), sendBefore: limit }).stored
    await pass(hour)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({
      state: 'unknown',
      detail: 'send_before_passed',
      inDoubt: true,
    })
    expect(network.writes().every(({ at }) => at < limit)).toBe(true)
  })

  it('P36: the void finds that it was executed: succeeded, with the stored answer', async () => {
    const { clock, network, tab, pass } = world()
    network.script(broken())
    const only = tab({ ...withKeys, retry: { baseMs: hour, capMs: hour } })
    await only.fetch('orders', { ...order('checkout:1'), sendBefore: clock.now() + minute }).stored
    await pass(0)
    network.script(() =>
      Response.json({ id: 'k', status: 'succeeded', response: { status: 201, headers: {}, body: '{"id":9}' } }),
    )
    await pass(3 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect(await only.fetch('orders', order('checkout:1')).json()).toEqual({ id: 9 })
  })

  it('P36: blocked on credentials or used-up attempts, it ends at its time too', async () => {
    for (const status of [401, 429]) {
      const { clock, network, tab, pass } = world()
      network.script(answer(status))
      const only = tab({ retry: { attempts: 1 } })
      await only.fetch('orders', { ...order('checkout:1'), sendBefore: clock.now() + 10 * minute }).stored
      await pass(minute)
      expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked' })
      await pass(10 * minute)
      expect(await only.fetch.intents.get('checkout:1')).toMatchObject({
        state: 'cancelled',
        detail: 'send_before_passed',
      })
    }
  })

  it('P36: a time that is over already sends nothing', async () => {
    const { clock, network, tab, pass } = world()
    const only = tab()
    const write = only.fetch('orders', { ...order('checkout:1'), sendBefore: clock.now() - 1 })
    await pass(1000)
    expect((await write.outcome()).state).toBe('cancelled')
    expect(network.calls).toHaveLength(0)
  })

  it('P36: behind others in a lane, it is not sent when its turn comes too late', async () => {
    const { clock, network, tab, pass } = world()
    network.script(broken())
    const only = tab({ retry: { baseMs: 10 * minute, capMs: 10 * minute } })
    await only.fetch('steps', { ...order('first'), lane: 'l' }).stored
    await only.fetch('steps', { ...order('second', { n: 2 }), lane: 'l', sendBefore: clock.now() + minute }).stored
    await pass(2 * minute)
    network.script(created())
    await pass(hour)
    expect(await only.fetch.intents.get('first')).toMatchObject({ state: 'succeeded' })
    expect(await only.fetch.intents.get('second')).toMatchObject({ state: 'cancelled', detail: 'send_before_passed' })
    expect(network.writes().every(({ body }) => !body.includes('"n":2'))).toBe(true)
  })
})
