/** What arrives at a real server when a request is repeated, by us or by a layer below (B12, B13, B54, P26, P30). */
import { describe, expect, it, onTestFinished } from 'vitest'
import { honest, live, proof, rawSite, type Site, site } from '../support/sockets.ts'
import { order } from '../support/world.ts'

interface Dispatcher {
  dispatch(options: DispatchOptions, handler: object): boolean
  compose(interceptor: (dispatch: Dispatcher['dispatch']) => Dispatcher['dispatch']): Dispatcher
}

interface DispatchOptions {
  readonly body?: AsyncIterable<Uint8Array> | Uint8Array | null
}

const globalDispatcher = Symbol.for('undici.globalDispatcher.1')

/** Replaces Node's own dispatcher until the test is over. */
function useDispatcher(make: (own: Dispatcher) => Dispatcher): void {
  const holder = globalThis as unknown as Record<symbol, Dispatcher>
  const own = holder[globalDispatcher]!
  holder[globalDispatcher] = make(own)
  onTestFinished(() => {
    holder[globalDispatcher] = own
  })
}

/** Sends once more by itself when the answer is 503 or the connection breaks; the body as it was kept, or what is left of it. */
function retrying(own: Dispatcher, body: 'kept' | 'consumed'): Dispatcher {
  return own.compose((dispatch) => (options, handler) => {
    void bytesOf(options.body).then((bytes) => {
      const first = body === 'kept' ? { ...options, body: bytes } : options
      const again = body === 'kept' ? first : { ...options, body: new Uint8Array(bytes.length > 0 ? 1 : 0) }
      let isRetried = false
      const retry = (): void => {
        isRetried = true
        dispatch(again, handler)
      }
      dispatch(
        { ...first, body: bytes },
        new Proxy(handler, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name)
            if (typeof value !== 'function') return value
            return (...args: unknown[]) => {
              const failed =
                (name === 'onResponseStart' && args[1] === 503) ||
                (name === 'onResponseError' && (args[1] as { code?: string }).code === 'ECONNRESET')
              if (isRetried) return true
              if (failed) {
                retry()
                return true
              }
              return (value as (...args: unknown[]) => unknown).apply(target, args)
            }
          },
        }),
      )
    })
    return true
  })
}

