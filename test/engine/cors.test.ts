import { describe, expect, it } from 'vitest'
import type { WarningNote } from '../../src/engine/observer.ts'
import { knowsShop, shop, shopOrder } from '../support/shop.ts'
import { within } from '../support/within.ts'
import {
  type Answer,
  broken,
  type HonestServer,
  honestServer,
  order,
  origin,
  type Tab,
  type TabOptions,
  world,
} from '../support/world.ts'

/** The page of a shop that asks an API on another origin. */
const page = { replace: { pageOrigin: 'https://shop.example' } } satisfies TabOptions

/** What a browser lets the page read: the safelisted headers and what the server exposes. */
function exposing(names: readonly string[], inner: Answer): Answer {
  const readable = new Set(['cache-control', 'content-language', 'content-length', 'content-type', 'expires', ...names])
  return async (call, request) => {
    const response = await inner(call, request)
    const headers = [...response.headers].filter(([name]) => readable.has(name))
    return new Response(response.body, { status: response.status, headers })
  }
}

function warnings(tab: Tab, code: WarningNote['code']): WarningNote[] {
  return tab.notes.filter((note): note is WarningNote => note.type === 'warning' && note.code === code)
}

describe('P41: a page on another origin may not read what the server does not expose', () => {
  it('P41, H59: two answers without a readable marker stop the sending: unknown, with the reason and the lines', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(exposing([], server.answer))
    const only = tab(page)
    const write = only.fetch('orders', order('checkout:1'))
    const outcome = await within(clock, 60_000, write.outcome())
    expect(outcome).toMatchObject({ state: 'unknown', because: 'markers_unreadable' })
    expect(network.writes()).toHaveLength(2)
    await clock.advance(2 * 24 * 3600_000)
    expect(network.calls).toHaveLength(2)
    expect(server.total()).toBe(1)
    const [told, ...more] = warnings(only, 'markers_unreadable')
    expect(told?.message).toContain('Access-Control-Expose-Headers: Idempotent-Replayed, Idempotency-Expires')
    expect(more).toEqual([])
    await expect(write).rejects.toThrow(/CORS/)
  })

  it('P41: warned once for an operation, not for each intent', async () => {
    const { clock, network, tab } = world()
    network.script(exposing([], honestServer().answer))
    const only = tab(page)
    for (const id of ['checkout:1', 'checkout:2', 'checkout:3']) void only.fetch('orders', order(id, { id }))
    await clock.advance(60_000)
    expect(warnings(only, 'markers_unreadable')).toHaveLength(1)
  })

  it('P41: one unmarked answer is not two: a foreign page once, then the real answer', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(exposing([], server.answer), server.answer)
    const only = tab(page)
    expect((await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())).state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })

  it('P41, B101: what ended unknown for want of markers is settled by asking for the key, whose answer is a body', async () => {
    const { clock, network, tab } = world()
    const server = shop(clock)
    network.script(exposing([], server.answer))
    const only = tab({ ...page, ...knowsShop })
    const outcome = await within(clock, 60_000, only.fetch('orders', shopOrder('checkout:1')).outcome())
    expect(outcome.state).toBe('unknown')
    const view = await within(clock, 1000, only.fetch.intents.check('checkout:1'))
    expect(view.state).toBe('succeeded')
    const settled = await within(clock, 1000, only.fetch.intents.wait('checkout:1'))
    expect(settled.state === 'succeeded' && (await settled.response.json())).toEqual({ id: outcome.key })
    expect(server.total()).toBe(1)
  })

  it('P41: after a person’s retry it is two more answers until it stops again, not one', async () => {
    const { clock, network, tab } = world()
    network.script(exposing([], honestServer().answer))
    const only = tab(page)
    await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
    await only.fetch.intents.retry('checkout:1')
    await clock.advance(60_000)
    expect(network.writes()).toHaveLength(4)
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('unknown')
  })

  it('P41: pages of the same origin and programs outside a browser are not stopped by it', async () => {
    for (const pageOrigin of [origin, null]) {
      const { clock, network, tab } = world()
      const server = honestServer()
      const portal: Answer = () => Response.json({ portal: true })
      network.script(portal, portal, portal, server.answer)
      const only = tab({ replace: { pageOrigin } })
      expect((await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())).state).toBe('succeeded')
    }
  })

  it('P41, B91: a 202 whose Location cannot be read is followed by its body, at the pace that the body states', async () => {
    const { clock, network, tab } = world()
    const server = shop(clock, { retryAfterSeconds: 7 })
    server.take('as_task')
    network.script(exposing(['idempotency-expires'], server.answer))
    const only = tab({ ...page, ...knowsShop, waitMs: 120_000 })
    const write = only.fetch('orders', shopOrder('checkout:1'))
    const { key } = await within(clock, 60_000, write.stored)
    const polls = network.calls.filter(({ method }) => method === 'GET')
    expect(polls[0]?.url).toBe(`${origin}/keys/orders.create/${key}`)
    for (const [index, { at }] of polls.entries()) expect(at - network.calls[index]!.at).toBeGreaterThanOrEqual(7000)
    await server.finish(key)
    expect((await within(clock, 20_000, write.outcome())).state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
  })

  it('P41, B91: with neither header nor body member, the key is asked for at our own pace, and the app is told once', async () => {
    const { clock, network, tab } = world()
    const server = shop(clock)
    server.take('as_task')
    const bare: Answer = async (call, request) => {
      const response = await server.answer(call, request)
      return call.method === 'POST' ? new Response('{}', response) : response
    }
    network.script(exposing(['idempotency-expires'], bare))
    const only = tab({ ...page, ...knowsShop })
    const write = only.fetch('orders', shopOrder('checkout:1'))
    const { key } = await within(clock, 5000, write.stored)
    expect(network.calls[1]?.url).toBe(`${origin}/keys/orders.create/${key}`)
    expect(warnings(only, 'monitor_unreadable').map(({ message }) => message)).toEqual([
      expect.stringContaining('Access-Control-Expose-Headers: Location, Retry-After'),
    ])
    await server.finish(key)
    expect((await within(clock, 20_000, write.outcome())).state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
  })

  it('P41, B132: a preflight that forbids the key fails like a network error: in doubt, backed off, and CORS is suspected', async () => {
    const { clock, network, tab } = world()
    network.script(broken())
    const only = tab(page)
    await within(clock, 60_000, only.fetch('orders', order('checkout:1')).stored)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ inDoubt: true })
    expect(network.writes().length).toBeLessThanOrEqual(12)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    expect(warnings(only, 'cors_suspected').map(({ message }) => message)).toEqual([
      expect.stringContaining('Access-Control-Allow-Headers: Idempotency-Key, Idempotency-Age'),
    ])
  })

  it('P41: an operation with an accept of its own needs no marker', async () => {
    const { clock, network, tab } = world()
    const server: HonestServer = honestServer()
    network.script(exposing([], server.answer))
    const only = tab({ ...page, operations: { orders: { accept: ({ status }) => status === 201 } } })
    const write = only.fetch('orders', { ...order('checkout:1'), operation: 'orders' })
    expect((await within(clock, 60_000, write.outcome())).state).toBe('succeeded')
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })
})
