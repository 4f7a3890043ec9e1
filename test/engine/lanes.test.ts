/** Order: serial writes to one target, and named lanes (P34). */
import { describe, expect, it } from 'vitest'
import {
  type Answer,
  answer,
  broken,
  commitThenDrop,
  created,
  day,
  honestServer,
  later,
  order,
  problem,
  refusedConnection,
  type Tab,
  type TabOptions,
  world,
} from '../support/world.ts'

const minute = 60_000
const proven = { 'idempotency-expires': 'Wed, 02 Dec 2026 12:00:00 GMT' }
const json = { 'content-type': 'application/json' }
const documents: TabOptions = { operations: { doc: { match: ({ url }) => url.pathname.startsWith('/docs') } } }

/** A document store: the last write wins, whatever its key. */
function documentServer(): { answer: Answer; bodies: string[] } {
  const bodies: string[] = []
  const seen = new Set<string>()
  return {
    bodies,
    answer(call, request) {
      if (call.key !== null && !seen.has(call.key)) bodies.push(call.body)
      seen.add(call.key ?? '')
      return created({ ok: true })(call, request)
    },
  }
}

function put(tab: Tab, id: string, body: unknown, method = 'PUT', path = 'docs/1') {
  return tab.fetch(path, { intent: id, method, headers: json, body: JSON.stringify(body), waitMs: 0 })
}

function step(tab: Tab, id: string, lane = 'publish') {
  return tab.fetch(`steps/${id}`, { ...order(id, { id }), lane, waitMs: 0 })
}

describe('P34: serial', () => {
  it('H28: v1 is lost and waiting: v2 waits too, and in the end the document is v2', async () => {
    const { network, tab, pass } = world()
    const server = documentServer()
    network.script(broken(), server.answer)
    const only = tab({ retry: { baseMs: 20_000, capMs: 20_000 } })
    await put(only, 'v1', 1).stored
    await pass(0)
    await put(only, 'v2', 2).stored
    await pass(0)
    expect(await only.fetch.intents.get('v2')).toMatchObject({ state: 'blocked', detail: 'lane' })
    expect(network.writes().map(({ body }) => body)).toEqual(['1'])
    await pass(minute)
    expect(server.bodies).toEqual(['1', '2'])
    expect(network.writes().map(({ body }) => body)).toEqual(['1', '1', '2'])
  })

  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    it(`P34: ${method} to one target is serial, to another it is not`, async () => {
      const { clock, network, tab, pass } = world()
      const server = honestServer()
      network.script(later(clock, 5000, server.answer))
      const only = tab()
      await put(only, 'a', 1, method).stored
      await put(only, 'b', 2, method).stored
      await put(only, 'elsewhere', 3, method, 'docs/2').stored
      await pass(1000)
      expect(network.calls.map(({ body }) => body)).toEqual(['1', '3'])
      await pass(minute)
      expect(network.calls.map(({ body }) => body)).toEqual(['1', '3', '2'])
    })
  }

  it('P34: POSTs to one target do not wait for each other', async () => {
    const { clock, network, tab, pass } = world()
    network.script(later(clock, 5000, created()))
    const only = tab()
    for (const id of ['a', 'b', 'c']) await only.fetch('orders', { ...order(id, { id }), waitMs: 0 }).stored
    await pass(1000)
    expect(network.calls).toHaveLength(3)
  })

  it('H60: a PATCH refused with 422 does not hold the corrected one', async () => {
    const { network, tab, pass } = world()
    network.script(answer(422), created())
    const only = tab()
    await put(only, 'v1', { bad: true }, 'PATCH').stored
    await put(only, 'v2', { bad: false }, 'PATCH').stored
    await pass(1000)
    expect(await only.fetch.intents.get('v1')).toMatchObject({ state: 'rejected' })
    expect(await only.fetch.intents.get('v2')).toMatchObject({ state: 'succeeded' })
  })

  it('P34: a cancelled one does not hold either', async () => {
    const { network, tab, pass } = world()
    network.script(refusedConnection())
    const only = tab({ transport: { provesNonDelivery: true }, retry: { baseMs: day, capMs: day } })
    await put(only, 'v1', 1).stored
    await put(only, 'v2', 2).stored
    await pass(0)
    network.script(created())
    await only.fetch.intents.cancel('v1')
    await pass(1000)
    expect(await only.fetch.intents.get('v2')).toMatchObject({ state: 'succeeded' })
    expect(network.writes().map(({ body }) => body)).toEqual(['1', '2'])
  })

  it('P34: unknown holds it, until a person settles that', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({ retry: { attempts: 2 } })
    await put(only, 'v1', 1).stored
    await put(only, 'v2', 2).stored
    await pass(minute)
    network.script(created())
    await pass(60 * minute)
    expect(await only.fetch.intents.get('v1')).toMatchObject({ state: 'unknown' })
    expect(await only.fetch.intents.get('v2')).toMatchObject({ state: 'blocked', detail: 'lane' })
    expect(network.writes().map(({ body }) => body)).toEqual(['1', '1'])
    await only.fetch.intents.resolve('v1', 'succeeded', 'seen it')
    await pass(1000)
    expect(await only.fetch.intents.get('v2')).toMatchObject({ state: 'succeeded' })
  })

  it('P34: the turn is passed on over a crash and to another tab', async () => {
    const { network, tab, pass, clock } = world()
    const server = documentServer()
    network.script(later(clock, 5000, server.answer))
    const first = tab()
    await put(first, 'v1', 1).stored
    const second = tab()
    await put(second, 'v2', 2).stored
    await put(second, 'v3', 3).stored
    await pass(1000)
    first.kill()
    await pass(3 * minute)
    expect(server.bodies).toEqual(['1', '2', '3'])
  })

  it('B105, P34: what does not stand in the lane goes on while its head backs off', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script((call, request) =>
      call.method === 'PUT' ? answer(503)(call, request) : server.answer(call, request),
    )
    const only = tab()
    await put(only, 'v1', 1).stored
    await put(only, 'v2', 2).stored
    for (const id of ['b', 'c']) await only.fetch('orders', { ...order(id, { id }), waitMs: 0 }).stored
    await pass(5000)
    expect(server.total()).toBe(2)
    expect(await only.fetch.intents.get('v2')).toMatchObject({ state: 'blocked', detail: 'lane' })
  })
})

