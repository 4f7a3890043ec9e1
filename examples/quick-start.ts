/**
 * Shows: the server takes the order and its answer is lost; the client sends the same bytes with the same key again, and
 * there is one order. A web page would leave `store` out and get IndexedDB.
 *
 *     npx tsx examples/quick-start.ts
 */
import { createClient } from 'samekey'
import { samekey } from 'samekey/dialects'
import { memoryStore } from 'samekey/memory'
import { startOrderServer } from './support/order-server.ts'

const server = await startOrderServer()
const session = { userId: 'ann', token: async () => 'ann' }
const cart = { id: 'cart-42', lines: [{ sku: 'tea', quantity: 3 }] }

const api = createClient({
  baseUrl: server.url,
  dialect: samekey,
  scope: () => session.userId,
  auth: async () => ({ scope: session.userId, headers: { authorization: await session.token() } }),
  store: memoryStore(),
})

server.loseNextAnswer()
const order = await api.post('orders', { intent: `checkout:${cart.id}`, json: cart }).json<{ id: string }>()
console.log(`the order is ${order.id}`)

// A second click, or a reload: the stored outcome, without a request.
const again = await api.post('orders', { intent: `checkout:${cart.id}`, json: cart }).json<{ id: string }>()
console.log(`submitted once more, it is still ${again.id}`)

const intent = await api.intents.get(`checkout:${cart.id}`)
console.log(`${intent?.attempts} attempts, ${server.orders()} order on the server`)

await api.stop()
await server.close()
