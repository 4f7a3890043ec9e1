/** Wall clocks jump and devices sleep (P35, H40, H53). */
import { describe, expect, it } from 'vitest'
import type { Note } from '../../src/engine/observer.ts'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import {
  type Answer,
  answer,
  broken,
  commitThenDrop,
  day,
  type HonestServer,
  hangs,
  honestServer,
  order,
  origin,
  type Tab,
  type TabOptions,
  type World,
  world,
} from '../support/world.ts'

const minute = 60_000
const years = 4 * 365 * day
const operations: TabOptions['operations'] = {
  'orders.create': { match: ({ url }) => url.pathname.startsWith('/orders') },
}

/** The true time: the server's, whatever a device believes. Counts on while the device's clock jumps. */
function serverClock(clock: { now(): number; monotonic(): number }): () => string {
  const start = clock.now() - clock.monotonic()
  return () => formatHttpDate(start + clock.monotonic())
}

/** Adds the server's date to an answer. */
function dated(date: () => string, inner: Answer): Answer {
  return async (call, request) => {
    const response = await inner(call, request)
    response.headers.set('date', date())
    return response
  }
}

/** `checkout:1` was executed at the first attempt, whose answer was lost. */
async function lostAnswer(options: TabOptions): Promise<World & { readonly only: Tab; readonly server: HonestServer }> {
  const w = world()
  const server = honestServer()
  w.network.script(commitThenDrop(server), server.answer)
  const only = w.tab(options)
  await only.fetch('orders', order('checkout:1')).stored
  await w.pass(0)
  return { ...w, only, server }
}

