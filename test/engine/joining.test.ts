import { describe, expect, it } from 'vitest'
import { samekey } from '../../src/dialects.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import {
  answer,
  broken,
  commitThenDrop,
  created,
  day,
  honestServer,
  later,
  order,
  origin,
  problem,
  type Tab,
  world,
} from '../support/world.ts'

const proven = { 'idempotency-expires': 'Wed, 02 Dec 2026 12:00:00 GMT' }
const rows = async ({ store }: Tab): Promise<number> => (await store.list(origin, { limit: 99 })).length

describe('P6: the same id again joins', () => {
  it('P6, B02: two clicks in one tick and one 200 ms later: one key, one POST, one outcome with a copy for each', async () => {
    const { network, tab, pass, clock } = world()
    const server = honestServer()
    network.script(later(clock, 1000, server.answer))
    const only = tab()
    const clicks = [only.fetch('orders', order('order-42')), only.fetch('orders', order('order-42'))]
    await pass(200)
    clicks.push(only.fetch('orders', order('order-42')))
    await pass(300)
    expect(network.writes()).toHaveLength(1)
    await pass(5000)
    const answers = await Promise.all(clicks)
    const bodies = await Promise.all(answers.map((one) => one.json()))
    expect(bodies).toEqual([bodies[0], bodies[0], bodies[0]])
    expect(new Set(answers).size).toBe(3)
    expect(new Set(await Promise.all(clicks.map(async ({ stored }) => (await stored).key))).size).toBe(1)
    expect([network.writes().length, server.total(), await rows(only)]).toEqual([1, 1, 1])
  })

  it('P6: a copy of the answer is the own one of its caller', async () => {
    const { tab, pass } = world()
    const only = tab()
    const clicks = [only.fetch('orders', order('a')), only.fetch('orders', order('a'))]
    await pass(1000)
    const [one, two] = await Promise.all(clicks)
    new Uint8Array(await one!.arrayBuffer()).fill(0)
    one!.headers.set('content-type', 'spoiled')
    expect(await two!.json()).toEqual({ id: 9 })
    expect(two!.headers.get('content-type')).toContain('json')
  })

  it('P6: many clicks while the store is slow claim the name once', async () => {
    const { network, tab, pass, clock } = world()
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        insert: async (...args) => {
          await new Promise<void>((resolve) => clock.timer(500, resolve))
          return store.insert(...args)
        },
      }),
    })
    const clicks = Array.from({ length: 20 }, () => only.fetch('orders', order('order-42')))
    await pass(60_000)
    expect(new Set(await Promise.all(clicks.map(async (click) => (await click).text()))).size).toBe(1)
    expect([network.writes().length, await rows(only)]).toEqual([1, 1])
  })

  it('P6: a submit that is refused does not let the next one past those before it', async () => {
    const { tab, pass, clock } = world()
    const inserted: string[] = []
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        insert: async (...args) => {
          inserted.push(args[0].key)
          await new Promise<void>((resolve) => clock.timer(500, resolve))
          return store.insert(...args)
        },
      }),
    })
    const first = only.fetch('orders', order('a'))
    const wrong = only.fetch('orders', { ...order('a'), waitMs: -1 })
    const third = only.fetch('orders', order('a'))
    await pass(10_000)
    await expect(wrong).rejects.toMatchObject({ code: 'config', option: 'waitMs' })
    expect((await third.stored).key).toBe((await first.stored).key)
    expect(inserted).toHaveLength(1)
  })

  it('P6, F7, F17: two tabs that submit at the same moment share one key, one POST and one outcome', async () => {
    const { network, tab, pass, clock } = world()
    const server = honestServer()
    network.script(later(clock, 1000, server.answer))
    const clicks = [tab(), tab(), tab()].map((one) => one.fetch('orders', order('order-42')))
    await pass(10_000)
    const keys = await Promise.all(clicks.map(async ({ stored }) => (await stored).key))
    expect(new Set(keys).size).toBe(1)
    expect(await Promise.all(clicks.map(async (click) => (await click).json()))).toEqual(keys.map((id) => ({ id })))
    expect([network.writes().length, server.total()]).toEqual([1, 1])
  })

  it('P6, P46: a tab joins what another one has under way, and learns its outcome', async () => {
    const { network, tab, pass, clock } = world()
    network.script(later(clock, 5000, created({ id: 9 })))
    const first = tab()
    void first.fetch('orders', order('order-42'))
    await pass(1000)
    const second = tab().fetch('orders', order('order-42'))
    await pass(10_000)
    expect(await (await second).json()).toEqual({ id: 9 })
    expect(network.writes()).toHaveLength(1)
  })

  it('B03, P20: leaving and coming back finds the record: the same key, one order', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(commitThenDrop(server), server.answer)
    const first = tab({ retry: { baseMs: 60_000, capMs: 60_000 } })
    const { key } = await first.fetch('orders', order('order-42')).stored
    await pass(500)
    await Promise.all([first.fetch.stop(), pass(10_000)])
    const second = tab()
    const write = second.fetch('orders', order('order-42'))
    await pass(120_000)
    expect(await (await write).json()).toEqual({ id: key })
    expect((await write.stored).key).toBe(key)
    expect(network.writes().map((call) => call.key)).toEqual([key, key])
    expect(server.total()).toBe(1)
  })

  it('P33: joining what is blocked wakes it', async () => {
    const { network, tab, pass } = world()
    network.script(answer(401), created())
    const only = tab()
    void only.fetch('orders', order('a'))
    await pass(1000)
    const again = only.fetch('orders', order('a'))
    await pass(1000)
    expect((await again).status).toBe(201)
    expect(network.writes()).toHaveLength(2)
  })
})

