import { request as nodeRequest } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify'
import { ConfigError } from 'samekey/errors'
import { idempotencyRoutes, idempotent, json, memoryServerStore } from 'samekey/server'
import { fastifyHandler, rawBodies } from 'samekey/server/fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { gate, scope as whose } from './world.ts'

let app: FastifyInstance | undefined

afterEach(async () => {
  await app?.close()
  app = undefined
})

function serve(served: FastifyInstance): Promise<string> {
  app = served
  return served.listen({ host: '127.0.0.1', port: 0 })
}

function shop() {
  const orders: string[] = []
  const handler = idempotent({
    store: memoryServerStore(),
    operation: 'orders.create',
    scope: whose,
    limits: { requestBytes: 1000 },
    execute({ transaction, body, request }) {
      transaction.onCommit(() => orders.push(new TextDecoder().decode(body.bytes)))
      return json(201, { at: request.url }, [['Set-Cookie', 'order=1']])
    },
  })
  const keys = idempotencyRoutes({ keysUrl: '/idempotency-keys', operations: [handler] })
  const routes: FastifyPluginAsync = async (scope) => {
    rawBodies(scope)
    scope.post('/orders', fastifyHandler(handler))
    scope.all('/*', fastifyHandler(keys))
  }
  return { handler, orders, routes }
}

const headers = { authorization: 'ann', 'content-type': 'application/json', 'idempotency-key': 'k-1' }
const body = ' {"item": "tea"}\n'
const submit = (url: string, more: Record<string, string> = {}, content = body) =>
  fetch(`${url}/orders`, { method: 'POST', body: content, headers: { ...headers, ...more } })

describe('fastifyHandler', () => {
  it('is encapsulated: other routes keep their parsers and their limit', async () => {
    const { orders, routes } = shop()
    const served = fastify({ bodyLimit: 20 })
    served.register(routes, { prefix: '/v1' })
    served.post('/echo', (request, reply) => reply.send(request.body))
    const url = await serve(served)
    const echo = (content: string) => fetch(`${url}/echo`, { method: 'POST', headers, body: content })
    expect(await (await echo(body)).json()).toEqual({ item: 'tea' })
    expect((await echo(`"${'x'.repeat(20)}"`)).status).toBe(413)
    const long = `"${'x'.repeat(900)}"`
    expect((await submit(`${url}/v1`, {}, long)).status).toBe(201)
    const tooLong = await submit(`${url}/v1`, { 'idempotency-key': 'k-2' }, `"${'x'.repeat(1000)}"`)
    expect([tooLong.status, tooLong.headers.get('content-type')]).toEqual([413, 'application/problem+json'])
    expect(orders).toEqual([long])
  })

  it.each(['application/json; charset=utf-8', 'text/plain', 'application/x-own', ''])(
    'P14: a body of type %j arrives as its bytes',
    async (type) => {
      const { orders, routes } = shop()
      const url = await serve(fastify().register(routes))
      const sent = Readable.toWeb(Readable.from([Buffer.from(body)])) as ReadableStream
      const { authorization } = headers
      const init: RequestInit & { duplex: 'half' } = {
        method: 'POST',
        body: sent,
        duplex: 'half',
        headers: { authorization, 'idempotency-key': 'k-1', ...(type !== '' && { 'content-type': type }) },
      }
      expect((await fetch(`${url}/orders`, init)).status).toBe(201)
      expect(orders).toEqual([body])
    },
  )

  it('a body that was parsed is a mistake that the error handler hears of, and no order', async () => {
    const { handler, orders } = shop()
    const errors: unknown[] = []
    const served = fastify()
    served.setErrorHandler((error, _request, reply) => {
      errors.push(error)
      return reply.code(500).send({ error: 'told by Fastify' })
    })
    served.post('/orders', fastifyHandler(handler))
    const response = await submit(await serve(served))
    expect([response.status, await response.json()]).toEqual([500, { error: 'told by Fastify' }])
    expect(errors).toEqual([expect.any(ConfigError)])
    expect(errors).toMatchObject([{ option: 'fastifyHandler', message: expect.stringContaining('rawBodies(scope)') }])
    expect(orders).toEqual([])
  })

  it('a parser of the app’s own that gives the bytes will do', async () => {
    const { handler, orders } = shop()
    const served = fastify()
    served.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))
    served.post('/orders', fastifyHandler(handler))
    expect((await submit(await serve(served))).status).toBe(201)
    expect(orders).toEqual([body])
  })

  it('a stream that a hook put in its place is the body', async () => {
    const { orders, routes } = shop()
    const served = fastify()
    served.addHook('preParsing', async (_request, _reply, payload) => {
      const chunks: Buffer[] = []
      for await (const chunk of payload) chunks.push(chunk as Buffer)
      return Readable.from([Buffer.concat(chunks).subarray(1)])
    })
    served.register(routes)
    expect((await submit(await serve(served))).status).toBe(201)
    expect(orders).toEqual([body.slice(1)])
  })

  it('F3: half a body of a client that is gone breaks off behind such a hook too', async () => {
    const { handler, orders } = shop()
    const { opened: entered, open: enter } = gate()
    let answered = (_status: number): void => {}
    const answer = new Promise<number>((resolve) => {
      answered = resolve
    })
    const served = fastify()
    served.addHook('preParsing', (_request, _reply, payload, done) => done(null, payload.pipe(new PassThrough())))
    const routes: FastifyPluginAsync = async (scope) => {
      rawBodies(scope)
      const watched = async (request: Request) => {
        enter()
        const response = await handler(request)
        answered(response.status)
        return response
      }
      scope.post('/orders', fastifyHandler(watched))
    }
    served.register(routes)
    const client = nodeRequest(`${await serve(served)}/orders`, { method: 'POST', headers })
    client.on('error', () => {})
    client.write(body)
    await entered
    client.destroy()
    expect(await answer).toBe(400)
    expect(orders).toEqual([])
  })

  it('hooks, headers and cookies of the app stay; what the handler throws is Fastify’s', async () => {
    const { routes } = shop()
    const served = fastify()
    served.addHook('onRequest', async (_request, reply) => {
      reply.header('set-cookie', 'session=1').header('x-frame-options', 'DENY')
    })
    served.register(routes)
    served.get(
      '/broken',
      fastifyHandler(() => {
        throw Object.assign(new Error('not today'), { statusCode: 418 })
      }),
    )
    const url = await serve(served)
    const first = await submit(url)
    expect(first.headers.getSetCookie()).toEqual(['session=1', 'order=1'])
    expect(first.headers.get('x-frame-options')).toBe('DENY')
    expect((await submit(url)).headers.getSetCookie()).toEqual(['session=1'])
    expect((await fetch(`${url}/broken`)).status).toBe(418)
  })

  it('prefixes and trusted proxies: the URL is the client’s; null is the app’s “not found”', async () => {
    const { routes } = shop()
    const served = fastify({ trustProxy: 'loopback' })
    served.setNotFoundHandler((_request, reply) => void reply.code(404).send({ error: 'told by Fastify' }))
    const outer: FastifyPluginAsync = async (scope) => void scope.register(routes, { prefix: '/shop' })
    served.register(outer, { prefix: '/v1' })
    const url = `${await serve(served)}/v1/shop`
    const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'shop.example' }
    expect(await (await submit(url, proxied)).json()).toEqual({ at: 'https://shop.example/v1/shop/orders' })
    const foreign = await fetch(`${url}/elsewhere`)
    expect([foreign.status, await foreign.json()]).toEqual([404, { error: 'told by Fastify' }])
  })
})
