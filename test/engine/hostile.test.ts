/** What an outsider broke, kept broken never again. */
import { describe, expect, it } from 'vitest'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import { failure, within } from '../support/within.ts'
import { type Answer, answer, broken, day, honestServer, later, order, type Tab, world } from '../support/world.ts'

const hour = 3600_000
const monitor =
  (document: unknown): Answer =>
  () =>
    Response.json(document)
const taken: Answer = (call) =>
  Response.json(
    {},
    { status: 202, headers: { location: '/tasks/1', 'idempotency-expires': formatHttpDate(call.at + day) } },
  )

function codes(tab: Tab): string[] {
  return tab.notes.filter((note) => note.type === 'warning').map(({ code }) => code)
}

describe('P11, P35: a `since` ahead of this device’s clock', () => {
  const dialect = ietf({ retentionMs: day })

  it('shows that the clock is slow: no age is known, so the key is not sent again (no second order)', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(server.answer)
    const since = clock.now()
    clock.jump(-2 * day)
    await pass(30 * hour)
    const only = tab({ dialect })
    const init = { ...order('checkout:1'), key: { derived: true as const, since } }
    expect(await failure(clock, hour, only.fetch('orders', init))).toMatchObject({ because: 'age_unknown' })
    expect(network.writes()).toHaveLength(0)
  })

  it('by a few seconds is two clocks that differ, and the order goes out', async () => {
    const { clock, network, tab } = world()
    network.script(() => Response.json({ id: 1 }, { status: 201 }))
    const init = { ...order('checkout:1'), key: { derived: true as const, since: clock.now() + 5000 } }
    const response = await within(clock, 10_000, tab({ dialect }).fetch('orders', init))
    expect(response.status).toBe(201)
  })

  it('beyond what a date can hold is a ConfigError, not an intent that is never sent', async () => {
    const { clock, tab } = world()
    const init = { ...order('checkout:1'), key: { derived: true as const, since: 1e300 } }
    expect(await failure(clock, 1000, tab().fetch('orders', init))).toMatchObject({ option: 'key.since' })
  })
})

describe('P23, P27: a monitor that is not sound', () => {
  it.each([{ x: 'a\r\nb: c' }, { 'a b': '1' }, { '': '1' }, { x: 'é€' }, { x: 'a\0b' }])(
    'headers that no answer can carry (%j) do not damage a record that succeeded',
    async (headers) => {
      const { clock, network, tab, pass } = world()
      const response = { status: 201, headers: { ...headers, etag: '"1"' }, body: '{"id":9}', bodyEncoding: 'utf8' }
      network.script(taken, monitor({ id: 'k', status: 'succeeded', response }))
      const only = tab()
      const outcome = await within(clock, 60_000, only.fetch('orders', order('checkout:1')).outcome())
      expect(outcome.state === 'succeeded' && (await outcome.response.json())).toEqual({ id: 9 })
      only.kill()
      await pass(day / 24)
      const again = await within(clock, 60_000, tab().fetch('orders', order('checkout:1')))
      expect([again.status, again.headers.get('etag')]).toEqual([201, '"1"'])
    },
  )

  it.each([
    ['failed', 201],
    ['succeeded', 500],
    ['succeeded', 404],
  ])('%s with status %i contradicts itself: no news, neither rejected nor succeeded', async (status, code) => {
    const { network, tab, pass } = world()
    network.script(taken, monitor({ id: 'k', status, response: { status: code, headers: {}, body: '' } }))
    const only = tab()
    only.fetch('orders', order('checkout:1')).catch(() => {})
    await pass(10_000)
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('processing')
  })

  it('P31, P39: a result that is always over is no loop: the request is repeated less and less often', async () => {
    const { network, tab, pass } = world()
    const over: Answer = (call) =>
      Response.json(
        { id: 'k', status: 'processing', monitor: '/tasks/1', resultExpiresAt: '2020-01-01T00:00:00Z' },
        { status: 202, headers: { 'idempotency-expires': formatHttpDate(call.at + day) } },
      )
    network.script(over)
    const only = tab()
    only.fetch('orders', order('checkout:1')).catch(() => {})
    await pass(10 * 60_000)
    expect(network.writes().length).toBeLessThan(40)
  })
})

