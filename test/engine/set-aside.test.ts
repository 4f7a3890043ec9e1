import { describe, expect, it } from 'vitest'
import type { StoredRow } from '../../src/ports.ts'
import { failure, within } from '../support/within.ts'
import {
  answer,
  commitThenDrop,
  day,
  honestServer,
  order,
  origin,
  type Tab,
  type World,
  world,
} from '../support/world.ts'

const damages: Record<string, (row: StoredRow) => Partial<StoredRow>> = {
  'text that is no JSON': () => ({ data: '{"client":' }),
  'an empty text': () => ({ data: '' }),
  'JSON of another shape': () => ({ data: '[]' }),
  'a missing member': ({ data }) => ({ data: data.replace('"fingerprint"', '"fingerprnt"') }),
  'a state that is none': ({ data }) => ({ data: data.replace('"name":"waiting"', '"name":"hovering"') }),
  'an address that is none': ({ data }) => ({ data: data.replace('https://api.example.com/orders', 'orders') }),
  'a header that is none': ({ data }) => ({ data: data.replace('"content-type"', '"content type"') }),
  'a method that is none': ({ data }) => ({ data: data.replace('"method":"POST"', '"method":""') }),
  'a record of another key': ({ data, key }) => ({ data: data.replaceAll(key, 'somebody-elses-key') }),
  'a newer format': () => ({ format: 2 }),
  'a newer format with text that nobody here can read': () => ({ format: 99, data: '\u0001\u0002' }),
}

interface Scene extends World {
  readonly key: string
  /** The row as it was damaged. */
  readonly row: StoredRow
  /** A context that comes after the damage. */
  readonly next: Tab
  readonly total: () => number
}

/** `checkout:1` was committed by the server, its answer was lost, and its record is damaged while no page is open. */
async function damaged(how: keyof typeof damages, more?: (before: Tab, w: World) => Promise<unknown>): Promise<Scene> {
  const w = world()
  const server = honestServer()
  w.network.script(async (call, request) => {
    await server.answer(call, request)
    return answer(503, { 'retry-after': '60' })(call, request)
  }, server.answer)
  const before = w.tab()
  const { key } = await within(w.clock, 10, before.fetch('orders', order('checkout:1')).stored)
  await more?.(before, w)
  before.kill()
  const row = await before.store.byKey({ client: origin, scope: 'anonymous', key })
  const change = damages[how]!(row!)
  const written = await before.store.update({ ...row!, ...change }, { revision: row!.revision, token: row!.token })
  return { ...w, key, row: written!, next: w.tab(), total: server.total }
}

async function stored({ next, key }: Scene): Promise<StoredRow | undefined> {
  return next.store.byKey({ client: origin, scope: 'anonymous', key })
}

