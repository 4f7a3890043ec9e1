import { request as nodeRequest, type RequestListener } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { ConfigError } from 'samekey/errors'
import { idempotent, json, memoryServerStore } from 'samekey/server'
import { nodeHandler } from 'samekey/server/node'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { listen, type Running } from '../support/adapters.ts'
import { gate, scope } from './world.ts'

let running: Running | undefined

afterEach(async () => {
  await running?.close()
  running = undefined
})

async function serve(listener: RequestListener): Promise<string> {
  running = await listen(listener)
  return running.url
}

function shop(executing: () => Promise<void> = () => Promise.resolve()) {
  const orders: string[] = []
  const handler = idempotent({
    store: memoryServerStore(),
    operation: 'orders.create',
    scope,
    async execute({ transaction, body }) {
      await executing()
      transaction.onCommit(() => orders.push(new TextDecoder().decode(body.bytes)))
      return json(201, { ok: true }, [['Set-Cookie', 'order=1']])
    },
  })
  return { handler, orders }
}

const submit = (url: string, body = '{"item":"tea"}') =>
  fetch(`${url}/orders`, {
    method: 'POST',
    body,
    headers: { authorization: 'ann', 'content-type': 'application/json', 'idempotency-key': 'k-1' },
  })

describe('nodeHandler', () => {
  it('what the handler throws is told, and the client hears 500 and no more', async () => {
    const onError = vi.fn()
    const failure = new Error('secret')
    const url = await serve(nodeHandler(() => Promise.reject(failure), { onError }))
    const response = await fetch(url)
    expect([response.status, await response.text()]).toEqual([500, ''])
    expect(onError.mock.calls).toEqual([[failure]])
  })

  it('is told on the console, where the app says nothing else', async () => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    const failure = new Error('secret')
    const url = await serve(
      nodeHandler(() => {
        throw failure
      }),
    )
    expect((await fetch(url)).status).toBe(500)
    expect(error).toHaveBeenCalledWith(expect.stringContaining('samekey'), failure)
  })

  it('an answer whose stream fails is cut, not ended, and the failure is told', async () => {
    const failure = new Error('the rest is missing')
    const { opened: told, open: tell } = gate()
    const onError = vi.fn(tell)
    const url = await serve(nodeHandler(() => new Response(streamThat(failure)), { onError }))
    await expect(fetch(url).then((response) => response.text())).rejects.toThrow()
    await told
    expect(onError.mock.calls).toEqual([[failure]])
  })

  it('null is 404, and so is a method that web requests cannot have', async () => {
    const onError = vi.fn()
    const url = await serve(nodeHandler(() => null, { onError }))
    expect((await fetch(url)).status).toBe(404)
    const status = await new Promise((resolve, reject) => {
      nodeRequest(url, { method: 'TRACE' }, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end()
    })
    expect(status).toBe(404)
    expect(onError).not.toHaveBeenCalled()
  })

  it('gives a Request of the platform’s own, addressed as the client did', async () => {
    const url = await serve(nodeHandler(async (request) => new Response(new Request(request).url)))
    const asked = async (path: string, host: string) => {
      const body = await new Promise<string>((resolve, reject) => {
        nodeRequest({ port: new URL(url).port, path, headers: { host } }, (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (more) => (text += more))
          response.on('end', () => resolve(text))
        })
          .on('error', reject)
          .end()
      })
      return body
    }
    expect(await asked('/a%2Fb/%2e%2e/c?d=%20', 'shop.test')).toBe('http://shop.test/c?d=%20')
    expect(await asked('//elsewhere.test/x', 'shop.test:81')).toBe('http://shop.test:81//elsewhere.test/x')
    expect(new URL(await asked('/x', 'shop.test/y?z')).pathname).toBe('/x')
  })

  it('keeps what others set before, and adds its cookies and Vary', async () => {
    const { handler } = shop()
    const listener = nodeHandler(async (request) => {
      const response = await handler(request)
      response.headers.append('Vary', 'Origin')
      return response
    })
    const url = await serve((request, response) => {
      response.setHeader('Set-Cookie', 'session=1').setHeader('Vary', 'Accept').setHeader('X-Frame-Options', 'DENY')
      listener(request, response)
    })
    const response = await submit(url)
    expect(response.headers.getSetCookie()).toEqual(['session=1', 'order=1'])
    expect(response.headers.get('vary')).toBe('Accept, Origin')
    expect(response.headers.get('x-frame-options')).toBe('DENY')
    expect(response.statusText).toBe('Created')
  })

  it('bytes that somebody kept are the body; a body that is gone is a mistake in the set-up, and no order', async () => {
    const { handler, orders } = shop()
    const onError = vi.fn()
    const listener = nodeHandler(handler, { onError })
    let keep = true
    const url = await serve(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      if (keep) Object.assign(request, { rawBody: Buffer.concat(chunks) })
      listener(request, response)
    })
    keep = false
    expect((await submit(url)).status).toBe(500)
    expect(onError.mock.calls).toEqual([[expect.any(ConfigError)]])
    expect(orders).toEqual([])
    keep = true
    expect((await submit(url, ' {"item":"tea"}')).status).toBe(201)
    expect(orders).toEqual([' {"item":"tea"}'])
  })

  it.each(['before', 'after'])(
    'a time limit answers %s the body was read: nobody is told more, and the key knows',
    async (when) => {
      const reached = gate()
      const { opened, open } = gate()
      const { opened: ended, open: end } = gate()
      const stall = async (here: string) => {
        if (here !== when) return
        reached.open()
        await opened
      }
      const { handler, orders } = shop(() => stall('after'))
      const onError = vi.fn()
      const listener = nodeHandler(
        async (request) => {
          await stall('before')
          const response = await handler(request)
          end()
          return response
        },
        { onError },
      )
      let impatient = true
      const url = await serve((request, response) => {
        listener(request, response)
        if (impatient) void reached.opened.then(() => response.writeHead(503).end('too slow'))
      })
      const late = await submit(url)
      expect([late.status, await late.text()]).toEqual([503, 'too slow'])
      open()
      await ended
      impatient = false
      const again = await submit(url)
      expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, when === 'after' ? 'true' : null])
      expect(orders).toHaveLength(1)
      expect(onError).not.toHaveBeenCalled()
    },
  )

  it('serves HTTP/2 too', async () => {
    const { handler, orders } = shop()
    const server = createHttp2Server(nodeHandler(handler))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const post = () =>
      new Promise<{ status: unknown; replayed: unknown; cookies: unknown }>((resolve, reject) => {
        const stream = session.request({
          ':method': 'POST',
          ':path': '/orders',
          authorization: 'ann',
          'content-type': 'application/json',
          'idempotency-key': 'k-1',
        })
        stream.on('error', reject).end('{"item":"tea"}')
        stream.on('response', (head) => {
          stream.resume()
          const { ':status': status, 'idempotent-replayed': replayed, 'set-cookie': cookies } = head
          stream.on('close', () => resolve({ status, replayed, cookies }))
        })
      })
    expect(await post()).toEqual({ status: 201, replayed: undefined, cookies: ['order=1'] })
    expect(await post()).toEqual({ status: 201, replayed: 'true', cookies: undefined })
    expect(orders).toEqual(['{"item":"tea"}'])
    await new Promise<void>((resolve) => session.close(resolve))
    await new Promise((resolve) => server.close(resolve))
  })
})

/** One chunk, and then the failure. */
function streamThat(failure: Error): ReadableStream<Uint8Array> {
  let begun = false
  return new ReadableStream({
    pull(controller) {
      if (begun) controller.error(failure)
      else controller.enqueue(new TextEncoder().encode('half of '))
      begun = true
    },
  })
}