describe('P32, P35: dates and waits that no clock shows', () => {
  it.each(['Fri, 31 Dec 9999 23:59:59 GMT', 'Sat, 01 Jan 0000 00:00:00 GMT'])(
    'a server whose Date is %s is sent to again: what cannot be said as a date is not told, and stops nothing',
    async (date) => {
      const { clock, network, tab } = world()
      const server = honestServer()
      network.script(answer(401, { date }), answer(503, { date }), server.answer)
      const only = tab({ waitMs: hour })
      expect((await within(clock, hour, only.fetch('orders', order('checkout:1')))).status).toBe(201)
      expect(network.writes()).toHaveLength(3)
      expect(codes(only)).not.toContain('store_failed')
    },
  )

  it.each([
    ['in a 202', { retryAfter: Number.MAX_SAFE_INTEGER }, { id: 'k', status: 'processing' }],
    ['in a monitor', {}, { id: 'k', status: 'processing', retryAfter: Number.MAX_SAFE_INTEGER }],
  ])('a wait of millions of years %s counts as ten, as in a header', async (_where, accepted, document) => {
    const { clock, network, tab, pass } = world()
    const headers = { location: '/tasks/1', 'idempotency-expires': formatHttpDate(clock.now() + day) }
    network.script(() => Response.json(accepted, { status: 202, headers }), monitor(document))
    const only = tab()
    only.fetch('orders', order('checkout:1')).catch(() => {})
    await pass(60_000)
    const dueAt = (await only.fetch.intents.get('checkout:1'))?.dueAt
    expect(dueAt).toBeGreaterThan(clock.now() + 9 * 365 * day)
    expect(dueAt).toBeLessThan(clock.now() + 11 * 365 * day)
  })
})

it.each(['gone', 7, Number.NaN])(
  'P23, P47: a row whose lease is no lease (%s) is set aside, and the others go on',
  async (odd) => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(broken())
    const before = tab()
    for (const id of ['bad', 'good']) before.fetch('orders', order(id, { id })).catch(() => {})
    await pass(1000)
    before.kill()
    const [row] = await before.store.list('https://api.example.com', { id: 'bad', limit: 1 })
    const lease = typeof odd === 'string' ? { leaseUntil: odd } : { token: odd }
    await before.store.update({ ...row!, ...lease } as never, { revision: row!.revision, token: row!.token })
    network.script(server.answer)
    const next = tab()
    await pass(hour)
    expect((await next.fetch.intents.get('good'))?.state).toBe('succeeded')
    expect((await next.fetch.intents.list()).setAside).toEqual([{ id: 'bad', key: row!.key, reason: 'damaged' }])
    expect(await failure(clock, 1000, next.fetch.intents.cancel('bad'))).toMatchObject({ code: 'record_set_aside' })
  },
)

describe('P3, P33: auth', () => {
  it('that gives no credentials blocks the intent and nothing else (no busy loop)', async () => {
    const { network, tab, pass } = world()
    const auth = (() => null) as never
    const only = tab({ scope: () => 'alice', auth })
    only.fetch('orders', order('checkout:1')).catch(() => {})
    await pass(10_000)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'blocked', detail: 'credentials' })
    expect(network.calls).toHaveLength(0)
  })

  it('that gives a Headers object sends what is in it, and a value that is no text is refused and told, without the value', async () => {
    const { network, tab, pass } = world()
    let headers: unknown = { authorization: undefined }
    const only = tab({ scope: () => 'alice', auth: (() => ({ scope: 'alice', headers })) as never })
    only.fetch('orders', order('checkout:1')).catch(() => {})
    await pass(1000)
    expect([network.calls.length, codes(only).includes('auth_failed')]).toEqual([0, true])
    headers = { authorization: 'Bearer s3cret\r\nx: y' }
    only.fetch.authChanged()
    await pass(1000)
    expect(String(only.notes.map((note) => 'error' in note && note.error))).not.toContain('s3cret')
    headers = new Headers({ authorization: 'Bearer 1' })
    only.fetch.authChanged()
    await pass(1000)
    expect(network.calls.map((call) => call.headers.authorization)).toEqual(['Bearer 1'])
  })

  it('renewed while the attempt with the old token is under way: its 401 does not put the intent to sleep', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(later(clock, 500, answer(401)), server.answer)
    let token = 'old'
    const auth = () => ({ scope: 'alice', headers: { authorization: token } })
    const only = tab({ scope: () => 'alice', auth })
    const write = only.fetch('orders', order('checkout:1'))
    await pass(100)
    token = 'new'
    only.fetch.authChanged()
    expect((await within(clock, 10_000, write)).status).toBe(201)
    expect(network.writes().map(({ headers }) => headers.authorization)).toEqual(['old', 'new'])
  })

  it('renewed by an observer in the moment of being blocked: it goes on at once', async () => {
    const { clock, network, tab } = world()
    const server = honestServer()
    network.script(answer(401), server.answer)
    let renewed = false
    const only: Tab = tab({
      scope: () => 'alice',
      auth: () => ({ scope: 'alice', headers: { authorization: String(renewed) } }),
      observer: (note) => {
        if (note.type !== 'state' || note.to !== 'blocked' || renewed) return
        renewed = true
        only.fetch.authChanged()
      },
    })
    expect((await within(clock, 10_000, only.fetch('orders', order('checkout:1')))).status).toBe(201)
  })
})