describe('P35: the clock steps back', () => {
  it('H40: in doubt with an age that nobody knows, it is not sent: unknown', async () => {
    const { clock, network, only, pass } = await lostAnswer({ retry: { baseMs: 5000, capMs: 5000 } })
    clock.jump(-10 * minute)
    await pass(30 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'age_unknown' })
    expect(network.writes()).toHaveLength(1)
  })

  it('H40, P35: and it stays so when the clock has passed what the record has seen: no person’s retry is sent either', async () => {
    const { clock, network, only, pass } = await lostAnswer({ retry: { baseMs: 5000, capMs: 5000 } })
    clock.jump(-20 * 60 * minute)
    // A little more than a day: the server has forgotten. By its own clock, the device thinks that it is hours.
    await pass(25 * 60 * minute)
    await expect(only.fetch.intents.retry('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
    await pass(minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'age_unknown' })
    expect(network.writes()).toHaveLength(1)
  })

  it('H40, P35: an intent that was unknown already when the clock stepped back is not sent again by it', async () => {
    const { clock, network, only, pass } = await lostAnswer({ retry: { attempts: 1 } })
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'attempts_spent' })
    clock.jump(-20 * 60 * minute)
    await pass(25 * 60 * minute)
    await expect(only.fetch.intents.retry('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
    expect(network.writes()).toHaveLength(1)
  })

  it('H40, P35: nor one that had rested for longer than the clock stepped back by', async () => {
    const { clock, network, only, pass } = await lostAnswer({ retry: { attempts: 1 } })
    await pass(10 * 60 * minute)
    clock.jump(-7 * 60 * minute)
    await pass(15 * 60 * minute)
    await expect(only.fetch.intents.retry('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
    expect(network.writes()).toHaveLength(1)
  })

  it('H40, P35, P50: nor what belongs to somebody who is back only when the clock has caught up', async () => {
    let who = 'bob'
    const { clock, network, only, pass } = await lostAnswer({
      scope: () => who,
      retry: { baseMs: 5000, capMs: 5000 },
    })
    who = 'alice'
    only.fetch.authChanged()
    await pass(minute)
    clock.jump(-10 * 60 * minute)
    await pass(25 * 60 * minute)
    who = 'bob'
    only.fetch.authChanged()
    await pass(5 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'age_unknown' })
    expect(network.writes()).toHaveLength(1)
  })

  it('P35: a store that is slow to list is no clock that stepped back: what was sent meanwhile keeps its age', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(hangs(), server.answer)
    let isSlow = true
    const only = tab({
      attemptTimeoutMs: 10_000,
      wrapStore: (store) => ({
        ...store,
        async list(...args) {
          if (isSlow) await new Promise<void>((resolve) => void clock.timer(20_000, resolve))
          isSlow = false
          return store.list(...args)
        },
      }),
    })
    const write = only.fetch('orders', order('checkout:1'))
    await write.stored
    await pass(5 * minute)
    expect((await write).status).toBe(201)
    expect(server.total()).toBe(1)
  })

  it('P50: what cannot be read is not named to somebody else when the clock steps back', async () => {
    let who = 'bob'
    const { clock, only, pass } = await lostAnswer({ scope: () => who, retry: { attempts: 1 } })
    const [row] = await only.store.list(origin, { scope: 'bob', limit: 1 })
    if (row === undefined) throw new Error('it is not stored')
    await only.store.update({ ...row, data: '{' }, { revision: row.revision, token: row.token })
    who = 'alice'
    only.fetch.authChanged()
    await pass(minute)
    const heard: Note[] = []
    only.fetch.subscribe((note) => heard.push(note))
    clock.jump(-10 * minute)
    await pass(5 * minute)
    expect(heard).toEqual([])
    who = 'bob'
    only.fetch.authChanged()
    await pass(minute)
    expect(heard).toContainEqual(expect.objectContaining({ code: 'record_set_aside', intentId: 'checkout:1' }))
  })

  it('P35: an old date of a gateway does not make an intent younger than it is', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const date = serverClock(clock)
    const stale = date()
    await pass(60 * minute)
    network.script(dated(date, server.answer), commitThenDrop(server), answer(503, { date: stale }))
    const only = tab({ retry: { attempts: 2, baseMs: 5000, capMs: 5000 } })
    await only.fetch('orders', order('warm-up', { n: 0 })).stored
    await pass(0)
    await only.fetch('orders', order('checkout:1')).stored
    await pass(minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'attempts_spent' })
    clock.jump(-20 * 60 * minute)
    // The server has forgotten. By the gateway's date, half an hour would be left.
    await pass(24.5 * 60 * minute)
    await expect(only.fetch.intents.retry('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
    expect(network.writes()).toHaveLength(3)
    expect(server.total()).toBe(2)
  })

  it('P35: a clock that is corrected by a moment costs no intent its age', async () => {
    const { clock, only, pass, server } = await lostAnswer({ retry: { baseMs: 5000, capMs: 5000 } })
    clock.jump(-500)
    await pass(minute)
    expect((await only.fetch('orders', order('checkout:1'))).status).toBe(201)
    expect(server.total()).toBe(1)
  })

  it('H40, P35: where the server can be asked by key, its date gives the age, and the same key goes on', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const date = serverClock(clock)
    network.script(dated(date, server.answer), commitThenDrop(server))
    const only = tab({ operations, retry: { baseMs: 5000, capMs: 5000 } })
    // So that the client has seen the server's date in this run.
    await only.fetch('orders', order('warm-up', { n: 0 })).stored
    await pass(0)
    const { key } = await only.fetch('orders', order('checkout:1')).stored
    await pass(0)
    clock.jump(-10 * minute)
    network.script((call, request) => dated(date, call.method === 'GET' ? answer(404) : server.answer)(call, request))
    await pass(5 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', attempts: 2 })
    const sends = network.writes().filter((call) => call.key === key)
    // True age, by the server's clock: this device's would make it less than nothing.
    expect(Number(sends[1]?.age)).toBeGreaterThanOrEqual(50)
    expect(sends[1]?.since).toBe(sends[0]?.since)
    expect(server.effects.get(key)).toBe(1)
  })

  it('H40: the key was reaped and the clock stepped back: the server’s date tells the true age, and it is not sent', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const date = serverClock(clock)
    network.script(dated(date, server.answer), commitThenDrop(server))
    const first = tab({ operations })
    await first.fetch('orders', order('warm-up', { n: 0 })).stored
    await pass(0)
    const { key } = await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()
    // Two days later; the device's clock says five minutes earlier.
    await pass(2 * day)
    clock.jump(-2 * day - 5 * minute)
    const forgetful = honestServer()
    network.script((call, request) =>
      dated(date, call.method === 'GET' ? answer(404) : forgetful.answer)(call, request),
    )
    const next = tab({ operations })
    await pass(2 * minute)
    expect(await next.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'window_over' })
    await pass(day)
    expect(network.writes().filter((call) => call.key === key)).toHaveLength(1)
    expect(forgetful.total()).toBe(0)
  })

  it('P9, P35: where the age becomes known while a look-up is prepared, what is sent is the whole request', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const date = serverClock(clock)
    const ann = { operations, scope: () => 'ann' }
    network.script(dated(date, server.answer), broken())
    const first = tab(ann)
    await first.fetch('orders', order('warm-up', { n: 0 })).stored
    await pass(0)
    const { key } = await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()
    clock.jump(-10 * minute)
    network.script(dated(date, server.answer))
    // While the credentials for the look-up are awaited, another intent's answer brings the server's date.
    let asked = 0
    const second = tab({
      ...ann,
      auth: () =>
        new Promise((resolve) => clock.timer(asked++ === 0 ? 5000 : 0, () => resolve({ scope: 'ann', headers: {} }))),
    })
    for (let seconds = 0; seconds < 120 && asked === 0; seconds++) await pass(1000)
    await second.fetch('orders', order('another', { n: 1 })).stored
    await pass(minute)
    expect(network.calls.filter(({ method }) => method === 'GET')).toEqual([])
    expect(
      network
        .writes()
        .filter((call) => call.key === key)
        .map(({ body }) => body),
    ).toEqual(Array(2).fill(order('x').body))
    expect(server.effects.get(key)).toBe(1)
  })

  it('P35: not in doubt, it starts afresh: sent with age 0, after what was left of its wait', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(answer(429, { 'retry-after': '600' }), server.answer)
    const first = tab()
    await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()
    clock.jump(-years)
    tab()
    await pass(599_000)
    expect(network.writes()).toHaveLength(1)
    await pass(5000)
    expect(network.writes().map(({ age }) => age)).toEqual(['0', '0'])
    expect(server.total()).toBe(1)
  })

  it('H53: a clock that was in 2030 for a moment does not stop what is not in doubt, in the same run', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(answer(503, { 'retry-after': '1' }), answer(429, { 'retry-after': '60' }))
    const only = tab()
    clock.jump(years)
    await only.fetch('orders', order('checkout:1')).stored
    await pass(0)
    clock.jump(-years)
    network.script(server.answer)
    await pass(5 * minute)
    // In doubt, and no age to be known.
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'age_unknown' })

    clock.jump(years)
    network.script(answer(429, { 'retry-after': '60' }))
    await only.fetch('orders', order('checkout:2', { n: 2 })).stored
    await pass(0)
    clock.jump(-years)
    network.script(server.answer)
    await pass(5 * minute)
    expect(await only.fetch.intents.get('checkout:2')).toMatchObject({ state: 'succeeded' })
    // No clock value outlives its record: new intents are as always.
    await only.fetch('orders', order('checkout:3', { n: 3 })).stored
    await pass(1000)
    expect(await only.fetch.intents.get('checkout:3')).toMatchObject({ state: 'succeeded' })
    expect(server.total()).toBe(2)
  })

  it('H53, P49: a tab that died in 2030 holds nothing until 2030: its lease is over when this clock says so', async () => {
    const { clock, network, tab, pass } = world()
    network.script(hangs())
    clock.jump(years)
    const first = tab()
    await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()
    clock.jump(-years)
    const next = tab()
    await pass(10 * minute)
    expect(await next.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'age_unknown' })
    expect(network.writes()).toHaveLength(1)
  })

  it('P35: what waits is looked at again in the same run, blocked and processing too', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    let allowed = false
    network.script((call, request) => (allowed ? server.answer(call, request) : answer(401)(call, request)))
    const only = tab()
    clock.jump(years)
    await only.fetch('orders', { ...order('checkout:1'), waitMs: 0 }).stored
    await pass(0)
    clock.jump(-years)
    allowed = true
    await pass(3 * minute)
    expect(server.total()).toBe(1)
  })
})

