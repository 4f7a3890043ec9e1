/** The same job with samekey: every order is an intent, named once, and kept in a SQLite file until it has its end. */
import { createClient, type OperationOptions } from 'samekey'
import { none, samekey } from 'samekey/dialects'
import { sqliteStore } from 'samekey/sqlite'
import type { Order } from '../orders/order.ts'
import { jobOf, tell } from './child.ts'
import { KEYS_PATH, TRANSIT_MS } from './terms.ts'

/** What it is told at its start. */
export interface SamekeyJob {
  readonly baseUrl: string
  readonly token: string
  readonly path: string
  /** Empty: it only goes on with what its store remembers. */
  readonly orders: readonly Order[]
  readonly storeFile: string
  /** The server's name for it. */
  readonly operation: 'orders.create' | 'paid-orders.create' | 'legacy.orders'
  /** How long this server remembers keys; null for as long as servers usually do. */
  readonly retentionMs: number | null
  /** Each order's key is made of its reference, by a rule that another device shares. */
  readonly ownKeys: boolean
  readonly signInHangs: boolean
  readonly attemptTimeoutMs: number
  readonly concurrency: number
  /** What a person does when everything has an end, or is unknown. */
  readonly person: PersonsWork | null
}

/** By reference. */
export interface PersonsWork {
  /** Ask the server again. */
  readonly check: readonly string[]
  /** Record what was found elsewhere. */
  readonly resolve: readonly {
    readonly reference: string
    readonly outcome: 'succeeded' | 'did_not_happen'
    readonly note: string
  }[]
}

/** What it is told later: somebody signed in again, or does not want these orders any more. */
export type SamekeyWord = { readonly token: string } | { readonly cancel: readonly string[] }

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

const job = await jobOf<SamekeyJob, SamekeyWord>((word) => void hear(word))
let currentToken = job.token
const operation: OperationOptions = {
  ...(job.retentionMs !== null && { retentionMs: job.retentionMs }),
  // The old address knows nothing of keys, and samekey is not to assume that it does.
  ...(job.operation === 'legacy.orders' && { dialect: none }),
}

const client = createClient({
  name: 'shop',
  baseUrl: job.baseUrl,
  keysUrl: KEYS_PATH,
  dialect: samekey,
  scope: () => 'samekey',
  auth: async () => ({ scope: 'samekey', headers: { authorization: `Bearer ${await token()}` } }),
  store: sqliteStore(job.storeFile),
  operations: { [job.operation]: operation },
  attemptTimeoutMs: job.attemptTimeoutMs,
  transitMs: TRANSIT_MS,
  retry: { baseMs: 100, capMs: 1000, concurrency: job.concurrency },
  waitMs: 60_000,
})

await Promise.all(job.orders.map(submit))
await Promise.all((await intents()).map(({ reference }) => settled(reference)))
if (job.person !== null) await workOf(job.person)
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
  const orderId = outcome.state === 'succeeded' ? await orderIdIn(outcome.response) : null
  const { state } = outcome
  await tell({ type: 'ended', reference, state, orderId } satisfies SamekeyReport)
}

/** Null where a person said that it succeeded: then there is no answer of the server. */
async function orderIdIn(response: Response): Promise<string | null> {
  try {
    return ((await response.json()) as { id: string }).id
  } catch (error) {
    if ((error as { code?: unknown }).code === 'body_not_stored') return null
    throw error
  }
}

async function workOf({ check, resolve }: PersonsWork): Promise<void> {
  for (const reference of check) await client.intents.check(nameOf(reference))
  for (const { reference, outcome, note } of resolve) await client.intents.resolve(nameOf(reference), outcome, note)
  await Promise.all([...check, ...resolve.map(({ reference }) => reference)].map(settled))
}

async function hear(word: SamekeyWord): Promise<void> {
  if ('token' in word) {
    currentToken = word.token
    client.authChanged()
    return
  }
  await Promise.all(word.cancel.map((reference) => client.intents.cancel(nameOf(reference), 'changed my mind')))
}

async function intents(): Promise<IntentReport[]> {
  const { intents } = await client.intents.list({ limit: 1000 })
  return intents.map(({ id, state, key, attempts }) => ({ reference: id.slice('order:'.length), state, key, attempts }))
}

function nameOf(reference: string): string {
  return `order:${reference}`
}

function token(): Promise<string> {
  return job.signInHangs ? new Promise(() => {}) : Promise.resolve(currentToken)
}