describe('P36: before anything is stored', () => {
  const endless = () => new ReadableStream({ pull: () => new Promise(() => {}) })
  const hanging = (intent: string) => ({ intent, method: 'POST', body: endless() })

  it('a body that never ends holds its caller no longer than waitMs', async () => {
    const { clock, tab } = world()
    const write = tab().fetch('orders', { ...hanging('checkout:1'), waitMs: 300 })
    expect(await failure(clock, 1000, write)).toMatchObject({ code: 'still_open', detail: 'not_stored' })
  })

  it('an abort ends the submit, says that nothing was stored, and frees the name', async () => {
    const { clock, network, tab, pass } = world()
    network.script(honestServer().answer)
    const only = tab()
    const abort = new AbortController()
    const write = only.fetch('orders', { ...hanging('checkout:1'), signal: abort.signal })
    await pass(100)
    abort.abort()
    expect(String(await failure(clock, 5000, write))).toContain('was not stored')
    expect((await within(clock, 5000, only.fetch('orders', order('checkout:1')))).status).toBe(201)
  })

  it('a client that stops is not held up by it', async () => {
    const { clock, tab, pass } = world()
    const only = tab()
    only.fetch('orders', hanging('checkout:1')).catch(() => {})
    await pass(100)
    await within(clock, 6000, only.fetch.stop())
  })
})

describe('P45: a note', () => {
  it('that is no text is a ConfigError, and the record stays readable', async () => {
    const { network, tab, pass } = world()
    network.script(broken())
    const only = tab({ retry: { attempts: 1 } })
    only.fetch('orders', order('checkout:1')).catch(() => {})
    await pass(60_000)
    await expect(only.fetch.intents.abandon('checkout:1', 5 as never)).rejects.toMatchObject({ option: 'note' })
    expect((await only.fetch.intents.get('checkout:1'))?.state).toBe('unknown')
  })
})

it('P51: a monitor with a password in its address is refused, not stored', async () => {
  const { network, tab, pass } = world()
  network.script((call) =>
    Response.json(
      {},
      {
        status: 202,
        headers: {
          location: 'https://u:s3cret@api.example.com/tasks/1',
          'idempotency-expires': formatHttpDate(call.at + day),
        },
      },
    ),
  )
  const only = tab()
  only.fetch('orders', order('checkout:1')).catch(() => {})
  await pass(1000)
  const rows = await only.store.list('https://api.example.com', { limit: 9 })
  expect(JSON.stringify(rows)).not.toContain('s3cret')
  expect(codes(only)).toContain('monitor_refused')
})

it.each([
  [
    'intentOf',
    {
      intentOf: () => {
        throw new Error('mine')
      },
    },
  ],
  [
    'operations.orders.match',
    {
      operations: {
        orders: {
          match: () => {
            throw new Error('mine')
          },
        },
      },
    },
  ],
])('P28: %s that throws is a ConfigError that names it, and nothing is sent by guess', async (option, options) => {
  const { clock, network, tab } = world()
  const write = tab(options).fetch('orders', { method: 'POST', body: '{}' })
  expect(await failure(clock, 1000, write)).toMatchObject({ code: 'config', option })
  expect(network.calls).toHaveLength(0)
})
