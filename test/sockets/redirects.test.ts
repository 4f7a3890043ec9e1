/** Redirects in Node (section 6, last row; H51, P40). */
import { describe, expect, it } from 'vitest'
import { type Handler, honest, live, proof, site } from '../support/sockets.ts'
import { order } from '../support/world.ts'

const session = {
  scope: () => 'ann',
  auth: async () => ({ scope: 'ann', headers: { authorization: 'Bearer secret' } }),
}

describe('section 6: redirects', () => {
  for (const status of [307, 308]) {
    it(`${status} on the same origin is followed within the attempt, with the same bytes, key and method`, async () => {
      const server = await site()
      const { handler, effects } = honest()
      server.script((_request, response) => response.writeHead(status, { location: '/v2/orders' }).end(), handler)
      const { fetch } = live(server.url, session)
      const write = fetch('/orders', order('checkout:1'))
      const { key } = await write.stored
      expect((await write).status).toBe(201)
      const [first, second] = server.received
      expect(second).toMatchObject({ method: 'POST', path: '/v2/orders', body: first?.body })
      expect(second?.headers['idempotency-key']).toBe(key)
      expect(second?.headers.authorization).toBe('Bearer secret')
      expect(second?.headers['content-type']).toBe('application/json')
      expect((await fetch.intents.get('checkout:1'))?.attempts).toBe(1)
      expect(effects.size).toBe(1)
    })

    it(`${status} to another origin is not followed: nothing of the request goes there, and it is in doubt`, async () => {
      const server = await site()
      const foreign = await site()
      const { handler } = honest()
      foreign.script(handler)
      server.script(
        (_request, response) => response.writeHead(status, { location: `${foreign.url}/orders` }).end(),
        handler,
      )
      const { fetch, until } = live(server.url)
      const write = fetch('/orders', order('checkout:1'))
      expect(await until(({ from }) => from === 'sending')).toMatchObject({ because: 'ambiguous', inDoubt: true })
      expect((await write).status).toBe(201)
      expect(foreign.received).toEqual([])
    })
  }

  it('a ring of redirects comes to an end: ambiguous', async () => {
    const server = await site()
    const { handler } = honest()
    const round: Handler = (_request, response) => response.writeHead(307, { location: '/orders' }).end()
    server.script(...Array<Handler>(6).fill(round), handler)
    const { fetch, until } = live(server.url)
    const write = fetch('/orders', order('checkout:1'))
    expect(await until(({ from }) => from === 'sending')).toMatchObject({ because: 'ambiguous' })
    expect((await write).status).toBe(201)
    expect(server.received).toHaveLength(7)
  })

  it('303 on the same origin with proof: done, and its answer fetched by GET, without the body', async () => {
    const server = await site()
    const { commit, effects } = honest()
    server.script(
      (request, response) => {
        commit(request)
        response.writeHead(303, { location: '/orders/9', ...proof() }).end()
      },
      (_request, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":9}'),
    )
    const { fetch } = live(server.url)
    expect(await fetch('/orders', order('checkout:1')).json()).toEqual({ id: 9 })
    const [, get] = server.received
    expect(get).toMatchObject({ method: 'GET', path: '/orders/9', body: '' })
    expect(get?.headers['content-type']).toBeUndefined()
    expect(get?.headers['content-length']).toBeUndefined()
    expect(await fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', attempts: 1 })
    expect(effects.size).toBe(1)
  })

  it('H51: the session is over: 303 to a login page that answers 200 is not success', async () => {
    const server = await site()
    const { handler, effects } = honest()
    server.script((_request, response) => response.writeHead(303, { location: '/login' }).end(), handler)
    const { fetch, until } = live(server.url)
    const write = fetch('/orders', order('checkout:1'))
    expect(await until(({ from }) => from === 'sending')).toMatchObject({ because: 'ambiguous', to: 'waiting' })
    expect((await write).status).toBe(201)
    expect(effects.size).toBe(1)
    expect(server.received.map(({ path }) => path)).toEqual(['/orders', '/orders'])
  })

  it('303 with proof whose page cannot be had: it was done, and nothing is executed again', async () => {
    const server = await site()
    const { commit, effects, handler } = honest()
    server.script(
      (request, response) => {
        commit(request)
        response.writeHead(303, { location: '/orders/9', ...proof() }).end()
      },
      (_request, response) => response.socket?.resetAndDestroy(),
      handler,
    )
    const { fetch } = live(server.url)
    expect((await fetch('/orders', order('checkout:1'))).status).toBe(201)
    expect(effects.size).toBe(1)
  })

  for (const status of [301, 302]) {
    it(`${status} is not followed: a POST would become a GET`, async () => {
      const server = await site()
      const { handler } = honest()
      server.script((_request, response) => response.writeHead(status, { location: '/orders' }).end(), handler)
      const { fetch, until } = live(server.url)
      const write = fetch('/orders', order('checkout:1'))
      expect(await until(({ from }) => from === 'sending')).toMatchObject({ because: 'ambiguous' })
      expect((await write).status).toBe(201)
      expect(server.received.map(({ method }) => method)).toEqual(['POST', 'POST'])
    })
  }
})
