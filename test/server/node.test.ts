import { createServer, request as nodeRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { idempotencyRoutes, idempotent, json, memoryServerStore } from 'samekey/server'
import { afterEach, describe, expect, it } from 'vitest'
import { scope } from './world.ts'

let server: Server | undefined

afterEach(async () => {
  server?.closeAllConnections()
  await new Promise((resolve) => server?.close(resolve) ?? resolve(undefined))
})

/** A real HTTP server on loopback, mounted as the documents say. */
async function listen(): Promise<string> {
  const orders = idempotent({
    store: memoryServerStore(),
    operation: 'orders.create',
    scope,
    limits: { requestBytes: 1000 },
    async execute({ body, request }) {
      expect(body.bytes.length).toBe((await request.arrayBuffer()).byteLength)
      return json(201, { ok: true }, [
        ['Location', '/orders/1'],
        ['Set-Cookie', 'a=b'],
        ['Set-Cookie', 'c=d'],
      ])
    },
  })
  const keys = idempotencyRoutes({ keysUrl: '/keys', operations: [orders] })
  const started = createServer(getRequestListener(async (request) => (await keys(request)) ?? orders(request)))
  server = started
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(started.address() as AddressInfo).port}`
}

const headers = { authorization: 'ann', 'content-type': 'application/json', 'idempotency-key': 'k-1' }

describe('on a Node server', () => {
  it('answers, replays, looks up and voids', async () => {
    const base = await listen()
    const submit = () => fetch(`${base}/orders`, { method: 'POST', headers, body: '{"item":"tea"}' })
    const first = await submit()
    expect([first.status, first.headers.get('location')]).toEqual([201, '/orders/1'])
    expect(first.headers.getSetCookie()).toEqual(['a=b', 'c=d'])
    const replay = await submit()
    expect(await replay.text()).toBe(await first.text())
    expect([replay.status, replay.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect(replay.headers.getSetCookie()).toEqual([])
    expect(replay.headers.get('date')).not.toBeNull()
    const found = await fetch(`${base}/keys/orders.create/k-1`, { headers: { authorization: 'ann' } })
    expect(await found.json()).toMatchObject({ status: 'succeeded' })
    const voided = await fetch(`${base}/keys/orders.create/k-2`, {
      method: 'DELETE',
      headers: { authorization: 'ann' },
    })
    expect(await voided.json()).toMatchObject({ status: 'voided' })
  })

  it('B133: two key headers on the wire are refused', async () => {
    const base = await listen()
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sent = nodeRequest(`${base}/orders`, { method: 'POST' }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      sent.on('error', reject)
      sent.setHeader('authorization', 'ann')
      sent.setHeader('idempotency-key', ['k-1', 'k-2'])
      sent.end('x')
    })
    expect(status).toBe(400)
  })

  it('P60: a body over the limit is refused, announced or not', async () => {
    const base = await listen()
    const announced = await fetch(`${base}/orders`, { method: 'POST', headers, body: 'x'.repeat(1001) })
    expect(announced.status).toBe(413)
    const stream = new Blob(['x'.repeat(1001)]).stream()
    const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body: stream, duplex: 'half' }
    expect((await fetch(`${base}/orders`, init)).status).toBe(413)
  })
})
