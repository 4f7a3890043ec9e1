import express, { type ErrorRequestHandler, Router } from 'express'
import { ConfigError } from 'samekey/errors'
import { idempotencyRoutes, idempotent, json, memoryServerStore } from 'samekey/server'
import { expressHandler } from 'samekey/server/express'
import { afterEach, describe, expect, it } from 'vitest'
import { sha256Hex } from '../../src/protocol/sha256.ts'
import { listen, type Running } from '../support/adapters.ts'
import { gate, scope } from './world.ts'

let running: Running | undefined

afterEach(async () => {
  await running?.close()
  running = undefined
})

async function serve(app: express.Express): Promise<string> {
  running = await listen(app)
  return running.url
}

function shop() {
  const orders: string[] = []
  const handler = idempotent({
    store: memoryServerStore(),
    operation: 'orders.create',
    scope,
    execute({ transaction, body, request }) {
      transaction.onCommit(() => orders.push(new TextDecoder().decode(body.bytes)))
      return json(201, { at: request.url })
    },
  })
  return { handler, orders, keys: idempotencyRoutes({ keysUrl: '/idempotency-keys', operations: [handler] }) }
}

/** Collects what `next` was given. */
function collect(errors: unknown[], told: (count: number) => void = () => {}): ErrorRequestHandler {
  return (error, _request, response, _next) => {
    told(errors.push(error))
    if (response.headersSent) response.destroy()
    else response.status(500).json({ error: 'told by Express' })
  }
}

const headers = { authorization: 'ann', 'content-type': 'application/json', 'idempotency-key': 'k-1' }
const body = ' {"item": "tea"}\n'
const submit = (url: string, more: Record<string, string> = {}) =>
  fetch(`${url}/orders`, { method: 'POST', body, headers: { ...headers, ...more } })

describe('expressHandler', () => {
  it('a body that was parsed before is a mistake that `next` hears of, and no order', async () => {
    const { handler, orders, keys } = shop()
    const errors: unknown[] = []
    const app = express()
    app.use(express.json(), expressHandler(keys))
    app.post('/orders', expressHandler(handler))
    app.use(collect(errors))
    const response = await submit(await serve(app))
    expect([response.status, await response.json()]).toEqual([500, { error: 'told by Express' }])
    expect(errors).toEqual([expect.any(ConfigError)])
    expect(errors).toMatchObject([{ code: 'config', option: 'expressHandler' }])
    expect(String(errors[0])).toMatch(/before the body parser.*verify/s)
    expect(orders).toEqual([])
  })

  it('P14: bytes that the parser kept are the body, as they came', async () => {
    const { handler, orders, keys } = shop()
    const app = express()
    app.use(express.json({ verify: (request, _response, bytes) => Object.assign(request, { rawBody: bytes }) }))
    app.post('/orders', expressHandler(handler))
    app.use(expressHandler(keys))
    const url = await serve(app)
    expect((await submit(url)).status).toBe(201)
    expect((await submit(url)).headers.get('idempotent-replayed')).toBe('true')
    expect(orders).toEqual([body])
    const monitor = await fetch(`${url}/idempotency-keys/orders.create/k-1`, { headers })
    expect(await monitor.json()).toMatchObject({ requestDigest: sha256Hex(body) })
  })

  it('a body that is empty needs no bytes', async () => {
    const { handler, orders } = shop()
    const app = express()
    app.use(express.json())
    app.post('/orders', expressHandler(handler))
    const { authorization } = headers
    const post = async () =>
      fetch(`${running?.url}/orders`, { method: 'POST', headers: { authorization, 'idempotency-key': 'k-1' } })
    await serve(app)
    expect((await post()).status).toBe(201)
    expect(orders).toEqual([''])
  })

  it('what is not its business goes on to the next handler, the body still unread', async () => {
    const { keys } = shop()
    const app = express()
    app.use(expressHandler(keys), express.json())
    app.post('/orders', (request, response) => void response.json(request.body))
    const response = await submit(await serve(app))
    expect(await response.json()).toEqual({ item: 'tea' })
  })

  it('mounted routers and trusted proxies: the URL is the client’s', async () => {
    const { handler } = shop()
    const app = express().set('trust proxy', 'loopback')
    const router = Router().post('/orders', expressHandler(handler))
    app.use('/v1', Router().use('/shop', router))
    const url = `${await serve(app)}/v1/shop`
    const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'shop.example' }
    expect(await (await submit(url, proxied)).json()).toEqual({ at: 'https://shop.example/v1/shop/orders' })
    const elsewhere = await submit(url, { 'idempotency-key': 'k-2' })
    expect(await elsewhere.json()).toEqual({ at: `${url}/orders` })
    const nonsense = { 'idempotency-key': 'k-3', 'x-forwarded-proto': 'javascript', 'x-forwarded-host': 'a:b:c' }
    expect(await (await submit(url, nonsense)).json()).toEqual({ at: `${url}/orders` })
  })

  it('without trust, a proxy’s word counts for nothing', async () => {
    const { handler } = shop()
    const app = express()
    app.post('/orders', expressHandler(handler))
    const url = await serve(app)
    const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'shop.example' }
    expect(await (await submit(url, proxied)).json()).toEqual({ at: `${url}/orders` })
  })

  it('what the handler throws goes to `next`, at once or later', async () => {
    const errors: unknown[] = []
    const { opened: told, open: tell } = gate()
    const failure = new Error('broken')
    const app = express()
    app.get(
      '/now',
      expressHandler(() => {
        throw failure
      }),
    )
    app.get(
      '/later',
      expressHandler(() => Promise.reject(failure)),
    )
    app.get(
      '/half',
      expressHandler(() => new Response(halfOf(failure))),
    )
    app.use(collect(errors, (count) => count === 3 && tell()))
    const url = await serve(app)
    expect((await fetch(`${url}/now`)).status).toBe(500)
    expect((await fetch(`${url}/later`)).status).toBe(500)
    await expect(fetch(`${url}/half`).then((response) => response.text())).rejects.toThrow()
    await told
    expect(errors).toEqual([failure, failure, failure])
  })

  it('middleware that looks at the head as it is written sees every header', async () => {
    const { handler } = shop()
    const seen: unknown[] = []
    const app = express()
    app.use((_request, response, next) => {
      const { writeHead } = response
      // As session, compression and logging middleware do.
      response.writeHead = function (this: typeof response, ...args: [number]) {
        seen.push(this.getHeader('content-type'), this.getHeader('idempotency-expires'))
        return writeHead.apply(this, args)
      } as typeof writeHead
      next()
    })
    app.post('/orders', expressHandler(handler))
    const response = await submit(await serve(app))
    expect(seen).toEqual(['application/json', response.headers.get('idempotency-expires')])
  })
})

function halfOf(failure: Error): ReadableStream<Uint8Array> {
  let begun = false
  return new ReadableStream({
    pull(controller) {
      if (begun) controller.error(failure)
      else controller.enqueue(new TextEncoder().encode('half of '))
      begun = true
    },
  })
}