describe('P23, F22, B109: a record that cannot be read is set aside', () => {
  for (const how of Object.keys(damages)) {
    it(`H19: ${how}: reported, neither sent nor changed, and its id stays taken`, async () => {
      const scene = await damaged(how)
      const { clock, network, next, key, row } = scene
      const sent = network.calls.length
      await clock.advance(3600_000)
      const reason = how.startsWith('a newer') ? 'newer' : 'damaged'
      expect((await next.fetch.intents.list()).setAside).toEqual([{ id: 'checkout:1', key, reason }])
      expect(next.notes.filter((note) => note.type === 'warning' && note.code === 'record_set_aside')).toEqual([
        expect.objectContaining({ intentId: 'checkout:1', key }),
      ])
      const again = next.fetch('orders', order('checkout:1'))
      const edited = next.fetch('orders', { ...order('checkout:1', { item: 'coffee' }), again: true })
      for (const call of [again, edited])
        expect(await failure(clock, 1000, call)).toMatchObject({ code: 'record_set_aside', reason, key })
      const { intents } = next.fetch
      for (const call of [
        () => intents.get('checkout:1'),
        () => intents.wait('checkout:1'),
        () => intents.check('checkout:1'),
        () => intents.retry('checkout:1'),
        () => intents.cancel('checkout:1'),
        () => intents.acknowledge('checkout:1'),
        () => intents.forget('checkout:1'),
      ])
        expect(await failure(clock, 0, call())).toMatchObject({ code: 'record_set_aside', reason, key })
      expect(network.calls).toHaveLength(sent)
      expect(await stored(scene)).toEqual(row)
    })
  }

  it('P23: none of many stops the good ones, nor makes a busy loop of itself', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(answer(503, { 'retry-after': '60' }))
    const before = tab({ retry: { concurrency: 50 } })
    for (let n = 0; n < 40; n++) void before.fetch('orders', order(`bad:${n}`, { n }))
    await clock.advance(1000)
    before.kill()
    for (const row of await before.store.list(origin, { limit: 100 }))
      await before.store.update({ ...row, data: '{' }, { revision: row.revision, token: row.token })
    network.script(answer(503), server.answer)
    const next = tab({ retry: { concurrency: 2 } })
    await clock.advance(120_000)
    const operations = next.operations()
    const started = clock.now()
    const write = next.fetch('orders', order('good'))
    expect((await within(clock, 3000, write)).status).toBe(201)
    expect(network.writes().at(-1)!.at - started).toBeLessThan(3000)
    expect(server.total()).toBe(1)
    await clock.advance(600_000)
    // Each is looked at again about once a minute, no more.
    expect(next.operations() - operations).toBeLessThan(40 * 10 * 3 + 200)
  })

  it('P23, P46: other tabs of the same version report it as well', async () => {
    const scene = await damaged('a newer format')
    const other = scene.tab()
    await scene.clock.advance(1000)
    expect((await other.fetch.intents.list()).setAside).toHaveLength(1)
    expect(other.notes).toContainEqual(expect.objectContaining({ code: 'record_set_aside' }))
  })

  it('P34: as the head of a lane it holds the lane, until a person settles it', async () => {
    const w = world()
    const server = honestServer()
    w.network.script(answer(503, { 'retry-after': '60' }))
    const before = w.tab()
    for (const id of ['a', 'b']) void before.fetch('orders', { ...order(id, { id }), lane: 'orders' })
    await w.clock.advance(100)
    before.kill()
    const [row] = await before.store.list(origin, { id: 'a', limit: 1 })
    await before.store.update({ ...row!, data: '{' }, { revision: row!.revision, token: row!.token })
    w.network.script(server.answer)
    const next = w.tab()
    await w.clock.advance(600_000)
    expect(await next.fetch.intents.get('b')).toMatchObject({ state: 'blocked', detail: 'lane' })
    expect(await failure(w.clock, 0, next.fetch.lanes.resume('orders'))).toMatchObject({ code: 'record_set_aside' })
    await next.fetch.intents.resolve('a', 'succeeded', 'found')
    await w.clock.advance(5000)
    expect((await next.fetch.intents.get('b'))?.state).toBe('succeeded')
    expect(server.total()).toBe(1)
  })
})

describe('P23, B109: records of this format, for as long as there is samekey', () => {
  /** Written by version 0.1. Later versions read it, or they break what lies on people's devices. */
  const format1 =
    '{"client":"https://api.example.com","scope":"anonymous","id":"checkout:1","key":"key-of-old","keyOrigin":"minted","operation":"POST /orders","registered":false,"fingerprint":{"version":"1","digest":"3388319a63cf01537aec0e988ad84c89e52071172f0b8789c4319f97e5233eb9","rules":{}},"request":{"method":"POST","url":"https://api.example.com/orders","headers":[["content-type","application/json"]],"hasBody":true,"bodyDigest":"09ec9356dc5a800ba570b44679fa49b3f8297a5ab75387e7620e6fc8e4325bbe","credentials":"same-origin","mode":"cors","referrerPolicy":""},"lane":null,"createdAt":1796126400000,"since":null,"sendBefore":null,"state":{"name":"waiting","because":"a_reason_of_a_later_version"},"dueAt":1796126400000,"attempts":1,"spent":1,"asked":0,"handedOver":true,"doubt":{"at":1796126400000,"serverAt":null},"lastHandOverAt":1796126400000,"unmarked":0,"seenAt":1796126400000,"answer":null,"settledAt":null,"acknowledgedAt":null,"laneReleased":false,"history":[{"at":1796126400000,"event":"due","attempt":1},{"at":1796126400000,"event":"an_event_of_a_later_version","attempt":1,"status":503}],"actions":[]}'

  it('B109: key, method, URL and body bytes are kept: the same request goes on under the same key', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(server.answer)
    const writer = tab({ autoStart: false })
    const body = '{ "amount":3,\n "item":"tea" }'
    await writer.store.insert(
      {
        client: origin,
        scope: 'anonymous',
        id: 'checkout:1',
        key: 'key-of-old',
        token: null,
        leaseUntil: null,
        state: 'waiting',
        open: true,
        dueAt: clock.now(),
        lane: null,
        laneHolds: false,
        laneWaits: false,
        twin: '3388319a63cf01537aec0e988ad84c89e52071172f0b8789c4319f97e5233eb9',
        format: 1,
        data: format1,
      },
      { request: new TextEncoder().encode(body) },
    )
    const later = tab()
    // Submitted again, it is the same order, and it is compared by what it means.
    expect((await within(clock, 5000, later.fetch('orders', order('checkout:1')))).status).toBe(201)
    expect(network.calls).toEqual([
      expect.objectContaining({ method: 'POST', url: `${origin}/orders`, key: 'key-of-old', body }),
    ])
    expect(server.total()).toBe(1)
  })
})