describe('P7: another content under the same id', () => {
  const edited = (id = 'doc-1') => order(id, { item: 'edited' })

  it('B16: while it is open: a typed error, and the server never sees two bodies under one key', async () => {
    const { network, tab, pass } = world()
    network.script(broken(), created())
    const only = tab({ retry: { baseMs: 20_000, capMs: 20_000 } })
    const first = only.fetch('docs', order('doc-1'))
    await pass(500)
    const { key } = await first.stored
    const second = only.fetch('docs', edited())
    await pass(60_000)
    await expect(second).rejects.toMatchObject({ code: 'intent_mismatch', state: 'waiting', intentId: 'doc-1', key })
    expect((await first).status).toBe(201)
    expect(network.writes().map(({ key: sent, body }) => [sent, body])).toEqual([
      [key, order('doc-1').body],
      [key, order('doc-1').body],
    ])
    expect(await rows(only)).toBe(1)
  })

  it('B16, P8: after forget, the same id starts a new intent; a new id does so at once', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    void only.fetch('docs', order('doc-1'))
    void only.fetch('docs', edited('doc-2'))
    await pass(1000)
    await only.fetch.intents.forget('doc-1')
    const write = only.fetch('docs', edited())
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(3)
  })

  it('H56: v1 succeeded: v2 under the same id is refused, never answered with the success of v1', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    void only.fetch('docs', order('doc-1'))
    await pass(1000)
    const second = only.fetch('docs', edited())
    await pass(1000)
    await expect(second).rejects.toMatchObject({ code: 'intent_mismatch', state: 'succeeded' })
    expect(network.writes()).toHaveLength(1)
  })

  it.each([
    ['unknown', broken(), 'unknown'],
    ['conflicted', problem(409, 'idempotency_conflict'), 'conflicted'],
  ])('P7: an intent that is %s does not take another content', async (_what, said, state) => {
    const { network, tab, pass } = world()
    network.script(said)
    const only = tab({ retry: { attempts: 1 } })
    void only.fetch('docs', order('doc-1'))
    await pass(60_000)
    const second = only.fetch('docs', edited())
    await pass(1000)
    await expect(second).rejects.toMatchObject({ code: 'intent_mismatch', state })
    expect(network.writes()).toHaveLength(1)
  })

  it('P7: an abandoned intent does not take another content, until it is abandoned with force', async () => {
    const { network, tab, pass } = world()
    network.script(broken(), created())
    const only = tab({ retry: { attempts: 1 } })
    void only.fetch('docs', order('doc-1'))
    await pass(60_000)
    await only.fetch.intents.abandon('doc-1')
    const refused = only.fetch('docs', edited())
    await pass(1000)
    await expect(refused).rejects.toMatchObject({ code: 'intent_mismatch', state: 'abandoned' })
    await only.fetch.intents.abandon('doc-1', 'the customer called', { force: true })
    const write = only.fetch('docs', edited())
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
  })

  it('P7: after a refusal, the corrected form goes out under the same id with a new key; the old record stays listed', async () => {
    const { network, tab, pass } = world()
    network.script(answer(422, proven, '{"field":"zip"}'), created())
    const only = tab()
    const first = only.fetch('docs', order('doc-1'))
    await pass(1000)
    expect((await first).status).toBe(422)
    const second = only.fetch('docs', edited())
    await pass(1000)
    expect((await second).status).toBe(201)
    const [one, two] = network.writes()
    expect(one!.key).not.toBe(two!.key)
    const { intents } = await only.fetch.intents.list({ id: 'doc-1' })
    expect(intents.map(({ key, state, current }) => [key, state, current])).toEqual([
      [one!.key, 'rejected', false],
      [two!.key, 'succeeded', true],
    ])
  })

  it('P7: after cancelled, the same id starts anew with another content', async () => {
    const { network, tab, pass } = world()
    network.script(answer(429, { 'retry-after': '20' }), created())
    const only = tab()
    void only.fetch('docs', order('doc-1'))
    await pass(1000)
    await only.fetch.intents.cancel('doc-1')
    const write = only.fetch('docs', edited())
    await pass(120_000)
    expect((await write).status).toBe(201)
    expect(network.writes().map(({ body }) => body)).toEqual([order('x').body, edited().body])
  })

  it('B05, P7: a decline is remembered: the same content returns it without the network, another name is another try', async () => {
    const { network, tab, pass } = world()
    network.script(answer(402, proven, '{"declined":true}'), created())
    const only = tab()
    void only.fetch('pay', order('pay-7', { card: 1 }))
    await pass(1000)
    const other = only.fetch('pay', order('pay-7b', { card: 2 }))
    await pass(1000)
    const again = only.fetch('pay', order('pay-7', { card: 1 }))
    await pass(1000)
    expect((await other).status).toBe(201)
    expect([(await again).status, await (await again).json()]).toEqual([402, { declined: true }])
    expect(network.writes().map(({ body }) => body)).toEqual(['{"card":1}', '{"card":2}'])
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
  })

  it('P7, `again`: the declined card once more takes a new key, also when clicked twice', async () => {
    const { network, tab, pass, clock } = world()
    network.script(answer(402, proven), later(clock, 500, created()))
    const only = tab()
    void only.fetch('pay', order('pay-7'))
    await pass(1000)
    const clicks = [1, 2].map(() => only.fetch('pay', { ...order('pay-7'), again: true }))
    await pass(2000)
    expect((await Promise.all(clicks)).map(({ status }) => status)).toEqual([201, 201])
    expect(network.writes()).toHaveLength(2)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
  })

  it('P7, `again` in two tabs at once is one new try', async () => {
    const { network, tab, pass, clock } = world()
    network.script(answer(402, proven), later(clock, 500, created()))
    const [one, two] = [tab(), tab()]
    void one.fetch('pay', order('pay-7'))
    await pass(1000)
    const clicks = [one, two].map((any) => any.fetch('pay', { ...order('pay-7'), again: true }))
    await pass(5000)
    expect((await Promise.all(clicks)).map(({ status }) => status)).toEqual([201, 201])
    expect(network.writes()).toHaveLength(2)
  })

  it.each([
    ['succeeded', created()],
    ['open', broken()],
  ])('P7, `again` changes nothing for an intent that is %s', async (_what, said) => {
    const { network, tab, pass } = world()
    network.script(said)
    const only = tab({ retry: { baseMs: 60_000, capMs: 60_000 } })
    const { key } = await only.fetch('pay', order('pay-7')).stored
    await pass(500)
    const again = only.fetch('pay', { ...order('pay-7'), again: true })
    await pass(500)
    expect((await again.stored).key).toBe(key)
    expect(network.writes()).toHaveLength(1)
  })

  it('P7: a new key for the same content does not come from giving one; it is refused', async () => {
    const { network, tab, pass } = world()
    network.script(answer(402, proven), created())
    const only = tab()
    const { key } = await only.fetch('pay', order('pay-7')).stored
    await pass(1000)
    const other = only.fetch('pay', { ...order('pay-7'), key: { value: 'k-2', since: 'new' } })
    await pass(1000)
    await expect(other).rejects.toMatchObject({ code: 'intent_mismatch', key })
    const again = only.fetch('pay', { ...order('pay-7'), again: true, key: { value: 'k-2', since: 'new' } })
    await pass(1000)
    expect((await again).status).toBe(201)
    expect(network.writes().map((call) => call.key)).toEqual([key, 'k-2'])
  })
})

