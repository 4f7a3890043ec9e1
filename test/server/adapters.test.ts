import { connect, type Socket } from 'node:net'
import { cors, idempotent, json, memoryServerStore } from 'samekey/server'
import { afterEach, describe, expect, it } from 'vitest'
import { type App, adapters, type Running } from '../support/adapters.ts'
import { codeOf, gate, scope } from './world.ts'

const page = 'https://shop.example'
const keysUrl = '/shop/idempotency-keys'
const headers = { authorization: 'ann', 'content-type': 'application/json' }

let running: Running | undefined
const sockets: Socket[] = []

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await running?.close()
  running = undefined
})

/** An order shop that can be watched and held up. */
function shop(part: { entered?: (request: Request) => Promise<void>; executing?: () => Promise<void> } = {}) {
  const orders: string[] = []
  let ended = (_status: number): void => {}
  const handler = idempotent({
    store: memoryServerStore(),
    operation: 'orders.create',
    keysUrl,
    limits: { requestBytes: 10_000 },
    async scope(request) {
      await part.entered?.(request)
      return scope(request)
    },
    async execute({ transaction, body, request }) {
      await part.executing?.()
      transaction.onCommit(() => orders.push(new TextDecoder().decode(body.bytes)))
      return json(201, { item: 'tea', at: request.url }, [
        ['Location', '/shop/orders/1'],
        ['ETag', '"1"'],
        ['Set-Cookie', 'a=b; Path=/'],
        ['Set-Cookie', 'c=d'],
      ])
    },
  })
  return {
    orders,
    /** Status of the next answer, also of one that nobody hears. */
    nextAnswer: () => new Promise<number>((resolve) => (ended = resolve)),
    route: {
      path: '/shop/orders',
      method: 'POST',
      handler: Object.assign(async (request: Request) => {
        const response = await handler(request)
        ended(response.status)
        return response
      }, handler),
    },
  }
}

