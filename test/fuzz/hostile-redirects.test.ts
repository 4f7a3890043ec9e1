/** Redirects and monitors that lead in circles or elsewhere, over real sockets: bounded, and nothing secret goes along (P40). */
import { describe, expect, it } from 'vitest'
import { type Handler, honest, live, proof, type Received, site } from '../support/sockets.ts'
import { order } from '../support/world.ts'

const session = {
  scope: () => 'ann',
  auth: async () => ({ scope: 'ann', headers: { authorization: 'Bearer secret', cookie: 'sid=secret' } }),
}

const redirect =
  (status: number, location: string): Handler =>
  (_request, response) =>
    response.writeHead(status, { location }).end()

function secrets({ headers }: Received): string[] {
  return Object.entries(headers)
    .filter(([name, value]) => String(value).includes('secret') || name.startsWith('idempotency'))
    .map(([name]) => name)
}

describe('section 6: redirects without end', () => {
  for (const status of [307, 308]) {
    it(`${status} to itself for ever: five are followed in each attempt, and the intent ends unknown, not in a loop`, async () => {
      const server = await site()
      server.script(redirect(status, '/orders'))
      const { fetch } = live(server.url, { retry: { attempts: 3, baseMs: 1 } })
      await expect(fetch('/orders', order('checkout:1'))).rejects.toMatchObject({
        code: 'outcome_unknown',
        because: 'attempts_spent',
      })
      expect(server.received).toHaveLength(3 * 6)
      expect(new Set(server.received.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
      expect(new Set(server.received.map(({ body }) => body)).size).toBe(1)
    })

    it(`${status} from place to place: five are followed, the sixth is not`, async () => {
      for (const [hops, followed] of [
        [5, true],
        [6, false],
      ] as const) {
        const server = await site()
        const { handler, effects } = honest()
        server.script(...Array.from({ length: hops }, (_, n) => redirect(status, `/orders/${n}`)), handler)
        const { fetch } = live(server.url)
        expect((await fetch('/orders', order('checkout:1'))).status).toBe(201)
        expect((await fetch.intents.get('checkout:1'))?.attempts).toBe(followed ? 1 : 2)
        expect(effects.size).toBe(1)
      }
    })
  }

  it('P40: to another origin and back: nothing goes there, by whatever status or spelling', async () => {
    const foreign = await site()
    foreign.script((_request, response) => response.writeHead(201, proof()).end('{}'))
    const server = await site()
    const { handler } = honest()
    const targets = [foreign.url, foreign.url.replace('http:', ''), foreign.url.replace('//', '//user:pw@')]
    targets.push(`blob:${foreign.url}`)
    const statuses = [301, 302, 303, 307, 308]
    const bad = statuses.flatMap((status) => targets.map((target) => redirect(status, `${target}/orders`)))
    const withProof = targets.map<Handler>(
      (target) => (_request, response) => response.writeHead(303, { location: `${target}/orders`, ...proof() }).end(),
    )
    server.script(...bad, ...withProof, handler)
    const { fetch } = live(server.url, { ...session, retry: { attempts: 50, baseMs: 1, capMs: 2, budget: 100 } })
    expect((await fetch('/orders', { ...order('checkout:1'), credentials: 'include' })).status).toBe(201)
    expect(foreign.received).toEqual([])
    expect(server.received).toHaveLength(bad.length + withProof.length + 1)
  })
})

/** A server that takes the order as work, and whose monitor answers as told. */
async function working(location: (own: string) => string, ...polls: readonly Handler[]) {
  const server = await site()
  let rest = polls
  server.script((request, response) => {
    if (request.method === 'POST') {
      response.writeHead(202, { location: location(server.url), 'retry-after': '0', ...proof() }).end('{}')
      return
    }
    const [poll, ...others] = rest
    if (others.length > 0) rest = others
    poll?.(request, response)
  })
  return server
}

const says =
  (document: object): Handler =>
  (_request, response) =>
    response.writeHead(200, { 'content-type': 'application/json', 'retry-after': '0' }).end(JSON.stringify(document))
const done = says({ id: 'k', status: 'succeeded', response: { status: 201, headers: {}, body: '{"id":9}' } })

describe('P38, P39, P40: monitors', () => {
  for (const status of [301, 302, 303, 307, 308]) {
    it(`P39: one that redirects to itself by ${status} is asked again at its time, not without end, and its end is heard`, async () => {
      const loop = redirect(status, '/tasks/1')
      const followed = status === 307 || status === 308 ? 6 : 1
      const server = await working(() => '/tasks/1', ...Array<Handler>(2 * followed).fill(loop), done)
      const { fetch } = live(server.url, session)
      expect(await fetch('/orders', order('checkout:1')).json()).toEqual({ id: 9 })
      expect(server.received.filter(({ method }) => method === 'GET')).toHaveLength(2 * followed + 1)
      expect(server.received.filter(({ method }) => method === 'POST')).toHaveLength(1)
    })
  }

  it('P37: one that names another address with each answer is asked where it was stored, and nowhere else', async () => {
    const foreign = await site()
    const moving = ['/tasks/2', `${foreign.url}/tasks/3`, '//[', 'javascript:0'].map((monitor) =>
      says({ id: 'k', status: 'processing', monitor }),
    )
    const server = await working(() => '/tasks/1', ...moving, done)
    const { fetch } = live(server.url, session)
    expect(await fetch('/orders', order('checkout:1')).json()).toEqual({ id: 9 })
    const asked = server.received.filter(({ method }) => method === 'GET').map(({ path }) => path)
    expect(new Set(asked)).toEqual(new Set(['/tasks/1']))
    expect(foreign.received).toEqual([])
  })

  it('P40: one on another origin is refused, and gets nothing', async () => {
    const foreign = await site()
    foreign.script(done)
    const server = await working(() => `${foreign.url}/tasks/1`, done)
    const { fetch, until } = live(server.url, session)
    await fetch('/orders', { ...order('checkout:1'), credentials: 'include' }).stored
    await until(({ from, to }) => from === 'sending' && to !== 'processing')
    expect(foreign.received).toEqual([])
  })

  it('P40: one that is allowed is asked bare: no credentials, cookies, key or age, also after it redirects', async () => {
    const foreign = await site()
    foreign.script(redirect(307, '/tasks/2'), done)
    const server = await working(() => `${foreign.url}/tasks/1`)
    const { fetch } = live(server.url, { ...session, monitorOrigins: [foreign.url] })
    const { key } = await fetch('/orders', { ...order('checkout:1'), credentials: 'include' }).stored
    expect(await fetch('/orders', { ...order('checkout:1'), credentials: 'include' }).json()).toEqual({ id: 9 })
    expect(secrets(server.received[0]!)).toContain('authorization')
    expect(foreign.received.map(({ path }) => path)).toEqual(['/tasks/1', '/tasks/2'])
    expect(foreign.received.flatMap(secrets)).toEqual([])
    expect(JSON.stringify(foreign.received)).not.toContain(key)
  })
})
