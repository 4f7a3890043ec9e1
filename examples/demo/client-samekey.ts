/** The same job with samekey: every order is an intent, named once, and kept in a SQLite file until it has its end. */
import { createClient, type OperationOptions } from 'samekey'
import { none, samekey } from 'samekey/dialects'
import { sqliteStore } from 'samekey/sqlite'
import { jobOf, tell } from './child.ts'
import type { Order } from './orders.ts'
import { ATTEMPT_TIMEOUT_MS, KEYS_PATH, SHORT_RETENTION_MS, TRANSIT_MS } from './terms.ts'

/** What it is told at its start. */
export interface SamekeyJob {
  readonly baseUrl: string
  readonly path: string
  /** Empty: it only goes on with what its store remembers. */
  readonly orders: readonly Order[]
  readonly storeFile: string
  readonly operation: keyof typeof operations
  /** Each order's key is made of its reference, by a rule that another device shares. */
  readonly ownKeys: boolean
  readonly signInHangs: boolean
  readonly concurrency: number
}

/** What it reports. */
export type SamekeyReport =
  | { readonly type: 'stored'; readonly reference: string; readonly key: string }
  | { readonly type: 'ended'; readonly reference: string; readonly state: string; readonly orderId: string | null }
  /** At the end: all that the store holds. */
  | { readonly type: 'over'; readonly intents: readonly IntentReport[] }

export interface IntentReport {
  readonly reference: string
  readonly state: string
  readonly key: string
  readonly attempts: number
}

/** The server's own names. */
const operations = {
  'orders.create': {},
  'orders.create-forgetfully': { retentionMs: SHORT_RETENTION_MS },
  'orders.create-later': {},
  'legacy.orders': { dialect: none },
} satisfies Record<string, OperationOptions>

const job = await jobOf<SamekeyJob>()

const client = createClient({
  name: 'shop',
  baseUrl: job.baseUrl,
  keysUrl: KEYS_PATH,
  dialect: samekey,
  scope: () => 'samekey',
  auth: async () => ({ scope: 'samekey', headers: { authorization: `Bearer ${await token()}` } }),
  store: sqliteStore(job.storeFile),
  operations,
  attemptTimeoutMs: ATTEMPT_TIMEOUT_MS,
  transitMs: TRANSIT_MS,
  retry: { baseMs: 100, capMs: 1000, concurrency: job.concurrency },
  waitMs: 60_000,
})

await Promise.all(job.orders.map(submit))
await Promise.all((await intents()).map(({ reference }) => settled(reference)))
await tell({ type: 'over', intents: await intents() } satisfies SamekeyReport)
await client.stop()
process.disconnect()

async function submit(order: Order): Promise<void> {
  const { reference } = order
  const write = client.post(job.path, {
    intent: nameOf(reference),
    operation: job.operation,
    json: order,
    ...(job.ownKeys && { key: { value: `cart-${reference}`, since: 'new' as const } }),
  })
  const { key } = await write.stored
  await tell({ type: 'stored', reference, key } satisfies SamekeyReport)
}

/** Also for orders that an earlier life of this process submitted. */
async function settled(reference: string): Promise<void> {
  const outcome = await client.intents.wait(nameOf(reference))
  const placed = outcome.state === 'succeeded' ? ((await outcome.response.json()) as { id: string }) : null
  const { state } = outcome
  await tell({ type: 'ended', reference, state, orderId: placed?.id ?? null } satisfies SamekeyReport)
}

async function intents(): Promise<IntentReport[]> {
  const { intents } = await client.intents.list({ limit: 1000 })
  return intents.map(({ id, state, key, attempts }) => ({ reference: id.slice('order:'.length), state, key, attempts }))
}

function nameOf(reference: string): string {
  return `order:${reference}`
}

function token(): Promise<string> {
  return job.signInHangs ? new Promise(() => {}) : Promise.resolve('samekey')
}