describe.each(adapters)('on $name', (adapter) => {
  const serve = async (app: Omit<App, 'keysUrl'>) => {
    running = await adapter.start({ ...app, keysUrl })
    return clientOf(running.url)
  }
  const serveShop = async (part?: Parameters<typeof shop>[0]) => {
    const { route, ...rest } = shop(part)
    return { ...rest, ...(await serve({ handlers: [route] })) }
  }

  it('B133: an order is executed once and replayed byte for byte, without its cookies', async () => {
    const { submit, orders, url } = await serveShop()
    const first = await submit('k-1', ' {"item": "tea"}\n')
    expect(first.status).toBe(201)
    expect(Object.fromEntries(first.headers)).toMatchObject({
      'content-type': 'application/json',
      location: '/shop/orders/1',
      etag: '"1"',
      'idempotency-expires': expect.stringMatching(/ GMT$/),
    })
    expect(first.headers.getSetCookie()).toEqual(['a=b; Path=/', 'c=d'])
    const replay = await submit('k-1', ' {"item": "tea"}\n')
    expect([replay.status, replay.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect(replay.headers.getSetCookie()).toEqual([])
    for (const name of ['content-type', 'location', 'etag', 'idempotency-expires']) {
      expect(replay.headers.get(name)).toBe(first.headers.get(name))
    }
    const bytes = await first.bytes()
    expect(await replay.bytes()).toEqual(bytes)
    expect(JSON.parse(new TextDecoder().decode(bytes))).toEqual({ item: 'tea', at: `${url}/shop/orders` })
    expect(orders).toEqual([' {"item": "tea"}\n'])
  })

  it('another request with the key is a conflict', async () => {
    const { submit, orders } = await serveShop()
    await submit('k-1', '{"item":"tea"}')
    const other = await submit('k-1', '{"item":"coffee"}')
    expect([other.status, other.headers.get('content-type')]).toEqual([409, 'application/problem+json'])
    expect(await codeOf(other)).toBe('idempotency_conflict')
    expect(orders).toEqual(['{"item":"tea"}'])
  })

  it.each(['k-1', 'a/b', '100%', '%2F', 'x/../y', '..%2f..', "a'b(c)*!~", '?a=b&c#d'])(
    'the key %j is looked up and voided as itself',
    async (key) => {
      const { submit, byKey } = await serveShop()
      expect((await byKey('GET', key)).status).toBe(404)
      await submit(key, '{"item":"tea"}')
      expect(await (await byKey('GET', key)).json()).toMatchObject({ id: key, status: 'succeeded' })
      expect(await (await byKey('DELETE', key)).json()).toMatchObject({ id: key, status: 'succeeded' })
      expect(await (await byKey('DELETE', `${key}-2`)).json()).toMatchObject({ id: `${key}-2`, status: 'voided' })
      expect(await codeOf(await submit(`${key}-2`, '{}'))).toBe('idempotency_voided')
    },
  )

  it('B133: two key headers on the wire are refused, and no key is a 400 of its own', async () => {
    const { raw, submit, orders } = await serveShop()
    const { send, head, answers } = raw()
    send(
      head(
        'POST',
        '/shop/orders',
        'Authorization: ann',
        'Idempotency-Key: k-1',
        'Idempotency-Key: k-2',
        'Content-Length: 2',
      ),
      '{}',
    )
    const [answer] = await answers(1)
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(answer).toContain('"idempotency_key_invalid"')
    expect(await codeOf(await submit(null, '{}'))).toBe('idempotency_key_missing')
    expect(orders).toEqual([])
  })

  it('B133: a route without the kit ignores a key that nobody asked for', async () => {
    const { url } = await serve({
      handlers: [
        { path: '/shop/ping', method: 'POST', handler: async (request) => new Response(await request.text()) },
      ],
    })
    const ping = (body: string) =>
      fetch(`${url}/shop/ping`, { method: 'POST', headers: { ...headers, 'idempotency-key': 'k-1' }, body })
    expect(await (await ping('"a"')).text()).toBe('"a"')
    const second = await ping('"b"')
    expect([await second.text(), second.headers.get('idempotent-replayed')]).toEqual(['"b"', null])
    expect((await fetch(`${url}/nowhere`)).status).toBe(404)
  })

  it('P60: a body over the limit hears 413 while it is still being sent, and the connection goes on', async () => {
    const { raw, orders } = await serveShop()
    const key = ['Authorization: ann', 'Idempotency-Key: k-1', 'Content-Type: application/json']
    for (const chunked of [false, true]) {
      const { send, head, answers } = raw()
      const part = 'x'.repeat(20_000)
      const chunk = chunked ? `4e20\r\n${part}\r\n` : part
      const length = chunked ? 'Transfer-Encoding: chunked' : 'Content-Length: 4000000'
      send(head('POST', '/shop/orders', ...key, length), chunk)
      const [refused] = await answers(1)
      expect(refused).toMatch(/^HTTP\/1\.1 413 /)
      expect(refused).toContain('application/problem+json')
      // More than the buffers on the way hold.
      send(chunk.repeat(199), chunked ? '0\r\n\r\n' : '', head('GET', `${keysUrl}/orders.create/k-1`, ...key))
      expect((await answers(2))[1]).toMatch(/^HTTP\/1\.1 404 /)
    }
    expect(orders).toEqual([])
  })

  it('a body of many packets arrives whole', async () => {
    const { url } = await serve({
      handlers: [
        {
          path: '/shop/size',
          method: 'PUT',
          handler: async (request) => Response.json((await request.bytes()).length),
        },
      ],
    })
    const body = new Uint8Array(3_000_000)
    expect(await (await fetch(`${url}/shop/size`, { method: 'PUT', body })).json()).toBe(body.length)
  })

  it('HEAD is answered with a head alone, and the connection goes on', async () => {
    const { raw } = await serveShop()
    const { send, head, answers } = raw()
    const target = `${keysUrl}/orders.create/k-1`
    send(head('HEAD', target, 'Authorization: ann'), head('GET', target, 'Authorization: ann'))
    const [first, second] = await answers(2)
    expect(first).toMatch(/\r\n\r\n$/)
    expect(second).toMatch(/^HTTP\/1\.1 404 /)
  })

  it('B132: a page of another origin may send keys and read the proof', async () => {
    const { route } = shop()
    const { url, submit, byKey } = await serve({ handlers: [route], wrap: cors({ origins: [page] }) })
    for (const [path, method] of [
      ['/shop/orders', 'POST'],
      [`${keysUrl}/orders.create/k-1`, 'DELETE'],
    ] as const) {
      const asked = { origin: page, 'access-control-request-method': method }
      const preflight = await fetch(url + path, { method: 'OPTIONS', headers: asked })
      expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, page])
      expect(preflight.headers.get('access-control-allow-headers')).toContain('Idempotency-Key')
      expect(preflight.headers.get('access-control-allow-methods')).toContain(method)
    }
    for (const answer of [await submit('k-1', '{}', { origin: page }), await byKey('GET', 'k-1', { origin: page })]) {
      expect([answer.ok, answer.headers.get('access-control-allow-origin')]).toEqual([true, page])
      expect(answer.headers.get('access-control-expose-headers')).toContain('Idempotency-Expires')
    }
    expect((await byKey('GET', 'none', { origin: page })).headers.get('access-control-allow-origin')).toBe(page)
  })

  it('F5: a client that goes away while its order is executed has one order, and finds its answer', async () => {
    const { opened: reached, open: reach } = gate()
    const { opened, open } = gate()
    let lost = Promise.resolve()
    const { raw, submit, orders, nextAnswer } = await serveShop({
      async entered({ signal }) {
        lost = aborted(signal)
      },
      async executing() {
        reach()
        await opened
      },
    })
    const ended = nextAnswer()
    const { send, head, socket } = raw()
    const body = '{"item":"tea"}'
    send(
      head(
        'POST',
        '/shop/orders',
        'Authorization: ann',
        'Idempotency-Key: k-1',
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
      ),
      body,
    )
    await reached
    socket.destroy()
    await lost
    open()
    expect(await ended).toBe(201)
    const again = await submit('k-1', body)
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect(orders).toEqual([body])
  })

  it.each(['Content-Length: 14', 'Transfer-Encoding: chunked'])(
    'F3: half a body (%s) of a client that is gone is not an order, and not an empty one',
    async (length) => {
      let held = true
      const { opened: entered, open: enter } = gate()
      const { raw, submit, orders, nextAnswer } = await serveShop({
        async entered({ signal }) {
          if (!held) return
          enter()
          await aborted(signal)
        },
      })
      const ended = nextAnswer()
      const { send, head, socket } = raw()
      const part = length.startsWith('T') ? '8\r\n{"item":\r\n' : '{"item":'
      send(
        head(
          'POST',
          '/shop/orders',
          'Authorization: ann',
          'Idempotency-Key: k-1',
          'Content-Type: application/json',
          length,
        ),
        part,
      )
      await entered
      socket.destroy()
      expect(await ended).toBe(400)
      held = false
      const again = await submit('k-1', '{"item":"tea"}')
      expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, null])
      expect(orders).toEqual(['{"item":"tea"}'])
    },
  )
})

