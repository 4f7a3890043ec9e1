/** Waiting ends; the intent does not (P36, B64, H63). */
import { describe, expect, it } from 'vitest'
import { answer, broken, created, day, hangs, honestServer, later, order, world } from '../support/world.ts'

const minute = 60_000

describe('P36: waitMs', () => {
  it('P36: after 30 seconds by default the caller is told what is known, and the intent goes on', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(hangs(), server.answer)
    const only = tab({ attemptTimeoutMs: 40_000 })
    const write = only.fetch('orders', order('checkout:1'))
    const { key } = await write.stored
    let settled = false
    void write.catch(() => {
      settled = true
    })
    await pass(29_999)
    expect(settled).toBe(false)
    await pass(1)
    await expect(write).rejects.toMatchObject({
      code: 'still_open',
      state: 'sending',
      inDoubt: true,
      intentId: 'checkout:1',
      key,
    })
    await pass(2 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', key })
    expect(server.total()).toBe(1)
  })

  it('B64: a deadline of 5 seconds over attempts of one: told by 5, not failed, and it goes on', async () => {
    const { clock, network, tab, pass } = world()
    network.script(hangs())
    const only = tab({ attemptTimeoutMs: 1000 })
    const write = only.fetch('orders', { ...order('checkout:1'), waitMs: 5000 })
    const start = clock.now()
    let toldAt = 0
    void write.outcome().then((outcome) => {
      expect(['waiting', 'sending']).toContain(outcome.state)
      toldAt = clock.now()
    })
    await pass(6000)
    expect(toldAt - start).toBe(5000)
    const before = network.writes().length
    expect(before).toBeGreaterThan(1)
    await pass(minute)
    expect(network.writes().length).toBeGreaterThan(before)
    network.script(created())
    await pass(2 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
  })

  it('P36: what nothing was executed of says so', async () => {
    const { network, tab, pass } = world()
    network.script(answer(429, { 'retry-after': '600' }))
    const write = tab().fetch('orders', { ...order('checkout:1'), waitMs: 1000 })
    await pass(2000)
    await expect(write).rejects.toMatchObject({ code: 'still_open', state: 'waiting', inDoubt: false })
    await expect(write).rejects.toThrow(/nothing was executed/)
  })

  it('P36: waitMs 0 stores, and does not wait', async () => {
    const { network, tab, pass } = world()
    network.script(hangs())
    const only = tab()
    const write = only.fetch('orders', { ...order('checkout:1'), waitMs: 0 })
    await pass(1)
    await expect(write).rejects.toMatchObject({ code: 'still_open' })
    expect(await only.fetch.intents.get('checkout:1')).toBeDefined()
  })

  it('P36, P6: submitting the same id again waits for the same intent: one request, one outcome, own copies', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(later(clock, 10_000, server.answer))
    const only = tab()
    const first = only.fetch('orders', { ...order('checkout:1'), waitMs: 1000 })
    await pass(5000)
    await expect(first).rejects.toMatchObject({ code: 'still_open' })
    const second = only.fetch('orders', order('checkout:1'))
    const third = only.fetch('orders', order('checkout:1'))
    await pass(10_000)
    expect(await (await second).json()).toEqual(await (await third).json())
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })
})

describe('P36: abort', () => {
  it('P36: stops only the waiting, says what is known with the key, and leaves an intent that goes on and can be awaited', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(later(clock, 5000, server.answer))
    const only = tab()
    const abort = new AbortController()
    const write = only.fetch('orders', { ...order('checkout:1'), signal: abort.signal })
    const { key } = await write.stored
    await pass(1000)
    abort.abort(new Error('the user left'))
    await pass(0)
    await expect(write).rejects.toMatchObject({ name: 'AbortError', intentId: 'checkout:1', key })
    await expect(write).rejects.toThrow(/may have been executed/)
    expect(network.writes()[0]?.signal.aborted).toBe(false)
    const again = only.fetch('orders', order('checkout:1'))
    await pass(10_000)
    expect((await again).status).toBe(201)
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('P36: aborted before anything was stored: nothing is stored, nothing sent, and the error says so', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const write = only.fetch('orders', { ...order('checkout:1'), signal: AbortSignal.abort() })
    await pass(1000)
    await expect(write).rejects.toMatchObject({ name: 'AbortError', intentId: 'checkout:1' })
    await expect(write).rejects.toThrow(/nothing was sent/)
    expect(network.calls).toHaveLength(0)
    expect(await only.fetch.intents.get('checkout:1')).toBeUndefined()
    // The id is free: the user comes back and means it.
    const again = only.fetch('orders', order('checkout:1'))
    await pass(1000)
    expect((await again).status).toBe(201)
  })

  it('P36: two callers of one intent: one aborts, the other still gets the answer', async () => {
    const { clock, network, tab, pass } = world()
    network.script(later(clock, 3000, created({ id: 9 })))
    const only = tab()
    const abort = new AbortController()
    const leaving = only.fetch('orders', { ...order('checkout:1'), signal: abort.signal })
    const staying = only.fetch('orders', order('checkout:1'))
    await pass(1000)
    abort.abort()
    await pass(5000)
    await expect(leaving).rejects.toMatchObject({ name: 'AbortError' })
    expect(await staying.json()).toEqual({ id: 9 })
    expect(network.writes()).toHaveLength(1)
  })

  it('P36: wait() can be aborted and asked again, also by the page after a reload', async () => {
    const { clock, network, tab, pass } = world()
    network.script(hangs(), later(clock, 5000, created({ id: 9 })))
    const first = tab()
    await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()
    const second = tab({ visibleDeath: true })
    await pass(1000)
    const abort = new AbortController()
    const waiting = second.fetch.intents.wait('checkout:1', { signal: abort.signal })
    void waiting.catch(() => {})
    await pass(1000)
    abort.abort()
    await pass(0)
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError', intentId: 'checkout:1' })
    const again = second.fetch.intents.wait('checkout:1')
    await pass(minute)
    expect((await again).state).toBe('succeeded')
  })
})

describe('H63: nobody waits', () => {
  it('H63: a write that nobody awaits and that ends badly is no unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const listen = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', listen)
    try {
      const { network, tab, pass } = world()
      network.script(broken())
      const only = tab({ retry: { attempts: 1 } })
      void only.fetch('orders', order('unknown'))
      void only.fetch('orders', { ...order('aborted', { n: 2 }), signal: AbortSignal.abort() })
      void only.fetch('orders', { ...order('impossible', { n: 3 }), waitMs: -1 })
      void only.fetch('orders', order('unknown', { other: true }))
      await pass(day / 24)
      expect(await only.fetch.intents.get('unknown')).toMatchObject({ state: 'unknown' })
    } finally {
      process.off('unhandledRejection', listen)
    }
    expect(unhandled).toEqual([])
  })
})