describe('P34, B106: named lanes', () => {
  it('B106: queued offline, each step starts only after the one before it succeeded', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(later(clock, 2000, server.answer))
    const only = tab()
    only.setOnline(false)
    for (const id of ['create', 'publish', 'announce']) await step(only, id).stored
    await pass(1000)
    expect(network.writes()).toHaveLength(0)
    only.setOnline(true)
    await pass(minute)
    expect(server.total()).toBe(3)
    const calls = network.writes()
    expect(calls.map(({ url }) => url.split('/').at(-1))).toEqual(['create', 'publish', 'announce'])
    expect(calls[1]!.at).toBeGreaterThanOrEqual(calls[0]!.at + 2000)
    expect(calls[2]!.at).toBeGreaterThanOrEqual(calls[1]!.at + 2000)
  })

  it('F23, H42, B106: a rejected head stops the lane and says so; nothing behind it is sent until it is resumed', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(answer(422, proven), server.answer)
    const only = tab()
    await step(only, 'create').stored
    await step(only, 'publish').stored
    await pass(60 * minute)
    expect(network.writes()).toHaveLength(1)
    expect(await only.fetch.intents.get('publish')).toMatchObject({ state: 'blocked', detail: 'lane' })
    expect(only.notes).toContainEqual(
      expect.objectContaining({ type: 'warning', code: 'lane_stopped', intentId: 'create' }),
    )
    only.kill()

    const next = tab()
    await pass(minute)
    expect(network.writes()).toHaveLength(1)
    await next.fetch.lanes.resume('publish', 'the draft exists already')
    await pass(1000)
    expect(await next.fetch.intents.get('publish')).toMatchObject({ state: 'succeeded' })
    expect((await next.fetch.intents.get('create'))?.actions).toMatchObject([
      { action: 'resume', note: 'the draft exists already' },
    ])
    expect(server.total()).toBe(1)
  })

  it('H42: the rejected head can be skipped instead, by its id', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(answer(422, proven), server.answer)
    const only = tab()
    await step(only, 'create').stored
    await step(only, 'publish').stored
    await pass(1000)
    expect(await only.fetch.lanes.skip('create')).toEqual({ order: 'kept' })
    await pass(1000)
    expect(await only.fetch.intents.get('publish')).toMatchObject({ state: 'succeeded' })
  })

  it('P34: an unknown head stops the lane and says so; it is settled or skipped, not resumed over', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({ retry: { attempts: 2 } })
    await step(only, 'create').stored
    await step(only, 'publish').stored
    await pass(minute)
    expect(await only.fetch.intents.get('create')).toMatchObject({ state: 'unknown' })
    expect(only.notes).toContainEqual(
      expect.objectContaining({ type: 'warning', code: 'lane_stopped', intentId: 'create' }),
    )
    await expect(only.fetch.lanes.resume('publish')).rejects.toMatchObject({ code: 'not_possible', intentId: 'create' })
    network.script(created())
    await pass(minute)
    expect(network.writes()).toHaveLength(2)
    await only.fetch.intents.resolve('create', 'succeeded')
    await pass(1000)
    expect(await only.fetch.intents.get('publish')).toMatchObject({ state: 'succeeded' })
  })

  it('P34: a head that is surely not handed over is skipped by cancelling it', async () => {
    const { network, tab, pass } = world()
    network.script(answer(429, { 'retry-after': '5' }), created())
    const only = tab()
    await step(only, 'create').stored
    await step(only, 'publish').stored
    await pass(0)
    expect(await only.fetch.lanes.skip('create')).toEqual({ order: 'kept' })
    await pass(20_000)
    expect(await only.fetch.intents.get('create')).toMatchObject({ state: 'cancelled' })
    expect(await only.fetch.intents.get('publish')).toMatchObject({ state: 'succeeded' })
  })

  it('P34: a head in doubt is voided first: only after that does the next go', async () => {
    const { clock, network, tab, pass } = world()
    network.script(broken(), broken())
    const only = tab({
      retry: { baseMs: day, capMs: day },
      operations: { step: { match: ({ url }) => url.pathname.startsWith('/steps') } },
    })
    await step(only, 'create').stored
    await step(only, 'publish').stored
    await pass(0)
    network.script(
      later(clock, 3000, () => Response.json({ id: 'k', status: 'voided' })),
      created(),
    )
    expect(await only.fetch.lanes.skip('create')).toEqual({ order: 'kept' })
    await pass(2000)
    expect(network.calls.map(({ method }) => method)).toEqual(['POST', 'DELETE'])
    await pass(10_000)
    expect(await only.fetch.intents.get('create')).toMatchObject({ state: 'cancelled', detail: 'voided' })
    expect(await only.fetch.intents.get('publish')).toMatchObject({ state: 'succeeded' })
  })

  it('P34: where it cannot be voided, skipping says that order is no longer promised', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), server.answer)
    const only = tab({ retry: { baseMs: minute, capMs: minute } })
    await step(only, 'create').stored
    await step(only, 'publish').stored
    await pass(0)
    expect(await only.fetch.lanes.skip('create', 'cannot wait')).toEqual({ order: 'broken' })
    await pass(5 * minute)
    // The skipped one is not lost: it goes on by itself.
    expect(await only.fetch.intents.get('create')).toMatchObject({ state: 'succeeded' })
    expect(await only.fetch.intents.get('publish')).toMatchObject({ state: 'succeeded' })
    expect(server.total()).toBe(2)
  })

  it('P34: cancelling the head stops a named lane too', async () => {
    const { network, tab, pass } = world()
    network.script(answer(429, { 'retry-after': '5' }), created())
    const only = tab()
    await step(only, 'create').stored
    await step(only, 'publish').stored
    await pass(0)
    await only.fetch.intents.cancel('create')
    await pass(minute)
    expect(await only.fetch.intents.get('publish')).toMatchObject({ state: 'blocked', detail: 'lane' })
    expect(network.writes()).toHaveLength(1)
    await only.fetch.lanes.resume('publish')
    await pass(1000)
    expect(await only.fetch.intents.get('publish')).toMatchObject({ state: 'succeeded' })
  })

  it('P34: the order of a lane outlives reloads, and other lanes go on', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script((call, request) =>
      call.url.includes('stuck')
        ? problem(409, 'idempotency_in_progress')(call, request)
        : server.answer(call, request),
    )
    const first = tab()
    await step(first, 'stuck', 'one').stored
    for (const id of ['a', 'b', 'c']) await step(first, id, 'one').stored
    for (const id of ['d', 'e']) await step(first, id, 'two').stored
    await pass(1000)
    first.kill()
    expect([...server.effects.keys()]).toHaveLength(2)
    network.script(server.answer)
    tab({ visibleDeath: true })
    await pass(3 * minute)
    expect(
      network
        .writes()
        .map(({ url }) => url.split('/').at(-1))
        .filter((id) => 'abc'.includes(id!)),
    ).toEqual(['a', 'b', 'c'])
    expect(server.total()).toBe(6)
  })

  it('P34, P50: a lane is one scope’s: another user’s of the same name does not wait behind it', async () => {
    const { network, tab, pass } = world()
    network.script(answer(422, proven), created())
    let user = 'ann'
    const only = tab({ scope: () => user })
    await step(only, 'a1').stored
    await pass(1000)
    user = 'bob'
    await step(only, 'b1').stored
    await pass(1000)
    expect(await only.fetch.intents.get('b1')).toMatchObject({ state: 'succeeded' })
    await expect(only.fetch.lanes.resume('publish')).resolves.toBeUndefined()
    user = 'ann'
    await step(only, 'a2').stored
    await pass(1000)
    expect(await only.fetch.intents.get('a2')).toMatchObject({ state: 'blocked', detail: 'lane' })
  })

  it('P34: a document’s writes stand in the order of submits even where its operation is registered', async () => {
    const { network, tab, pass } = world()
    const server = documentServer()
    network.script(broken(), () => Response.json({ id: 'k', status: 'voided' }), server.answer)
    const only = tab({ ...documents, retry: { baseMs: day, capMs: day } })
    await put(only, 'v1', 1).stored
    await put(only, 'v2', 2).stored
    await pass(0)
    await only.fetch.intents.cancel('v1')
    await pass(5000)
    expect(await only.fetch.intents.get('v1')).toMatchObject({ state: 'cancelled', detail: 'voided' })
    expect(server.bodies).toEqual(['2'])
  })
})
