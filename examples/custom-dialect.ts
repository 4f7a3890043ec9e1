/**
 * Shows: a dialect for a server that de-duplicates in its own words. It is a row of facts, taken from that server's
 * documentation, and nothing else in samekey has to know the server.
 *
 *     npx tsx examples/custom-dialect.ts
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from 'samekey'
import { type Dialect, ietf } from 'samekey/dialects'
import { memoryStore } from 'samekey/memory'

/** "Send X-Request-Key with POST /bookings. We remember it for two days. A repeated answer has X-Repeated: yes." */
const booker: Dialect = {
  ...ietf({ retentionMs: 2 * 24 * 3600_000 }),
  name: 'booker',
  methods: ['POST'],
  keyHeader: 'X-Request-Key',
  keyRules: { maxLength: 64 },
  replayed: { header: 'x-repeated', value: 'yes' },
  // "423: an earlier request with this key still runs. 422: the key was used for another booking."
  statuses: { 423: 'inProgress', 422: 'conflict' },
  hint: () => null,
}

/** That server: it answers 423 once, as if the first request were still running. */
const answers = new Map<string, string>()
let bookings = 0
let busy = 1
const server = createServer((request, response) => {
  const key = String(request.headers['x-request-key'])
  const known = answers.get(key)
  if (known === undefined) {
    bookings += 1
    answers.set(key, JSON.stringify({ id: `booking-${bookings}` }))
    request.socket.destroy() // Done, and the answer is lost.
  } else if (busy > 0) {
    busy -= 1
    response.writeHead(423, { 'retry-after': '0' }).end()
  } else {
    response.writeHead(201, { 'content-type': 'application/json', 'x-repeated': 'yes' }).end(known)
  }
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

const api = createClient({
  baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  dialect: booker,
  anonymous: true,
  store: memoryStore(),
})
const booking = await api.post('bookings', { intent: 'trip:7', json: { seat: '12A' } }).json<{ id: string }>()
const intent = await api.intents.get('trip:7')
const heard = intent?.history.map(({ event }) => event).filter((event) => event !== 'due')
console.log(`the booking is ${booking.id}, after ${heard?.join(', ')}; ${bookings} booking on the server`)

await api.stop()
server.close()