describe('P8: remembering', () => {
  it('P8, B25: a settled intent answers from the store, after a reload too, without the network', async () => {
    const { network, tab, pass } = world()
    const first = tab()
    void first.fetch('orders', order('a'))
    await pass(1000)
    first.kill()
    await pass(6 * day)
    const again = tab().fetch('orders', order('a'))
    await pass(1000)
    expect(await (await again).json()).toEqual({ id: 9 })
    expect(network.writes()).toHaveLength(1)
  })

  it('H20: acknowledging only clears the inbox: another tab that submits the id gets the outcome, not a new key', async () => {
    const { network, tab, pass } = world()
    const [one, two] = [tab(), tab()]
    void one.fetch('orders', order('a'))
    await pass(1000)
    await one.fetch.intents.acknowledge('a')
    expect((await one.fetch.intents.list({ inbox: true })).intents).toEqual([])
    const again = two.fetch('orders', order('a'))
    await pass(1000)
    expect((await again).status).toBe(201)
    expect(network.writes()).toHaveLength(1)
  })

  it('P8: after its time a settled, acknowledged name is free; not a moment before', async () => {
    const { network, tab, pass, clock } = world()
    const only = tab({ rememberMs: 8 * day })
    void only.fetch('orders', order('a')).text()
    await pass(1000)
    clock.jump(8 * day - 120_000)
    await pass(60_000)
    expect(await rows(only)).toBe(1)
    await pass(180_000)
    expect(await rows(only)).toBe(0)
    void only.fetch('orders', order('a'))
    await pass(1000)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
  })

  it.each([
    ['its own', { retentionMs: 30 * day }],
    ["its dialect's", { dialect: { ...samekey, retentionMs: 30 * day } }],
  ])('P8: an operation is remembered for %s retention, also when it is registered later', async (_whose, operation) => {
    for (const known of [true, false]) {
      const { network, tab, pass, clock } = world()
      const only = tab(known ? { operations: { 'orders.create': operation } } : {})
      if (!known) only.fetch.register('orders.create', operation)
      const send = () => only.fetch('orders', { ...order('a'), operation: 'orders.create' })
      void send().text()
      await pass(1000)
      clock.jump(29 * day)
      await pass(120_000)
      const again = send()
      await pass(1000)
      expect((await again).status).toBe(201)
      expect(network.writes()).toHaveLength(1)
    }
  })

  it('P8: forget is for what is settled and not in doubt', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({ retry: { attempts: 1 } })
    void only.fetch('orders', order('a'))
    await pass(100)
    await pass(60_000)
    await expect(only.fetch.intents.forget('a')).rejects.toMatchObject({ code: 'not_possible', state: 'unknown' })
    await only.fetch.intents.abandon('a')
    await expect(only.fetch.intents.forget('a')).rejects.toMatchObject({ code: 'not_possible', state: 'abandoned' })
    expect(await rows(only)).toBe(1)
  })

  it('H38: forgotten and submitted anew: the stale "done" of the old key does not settle the new intent', async () => {
    const { network, tab, pass } = world()
    let arrives: () => void = () => {}
    const lateAnswer = new Promise<void>((resolve) => {
      arrives = resolve
    })
    network.script(
      async (call, request) => {
        await lateAnswer
        return created({ id: 'old' })(call, request)
      },
      created({ id: 'old' }),
      broken(),
    )
    const stale = tab({ attemptTimeoutMs: 10_000 })
    void stale.fetch('orders', order('a'))
    await pass(100)
    stale.freeze()
    const second = tab({ attemptTimeoutMs: 10_000, retry: { baseMs: 60_000, capMs: 60_000 } })
    await pass(60_000)
    expect(await second.fetch.intents.get('a')).toMatchObject({ state: 'succeeded' })
    await second.fetch.intents.forget('a')
    void second.fetch('orders', order('a', { item: 'another' }))
    await pass(500)
    arrives()
    stale.thaw()
    await pass(500)
    const view = await second.fetch.intents.get('a')
    expect(view).toMatchObject({ state: 'waiting', inDoubt: true })
    expect(view!.key).toBe(network.writes()[2]!.key)
    expect(view!.key).not.toBe(network.writes()[0]!.key)
  })

  it.each(['before it looks', 'at its claim'] as const)(
    'P8, H21: a submit that was frozen %s until the intent was forgotten is refused: no second key',
    async (when) => {
      const { network, tab, pass, clock } = world()
      const server = honestServer()
      network.script(server.answer)
      const other = tab()
      const frozen: Tab = tab({
        autoStart: false,
        wrapStore: (store) => ({
          ...store,
          twins: (...args) => {
            // The last look before the claim.
            if (when === 'at its claim') frozen.freeze()
            return store.twins(...args)
          },
        }),
      })
      if (when === 'before it looks') frozen.freeze()
      const submit = frozen.fetch('orders', order('a'))
      await pass(100)
      void other.fetch('orders', order('a')).text()
      await pass(1000)
      clock.jump(9 * day)
      await pass(120_000)
      expect(await rows(other)).toBe(0)
      frozen.thaw()
      await pass(120_000)
      await expect(submit.stored).rejects.toMatchObject({
        code: 'submit_too_late',
        intentId: 'a',
        key: expect.any(String),
      })
      expect([network.writes().length, server.total(), await rows(other)]).toEqual([1, 1, 0])
    },
  )

  it('P8, H21: where the claim itself was held up inside the store, it is taken back', async () => {
    const { network, tab, pass, clock } = world()
    let letGo: () => void = () => {}
    const only = tab({
      wrapStore: (store) => ({
        ...store,
        insert: async (...args) => {
          await new Promise<void>((resolve) => {
            letGo = resolve
          })
          return store.insert(...args)
        },
      }),
    })
    const submit = only.fetch('orders', order('a'))
    await pass(1000)
    clock.jump(9 * day)
    letGo()
    await pass(120_000)
    await expect(submit.stored).rejects.toMatchObject({ code: 'submit_too_late', intentId: 'a' })
    expect([network.writes().length, await rows(only)]).toEqual([0, 0])
  })
})

