/** Heads of answers that no decent server writes, over real sockets: never believed, never a loop, never a second key. */
import { expect, it } from 'vitest'
import { live, proof, rawSite } from '../support/sockets.ts'
import { order } from '../support/world.ts'

const marker = `Idempotency-Expires: ${proof()['idempotency-expires']}`
const done = `HTTP/1.1 201 Created\r\n${marker}\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"id":9}`

/** Answers the first request with these bytes, and all others as a good server does. */
async function after(first: string, options: Parameters<typeof live>[1] = {}) {
  const requests: string[] = []
  const url = await rawSite((socket, text) => {
    requests.push(text)
    socket.end(Buffer.from(requests.length === 1 ? first : done, 'latin1'))
  })
  const { fetch } = live(url, { attemptTimeoutMs: 2000, ...options })
  return { fetch, requests }
}

const keyOf = (request: string): string | undefined => /^idempotency-key: (.*)$/im.exec(request)?.[1]?.trim()

it('P5, P27: a line break in a value makes no header that is believed', async () => {
  // Where the value was meant to end there, the rest of the "header" is one that the server never wrote.
  const split = `HTTP/1.1 200 OK\r\nX-Echo: a\rIdempotency-Expires: now\r\nContent-Length: 2\r\n\r\n{}`
  const { fetch, requests } = await after(split)
  expect(await fetch('/orders', order('checkout:1')).json()).toEqual({ id: 9 })
  expect(requests).toHaveLength(2)
  expect(keyOf(requests[1]!)).toBe(keyOf(requests[0]!))
})

for (const [name, text] of Object.entries({
  'two lengths that differ': `HTTP/1.1 201 Created\r\n${marker}\r\nContent-Length: 2\r\nContent-Length: 8\r\n\r\n{"id":9}`,
  'a length and chunks': `HTTP/1.1 201 Created\r\n${marker}\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  'a negative length': `HTTP/1.1 201 Created\r\n${marker}\r\nContent-Length: -1\r\n\r\n{}`,
  'a chunk size that is no number': `HTTP/1.1 201 Created\r\n${marker}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
  'a chunk that breaks off': `HTTP/1.1 201 Created\r\n${marker}\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}`,
  'a name with a space': `HTTP/1.1 201 Created\r\n${marker}\r\nbad name: 1\r\nContent-Length: 2\r\n\r\n{}`,
  'a NUL in a value': `HTTP/1.1 201 Created\r\n${marker}\r\nX: a\0b\r\nContent-Length: 2\r\n\r\n{}`,
  'a head of a megabyte': `HTTP/1.1 201 Created\r\n${marker}\r\nX: ${'x'.repeat(1 << 20)}\r\nContent-Length: 2\r\n\r\n{}`,
  'no HTTP at all': 'SSH-2.0-OpenSSH_9.9\r\n',
  'HTTP of another age': 'HTTP/9.9 201 Created\r\n\r\n',
  'a status of four digits': `HTTP/1.1 2010 Created\r\n${marker}\r\nContent-Length: 2\r\n\r\n{}`,
  'a status of none': `HTTP/1.1 abc\r\n${marker}\r\n\r\n`,
  'an upgrade that nobody asked for':
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n',
  'nothing, and the end': '',
})) {
  it(`P27, section 6: ${name}: in doubt at most, and the same key again brings the answer`, async () => {
    const { fetch, requests } = await after(text)
    const response = await fetch('/orders', order('checkout:1'))
    expect(response.status).toBe(201)
    expect(new Set(requests.map(keyOf)).size).toBe(1)
    expect(await fetch.intents.get('checkout:1')).toMatchObject({ state: 'succeeded', inDoubt: false })
  })
}

for (const status of [600, 700, 999]) {
  it(`P23, P27: status ${status} is none of HTTP’s: ambiguous, whatever its code says, and the record stays sound`, async () => {
    const body = JSON.stringify({ type: 'about:blank', code: 'idempotency_conflict' })
    const { fetch, requests } = await after(
      `HTTP/1.1 ${status} Odd\r\nContent-Type: application/problem+json\r\n${marker}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    expect(await fetch('/orders', order('checkout:1')).json()).toEqual({ id: 9 })
    expect(requests).toHaveLength(2)
    const view = await fetch.intents.get('checkout:1')
    expect(view?.history).toContainEqual(expect.objectContaining({ event: 'ambiguous', status }))
  })
}

it('P40: two Location headers name no place: nothing is followed, and no other origin hears of it', async () => {
  const asked: string[] = []
  const elsewhere = await rawSite((socket, text) => {
    asked.push(text)
    socket.end(done)
  })
  const { fetch, requests } = await after(
    `HTTP/1.1 307 Temporary Redirect\r\nLocation: /a\r\nLocation: ${elsewhere}/b\r\nContent-Length: 0\r\n\r\n`,
  )
  expect((await fetch('/orders', order('checkout:1'))).status).toBe(201)
  expect(asked).toEqual([])
  expect(requests.every((request) => request.startsWith('POST /'))).toBe(true)
})

it('P5, P55: key headers in an answer are nobody’s key: the next attempt and the next intent have their own', async () => {
  const { fetch, requests } = await after(
    'HTTP/1.1 503 No\r\nIdempotency-Key: evil\r\nIdempotency-Key: evil2\r\nIdempotency-Age: 9\r\nContent-Length: 0\r\n\r\n',
  )
  const { key } = await fetch('/orders', order('checkout:1')).stored
  await fetch('/orders', order('checkout:1'))
  await fetch('/orders', order('checkout:2', { n: 2 }))
  expect(requests.slice(0, 2).map(keyOf)).toEqual([key, key])
  expect(requests.join('')).not.toContain('evil')
  expect(new Set(requests.map(keyOf)).size).toBe(2)
})
