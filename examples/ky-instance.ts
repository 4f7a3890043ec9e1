/**
 * Shows: an existing ky instance, with its prefix and its hooks, made safe in one line. ky's own retries and time limit
 * are switched off: a second retry loop on top would not know what the first one did.
 *
 *     npx tsx examples/ky-instance.ts
 */
import ky from 'ky'
import { samekey } from 'samekey/dialects'
import { createFetch } from 'samekey/fetch'
import { memoryStore } from 'samekey/memory'
import { startOrderServer } from './support/order-server.ts'

const server = await startOrderServer()

// What an app has already.
const api = ky.create({
  prefix: server.url,
  hooks: { beforeRequest: [({ request }) => request.headers.set('x-app-version', '7')] },
})

const safeFetch = createFetch({
  baseUrl: server.url,
  dialect: samekey,
  scope: () => 'ann',
  auth: () => ({ scope: 'ann', headers: { authorization: 'ann' } }),
  store: memoryStore(),
})
const safe = api.extend({ fetch: safeFetch, retry: 0, timeout: false })

server.loseNextAnswer()
const cart = { lines: [{ sku: 'tea', quantity: 3 }] }
const order = await safe
  .post('orders', { json: cart, headers: { 'samekey-intent': 'checkout:cart-42' } })
  .json<{ id: string }>()
console.log(`the order is ${order.id}; ${server.orders()} order on the server`)

await safeFetch.stop()
await server.close()
