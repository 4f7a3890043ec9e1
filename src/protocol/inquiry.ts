/**
 * What a monitor, a look-up by key or a void answered (P37-P39, P43, P44). A failed inquiry is not a failed operation:
 * whatever is not understood says nothing. Pure.
 */
import { fromBase64, utf8 } from './bytes.ts'
import type { Dialect, HeardAnswer } from './dialects/dialect.ts'
import type { IntentEvent } from './events.ts'
import { readProblem } from './problem.ts'
import type { Answer } from './record.ts'
import { retryAfterMs, waitOf } from './retry-after.ts'
import { parseTimestamp } from './timestamp.ts'
import {
  type AnsweredExchange,
  answerOf,
  type Exchange,
  hasProof,
  hear,
  isOfWantedType,
  keptHeaders,
} from './verdict.ts'
import { type MonitorDocument, readMonitor } from './wire.ts'

/** What was asked. */
export type InquiryKind = 'poll' | 'lookup' | 'void'

/** What the inquiry says, and the body of the answer that it brought along, if any. */
export interface Finding {
  readonly event: IntentEvent
  readonly body: Uint8Array | null
}

/** What reading an inquiry has to know. */
export interface InquiryContext {
  readonly kind: InquiryKind
  readonly dialect: Dialect
  /** SHA-256 of the record's own body bytes, lower-case hex: an answer to another payload settles nothing (section 16). */
  readonly bodyDigest: string
  /** Epoch ms. */
  readonly now: number
  /** The request's `Accept`: tells a foreign page from a plain monitor's result. Default is none: anything is accepted. */
  readonly accept?: string | null
  /** The operation's own word on a plain monitor's 2xx answer. Default is none. */
  readonly appAccepts?: boolean | null
}

/** Reads the answer to an inquiry. */
export function readInquiry(exchange: Exchange, context: InquiryContext): Finding {
  if (exchange.kind === 'failed') return nothing({ type: 'inquiryFailed', detail: exchange.detail, retryAfterMs: null })
  if (exchange.opaque) return nothing({ type: 'inquiryFailed', detail: 'redirect', retryAfterMs: null })
  const heard = hear(exchange)
  const { status } = exchange
  const toldMs = retryAfterMs(heard.header('retry-after'), context.now, heard.header('date'))
  const failed = nothing({ type: 'inquiryFailed', status, retryAfterMs: toldMs })
  if (exchange.bodyState !== 'complete') return failed
  if (status >= 200 && status < 300) {
    const found =
      context.kind === 'poll' && context.dialect.monitor === 'plain'
        ? plain(exchange, heard, context, toldMs)
        : documented(heard, context, toldMs)
    return found ?? failed
  }
  const code = readProblem(heard.header('content-type'), heard.text)?.code
  const meaning =
    code !== undefined && Object.hasOwn(context.dialect.codes, code) ? context.dialect.codes[code] : undefined
  if (meaning === 'expired') return nothing({ type: 'expired', status, answer: null })
  if (meaning === 'voided') return nothing({ type: 'voided', status })
  if (meaning === 'inProgress') return nothing({ type: 'inProgress', status, retryAfterMs: toldMs })
  if (status === 401 || status === 403) return nothing({ type: 'inquiryUnauthorized', status })
  if (context.kind === 'poll' && (status === 404 || status === 410)) return nothing({ type: 'monitorMissing', status })
  if (context.kind === 'void' && (status === 405 || status === 501)) return nothing({ type: 'voidNotOffered', status })
  return failed
}

function nothing(event: IntentEvent): Finding {
  return { event, body: null }
}