async function bytesOf(body: DispatchOptions['body']): Promise<Uint8Array> {
  if (body === null || body === undefined) return new Uint8Array()
  if (body instanceof Uint8Array) return body
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function keysAndBodies({ received }: Site) {
  return received.map(({ headers, body }) => [headers['idempotency-key'], headers['content-type'], body])
}

describe('B12: the retried request is the first one', () => {
  it('B12: 500, 500, 201: three bodies, byte-equal and not empty, with one key and content type', async () => {
    const server = await site()
    const { handler, effects } = honest()
    server.script(
      (_request, response) => response.writeHead(500).end(),
      (_request, response) => response.writeHead(500).end(),
      handler,
    )
    const { fetch } = live(server.url)
    const write = fetch('/orders', order('checkout:1', { item: 'чай 🍵', amount: 3 }))
    const { key } = await write.stored
    expect((await write).status).toBe(201)
    const body = JSON.stringify({ item: 'чай 🍵', amount: 3 })
    expect(keysAndBodies(server)).toEqual(Array(3).fill([key, 'application/json', body]))
    expect(server.received.map(({ headers }) => headers['content-length'])).toEqual(
      Array(3).fill(String(Buffer.byteLength(body))),
    )
    expect([...effects]).toEqual([[key, body]])
  })

  it('B12, P14: a form with a file keeps its boundary over retries', async () => {
    const server = await site()
    const { handler } = honest()
    server.script((_request, response) => response.writeHead(503).end(), handler)
    const { fetch } = live(server.url)
    const body = new FormData()
    body.set('note', 'with tea')
    body.set('file', new Blob(['%PDF']), 'order.pdf')
    await fetch('/orders', { method: 'POST', intent: 'form:1', body })
    const [first, second] = keysAndBodies(server)
    expect(second).toEqual(first)
    expect(first?.[2]).toContain('%PDF')
  })
})

describe('B54, P26: the connection breaks', () => {
  it('B54: the server commits and resets: same key again, the stored answer, one order', async () => {
    const server = await site()
    const { handler, commit, effects } = honest()
    server.script((request, response) => {
      commit(request)
      response.socket?.resetAndDestroy()
    }, handler)
    const { fetch, notes } = live(server.url)
    const write = fetch('/orders', order('checkout:1'))
    const response = await write
    expect([response.status, response.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect(effects.size).toBe(1)
    expect(notes).toContainEqual(expect.objectContaining({ type: 'state', because: 'ambiguous', inDoubt: true }))
  })

  it('P26, section 6: a body cut in the middle is not an answer: asked for again, one order', async () => {
    const bodies: string[] = []
    const whole = '{"id":"order-9","lines":[1,2,3]}'
    const url = await rawSite((socket, text, connection) => {
      bodies.push(text.slice(text.indexOf('\r\n\r\n') + 4))
      const expires = proof()['idempotency-expires']
      const head = `HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nIdempotency-Expires: ${expires}\r\nContent-Length: ${whole.length}\r\n`
      if (connection === 1) socket.end(`${head}\r\n${whole.slice(0, 12)}`)
      else socket.end(`${head}Idempotent-Replayed: true\r\n\r\n${whole}`)
    })
    const { fetch, notes } = live(url)
    expect(await fetch('/orders', order('checkout:1')).json()).toEqual({ id: 'order-9', lines: [1, 2, 3] })
    expect(bodies).toEqual(Array(2).fill(order('x').body))
    expect(notes).toContainEqual(expect.objectContaining({ type: 'state', because: 'doneIncomplete', to: 'waiting' }))
  })

  it('P26: nor is a chunked body whose end never comes before the connection does', async () => {
    const url = await rawSite((socket, _text, connection) => {
      const expires = proof()['idempotency-expires']
      const head = `HTTP/1.1 201 Created\r\nIdempotency-Expires: ${expires}\r\nTransfer-Encoding: chunked\r\n\r\n`
      if (connection === 1) socket.write(`${head}5\r\nhello\r\n`, () => socket.resetAndDestroy())
      else socket.end(`${head}5\r\nhello\r\n0\r\n\r\n`)
    })
    const { fetch } = live(url)
    expect(await fetch('/orders', order('checkout:1')).text()).toBe('hello')
  })

  it('P26, H43: a black-holed connection is ended by attemptTimeoutMs, in doubt; the next attempt has its own', async () => {
    const server = await site()
    const { handler, commit, effects } = honest()
    server.script((request) => void commit(request), handler)
    const { fetch, notes } = live(server.url, { attemptTimeoutMs: 100 })
    const response = await fetch('/orders', order('checkout:1'))
    expect(response.headers.get('idempotent-replayed')).toBe('true')
    expect(effects.size).toBe(1)
    const history = (await fetch.intents.get('checkout:1'))?.history
    expect(history).toContainEqual(
      expect.objectContaining({ event: 'ambiguous', detail: expect.stringMatching(/^TimeoutError/) }),
    )
    expect(notes).toContainEqual(expect.objectContaining({ type: 'state', because: 'ambiguous', inDoubt: true }))
  })

  it('P26: a body that stalls is ended by it too', async () => {
    const server = await site()
    const { handler, commit, effects } = honest()
    server.script((request, response) => {
      commit(request)
      response.writeHead(201, { 'content-type': 'application/json', ...proof() })
      response.write('{"id":')
    }, handler)
    const { fetch } = live(server.url, { attemptTimeoutMs: 100 })
    expect(await fetch('/orders', order('checkout:1')).json()).toEqual({ id: [...effects.keys()][0] })
    expect(effects.size).toBe(1)
    expect(server.received).toHaveLength(2)
  })
})

describe('B13, P30: a dispatcher below us that retries', () => {
  it('B13: the copies that it sends have the same bytes and key, and we claim no attempt that we did not make', async () => {
    const server = await site()
    const { handler, effects } = honest()
    server.script((_request, response) => response.writeHead(503).end(), handler)
    useDispatcher((own) => retrying(own, 'kept'))
    const { fetch } = live(server.url, { transport: { repeats: true } })
    const write = fetch('/orders', order('checkout:1'))
    const { key } = await write.stored
    expect((await write).status).toBe(201)
    expect(keysAndBodies(server)).toEqual(Array(2).fill([key, 'application/json', order('x').body]))
    expect((await fetch.intents.get('checkout:1'))?.attempts).toBe(1)
    expect(effects.size).toBe(1)
  })

  it('B13: one that sends a consumed body and fails by that: our own attempt follows, whole, and no shorter body is executed', async () => {
    const server = await site()
    const { handler, effects } = honest()
    server.script((_request, response) => response.writeHead(503).end(), handler)
    useDispatcher((own) => retrying(own, 'consumed'))
    const { fetch } = live(server.url, { transport: { repeats: true } })
    const write = fetch('/orders', order('checkout:1'))
    const { key } = await write.stored
    expect((await write).status).toBe(201)
    expect([...effects]).toEqual([[key, order('x').body]])
    expect((await fetch.intents.get('checkout:1'))?.attempts).toBeGreaterThan(1)
  })

  it('H17: it sees a reset after the commit and then a refused connection: that is no proof of anything', async () => {
    const server = await site()
    const { commit, effects } = honest()
    server.script((request, response) => {
      commit(request)
      const { socket } = response
      void server.close()
      socket?.resetAndDestroy()
    })
    useDispatcher((own) => retrying(own, 'kept'))
    const { fetch, until } = live(server.url, { retry: { attempts: 1 } })
    const write = fetch('/orders', order('checkout:1'))
    await write.stored
    await until(({ to }) => to === 'unknown')
    expect(effects.size).toBe(1)
    expect(await fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', inDoubt: true })
    await expect(fetch.intents.cancel('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
  })
})