describe('P35: the clock jumps forward', () => {
  it('P35: asleep past the window, it is not sent, and is unknown although little time was lived', async () => {
    const { clock, network, tab, pass } = world()
    network.script(broken())
    const only = tab()
    await only.fetch('orders', order('checkout:1')).stored
    await pass(0)
    clock.jump(2 * day)
    await pass(2 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'window_over' })
    expect(network.writes()).toHaveLength(1)
  })

  it('P35: a jump forward never makes an intent that was not handed over unknown', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(answer(429, { 'retry-after': '60' }), server.answer)
    const only = tab()
    await only.fetch('orders', order('checkout:1')).stored
    await pass(0)
    clock.jump(years)
    await pass(3 * minute)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded' })
    expect(network.writes().map(({ age }) => age)).toEqual(['0', '0'])
  })

  it('section 16: `Idempotency-Since` is the first hand-over by the server’s clock, stored, and never refreshed', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const date = serverClock(clock)
    // This device is three hours wrong, and stays so.
    clock.jump(3 * 60 * minute)
    network.script(dated(date, server.answer))
    const first = tab()
    await first.fetch('orders', order('warm-up', { n: 0 })).stored
    await pass(10_000)
    const handedOver = date()
    network.script(broken(), broken(), dated(date, server.answer))
    await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    first.kill()
    await pass(5 * minute)
    tab()
    await pass(5 * minute)
    const sends = network.writes().slice(1)
    expect(sends.map(({ since }) => since)).toEqual([handedOver, handedOver, handedOver])
    expect(sends[0]?.age).toBe('0')
    expect(Number(sends[2]?.age)).toBeGreaterThanOrEqual(300)
  })

  it('section 16: a first answer that brings the first date tells the hand-over too, carried back by its duration', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    const date = serverClock(clock)
    clock.jump(3 * 60 * minute)
    const unavailable: Answer = (call, request) =>
      new Promise((resolve) =>
        clock.timer(7000, () => resolve(dated(date, answer(503))(call, request) as Promise<Response>)),
      )
    network.script(unavailable, broken(), dated(date, server.answer))
    const handedOver = date()
    const only = tab()
    await only.fetch('orders', order('checkout:1')).stored
    await pass(5 * minute)
    expect(network.writes().map(({ since }) => since)).toEqual([null, handedOver, handedOver])
    expect(server.total()).toBe(1)
  })
})