describe('P23, H19: a record that cannot be read keeps its id', () => {
  it.each([
    ['damaged', (row: { data: string; format: number }) => ({ ...row, data: '{"half":' })],
    ['newer', (row: { data: string; format: number }) => ({ ...row, format: 99 })],
  ])('H19: %s: submitting the id again fails until a person settles it; the others go on', async (reason, spoil) => {
    const { network, tab, pass } = world()
    network.script(broken())
    const first = tab({ retry: { baseMs: 60_000, capMs: 60_000 } })
    const { key } = await first.fetch('orders', order('a')).stored
    void first.fetch('orders', order('b', { item: 'b' }))
    await pass(300)
    first.kill()
    const [row] = await first.store.list(origin, { limit: 1 })
    await first.store.update(spoil(row!) as typeof row & object, row!)
    network.script(created())
    const second = tab()
    await pass(60_000)
    const again = second.fetch('orders', order('a'))
    await pass(1000)
    await expect(again).rejects.toMatchObject({ code: 'record_set_aside', reason, intentId: 'a', key })
    expect(await second.fetch.intents.get('b')).toMatchObject({ state: 'succeeded' })
    expect(await second.fetch.intents.list()).toMatchObject({ setAside: [{ id: 'a', key, reason }] })
    expect(network.writes().filter(({ body }) => body === order('a').body)).toHaveLength(1)
    await second.fetch.intents.abandon('a', 'looked at the orders', { force: true })
    const anew = second.fetch('orders', order('a'))
    await pass(1000)
    expect((await anew).status).toBe(201)
  })
})

