/** What one request of a record looks like on the wire: fixed bytes and headers, and what is fresh per attempt (P5, P9). */
import type { Dialect } from '../protocol/dialects/dialect.ts'
import { formatHttpDate, isSayable } from '../protocol/http-date.ts'
import { firstHandOver, type HeaderPair, type IntentRecord } from '../protocol/record.ts'
import { ageSeconds, type Times } from '../protocol/window.ts'
import { IDEMPOTENCY_AGE, IDEMPOTENCY_SCOPE, IDEMPOTENCY_SINCE } from '../protocol/wire.ts'
import type { HttpRequest } from './http.ts'

/** What goes on the wire. */
type WireRequest = Pick<HttpRequest, 'url' | 'init'>

/** What a wire request is made of. */
export interface WireContext {
  readonly dialect: Dialect
  readonly times: Times
  /** Whose credentials go with this attempt. */
  readonly leave: { readonly headers: readonly HeaderPair[]; readonly scopeTag: string | null }
}

/** The attempt itself: the record's bytes, its key, its age. */
export function attemptRequest(record: IntentRecord, body: Uint8Array | null, context: WireContext): WireRequest {
  const { request } = record
  const { dialect } = context
  const headers = new Headers(request.headers.map(([name, value]) => [name, value] as [string, string]))
  for (const [name, value] of context.leave.headers) headers.set(name, value)
  if (dialect.keyHeader !== null) headers.set(dialect.keyHeader, dialect.quoted ? `"${record.key}"` : record.key)
  tellAge(headers, record, context)
  return {
    url: request.url,
    init: {
      method: request.method,
      headers,
      // undici and browsers take the bytes as they are; a view over a shared buffer would be copied anyway.
      ...(request.hasBody ? { body: (body ?? new Uint8Array()) as Uint8Array<ArrayBuffer> } : {}),
      credentials: request.credentials,
      mode: request.mode,
      referrerPolicy: request.referrerPolicy as ReferrerPolicy,
      cache: 'no-store',
    },
  }
}

/** A question about the record: its monitor, or its key. To a foreign origin it goes bare (P40). */
export function inquiryRequest(
  record: IntentRecord,
  url: string,
  method: 'GET' | 'DELETE',
  foreign: boolean,
  context: WireContext,
): WireRequest {
  const headers = new Headers({ accept: acceptOf(record) ?? '*/*' })
  if (!foreign) {
    for (const [name, value] of context.leave.headers) headers.set(name, value)
    tellAge(headers, record, context)
  }
  return {
    url,
    init: {
      method,
      headers,
      credentials: foreign ? 'omit' : record.request.credentials,
      mode: 'cors',
      referrerPolicy: record.request.referrerPolicy as ReferrerPolicy,
      cache: 'no-store',
    },
  }
}

/** What the request says that it accepts, or null. */
export function acceptOf({ request }: IntentRecord): string | null {
  return request.headers.find(([name]) => name === 'accept')?.[1] ?? null
}

/** Age, since and scope tag (section 16), computed at each send. The first attempt's age is 0 by definition. */
function tellAge(headers: Headers, record: IntentRecord, { dialect, times, leave }: WireContext): void {
  if (!dialect.tellsAge) return
  const age = record.doubt === null ? 0 : ageSeconds(record, times)
  if (age !== null) headers.set(IDEMPOTENCY_AGE, String(age))
  const since = firstHandOver(record)?.serverAt ?? null
  // A server whose clock is at the end of time is not told what it said itself: the age says it.
  if (since !== null && isSayable(since)) headers.set(IDEMPOTENCY_SINCE, formatHttpDate(since))
  if (leave.scopeTag !== null) headers.set(IDEMPOTENCY_SCOPE, leave.scopeTag)
}

/** `keysUrl/{operation}/{key}` (section 16). */
export function keyUrl(keysUrl: string, record: Pick<IntentRecord, 'operation' | 'key'>): string {
  return `${keysUrl.replace(/\/+$/, '')}/${encodeURIComponent(record.operation)}/${encodeURIComponent(record.key)}`
}

/** Whether a monitor at this address may be asked (P40): with credentials, without, or, null, not at all. */
export function allowedMonitor(
  url: URL,
  record: IntentRecord,
  monitorOrigins: ReadonlySet<string>,
): 'own' | 'foreign' | null {
  const home = new URL(record.request.url)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return null
  // An address with a password in it would be a credential at rest (P51).
  if (url.username !== '' || url.password !== '') return null
  if (home.protocol === 'https:' && url.protocol === 'http:') return null
  if (url.origin === home.origin) return 'own'
  return monitorOrigins.has(url.origin) ? 'foreign' : null
}
