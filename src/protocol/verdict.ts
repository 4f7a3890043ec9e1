/**
 * What one attempt proved (PROTOCOL.md section 6). Asked is always what the server may have done, never the status
 * class alone (P25). Pure: an exchange is data that the engine has read to its end.
 */

import { accepts } from './accept.ts'
import { isCredential } from './business-headers.ts'
import type { Dialect, HeardAnswer, Meaning } from './dialects/dialect.ts'
import type { Verdict } from './events.ts'
import { readProblem } from './problem.ts'
import type { Answer, HeaderPair } from './record.ts'
import { retryAfterMs, waitOf } from './retry-after.ts'
import { parseTimestamp } from './timestamp.ts'
import { IDEMPOTENCY_BODY } from './wire.ts'

/** An attempt that ended without an answer. */
export interface FailedExchange {
  readonly kind: 'failed'
  /** Proven: no byte of the request reached anybody (section 6, row 1). */
  readonly neverDelivered: boolean
  /** An error's class and code, for the history. */
  readonly detail: string
}

/** An attempt that was answered, its body read to the end or to where it broke off. */
export interface AnsweredExchange {
  readonly kind: 'answered'
  readonly status: number
  /** Lower-case names. */
  readonly headers: readonly HeaderPair[]
  /** Final address. */
  readonly url: string
  readonly body: Uint8Array
  /** `cut_off`: the connection broke or a limit was reached in the middle. `too_large`: read no further on purpose. */
  readonly bodyState: 'complete' | 'cut_off' | 'too_large'
  /** The answer came from another address than the one asked. */
  readonly redirected: boolean
  /** The browser hides everything about it: an opaque redirect or answer. */
  readonly opaque: boolean
  /** A page of one origin asked another: unexposed headers cannot be read (P41). */
  readonly crossOrigin: boolean
  /** A 303 on the same origin was followed: what counts as proof was in that answer (section 6). */
  readonly seeOtherProof: boolean
  /** A redirect was followed with the same bytes: this is the answer to the last of several requests. */
  readonly repeated: boolean
}

/** What came of one attempt. */
export type Exchange = FailedExchange | AnsweredExchange

/** What classification has to know besides the exchange. */
export interface ClassifyContext {
  readonly dialect: Dialect
  /** The request's `Accept`, or null. */
  readonly accept: string | null
  /** The operation's own word on a 2xx answer; null when it has none (P28: an exception counts as none). */
  readonly appAccepts: boolean | null
  /** Epoch ms, for dates in `Retry-After`. */
  readonly now: number
  /** Absolute address of the monitor, once the engine has resolved and allowed it; null when there is none. */
  readonly monitorUrl: string | null
}

/** The verdict on one attempt. */
export function classify(exchange: Exchange, context: ClassifyContext): Verdict {
  const verdict = judged(exchange, context)
  const isRepeated = exchange.kind === 'answered' && (exchange.repeated || exchange.redirected)
  return isRepeated ? { ...verdict, repeated: true } : verdict
}

function judged(exchange: Exchange, context: ClassifyContext): Verdict {
  if (exchange.kind === 'failed') {
    const { detail } = exchange
    return exchange.neverDelivered ? { type: 'neverDelivered', detail } : ambiguous({ detail })
  }
  if (exchange.opaque) return ambiguous({ detail: 'redirect' })
  const heard = hear(exchange)
  const { status } = exchange
  // No status of HTTP: somebody who speaks something else (RFC 9110, 15), and nothing that an answer could be made of.
  if (status < 200 || status > 599) return ambiguous({ status })
  const pace = { status, retryAfterMs: retryAfterMs(heard.header('retry-after'), context.now, heard.header('date')) }
  const meaning = meaningOf(heard, context.dialect, exchange)
  switch (meaning) {
    case 'success':
      return success(exchange, heard, context, pace)
    case 'ambiguous':
      return ambiguous(pace)
    case 'refusedWithoutEffect':
    case 'inProgress':
      return { type: meaning, ...pace }
    case 'needsCredentials':
    case 'scopeMismatch':
    case 'voided':
      return { type: meaning, status }
    case 'conflict':
    case 'expired':
    case 'storedFailure':
      return { type: meaning, status, answer: answerOf(exchange, context.dialect) }
    case 'refused':
      return {
        type: 'refused',
        status,
        answer: answerOf(exchange, context.dialect),
        proof: hasProof(heard, context.dialect),
      }
  }
}

function ambiguous(
  heard: { status?: number; detail?: string; retryAfterMs?: number | null },
  unmarked = false,
): Verdict {
  return { type: 'ambiguous', retryAfterMs: null, ...heard, unmarked }
}

function meaningOf(heard: HeardAnswer, dialect: Dialect, exchange: AnsweredExchange): Meaning | 'success' {
  const meaning = statedMeaning(heard, dialect, exchange)
  const proof = hasProof(heard, dialect)
  // Of a refusal whose body broke off, the code that tells it from "in progress" may be missing (P26).
  if (meaning === 'refused' && exchange.bodyState === 'cut_off' && !proof) return 'ambiguous'
  // What is stored is no longer in progress, whatever its status means elsewhere (B76).
  return meaning === 'inProgress' && proof ? 'refused' : meaning
}