function clientOf(url: string) {
  return {
    url,
    submit: (key: string | null, body: string, more: Record<string, string> = {}) =>
      fetch(`${url}/shop/orders`, {
        method: 'POST',
        body,
        headers: { ...headers, ...(key !== null && { 'idempotency-key': key }), ...more },
      }),
    byKey: (method: string, key: string, more: Record<string, string> = {}) =>
      fetch(`${url}${keysUrl}/orders.create/${encodeURIComponent(key)}`, {
        method,
        headers: { authorization: 'ann', ...more },
      }),
    raw: () => rawConnection(url),
  }
}

/** Bytes, for what `fetch` cannot say. Answers are read whole, by the length or the chunks that they announce. */
function rawConnection(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {})
  let text = ''
  let look = (): void => {}
  socket.setEncoding('latin1').on('data', (more: string) => {
    text += more
    look()
  })
  return {
    socket,
    head: (method: string, target: string, ...lines: string[]) =>
      [`${method} ${target} HTTP/1.1`, `Host: ${new URL(url).host}`, ...lines, '', ''].join('\r\n'),
    send: (...parts: string[]) => socket.write(parts.join(''), 'latin1'),
    answers: (count: number) =>
      new Promise<string[]>((resolve, reject) => {
        look = () => {
          const answers = split(text)
          if (answers.length >= count) resolve(answers)
        }
        socket.once('close', () => reject(new Error(`the connection was closed after ${JSON.stringify(text)}`)))
        look()
      }),
  }
}

/** The complete answers at the front of the bytes. */
function split(text: string): string[] {
  const answers = text.split(/(?=HTTP\/1\.1 \d{3})/)
  return answers.filter((answer, index) => index < answers.length - 1 || isWhole(answer))
}

function isWhole(answer: string): boolean {
  const end = answer.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /content-length: (\d+)/i.exec(answer)?.[1]
  if (length !== undefined) return answer.length >= end + 4 + Number(length)
  return !/transfer-encoding: chunked/i.test(answer) || answer.endsWith('0\r\n\r\n')
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
