/**
 * What most code bases have: fetch with a time limit, some retries and a growing, jittered wait. No key. Like a job
 * table would, it notes what it knows to be done, and skips that after a restart.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Order } from '../orders/order.ts'
import { jobOf, tell } from './child.ts'

/** What it is told at its start. */
export interface PlainJob {
  readonly url: string
  readonly token: string
  readonly orders: readonly Order[]
  /** Where it notes what is done. */
  readonly doneFile: string
  /** The sign-in service does not answer: nothing can be sent. */
  readonly signInHangs: boolean
  readonly attemptTimeoutMs: number
  /** Orders that it sends at the same time. */
  readonly concurrency: number
}

/** What it is told later: somebody signed in again, or does not want these orders any more. */
export type PlainWord = { readonly token: string } | { readonly cancel: readonly string[] }

/** What it reports: one line per order it is through with, however that ended. */
export interface PlainReport {
  readonly type: 'ended'
  readonly reference: string
  readonly state: 'done' | 'gave up' | 'cancelled'
}

const unwanted = new Set<string>()
const job = await jobOf<PlainJob, PlainWord>((word) => {
  if ('token' in word) currentToken = word.token
  else for (const reference of word.cancel) unwanted.add(reference)
})
let currentToken = job.token

class Refused extends Error {
  readonly status: number

  constructor(status: number) {
    super(`The server answered ${status}.`)
    this.status = status
  }
}

async function handle(order: Order): Promise<void> {
  const { reference } = order
  try {
    await place(order)
    appendFileSync(job.doneFile, `${reference}\n`)
    await tell({ type: 'ended', reference, state: 'done' } satisfies PlainReport)
  } catch {
    // There is no order number yet that it could cancel by: it stops trying, and says so.
    const state = unwanted.has(reference) ? 'cancelled' : 'gave up'
    await tell({ type: 'ended', reference, state } satisfies PlainReport)
  }
}

async function place(order: Order): Promise<void> {
  const isWanted = (): boolean => !unwanted.has(order.reference)
  const response = await retried(() => request(job.url, { method: 'POST', body: JSON.stringify(order) }), isWanted)
  const monitor = response.status === 202 ? response.headers.get('location') : null
  if (monitor !== null) await finished(new URL(monitor, job.url))
}

/** Asks until the work of a 202 is through. */
async function finished(monitor: URL): Promise<void> {
  for (;;) {
    await sleep(1000)
    const { body } = await retried(() => request(monitor, { method: 'GET' }))
    if (body.status === 'succeeded') return
    // The second: it failed for now, and the server tries again by itself.
    if (body.status !== 'processing' && body.status !== 'failed_retryable')
      throw new Error(`The order is ${String(body.status)}.`)
  }
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: { readonly [member: string]: unknown }
}

async function request(url: string | URL, init: RequestInit): Promise<Answer> {
  const headers = { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' }
  const response = await fetch(url, { ...init, headers, signal: AbortSignal.timeout(job.attemptTimeoutMs) })
  if (!response.ok) throw new Refused(response.status)
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answer['body'] }
}

/** Five tries. A refusal is final; time limits, broken connections and overloaded servers are not. */
async function retried<T>(call: () => Promise<T>, isWanted = (): boolean => true): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      const final = error instanceof Refused && error.status < 500 && error.status !== 429
      if (final || attempt === 5 || !isWanted()) throw error
      await sleep(250 * 2 ** (attempt - 1) * (0.5 + Math.random()))
      if (!isWanted()) throw error
    }
  }
}

function token(): Promise<string> {
  return job.signInHangs ? new Promise(() => {}) : Promise.resolve(currentToken)
}

const done = new Set(existsSync(job.doneFile) ? readFileSync(job.doneFile, 'utf8').split('\n') : [])
const waiting = job.orders.filter(({ reference }) => !done.has(reference))

await Promise.all(
  Array.from({ length: job.concurrency }, async () => {
    for (let order = waiting.shift(); order !== undefined; order = waiting.shift()) await handle(order)
  }),
)
process.disconnect()
