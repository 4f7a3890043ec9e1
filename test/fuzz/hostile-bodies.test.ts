/** Bodies that are too much, too slow, or not what their headers say, over real sockets: bounded, and the outcome is true (P26). */
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { honest, live, proof, rawSite, site } from '../support/sockets.ts'
import { order } from '../support/world.ts'

const megabyte = 1 << 20

/** Writes as fast as it is read, without end; resolves once the client hung up. */
function pour(
  write: (chunk: Buffer) => boolean,
  on: (event: 'drain' | 'close', run: () => void) => void,
): Promise<void> {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  return new Promise((resolve) => {
    let open = true
    const more = (): void => {
      while (open && write(chunk));
    }
    on('drain', more)
    on('close', () => {
      open = false
      resolve()
    })
    more()
  })
}

it('P26: a success whose body never ends is read no further than maxBodyBytes: succeeded without body, the connection closed', async () => {
  const server = await site()
  const { commit, effects } = honest()
  let hungUp: Promise<void> | null = null
  server.script((request, response) => {
    commit(request)
    response.writeHead(201, proof())
    hungUp = pour(
      (chunk) => response.write(chunk),
      (event, run) => void response.on(event, run),
    )
  })
  const { fetch } = live(server.url, { maxBodyBytes: 100_000 })
  const response = await fetch('/orders', order('checkout:1'))
  expect(response.status).toBe(201)
  await expect(response.text()).rejects.toMatchObject({ code: 'body_not_stored' })
  await hungUp
  expect([effects.size, server.received.length]).toEqual([1, 1])
})

it('P26, P27: so is a failure: in doubt as its status says, and the next attempt gets the answer', async () => {
  const server = await site()
  const { handler, commit, effects } = honest()
  let hungUp: Promise<void> | null = null
  server.script((request, response) => {
    commit(request)
    response.writeHead(503)
    hungUp = pour(
      (chunk) => response.write(chunk),
      (event, run) => void response.on(event, run),
    )
  }, handler)
  const { fetch } = live(server.url, { maxBodyBytes: 100_000 })
  expect((await fetch('/orders', order('checkout:1'))).headers.get('idempotent-replayed')).toBe('true')
  await hungUp
  expect(effects.size).toBe(1)
})

for (const [encoding, packed] of [
  ['gzip', gzipSync(Buffer.alloc(64 * megabyte))],
  ['br', brotliCompressSync(Buffer.alloc(64 * megabyte))],
] as const) {
  it(`P26: what counts is what comes out of a ${encoding} bomb: ${packed.length} bytes that become 64 MiB are too large`, async () => {
    const server = await site()
    const { commit } = honest()
    server.script((request, response) => {
      commit(request)
      response.writeHead(201, { ...proof(), 'content-encoding': encoding, 'content-length': packed.length })
      response.end(packed)
    })
    const { fetch } = live(server.url, { maxBodyBytes: megabyte })
    const response = await fetch('/orders', order('checkout:1'))
    await expect(response.arrayBuffer()).rejects.toMatchObject({ code: 'body_not_stored' })
    expect(await fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', attempts: 1 })
  })
}

for (const [name, headers, body] of [
  ['gzip that is none', { 'content-encoding': 'gzip' }, '{"id":9}'],
  ['a length that is more than comes', { 'content-length': '4000' }, '{"id":9}'],
] as const) {
  it(`P26, section 6: ${name} is a success that is asked for again, not an answer`, async () => {
    const server = await site()
    const { commit, handler, effects } = honest()
    server.script((request, response) => {
      commit(request)
      response.writeHead(201, { ...proof(), ...headers })
      response.write(body)
      if ('content-length' in headers) response.socket?.destroySoon()
      else response.end()
    }, handler)
    const { fetch } = live(server.url)
    expect(await fetch('/orders', order('checkout:1')).json()).toEqual({ id: [...effects.keys()][0] })
    expect(effects.size).toBe(1)
    // On a slow machine the next attempts may run out of time as well.
    expect(server.received.length).toBeGreaterThan(1)
  })
}

it('P26: a length that is less than comes: what was announced is the body, and the rest is nobody’s answer', async () => {
  const url = await rawSite((socket) => {
    const head = `HTTP/1.1 201 Created\r\nIdempotency-Expires: ${proof()['idempotency-expires']}\r\nContent-Length: 8\r\n\r\n`
    socket.end(`${head}{"id":9}HTTP/1.1 422 No\r\nContent-Length: 0\r\n\r\n`)
  })
  const { fetch } = live(url)
  expect(await fetch('/orders', order('checkout:1')).json()).toEqual({ id: 9 })
  expect((await fetch('/orders', order('checkout:2'))).status).toBe(201)
})

it('P26, H43: one byte at a time is no sign of life: the attempt’s time limit ends it, and the next one has its own', async () => {
  const server = await site()
  const { commit, handler, effects } = honest()
  let written = 0
  server.script((request, response) => {
    commit(request)
    response.writeHead(201, proof())
    const drip = setInterval(() => {
      written++
      response.write(' ')
    }, 10)
    response.on('close', () => clearInterval(drip))
  }, handler)
  const { fetch } = live(server.url, { attemptTimeoutMs: 150 })
  const response = await fetch('/orders', order('checkout:1'))
  expect(response.headers.get('idempotent-replayed')).toBe('true')
  expect(effects.size).toBe(1)
  // On a slow machine the next attempts may run out of time as well.
  expect(server.received.length).toBeGreaterThan(1)
  expect(written).toBeGreaterThan(0)
})

it('P26, H43: nor is a head that comes byte by byte, nor a thousand 1xx answers before it', async () => {
  for (const text of ['HTTP/1.1 201 Created\r\nX-Slow: ', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n']) {
    const keys = new Set<string>()
    const url = await rawSite((socket, request, connection) => {
      keys.add(/idempotency-key: (\S+)/i.exec(request)?.[1] ?? '')
      const expires = proof()['idempotency-expires']
      if (connection > 1)
        return socket.end(`HTTP/1.1 201 Created\r\nIdempotency-Expires: ${expires}\r\nContent-Length: 2\r\n\r\n{}`)
      socket.write(text)
      const drip = setInterval(() => socket.write(text.startsWith('HTTP/1.1 103') ? text.repeat(10) : 'x'), 5)
      socket.on('close', () => clearInterval(drip))
    })
    const { fetch } = live(url, { attemptTimeoutMs: 150 })
    expect(await fetch('/orders', order('checkout:1')).json()).toEqual({})
    expect(keys.size).toBe(1)
  }
})
