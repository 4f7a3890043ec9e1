/** Names and shapes of the wire profile (section 16). Header names compare without regard to letter case. */

/** Request: the key. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key'
/** Request: whole seconds, rounded up, since the first hand-over; `0` on the first attempt. */
export const IDEMPOTENCY_AGE = 'Idempotency-Age'
/** Request: IMF-fixdate of the first hand-over by the server's own clock; only where the client has seen that clock. */
export const IDEMPOTENCY_SINCE = 'Idempotency-Since'
/** Request: tag of the account that the intent belongs to. */
export const IDEMPOTENCY_SCOPE = 'Idempotency-Scope'
/** Answer: `true` when it was stored and is sent again. */
export const IDEMPOTENT_REPLAYED = 'Idempotent-Replayed'
/** Answer: IMF-fixdate until which the key is remembered. Its presence is the proof: the answer is from behind the key. */
export const IDEMPOTENCY_EXPIRES = 'Idempotency-Expires'
/** Answer: `omitted` where the body was not stored (P60). */
export const IDEMPOTENCY_BODY = 'Idempotency-Body'
export const RETRY_AFTER = 'Retry-After'
export const LOCATION = 'Location'
export const DATE = 'Date'
/** Reserved request header that names an intent; read and removed before anything is stored or sent (P2). */
export const SAMEKEY_INTENT = 'samekey-intent'

/** For `Access-Control-Allow-Headers`: what a page on another origin must be allowed to send. */
export const CORS_ALLOW_HEADERS: readonly string[] = [
  IDEMPOTENCY_KEY,
  IDEMPOTENCY_AGE,
  IDEMPOTENCY_SINCE,
  IDEMPOTENCY_SCOPE,
]

/** For `Access-Control-Expose-Headers`: what such a page must be able to read (P41). */
export const CORS_EXPOSE_HEADERS: readonly string[] = [
  IDEMPOTENT_REPLAYED,
  IDEMPOTENCY_EXPIRES,
  IDEMPOTENCY_BODY,
  RETRY_AFTER,
  LOCATION,
  DATE,
]

/** How far the work is (P38, P64). `failed_retryable`: the server tries again by itself. */
export type MonitorStatus = 'processing' | 'succeeded' | 'failed' | 'failed_retryable' | 'unknown' | 'voided'

/** The stored answer to the intent's own request. */
export interface MonitorResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly bodyEncoding: 'utf8' | 'base64'
}

/** What went wrong, for people and programs. */
export interface MonitorError {
  readonly code?: string
  readonly type?: string
  readonly title?: string
  readonly detail?: string
}

/** What a monitor, a lookup and a void answer (section 16); the body of a 202 is one too, with `monitor`. */
export interface MonitorDocument {
  readonly id: string
  readonly status: MonitorStatus
  /** URL of the monitor, relative or absolute; in the body of a 202. */
  readonly monitor?: string
  readonly response?: MonitorResponse
  readonly error?: MonitorError
  /** SHA-256 of the first request's body bytes, lower-case hexadecimal; absent where no request ever came. */
  readonly requestDigest?: string
  /** Whole seconds until it is worth asking again. */
  readonly retryAfter?: number
  /** RFC 3339 time until which the result is kept. */
  readonly resultExpiresAt?: string
}

/**
 * Reads a monitor document from parsed JSON. Unknown members are ignored, and so are malformed hints (`retryAfter`,
 * `resultExpiresAt`, `monitor`, `error`). Malformed facts make the whole document junk: a client must not settle an
 * intent from half an answer.
 *
 * @returns null for junk, an unknown status included. Never throws.
 */
export function readMonitor(json: unknown): MonitorDocument | null {
  if (!isObject(json)) return null
  const { id, status } = json
  const response = readResponse(json.response)
  const requestDigest = readDigest(json.requestDigest)
  if (!isText(id) || id === '' || !isStatus(status) || response === null || requestDigest === null) return null
  return {
    id,
    status,
    ...(isText(json.monitor) && { monitor: json.monitor }),
    ...(response && { response }),
    ...(isObject(json.error) && { error: readError(json.error) }),
    ...(requestDigest && { requestDigest }),
    ...(isWholeSeconds(json.retryAfter) && { retryAfter: json.retryAfter }),
    ...(isText(json.resultExpiresAt) && { resultExpiresAt: json.resultExpiresAt }),
  }
}

/** @returns undefined if there is none, null if it is malformed. */
function readResponse(json: unknown): MonitorResponse | null | undefined {
  if (json === undefined || json === null) return undefined
  if (!isObject(json)) return null
  const { status, headers = {}, body = '', bodyEncoding = 'utf8' } = json
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599) return null
  if (!isObject(headers) || !isText(body)) return null
  if (bodyEncoding !== 'utf8' && !(bodyEncoding === 'base64' && isBase64(body))) return null
  return { status, headers: sendableHeaders(headers), body, bodyEncoding }
}

/** Only what a header can be (RFC 9110, 5.5 and 5.6.2): what no response could carry is dropped, not kept. */
function sendableHeaders(json: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const fits = ([name, value]: [string, string]): boolean => HEADER_NAME.test(name) && HEADER_VALUE.test(value)
  return Object.fromEntries(Object.entries(textMembers(json)).filter(fits))
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** @returns undefined if there is none, null if it is malformed: a check that cannot be made is not a check passed. */
function readDigest(json: unknown): string | null | undefined {
  if (json === undefined || json === null) return undefined
  return isText(json) && /^[0-9a-f]{64}$/i.test(json) ? json.toLowerCase() : null
}

function readError(json: Readonly<Record<string, unknown>>): MonitorError {
  const { code, type, title, detail } = json
  return textMembers({ code, type, title, detail })
}

function textMembers(json: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(json).filter((entry): entry is [string, string] => isText(entry[1])))
}

function isObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

function isText(json: unknown): json is string {
  return typeof json === 'string'
}

/** A table, so that the compiler misses a status that is not in it. */
const STATUSES: Readonly<Record<MonitorStatus, true>> = {
  processing: true,
  succeeded: true,
  failed: true,
  failed_retryable: true,
  unknown: true,
  voided: true,
}

function isStatus(json: unknown): json is MonitorStatus {
  return isText(json) && Object.hasOwn(STATUSES, json)
}

function isWholeSeconds(json: unknown): json is number {
  return typeof json === 'number' && Number.isSafeInteger(json) && json >= 0
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}
