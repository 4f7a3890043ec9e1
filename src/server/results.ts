/**
 * What `execute` returns. Four words, because they differ in what is remembered and in what becomes of the business
 * change (P56):
 *
 * | returned | business change | remembered |
 * |---|---|---|
 * | an answer (status below 400), `json`, `bytes`, `empty` | commits | yes |
 * | `refuse` (status from 400) | rolls back | yes |
 * | `decline` (status from 400) | rolls back | no: the same key may try again |
 * | `accepted` | commits | yes, as 202 with a monitor |
 *
 * Throwing is like `decline` with a 500 that tells nobody why.
 */
import { hasNoBody } from './answer-for.ts'
import type { StoredAnswer, StoredBody } from './decide.ts'

/** Headers of an answer: an object, or pairs (a `Headers` is that too) where a name may occur twice. */
export type AnswerHeaders = Readonly<Record<string, string>> | Iterable<readonly [name: string, value: string]>

/** A finished answer; the helpers `json`, `bytes` and `empty` make one. */
export interface Answer {
  /** 200 to 399. */
  readonly status: number
  /** Replayed with it, except `Set-Cookie` and what belongs to one connection. Default: none. */
  readonly headers?: AnswerHeaders
  /** A text counts as its UTF-8 bytes. Default: no body. */
  readonly body?: string | Uint8Array | null
  /** False: a replay gives status and headers, and `Idempotency-Body: omitted` instead of the body (P60). Default true. */
  readonly storeBody?: boolean
  /** Kept instead of the body: what `reread` is given at a replay (P60). Default: the body itself is kept. */
  readonly reference?: string
}

/** A definite business refusal that is remembered, although its business change is taken back. Made by `refuse`. */
export interface Refusal extends Answer {
  readonly outcome: 'refused'
}

/** A refusal that is not remembered. Made by `decline`. */
export interface Declined extends Answer {
  readonly outcome: 'declined'
}

/** The work goes on; what started it commits now. Made by `accepted`. */
export interface Accepted {
  readonly outcome: 'accepted'
  /** JSON text of what a worker gets; null where no worker of ours is to do it. */
  readonly input: string | null
  /** Pace of the client's polls, whole seconds. */
  readonly retryAfterSeconds: number
  /** Address of the app's own monitor; null: the key's place under `keysUrl`. */
  readonly monitor: string | null
}

/** What `execute` may return. */
export type ExecuteResult = (Answer & { readonly outcome?: never }) | Refusal | Declined | Accepted

/**
 * A JSON answer.
 *
 * @param value anything that `JSON.stringify` can write.
 * @throws TypeError for what JSON cannot say at all, such as undefined.
 */
export function json(status: number, value: unknown, headers: AnswerHeaders = {}): Answer {
  return { status, headers: withType(headers, 'application/json'), body: jsonText(value) }
}

/** An answer of bytes or text of any type. */
export function bytes(
  status: number,
  body: Uint8Array | string,
  contentType: string,
  headers: AnswerHeaders = {},
): Answer {
  return { status, headers: withType(headers, contentType), body }
}

/** An answer without a body. Default: 204. */
export function empty(status = 204, headers: AnswerHeaders = {}): Answer {
  return { status, headers, body: null }
}

/**
 * A definite refusal ("card declined", "out of stock"): remembered and replayed, while everything that `execute` wrote
 * is taken back. A correction needs a new key.
 *
 * @param status 400 to 599. A stored 5xx ends the client's retries: unknown, for a person (F18).
 * @param value JSON; a problem document if `headers` say so.
 * @throws TypeError for what JSON cannot say.
 */
export function refuse(status: number, value: unknown, headers: AnswerHeaders = {}): Refusal {
  return { outcome: 'refused', ...json(status, value, headers) }
}

/**
 * A refusal that is not remembered: the same key with the same request may succeed later ("not open yet"), or a
 * corrected one may follow (failed validation, P56). Everything that `execute` wrote is taken back.
 *
 * @param status 400 to 599.
 * @throws TypeError for what JSON cannot say.
 */
export function decline(status: number, value: unknown, headers: AnswerHeaders = {}): Declined {
  return { outcome: 'declined', ...json(status, value, headers) }
}

/** The same answer, to be sent once and not kept: a replay says `Idempotency-Body: omitted` (P60). */
export function omitBody<A extends Answer>(answer: A): A {
  return { ...answer, storeBody: false }
}

/**
 * The same answer, of which a reference is kept instead of the body (P60): a replay, a look-up and a monitor get what
 * `reread` finds under it then, for whoever asks then.
 *
 * @param reference whatever `reread` needs: `orders/42`.
 */
