/**
 * Shows: what a person can do where nobody can know the outcome. The server does not de-duplicate (`none`) and its
 * answer is lost, so the intent ends unknown instead of being sent a second time. Somebody looks and settles it.
 *
 *     npx tsx examples/unknown-inbox.ts
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient, isSamekeyError } from 'samekey'
import { none } from 'samekey/dialects'
import { memoryStore } from 'samekey/memory'

/** A server without keys: what it is sent twice, it does twice. */
let transfers = 0
const server = createServer((request) => {
  transfers += 1
  request.socket.destroy() // Done, and the answer is lost.
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

const api = createClient({
  baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  dialect: none,
  anonymous: true,
  store: memoryStore(),
})

const transfer = { intent: 'transfer:2026-12:ann', json: { to: 'ann', amount: '50.00' } }
try {
  await api.post('transfers', transfer)
} catch (error) {
  if (!isSamekeyError(error)) throw error
  console.log(`${error.code}: ${error.message}`)
}

// The inbox of whoever looks after payments. The request was made once, whatever the caller tries.
const { intents } = await api.intents.list({ states: ['unknown'] })
for (const { id, detail, attempts } of intents) console.log(`inbox: ${id} (${detail}), attempts: ${attempts}`)
await api.post('transfers', transfer).catch(() => {})
console.log(`submitted again: ${transfers} transfer on the server`)

// They looked into the bank's list, found it, and say so. The note is kept.
const settled = await api.intents.resolve('transfer:2026-12:ann', 'succeeded', 'found in the list of 3 December')
console.log(`settled: ${settled.state} by a ${settled.detail}, note: ${settled.actions.at(-1)?.note}`)

await api.stop()
server.close()
