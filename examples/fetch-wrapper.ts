/**
 * Shows: an SDK that takes a `fetch` and passes headers on, made safe without touching it. The reserved header names the
 * intent; it is read and removed, never stored or sent. Calls that are not named pass straight through.
 *
 *     npx tsx examples/fetch-wrapper.ts
 */
import { samekey } from 'samekey/dialects'
import { createFetch } from 'samekey/fetch'
import { memoryStore } from 'samekey/memory'
import { startOrderServer } from './support/order-server.ts'

/** Somebody else's SDK: it knows nothing of samekey. */
class ShopSdk {
  readonly #url: string
  readonly #fetch: typeof fetch

  constructor(options: { url: string; fetch: typeof fetch }) {
    this.#url = options.url
    this.#fetch = options.fetch
  }

  async createOrder(cart: unknown, options: { headers?: Record<string, string> } = {}): Promise<{ id: string }> {
    const response = await this.#fetch(`${this.#url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...options.headers },
      body: JSON.stringify(cart),
    })
    if (!response.ok) throw new Error(`the shop answered ${response.status}`)
    return (await response.json()) as { id: string }
  }
}

const server = await startOrderServer()
const safeFetch = createFetch({
  baseUrl: server.url,
  dialect: samekey,
  scope: () => 'ann',
  auth: () => ({ scope: 'ann', headers: { authorization: 'ann' } }),
  store: memoryStore(),
})
const sdk = new ShopSdk({ url: server.url, fetch: safeFetch })

server.loseNextAnswer()
const headers = { 'samekey-intent': 'checkout:cart-42' }
const order = await sdk.createOrder({ lines: [{ sku: 'tea', quantity: 3 }] }, { headers })
console.log(`the order is ${order.id}; ${server.orders()} order on the server`)

// A GET is nobody's intent: it passes through, and nothing of it is stored.
const page = await safeFetch(`${server.url}/orders`)
const { intents } = await safeFetch.intents.list()
console.log(`a GET found ${((await page.json()) as unknown[]).length} order; ${intents.length} intent is stored`)

await safeFetch.stop()
await server.close()