export function byReference<A extends Answer>(answer: A, reference: string): A {
  return { ...answer, reference }
}

/**
 * 202: what `execute` wrote to start the work commits, and the work goes on (P62).
 *
 * @param options.work what a worker needs for it, as JSON: it is queued in this transaction, for `startWorker`. Left
 * out: the app does the work in its own way and says `complete` at the end.
 * @param options.retryAfterSeconds pace of the client's polls. Default 2.
 * @param options.monitor address of a monitor of your own. Default: the key's place under `keysUrl`.
 * @throws TypeError for work that JSON cannot say.
 */
export function accepted(
  options: { readonly work?: unknown; readonly retryAfterSeconds?: number; readonly monitor?: string } = {},
): Accepted {
  const { work, retryAfterSeconds = 2, monitor = null } = options
  return { outcome: 'accepted', input: work === undefined ? null : jsonText(work), retryAfterSeconds, monitor }
}

function jsonText(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) throw new TypeError('This value has no JSON form: use empty() for an answer without a body.')
  return text
}

function withType(headers: AnswerHeaders, contentType: string): [string, string][] {
  const pairs = pairsOf(headers)
  const typed = pairs.some(([name]) => name.toLowerCase() === 'content-type')
  return typed ? pairs : [['Content-Type', contentType], ...pairs]
}

function pairsOf(headers: AnswerHeaders): [string, string][] {
  const pairs = isIterable(headers) ? [...headers] : Object.entries(headers)
  return pairs.map(([name, value]): [string, string] => [name, value])
}

function isIterable(headers: AnswerHeaders): headers is Iterable<readonly [string, string]> {
  return typeof (headers as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function'
}

/** An answer that has been checked, in both its forms: as it goes out first, and as it is kept. */
export interface CheckedAnswer {
  readonly first: StoredAnswer
  readonly kept: StoredAnswer
}

/** Headers that are never kept (P55): secrets, and what belongs to one connection or one moment. */
const NEVER_KEPT: ReadonlySet<string> = new Set(['set-cookie', 'set-cookie2'])

/** Headers that the kit or the HTTP server writes; an app's own would contradict them. */
const NOT_THE_APPS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'date',
  'idempotency-body',
  'idempotency-expires',
  'idempotent-replayed',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * Checks what `execute` returned while it can still be rolled back.
 *
 * @param statuses lowest and highest status that its kind may have.
 * @param maxBytes longer bodies are sent and not kept (P60).
 * @throws TypeError or RangeError: a mistake in the app, in words.
 */
export function checkAnswer(
  answer: Answer,
  statuses: readonly [low: number, high: number],
  maxBytes: number,
): CheckedAnswer {
  const { status, body = null, storeBody = true, reference } = answer
  const [low, high] = statuses
  if (!Number.isInteger(status) || status < low || status > high) {
    throw new RangeError(`The status ${status} is not one of ${low} to ${high}. ${ADVICE}`)
  }
  if (body !== null && typeof body !== 'string' && !(body instanceof Uint8Array)) {
    throw new TypeError(
      'The body of an answer is a text or bytes. Use json(...) for a value; a Response cannot be kept.',
    )
  }
  const content = typeof body === 'string' ? new TextEncoder().encode(body) : new Uint8Array(body ?? [])
  const headers = pairsOf(answer.headers ?? {}).filter(([name]) => !NOT_THE_APPS.has(name.toLowerCase()))
  if (content.length > 0 && hasNoBody(status)) throw new TypeError(`An answer with status ${status} has no body.`)
  for (const [name, value] of headers) {
    if (typeof value !== 'string') throw new TypeError(`The header ${name} of an answer must be a text.`)
  }
  // The platform checks names and values: now, not after the commit. (Some servers' `Response` checks them later.)
  new Headers(headers)
  const first: StoredAnswer = { status, headers, body: { kind: 'bytes', bytes: content } }
  const keptHeaders = headers.filter(([name]) => !NEVER_KEPT.has(name.toLowerCase()))
  const keep = storeBody && content.length <= maxBytes
  const keptBody: StoredBody = keep ? first.body : { kind: 'omitted' }
  return {
    first,
    kept: { status, headers: keptHeaders, body: reference === undefined ? keptBody : { kind: 'reference', reference } },
  }
}

const ADVICE =
  'Return an answer (200 to 399) for what was done, refuse(...) for a refusal that is remembered, ' +
  'decline(...) for one that is not.'
