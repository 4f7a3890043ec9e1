/** A client process: submits and cancels what it is told, goes on with what its store remembers, and says what it hears. */
import { writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { createClient, type Outcome } from 'samekey'
import { samekey } from 'samekey/dialects'
import { sqliteStore } from 'samekey/sqlite'
import { jobOf } from '../../examples/demo/child.ts'
import { CLIENT_NAME, type ClientJob, type ClientReport, type ClientWord, KEYS_PATH, type Order } from './words.ts'

const OPEN = ['queued', 'sending', 'waiting', 'processing', 'blocked', 'cancelling'] as const

/** What is heard before there is a client waits for it. */
const early: ClientWord[] = []
let hear = (word: ClientWord): void => void early.push(word)
const { name, account, baseUrl, storeFile } = await jobOf<ClientJob, ClientWord>((word) => hear(word))
const store = sqliteStore(storeFile)
const client = createClient({
  name: CLIENT_NAME,
  baseUrl,
  keysUrl: KEYS_PATH,
  dialect: samekey,
  scope: () => account,
  auth: () => ({ scope: account, headers: { authorization: `Bearer ${account}` } }),
  store,
  operations: { 'orders.create': {}, 'orders.later': {} },
  attemptTimeoutMs: 1500,
  retry: { baseMs: 50, capMs: 500, budget: 1000 },
  // Callers wait for as long as their process lives.
  waitMs: 3_600_000,
})

hear = obey
for (const word of early) obey(word)
// What an earlier life left open, or ended and could not tell any more.
for (const intent of [...(await named({ states: OPEN })), ...(await named({ inbox: true }))]) {
  void told(intent, 'wait', client.intents.wait(intent))
}
writeSync(1, `${name}: ready\n`)
flushCompileCache()

function obey(word: ClientWord): void {
  if ('submit' in word) for (let time = 0; time < word.times; time += 1) submit(word.submit)
  else if ('cancel' in word) void cancel(word.cancel)
  else void finish()
}

function submit(order: Order): void {
  const { intent, kind } = order
  const later = kind.startsWith('later')
  const write = client.post(later ? 'later' : 'orders', {
    intent,
    operation: later ? 'orders.later' : 'orders.create',
    json: order,
  })
  write.stored.then(
    ({ key }) => say({ type: 'stored', intent, key }),
    // The outcome rejects with the same.
    () => {},
  )
  void told(intent, 'submit', write.outcome())
}

async function cancel(intent: string): Promise<void> {
  try {
    await client.intents.cancel(intent, 'changed my mind')
  } catch (error) {
    failed(intent, 'cancel', error)
  }
}

async function told(intent: string, doing: string, ending: Promise<Outcome>): Promise<void> {
  try {
    const outcome = await ending
    const { key, state } = outcome
    const response = 'response' in outcome ? outcome.response : null
    const body = response === null ? null : await textOf(response)
    // An open one is what a client says that stops.
    if (!OPEN.some((open) => open === state)) {
      say({ type: 'ended', intent, key, state, status: response?.status ?? null, body })
    }
  } catch (error) {
    failed(intent, doing, error)
  }
}

/** Null where the end is known and its answer was not kept, which is no failure (P22). */
async function textOf(response: Response): Promise<string | null> {
  try {
    return await response.text()
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === 'body_not_stored') return null
    throw error
  }
}

async function named(filter: NonNullable<Parameters<typeof client.intents.list>[0]>): Promise<string[]> {
  return (await client.intents.list({ ...filter, limit: 1000 })).intents.map(({ id }) => id)
}

async function finish(): Promise<void> {
  await client.stop()
  await store.close()
  process.disconnect()
}

function failed(intent: string, doing: string, error: unknown): void {
  const { code, message } = error as { readonly code?: string; readonly message?: string }
  say({ type: 'failed', intent, doing, error: `${code ?? 'error'}: ${message}` })
}

/** Written at once: what was told before a kill was told. */
function say(report: ClientReport): void {
  writeSync(1, `${JSON.stringify(report)}\n`)
}
