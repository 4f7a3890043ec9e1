/** An exception in the app's own code never causes a second request (P28, B65). */
import ky from 'ky'
import { describe, expect, it } from 'vitest'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { created, honestServer, order, type TabOptions, world } from '../support/world.ts'

const minute = 60_000

function fail(): never {
  throw new Error('a bug in the app')
}

/** One order with an honest server, and the app's code failing where the options say. */
async function live(options: TabOptions) {
  const small = world()
  const server = honestServer()
  small.network.script(server.answer)
  const only = small.tab(options)
  await only.fetch('orders', order('checkout:1')).stored
  await small.pass(5 * minute)
  return { ...small, only, server, view: await only.fetch.intents.get('checkout:1') }
}

describe('P28, B65', () => {
  it('B65: an observer that throws changes nothing', async () => {
    const { view, network, server } = await live({ observer: fail })
    expect(view).toMatchObject({ state: 'succeeded', attempts: 1 })
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('P28: a subscriber that throws keeps the others from nothing', async () => {
    const { network, tab, pass } = world()
    network.script(created())
    const only = tab()
    only.fetch.subscribe(fail)
    const told: string[] = []
    only.fetch.subscribe((note) => note.type === 'state' && told.push(note.to))
    const write = only.fetch('orders', order('checkout:1'))
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(told).toEqual(expect.arrayContaining(['sending', 'succeeded']))
    expect(network.writes()).toHaveLength(1)
  })

  for (const [what, accept] of [
    ['throws', fail],
    ['rejects', () => Promise.reject(new Error('a bug in the app'))],
    ['never answers', () => new Promise<boolean>(() => {})],
  ] as const) {
    it(`B65: an accept() that ${what} counts as none: the answer is judged without it, and the bug is reported`, async () => {
      const { view, network, only } = await live({ operations: { orders: { match: () => true, accept } } })
      expect(view).toMatchObject({ state: 'succeeded', attempts: 1 })
      expect(network.writes()).toHaveLength(1)
      expect(only.notes).toContainEqual(expect.objectContaining({ type: 'warning', code: 'app_code_failed' }))
    })
  }

  it('P28: a dialect whose hint or pointer throws is judged by its tables, and the bug is reported', async () => {
    for (const dialect of [
      { ...samekey, hint: fail },
      { ...samekey, pointer: fail },
    ]) {
      const { view, network, only } = await live({ dialect })
      expect(view).toMatchObject({ state: 'succeeded', attempts: 1 })
      expect(network.writes()).toHaveLength(1)
      expect(only.notes).toContainEqual(expect.objectContaining({ type: 'warning', code: 'app_code_failed' }))
    }
  })

  it('P28: an auth() that throws sends nothing and leaves no doubt', async () => {
    const { view, network } = await live({ scope: () => 'ann', auth: fail })
    expect(view).toMatchObject({ state: 'blocked', detail: 'credentials', inDoubt: false, attempts: 0 })
    expect(network.calls).toHaveLength(0)
  })

  it('P28: an auth() whose header no request can carry sends nothing and leaves no doubt', async () => {
    const auth = async () => ({ scope: 'ann', headers: { authorization: 'Bearer a\nb' } })
    const { view, network, only } = await live({ scope: () => 'ann', auth })
    expect(view).toMatchObject({ state: 'blocked', detail: 'credentials', inDoubt: false, attempts: 0 })
    expect(network.calls).toHaveLength(0)
    expect(only.notes).toContainEqual(expect.objectContaining({ type: 'warning', code: 'auth_failed' }))
  })

  it('P28: a scopeTag() that throws, or gives what no header can carry, sends nothing and leaves no doubt', async () => {
    for (const scopeTag of [fail, () => 'a\nb']) {
      const { view, network } = await live({ scope: () => 'ann', scopeTag })
      expect(view).toMatchObject({ state: 'blocked', inDoubt: false, attempts: 0 })
      expect(network.calls).toHaveLength(0)
    }
  })

  it('P28, P3: a scope() that throws later is nobody: nothing is sent, nothing is in doubt', async () => {
    const { network, tab, pass } = world()
    network.script(created())
    let broken = false
    const only = tab({ scope: () => (broken ? fail() : 'ann') })
    await only.fetch('orders', order('checkout:1')).stored
    broken = true
    await pass(5 * minute)
    expect(network.calls).toHaveLength(0)
    broken = false
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ inDoubt: false })
    only.fetch.authChanged()
    await pass(1000)
    expect(network.calls).toHaveLength(1)
  })

  it('B65: a response hook of ky that throws after a 201: one POST, succeeded, and the caller gets the hook’s error', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    network.script(server.answer)
    const only = tab()
    const api = ky.create({
      fetch: only.fetch as typeof globalThis.fetch,
      retry: 0,
      timeout: false,
      hooks: { afterResponse: [fail] },
    })
    const write = api.post('https://api.example.com/orders', {
      json: { item: 'tea' },
      headers: { 'samekey-intent': 'checkout:1' },
    })
    const caught = write.then(
      () => null,
      (error: unknown) => error,
    )
    await pass(5 * minute)
    expect(await caught).toMatchObject({ message: 'a bug in the app' })
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', attempts: 1 })
    expect(network.writes()).toHaveLength(1)
    expect(server.total()).toBe(1)
  })

  it('B65: a parser that throws on the answer: one POST, and the answer can be read again', async () => {
    const { network, tab, pass } = world()
    network.script(created({ id: 9 }))
    const only = tab()
    const parsed = only.fetch('orders', order('checkout:1')).then(async (response) => {
      await response.text()
      return fail()
    })
    const caught = parsed.catch((error: unknown) => error)
    await pass(5 * minute)
    expect(await caught).toBeInstanceOf(Error)
    expect(await only.fetch('orders', order('checkout:1')).json()).toEqual({ id: 9 })
    expect(network.writes()).toHaveLength(1)
  })
})