describe('P10: possible duplicates', () => {
  it('P10: a new name for what is in doubt is reported, naming it; the submit goes on', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({ retry: { baseMs: 60_000, capMs: 60_000 } })
    const first = await only.fetch('orders', order('a')).stored
    await pass(500)
    const second = await only.fetch('orders', order('b')).stored
    await pass(500)
    expect(second.possibleDuplicates).toEqual([{ intentId: 'a', key: first.key }])
    expect(only.notes).toContainEqual(
      expect.objectContaining({
        code: 'possible_duplicate',
        intentId: 'b',
        key: second.key,
        message: expect.stringContaining('"a"'),
      }),
    )
    expect(network.writes()).toHaveLength(2)
  })

  it('P10: an operation can refuse it: nothing is stored or sent, until the first one has an end', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({ operations: { pay: { duplicate: 'refuse' } }, retry: { attempts: 1 } })
    const pay = (intent: string) => only.fetch('pay', { ...order(intent), operation: 'pay' })
    const { key } = await pay('a').stored
    await pass(60_000)
    expect(await only.fetch.intents.get('a')).toMatchObject({ state: 'unknown' })
    const refused = pay('b')
    await pass(1000)
    await expect(refused).rejects.toMatchObject({
      code: 'possible_duplicate',
      intentId: 'b',
      duplicates: [{ intentId: 'a', key }],
    })
    expect([network.writes().length, await rows(only)]).toEqual([1, 1])
    await only.fetch.intents.resolve('a', 'succeeded', 'found in the ledger')
    network.script(created())
    const write = pay('b')
    await pass(1000)
    expect((await write).status).toBe(201)
  })

  it('P10: what is settled, has another content or another owner is no duplicate', async () => {
    const { network, tab, pass } = world()
    let user = 'ann'
    const only = tab({ scope: () => user, retry: { baseMs: 60_000, capMs: 60_000 } })
    void only.fetch('orders', order('settled'))
    await pass(1000)
    network.script(broken())
    void only.fetch('orders', order('doubted', { item: 'other' }))
    await pass(500)
    const one = only.fetch('orders', order('new'))
    await pass(500)
    user = 'bob'
    const two = only.fetch('orders', order('bobs', { item: 'other' }))
    await pass(500)
    expect([(await one.stored).possibleDuplicates, (await two.stored).possibleDuplicates]).toEqual([[], []])
  })
})

describe('P6: stores apart', () => {
  it('P6: the same name in another store is another intent', async () => {
    const { network, tab, pass } = world()
    for (const one of [tab({ store: memoryStore() }), tab({ store: memoryStore() })])
      void one.fetch('orders', order('a'))
    await pass(1000)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
  })
})
