import { describe, expect, it } from 'vitest'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import { within } from '../support/within.ts'
import { type Answer, type Call, day, order, origin, type TabOptions, world } from '../support/world.ts'

const elsewhere = 'https://jobs.example.net'

/** A client with a session and a cookie, which must not travel. */
const signedIn = {
  scope: () => 'ann',
  auth: () => ({ scope: 'ann', headers: { authorization: 'Bearer secret', 'x-api-key': 'secret' } }),
} satisfies TabOptions

function acceptsAt(location: string): Answer {
  return (call) =>
    Response.json({}, { status: 202, headers: { location, 'idempotency-expires': formatHttpDate(call.at + day) } })
}

const done: Answer = () =>
  Response.json({ id: 'job-7', status: 'succeeded', response: { status: 201, headers: {}, body: '{}' } })

/** Writes are accepted with this monitor; reads are answered by `reads`. */
function split(location: string, reads: Answer): Answer {
  return (call, request) => (call.method === 'POST' ? acceptsAt(location) : reads)(call, request)
}

function secrets(call: Call): string[] {
  return Object.entries(call.headers)
    .filter(([name, value]) => /secret/.test(value) || /authorization|cookie|api-key|idempotency/.test(name))
    .map(([name]) => name)
}

const withCookies = (intent: string): ReturnType<typeof order> => ({ ...order(intent), credentials: 'include' })

