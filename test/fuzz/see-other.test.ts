/** A 303 with proof says that it was done. Its page may say what it likes: only the body is missing (section 6, P27). */
import { describe, expect, it } from 'vitest'
import { type Handler, honest, live, proof, site } from '../support/sockets.ts'
import { order } from '../support/world.ts'

const session = {
  scope: () => 'ann',
  auth: async () => ({ scope: 'ann', headers: { authorization: 'Bearer secret' } }),
}

/** What the page of the result answers instead of the result. */
const pages: Readonly<Record<string, Handler>> = {
  '404': (_request, response) => response.writeHead(404).end(),
  '422': (_request, response) => response.writeHead(422).end('{}'),
  '401': (_request, response) => response.writeHead(401).end(),
  '429': (_request, response) => response.writeHead(429, { 'retry-after': '0' }).end(),
  '500': (_request, response) => response.writeHead(500).end(),
  'a problem of the protocol': (_request, response) =>
    response
      .writeHead(409, { 'content-type': 'application/problem+json' })
      .end('{"code":"idempotency_voided","type":"about:blank"}'),
  'another 303 without proof': (_request, response) => response.writeHead(303, { location: '/login' }).end(),
  'a 303 to itself, with proof, for ever': (_request, response) =>
    response.writeHead(303, { location: '/orders/9', ...proof() }).end(),
  'a 302 elsewhere': (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
  'a connection that breaks': (_request, response) => response.socket?.resetAndDestroy(),
  'nothing at all': () => {},
}

describe('P27, P42, section 6: after a 303 with proof', () => {
  for (const [name, page] of Object.entries(pages)) {
    it(`${name} in place of the page: succeeded without body, never rejected, blocked or unknown`, async () => {
      const server = await site()
      const { commit, effects } = honest()
      server.script((request, response) => {
        if (request.method === 'GET') return page(request, response)
        commit(request)
        response.writeHead(303, { location: '/orders/9', ...proof() }).end()
      })
      const { fetch, notes } = live(server.url, {
        ...session,
        retry: { attempts: 3, baseMs: 1 },
        attemptTimeoutMs: 200,
      })
      const response = await fetch('/orders', order('checkout:1'))
      expect(await fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', attempts: 3 })
      await expect(response.text()).rejects.toMatchObject({ code: 'body_not_stored' })
      expect(effects.size).toBe(1)
      const seen = notes.flatMap((note) => (note.type === 'state' ? [note.to] : []))
      expect(seen.filter((state) => state === 'blocked' || state === 'rejected' || state === 'cancelled')).toEqual([])
    })
  }
})
