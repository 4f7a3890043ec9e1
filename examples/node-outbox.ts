/**
 * Shows: a back end that calls another one through an outbox in a SQLite file. The first process writes the intent down
 * while the other service is away, and is killed; the second one finds it at its start and takes it to its end.
 *
 *     npx tsx examples/node-outbox.ts
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, createClient } from 'samekey'
import { samekey } from 'samekey/dialects'
import { sqliteStore } from 'samekey/sqlite'
import { startOrderServer } from './support/order-server.ts'

const invoice = { id: 'invoice-7', amount: '19.90', currency: 'EUR' }

function client(baseUrl: string, store: ReturnType<typeof sqliteStore>): Client {
  return createClient({
    baseUrl,
    dialect: samekey,
    store,
    scope: () => 'billing',
    auth: () => ({ scope: 'billing', headers: { authorization: 'billing' } }),
  })
}

const [life, url = '', file = ''] = process.argv.slice(2)

if (life === 'first') {
  const orders = client(url, sqliteStore(file))
  const { id } = await orders.post('orders', { intent: `bill:${invoice.id}`, json: invoice }).stored
  console.log(`first process: ${id} is written down; killed now`)
  process.kill(process.pid, 'SIGKILL')
}

const folder = mkdtempSync(join(tmpdir(), 'samekey-outbox-'))
const outbox = join(folder, 'outbox.db')
const absent = await startOrderServer()
await absent.close()

const args = [...process.execArgv, import.meta.filename, 'first', absent.url, outbox]
const { signal } = spawnSync(process.execPath, args, { stdio: 'inherit' })

const server = await startOrderServer(Number(new URL(absent.url).port))
const store = sqliteStore(outbox)
const orders = client(server.url, store)
const outcome = await orders.intents.wait(`bill:${invoice.id}`)
console.log(`first process: ended by ${signal}`)
console.log(`second process: ${outcome.id} ${outcome.state}; ${server.orders()} order on the server`)

await orders.stop()
await store.close()
await server.close()
rmSync(folder, { recursive: true })