/** Section 16's shape. Null when the answer is not of that shape: a foreign page, say. */
function documented(heard: HeardAnswer, context: InquiryContext, toldMs: number | null): Finding | null {
  const document = readMonitor(parsed(heard.text))
  if (document === null) return null
  const { status } = heard
  if (document.requestDigest !== undefined && document.requestDigest !== context.bodyDigest) {
    return nothing({ type: 'otherPayload', status })
  }
  const resultExpiresAt = document.resultExpiresAt === undefined ? null : parseTimestamp(document.resultExpiresAt)
  const retryAfter = toldMs ?? (document.retryAfter === undefined ? null : waitOf(document.retryAfter))
  switch (document.status) {
    case 'processing':
    case 'failed_retryable':
      return nothing({
        type: 'stillProcessing',
        status,
        phase: document.status === 'processing' ? 'running' : 'retrying',
        monitorUrl: null,
        resultExpiresAt,
        retryAfterMs: retryAfter,
      })
    case 'succeeded':
      // A success with an error's status, or the other way round, contradicts itself: no news.
      if (document.response !== undefined && document.response.status >= 400) return null
      return { event: { type: 'done', status, answer: storedAnswer(document, 200) }, body: storedBody(document) }
    case 'failed':
      if (document.response !== undefined && document.response.status < 400) return null
      // Failed for good, said by the server's own record of the key: that is proof.
      return {
        event: { type: 'refused', status, proof: true, answer: storedAnswer(document, 500) },
        body: storedBody(document),
      }
    case 'unknown':
      return nothing({ type: 'serverUnknown', status })
    case 'voided':
      return nothing({ type: 'voided', status })
  }
}

function storedAnswer({ response, error }: MonitorDocument, status: number): Answer {
  if (response === undefined) {
    const headers = error === undefined ? [] : ([['content-type', 'application/problem+json']] as const)
    return { status, headers, url: '', body: error === undefined ? 'not_given' : 'stored', replayed: true }
  }
  const headers = keptHeaders(Object.entries(response.headers))
  const omitted = headers.some(([name, value]) => name === 'idempotency-body' && value === 'omitted')
  return {
    status: response.status,
    headers,
    url: '',
    body: omitted ? 'omitted_by_server' : response.body === '' ? 'empty' : 'stored',
    replayed: true,
  }
}

function storedBody({ response, error }: MonitorDocument): Uint8Array | null {
  if (response === undefined) return error === undefined ? null : utf8(JSON.stringify(error))
  if (response.body === '') return null
  return response.bodyEncoding === 'base64' ? fromBase64(response.body) : utf8(response.body)
}

const running: ReadonlySet<string> = new Set([
  'accepted',
  'notstarted',
  'pending',
  'queued',
  'running',
  'processing',
  'inprogress',
])
const failures: ReadonlySet<string> = new Set(['failed', 'canceled', 'cancelled'])

/**
 * The older convention: 202 while running, then the result itself; some say so in a `status` member of a 200. Null when
 * it may come from anybody: a captive portal's page is no result (H24, H51).
 */
function plain(
  exchange: AnsweredExchange,
  heard: HeardAnswer,
  context: InquiryContext,
  toldMs: number | null,
): Finding | null {
  const { accept = null, appAccepts = null } = context
  const { status } = exchange
  if (appAccepts === true && status !== 202) return result('done')
  const foreign = exchange.redirected || !isOfWantedType(exchange, accept)
  if (foreign && !exchange.seeOtherProof && !hasProof(heard, context.dialect)) return null
  const word = statusWord(parsed(heard.text))
  if (status === 202 || running.has(word)) {
    return nothing({
      type: 'stillProcessing',
      status,
      phase: 'running',
      monitorUrl: null,
      resultExpiresAt: null,
      retryAfterMs: toldMs,
    })
  }
  if (failures.has(word)) return result('refused')
  // The app speaks of its own success: what it does not accept is neither that nor a failure.
  return appAccepts === false ? null : result('done')

  function result(type: 'done' | 'refused'): Finding {
    const answer = answerOf(exchange, context.dialect)
    const event: IntentEvent = type === 'done' ? { type, status, answer } : { type, status, answer, proof: true }
    return { event, body: exchange.body }
  }
}

function statusWord(json: unknown): string {
  const status = typeof json === 'object' && json !== null && 'status' in json ? json.status : null
  return typeof status === 'string' ? status.toLowerCase().replaceAll(/[\s_-]/g, '') : ''
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}