/** The server's own hints first, then its codes, then the status (P25). */
function statedMeaning(heard: HeardAnswer, dialect: Dialect, exchange: AnsweredExchange): Meaning | 'success' {
  const { status } = heard
  const hinted = dialect.hint?.(heard) ?? null
  if (hinted !== null) return hinted
  if (status >= 200 && status < 300) return 'success'
  const code = readProblem(heard.header('content-type'), heard.text)?.code
  const coded = code !== undefined && Object.hasOwn(dialect.codes, code) ? dialect.codes[code] : undefined
  if (coded !== undefined) return coded
  const stated = dialect.statuses[status]
  if (stated !== undefined) return stated
  // A redirected refusal comes from somebody else's address: it proves nothing about ours.
  if (status < 400 || exchange.redirected) return 'ambiguous'
  if (status === 401) return 'needsCredentials'
  if (status === 425 || status === 429) return 'refusedWithoutEffect'
  if (status >= 500) return isReplay(heard, dialect) ? 'storedFailure' : 'ambiguous'
  return status === 408 ? 'ambiguous' : 'refused'
}

function success(
  exchange: AnsweredExchange,
  heard: HeardAnswer,
  context: ClassifyContext,
  pace: { readonly status: number; readonly retryAfterMs: number | null },
): Verdict {
  const { dialect, appAccepts } = context
  const marked = hasProof(heard, dialect) || exchange.seeOtherProof
  // An answer from behind the key is the server's word that it was done; the app's judges only what lacks that proof.
  if (!marked && appAccepts === false) return ambiguous({ ...pace, detail: 'not_accepted' })
  const unmarked = dialect.marker !== null && !marked
  if (unmarked && appAccepts !== true) return ambiguous({ ...pace, detail: 'no_marker' }, exchange.crossOrigin)
  if (!marked && appAccepts !== true) {
    if (exchange.redirected) return ambiguous({ ...pace, detail: 'redirect' })
    if (!isOfWantedType(exchange, context.accept)) return ambiguous({ ...pace, detail: 'media_type' })
  }
  // A 202 that names no monitor is final where the operation says so.
  if (exchange.status === 202 && !(appAccepts === true && context.monitorUrl === null)) {
    return { type: 'accepted', ...pace, monitorUrl: context.monitorUrl, resultExpiresAt: resultExpiresAt(heard.text) }
  }
  const answer = answerOf(exchange, dialect)
  return { type: exchange.bodyState === 'cut_off' ? 'doneIncomplete' : 'done', status: exchange.status, answer }
}

/** A foreign page gives itself away by its type, even where its body broke off; no body at all is of every type (section 6). */
export function isOfWantedType(exchange: AnsweredExchange, accept: string | null): boolean {
  if (exchange.body.length === 0 && exchange.bodyState === 'complete') return true
  return accepts(accept, hear(exchange).header('content-type'))
}

/** True when the answer surely comes from behind the key: the dialect's marker, or its mark of a replay. */
export function hasProof(heard: HeardAnswer, dialect: Dialect): boolean {
  return (dialect.marker !== null && heard.header(dialect.marker) !== null) || isReplay(heard, dialect)
}

function isReplay(heard: HeardAnswer, { replayed }: Dialect): boolean {
  return replayed !== null && heard.header(replayed.header)?.trim().toLowerCase() === replayed.value
}

/** An exchange as dialects see it. The body's text is decoded once, and leniently. */
export function hear(exchange: AnsweredExchange): HeardAnswer {
  const headers = new Map(exchange.headers)
  let text: string | null = null
  return {
    status: exchange.status,
    header: (name) => headers.get(name.toLowerCase()) ?? null,
    get text() {
      text ??= new TextDecoder().decode(exchange.body)
      return text
    },
  }
}

/** Headers that speak of one connection or one coding, or that must never be kept (P51). */
const unkept: ReadonlySet<string> = new Set([
  'set-cookie',
  'set-cookie2',
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
])

/** The headers of an answer that may be kept, names in lower case. */
export function keptHeaders(headers: Iterable<HeaderPair>): HeaderPair[] {
  return [...headers]
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !unkept.has(name) && !isCredential(name))
}

/** The answer as the record keeps it; its bytes go beside it. */
export function answerOf(exchange: AnsweredExchange, dialect: Dialect): Answer {
  const heard = hear(exchange)
  return {
    status: exchange.status,
    headers: keptHeaders(exchange.headers),
    url: exchange.url,
    body: bodyOf(exchange, heard),
    replayed: isReplay(heard, dialect),
  }
}

function bodyOf(exchange: AnsweredExchange, heard: HeardAnswer): Answer['body'] {
  if (exchange.bodyState !== 'complete') return exchange.bodyState
  if (heard.header(IDEMPOTENCY_BODY) === 'omitted') return 'omitted_by_server'
  return exchange.body.length === 0 ? 'empty' : 'stored'
}

/** The time until which a 202's work keeps its result, epoch ms, where its body says so. */
function resultExpiresAt(text: string): number | null {
  return readAccepted(text)?.resultExpiresAt ?? null
}

/** What the body of a 202 says, in section 16's shape; null when it speaks otherwise. */
export function readAccepted(
  text: string,
): { monitor: string | null; resultExpiresAt: number | null; retryAfterMs: number | null } | null {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body !== 'object' || body === null) return null
    const { monitor, resultExpiresAt, retryAfter } = body as Record<string, unknown>
    return {
      monitor: typeof monitor === 'string' ? monitor : null,
      resultExpiresAt: typeof resultExpiresAt === 'string' ? parseTimestamp(resultExpiresAt) : null,
      retryAfterMs:
        typeof retryAfter === 'number' && Number.isSafeInteger(retryAfter) && retryAfter >= 0
          ? waitOf(retryAfter)
          : null,
    }
  } catch {
    return null
  }
}