describe('F22, P45: a person settles a record set aside', () => {
  for (const how of ['text that is no JSON', 'a newer format'] as const) {
    it(`${how}: resolved as succeeded: recorded with the note, listed, and the id stays taken until it is forgotten`, async () => {
      const scene = await damaged(how)
      const { clock, network, next, key } = scene
      const view = await within(clock, 0, next.fetch.intents.resolve('checkout:1', 'succeeded', 'found order 9'))
      expect(view).toMatchObject({ id: 'checkout:1', key, state: 'succeeded', detail: 'person' })
      expect(view.actions).toEqual([{ at: clock.now(), action: 'resolve', note: 'found order 9' }])
      expect((await next.fetch.intents.list()).setAside).toEqual([])
      expect((await next.fetch.intents.list({ inbox: true })).intents.map(({ id }) => id)).toEqual(['checkout:1'])
      expect(next.notes).toContainEqual(expect.objectContaining({ type: 'state', to: 'succeeded', key }))
      expect(await next.store.blob({ client: origin, scope: 'anonymous', key }, 'request')).toBeUndefined()
      // What was ordered can no longer be compared, so it is not guessed.
      const again = next.fetch('orders', order('checkout:1'))
      expect(await failure(clock, 1000, again)).toMatchObject({ code: 'intent_mismatch', state: 'succeeded' })
      const sent = network.calls.length
      await clock.advance(2 * day)
      expect(network.calls).toHaveLength(sent)
      await next.fetch.intents.forget('checkout:1')
      expect((await within(clock, 1000, next.fetch('orders', order('checkout:1')))).status).toBe(201)
      expect(network.writes().at(-1)?.key).not.toBe(key)
    })

    it(`${how}: "it did not happen" cannot be voided, so it counts as abandoned and frees nothing`, async () => {
      const { clock, next, key } = await damaged(how)
      const view = await within(clock, 0, next.fetch.intents.resolve('checkout:1', 'did_not_happen'))
      expect(view).toMatchObject({ state: 'abandoned', detail: 'may_still_happen', key })
      const again = next.fetch('orders', order('checkout:1'))
      expect(await failure(clock, 1000, again)).toMatchObject({ code: 'intent_mismatch', state: 'abandoned' })
    })

    it(`${how}: abandoned: only force frees the id for a new key`, async () => {
      const { clock, network, next, key, total } = await damaged(how)
      expect((await within(clock, 0, next.fetch.intents.abandon('checkout:1', 'gone'))).detail).toBe('may_still_happen')
      expect(await failure(clock, 1000, next.fetch('orders', order('checkout:1')))).toMatchObject({
        code: 'intent_mismatch',
      })
      const view = await within(clock, 0, next.fetch.intents.abandon('checkout:1', 'sure', { force: true }))
      expect(view.detail).toBe('freed')
      expect(view.actions.map(({ note }) => note)).toEqual(['gone', 'sure'])
      expect((await within(clock, 1000, next.fetch('orders', order('checkout:1')))).status).toBe(201)
      expect(network.writes().map((call) => call.key)).not.toEqual([key, key])
      // That is the risk that was taken by force.
      expect(total()).toBe(2)
    })
  }

  it('P47: a newer context that writes meanwhile wins: the person is told to look again', async () => {
    const scene = await damaged('a newer format')
    const meddling = scene.tab({
      wrapStore: (store) => ({
        ...store,
        async update(change, expected, blobs) {
          const row = await stored(scene)
          await scene.next.store.update(
            { ...row!, data: '{"newer":2}' },
            { revision: row!.revision, token: row!.token },
          )
          return store.update(change, expected, blobs)
        },
      }),
    })
    const resolving = meddling.fetch.intents.resolve('checkout:1', 'succeeded')
    expect(await failure(scene.clock, 0, resolving)).toMatchObject({ code: 'not_possible', key: scene.key })
    expect((await stored(scene))?.data).toBe('{"newer":2}')
  })

  it('P23: who waits for an intent when its record is damaged waits as long as asked, and is told what was known', async () => {
    const w = world()
    w.network.script(commitThenDrop(honestServer()), answer(503, { 'retry-after': '600' }))
    const only = w.tab({ waitMs: 120_000 })
    const write = only.fetch('orders', order('checkout:1'))
    await within(w.clock, 5000, write.stored)
    const row = await only.store.current(origin, 'anonymous', 'checkout:1')
    await only.store.update({ ...row!, data: '{' }, { revision: row!.revision, token: row!.token })
    expect(await failure(w.clock, 120_000, write)).toMatchObject({ code: 'still_open', inDoubt: true })
  })
})