describe('P40, B94: a monitor on another origin', () => {
  it('P40, B94: is refused where the app does not allow it: nothing goes there, and the app is told', async () => {
    for (const location of [
      `${elsewhere}/jobs/7`,
      '//jobs.example.net/jobs/7',
      'http://api.example.com/jobs/7',
      'ftp://api.example.com/jobs/7',
      'javascript:alert(1)',
      `https://api.example.com:8443/jobs/7`,
    ]) {
      const { clock, network, tab } = world()
      network.script(split(location, done))
      const only = tab(signedIn)
      await within(clock, 60_000, only.fetch('orders', withCookies('checkout:1')).stored)
      expect(
        network.calls.filter(({ url }) => new URL(url).origin !== origin),
        location,
      ).toEqual([])
      expect(network.calls.filter(({ method }) => method === 'GET')).toEqual([])
      expect(only.notes, location).toContainEqual(expect.objectContaining({ code: 'monitor_refused' }))
    }
  })

  it('P40, B94: is followed bare where the app allows it: no credentials, cookies, key or age', async () => {
    const { clock, network, tab } = world()
    network.script(split(`${elsewhere}/jobs/7`, done))
    const only = tab({ ...signedIn, monitorOrigins: [elsewhere] })
    const outcome = await within(clock, 60_000, only.fetch('orders', withCookies('checkout:1')).outcome())
    expect(outcome.state).toBe('succeeded')
    const [post, poll] = network.calls
    expect(secrets(post!)).toContain('authorization')
    expect(post?.credentials).toBe('include')
    expect(poll?.url).toBe(`${elsewhere}/jobs/7`)
    expect(secrets(poll!)).toEqual([])
    expect(poll?.credentials).toBe('omit')
    expect(JSON.stringify(poll)).not.toContain(outcome.key)
  })

  it('P40: even an allowed origin gets no credentials because it stands in credentialOrigins', async () => {
    const { clock, network, tab } = world()
    network.script(split(`${elsewhere}/jobs/7`, done))
    const only = tab({ ...signedIn, monitorOrigins: [elsewhere], credentialOrigins: [origin, elsewhere] })
    await within(clock, 60_000, only.fetch('orders', withCookies('checkout:1')).outcome())
    expect(secrets(network.calls[1]!)).toEqual([])
  })

  it('P40: an allowance that was withdrawn holds for stored monitors too: it counts as missing', async () => {
    const { clock, network, tab } = world()
    network.script(split(`${elsewhere}/jobs/7`, () => Response.json({ id: 'job-7', status: 'processing' })))
    const before = tab({ ...signedIn, monitorOrigins: [elsewhere] })
    await within(clock, 5000, before.fetch('orders', withCookies('checkout:1')).stored)
    before.kill()
    const seen = network.calls.length
    expect(seen).toBeGreaterThan(1)
    const after = tab(signedIn)
    await clock.advance(10 * 60_000)
    expect(network.calls.slice(seen).filter(({ url }) => url.startsWith(elsewhere))).toEqual([])
    // The same key is asked for again instead, which the server answers as before.
    expect(network.writes().length).toBeGreaterThan(1)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(1)
    expect(after.notes).toContainEqual(
      expect.objectContaining({ code: 'monitor_refused', message: expect.stringContaining('monitorOrigins') }),
    )
    expect(await after.fetch.intents.get('checkout:1')).toMatchObject({ state: 'waiting', inDoubt: true })
  })

  it('P40: never from https to http, even where the app allows that origin', async () => {
    const { clock, network, tab } = world()
    network.script(split('http://jobs.example.net/jobs/7', done))
    const only = tab({ ...signedIn, monitorOrigins: ['http://jobs.example.net'] })
    await within(clock, 60_000, only.fetch('orders', withCookies('checkout:1')).stored)
    expect(network.calls.filter(({ method }) => method === 'GET')).toEqual([])
    expect(only.notes).toContainEqual(
      expect.objectContaining({ code: 'monitor_refused', message: expect.stringContaining('never asked') }),
    )
  })

  for (const [where, target] of Object.entries({
    'another origin': `${elsewhere}/jobs/7`,
    'plain http': 'http://api.example.com/jobs/7',
  })) {
    for (const status of [301, 302, 303, 307, 308]) {
      it(`P40, B94: a ${status} of the monitor to ${where} is not followed`, async () => {
        const { clock, network, tab } = world()
        network.script(split('/jobs/7', () => new Response(null, { status, headers: { location: target } })))
        const only = tab(signedIn)
        await within(clock, 60_000, only.fetch('orders', withCookies('checkout:1')).stored)
        const polls = network.calls.filter(({ method }) => method === 'GET')
        expect(polls.length).toBeGreaterThan(1)
        expect(new Set(polls.map(({ url }) => url))).toEqual(new Set([`${origin}/jobs/7`]))
      })
    }
  }

  it('P40, section 6: the request itself is never redirected to another origin with its credentials', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      const { clock, network, tab } = world()
      network.script(() => new Response(null, { status, headers: { location: `${elsewhere}/orders` } }))
      const only = tab(signedIn)
      await within(clock, 60_000, only.fetch('orders', withCookies('checkout:1')).stored)
      expect(new Set(network.calls.map(({ url }) => new URL(url).origin))).toEqual(new Set([origin]))
    }
  })

  it('P40: a blob: address has the origin of the server, and is no place on it: nothing is sent there', async () => {
    for (const status of [303, 307, 308]) {
      const { clock, network, tab } = world()
      const headers = { location: `blob:${origin}/orders`, 'idempotency-expires': 'Wed, 02 Dec 2026 12:00:00 GMT' }
      network.script(() => new Response(null, { status, headers }))
      await within(clock, 60_000, tab(signedIn).fetch('orders', withCookies('checkout:1')).stored)
      expect(new Set(network.calls.map(({ url }) => url))).toEqual(new Set([`${origin}/orders`]))
    }
  })

  it('P40: a pointer to what an earlier attempt made is followed on the own origin only', async () => {
    const pointing = { ...ietf({ retentionMs: day }), pointer: () => `${elsewhere}/orders/9` }
    const { clock, network, tab } = world()
    network.script(() => Response.json({}, { status: 409 }))
    const only = tab({ ...signedIn, dialect: pointing })
    await within(clock, 60_000, only.fetch('orders', withCookies('checkout:1')).stored)
    expect(network.calls.filter(({ url }) => url.startsWith(elsewhere))).toEqual([])
  })
})
