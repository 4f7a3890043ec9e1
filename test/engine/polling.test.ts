import { describe, expect, it } from 'vitest'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import { knowsShop, shop, shopOrder } from '../support/shop.ts'
import { within } from '../support/within.ts'
import {
  type Answer,
  answer,
  broken,
  type Call,
  day,
  honestServer,
  order,
  origin,
  problem,
  world,
} from '../support/world.ts'

/** 202 from behind the key, with these headers. */
function accepts(headers: Record<string, string> = {}, body: unknown = {}): Answer {
  return (call) =>
    Response.json(body, {
      status: 202,
      headers: { 'idempotency-expires': formatHttpDate(call.at + day), ...headers },
    })
}

/** What a monitor of section 16 says. */
function monitor(status: string, members: Record<string, unknown> = {}, headers: Record<string, string> = {}): Answer {
  return () => Response.json({ id: 'job-7', status, ...members }, { headers })
}

const done = monitor('succeeded', { response: { status: 201, headers: {}, body: '{"id":9}' } })

function polls(calls: readonly Call[]): Call[] {
  return calls.filter(({ method }) => method === 'GET')
}

function gaps(calls: readonly Call[]): number[] {
  return calls.slice(1).map(({ at }, index) => at - calls[index]!.at)
}

describe('P37: the monitor is stored and polled', () => {
  it('P37, B90, F9: after a reload the first request asks the stored monitor, and there is never another POST', async () => {
    const { clock, network, tab } = world()
    const server = shop(clock)
    server.take('as_task')
    network.script(server.answer)
    const before = tab(knowsShop)
    const { key } = await within(clock, 5000, before.fetch('orders', shopOrder('checkout:1')).stored)
    before.kill()
    const seen = network.calls.length

    const after = tab(knowsShop)
    await clock.advance(60_000)
    expect(network.calls[seen]).toMatchObject({ method: 'GET', url: `${origin}/keys/orders.create/${key}` })
    await server.finish(key)
    const outcome = await within(clock, 60_000, after.fetch.intents.wait('checkout:1'))
    expect(outcome).toMatchObject({ state: 'succeeded', key })
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('P37, B90: a relative address is resolved against the answer, and kept absolute', async () => {
    const { clock, network, tab } = world()
    network.script(accepts({ location: '../jobs/7' }), monitor('processing'))
    const before = tab()
    await within(clock, 3000, before.fetch('v2/orders', order('checkout:1')).stored)
    before.kill()
    network.script(done)
    const after = tab()
    await within(clock, 60_000, after.fetch.intents.wait('checkout:1'))
    expect(new Set(polls(network.calls).map(({ url }) => url))).toEqual(new Set([`${origin}/jobs/7`]))
    expect(network.writes()).toHaveLength(1)
  })

  it('P37: a 202 without an address is asked for by key', async () => {
    const { clock, network, tab } = world()
    network.script(accepts(), monitor('processing'), done)
    const only = tab(knowsShop)
    const outcome = await within(clock, 60_000, only.fetch('orders', shopOrder('checkout:1')).outcome())
    expect(outcome.state).toBe('succeeded')
    expect(polls(network.calls)[0]?.url).toBe(`${origin}/keys/orders.create/${outcome.key}`)
    expect(network.writes()).toHaveLength(1)
  })

  it('section 6: a 202 without any way to ask is asked for with the same key, at the pace of asking', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(accepts(), accepts(), server.answer)
    const only = tab()
    const outcome = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome.state).toBe('succeeded')
    expect(new Set(network.writes().map(({ key }) => key))).toEqual(new Set([outcome.key]))
    expect(only.notes).toContainEqual(expect.objectContaining({ type: 'warning', code: 'monitor_unreadable' }))
  })

  it('section 6, F24: a 202 without any way to ask, of a server that does not de-duplicate, is unknown', async () => {
    const { clock, network, tab } = world()
    network.script(answer(202))
    const only = tab({ dialect: none })
    const outcome = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'server_does_not_deduplicate' })
    expect(network.writes()).toHaveLength(1)
  })
})

describe('P38: what a monitor says is told apart', () => {
  it('P38, F9, F10, H32: taken over and tried again by the server: processing all along, one POST, one effect', async () => {
    const { clock, network, tab } = world()
    const server = shop(clock)
    server.take('as_task')
    network.script(server.answer)
    const only = tab(knowsShop)
    const write = only.fetch('orders', shopOrder('checkout:1'))
    const { key } = await within(clock, 5000, write.stored)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'processing', detail: 'running' })

    await server.tell(key, 'failed_retryable')
    await clock.advance(10_000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'processing', detail: 'retrying' })

    await server.tell(key, 'processing')
    await clock.advance(10_000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'processing', detail: 'running' })

    await server.finish(key)
    expect(await within(clock, 10_000, write.outcome())).toMatchObject({ state: 'succeeded', key })
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('P38: failed for good is rejected, with the answer that the work came to', async () => {
    const { clock, network, tab } = world()
    const server = shop(clock)
    server.take('as_task')
    network.script(server.answer)
    const only = tab(knowsShop)
    const write = only.fetch('orders', shopOrder('checkout:1'))
    const { key } = await within(clock, 3000, write.stored)
    await server.finish(key, 422)
    const response = await within(clock, 20_000, write)
    expect(response.status).toBe(422)
    expect(await response.json()).toEqual({ code: 'out_of_stock' })
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('rejected')
    expect(server.total()).toBe(0)
  })

  it('P38, F11: an outcome that the server does not know is unknown here, and a check learns it once the server does', async () => {
    const { clock, network, tab } = world()
    const server = shop(clock)
    server.take('as_task')
    network.script(server.answer)
    const only = tab(knowsShop)
    const write = only.fetch('orders', shopOrder('checkout:1'))
    const { key } = await within(clock, 3000, write.stored)
    await server.tell(key, 'unknown')
    expect(await within(clock, 20_000, write.outcome())).toMatchObject({ state: 'unknown', because: 'server_unknown' })
    const asked = network.calls.length
    await clock.advance(2 * 3600_000)
    expect(network.calls).toHaveLength(asked)

    await server.finish(key)
    const view = await within(clock, 1000, only.fetch.intents.check('checkout:1'))
    expect(view.state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('P38, B89: a failed poll is no failed operation: 504, a reset and a 429 are borne, and the 429 is obeyed', async () => {
    const { clock, network, tab } = world()
    network.script(accepts({ location: '/jobs/7' }), answer(504), broken(), answer(429, { 'retry-after': '20' }), done)
    const only = tab()
    const outcome = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome.state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
    expect(gaps(polls(network.calls))[2]).toBeGreaterThanOrEqual(20_000)
  })

  it('P38, section 16, H37: an answer to another payload settles nothing', async () => {
    const { clock, network, tab } = world()
    const other = { requestDigest: 'ab'.repeat(32), response: { status: 201, headers: {}, body: '{"id":1}' } }
    network.script(accepts({ location: '/jobs/7' }), monitor('succeeded', other))
    const only = tab()
    const outcome = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'other_payload' })
  })

  it('P38, H24: a captive portal that answers the poll is no result, whatever kind of monitor', async () => {
    for (const dialect of [undefined, ietf({ retentionMs: day })]) {
      const { clock, network, tab } = world()
      const portal = answer(200, { 'content-type': 'text/html' }, '<h1>Pay for Wi-Fi</h1>')
      network.script(accepts({ location: '/jobs/7' }), portal)
      const only = tab(dialect && { dialect })
      const wants = { 'content-type': 'application/json', accept: 'application/json' }
      const write = only.fetch('orders', { ...order('checkout:1'), headers: wants })
      await within(clock, 20_000, write.stored)
      expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('processing')
      network.script(dialect === undefined ? done : () => Response.json({ id: 9 }))
      expect((await within(clock, 120_000, only.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
      expect(network.writes()).toHaveLength(1)
    }
  })

  it('P38: the operation’s own word counts for the result that a plain monitor gives', async () => {
    const { clock, network, tab } = world()
    network.script(accepts({ location: '/jobs/7' }), () => Response.json({ portal: true }))
    const only = tab({
      dialect: ietf({ retentionMs: day }),
      operations: {
        orders: { accept: async (response) => response.status === 202 || 'id' in (await response.json()) },
      },
    })
    await within(clock, 20_000, only.fetch('orders', { ...order('checkout:1'), operation: 'orders' }).stored)
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('processing')
    network.script(() => Response.json({ id: 9 }))
    expect((await within(clock, 120_000, only.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
  })

  it('P38: a poll without credentials says nothing; it goes on with new ones', async () => {
    const { clock, network, tab } = world()
    network.script(accepts({ location: '/jobs/7' }), answer(401))
    let token = 'old'
    const only = tab({
      scope: () => 'ann',
      auth: () => ({ scope: 'ann', headers: { authorization: token } }),
    })
    await within(clock, 10_000, only.fetch('orders', order('checkout:1')).stored)
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('processing')
    expect(polls(network.calls)).toHaveLength(1)
    token = 'new'
    network.script(done)
    only.fetch.authChanged()
    expect((await within(clock, 1000, only.fetch.intents.wait('checkout:1'))).state).toBe('succeeded')
    expect(polls(network.calls).at(-1)?.headers.authorization).toBe('new')
    expect(network.writes()).toHaveLength(1)
  })

  it('P38, B88: a monitor that is missing right after the 202 is waited for', async () => {
    const { clock, network, tab } = world()
    network.script(accepts({ location: '/jobs/7' }), answer(404), answer(404), done)
    const only = tab()
    const outcome = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome.state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
  })

  it('P38, B88: a monitor that stays missing proves nothing: the same key again, never a new one', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    let lost = true
    network.script((call, request) => {
      if (call.method === 'GET') return new Response(null, { status: 404 })
      return lost ? accepts({ location: '/jobs/7' })(call, request) : server.answer(call, request)
    })
    const only = tab({ waitMs: 10 * 60_000 })
    const write = only.fetch('orders', order('checkout:1'))
    await clock.advance(25_000)
    expect(network.writes()).toHaveLength(1)
    lost = false
    const outcome = await within(clock, 120_000, write.outcome())
    expect(outcome.state).toBe('succeeded')
    expect(new Set(network.writes().map(({ key }) => key))).toEqual(new Set([outcome.key]))
    expect(server.total()).toBe(1)
  })

  it('P38, P1: a lost monitor of a server that does not de-duplicate is unknown, and nothing is sent again', async () => {
    const { clock, network, tab } = world()
    network.script(answer(202, { location: '/jobs/7' }), answer(410))
    const only = tab({ dialect: none, waitMs: 10 * 60_000 })
    const outcome = await within(clock, 120_000, only.fetch('orders', order('checkout:1')).outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'monitor_lost' })
    expect(network.writes()).toHaveLength(1)
  })
})

describe('P39: pace and budget of polling', () => {
  it('P39: the pace that the server states is kept, however long it takes', async () => {
    const { clock, network, tab } = world()
    network.script(
      accepts({ location: '/jobs/7', 'retry-after': '5' }),
      monitor('processing', {}, { 'retry-after': '5' }),
    )
    const only = tab()
    await within(clock, 10 * 60_000, only.fetch('orders', order('checkout:1')).stored)
    const every = gaps(network.calls)
    expect(Math.min(...every)).toBeGreaterThanOrEqual(5000)
    expect(Math.max(...every)).toBeLessThanOrEqual(6000)
  })

  it('P39: the pace may stand in the body, where a page cannot read the header', async () => {
    const { clock, network, tab } = world()
    network.script(accepts({ location: '/jobs/7' }), monitor('processing', { retryAfter: 7 }))
    const only = tab()
    await within(clock, 10 * 60_000, only.fetch('orders', order('checkout:1')).stored)
    const every = gaps(polls(network.calls))
    expect(Math.min(...every)).toBeGreaterThanOrEqual(7000)
    expect(Math.max(...every)).toBeLessThanOrEqual(8000)
  })

  for (const [how, says] of Object.entries({
    'as 200 without a pace': monitor('processing'),
    'as 200 with Retry-After: 0': monitor('processing', {}, { 'retry-after': '0' }),
    'as 409': problem(409, 'idempotency_in_progress'),
    'as 409 with Retry-After: 0': problem(409, 'idempotency_in_progress', { 'retry-after': '0' }),
    'as junk': answer(200, { 'content-type': 'text/html' }, '<p>hello'),
  })) {
    it(`P39, B92: "still running" ${how} keeps a minimum interval`, async () => {
      const { clock, network, tab } = world()
      network.script(accepts({ location: '/jobs/7' }), says)
      const only = tab()
      await within(clock, 60_000, only.fetch('orders', order('checkout:1')).stored)
      const every = gaps(polls(network.calls))
      expect(every.length).toBeGreaterThan(2)
      expect(every.length).toBeLessThan(120)
      expect(Math.min(...every)).toBeGreaterThanOrEqual(500)
      expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('processing')
    })
  }

  it('P39, B89: the budget counts errors in a row: a good poll fills it again', async () => {
    const { clock, network, tab } = world()
    const errors = Array.from({ length: 10 }, () => answer(503))
    network.script(
      accepts({ location: '/jobs/7' }),
      ...errors,
      monitor('processing'),
      ...errors,
      monitor('processing'),
      done,
    )
    const only = tab()
    await within(clock, 3600_000, only.fetch('orders', order('checkout:1')).stored)
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
    expect(polls(network.calls)).toHaveLength(23)
  })

  it('P39: a monitor that fails for ever is given up: the same key is asked instead, and its answer counts', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    let accepting = true
    network.script((call, request) => {
      if (call.method === 'GET') return new Response(null, { status: 500 })
      if (accepting) {
        accepting = false
        return accepts({ location: '/jobs/7' })(call, request)
      }
      return server.answer(call, request)
    })
    const only = tab()
    await within(clock, 3600_000, only.fetch('orders', order('checkout:1')).stored)
    const view = await only.fetch.intents.get('checkout:1')
    expect(view?.state).toBe('succeeded')
    expect(polls(network.calls)).toHaveLength(11)
    expect(network.writes().map(({ key }) => key)).toEqual([view?.key, view?.key])
    expect(server.total()).toBe(1)
  })

  it('P39: polling ends at the time until which the result is kept', async () => {
    for (const [dialect, end] of [
      [ietf({ retentionMs: day, marker: 'idempotency-expires' }), 'succeeded'],
      [{ ...none, monitor: 'document' as const }, 'unknown'],
    ] as const) {
      const { clock, network, tab } = world()
      const server = honestServer()
      const resultExpiresAt = new Date(clock.now() + 60_000).toISOString()
      let first = true
      network.script((call, request) => {
        if (call.method === 'GET') return monitor('processing', { resultExpiresAt })(call, request)
        if (!first) return server.answer(call, request)
        first = false
        return accepts({ location: '/jobs/7' })(call, request)
      })
      const only = tab({ dialect: { ...dialect, monitor: 'document' } })
      await within(clock, 3600_000, only.fetch('orders', order('checkout:1')).stored)
      expect((await only.fetch.intents.get('checkout:1'))?.state).toBe(end)
      const last = polls(network.calls).at(-1)?.at ?? 0
      expect(last).toBeLessThan(Date.parse(resultExpiresAt))
      expect(server.total()).toBe(end === 'succeeded' ? 1 : 0)
    }
  })

  it('P32, P39: due times on disk are whole milliseconds, as databases keep them', async () => {
    const { clock, network, tab } = world()
    network.script(accepts({ location: '/jobs/7', 'retry-after': '5' }), monitor('processing', { retryAfter: 3 }))
    const only = tab()
    await within(clock, 7000, only.fetch('orders', order('checkout:1')).stored)
    const row = await only.store.current(origin, 'anonymous', 'checkout:1')
    expect(Number.isInteger(row?.dueAt)).toBe(true)
  })
})
