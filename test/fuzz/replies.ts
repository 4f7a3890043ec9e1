/** Answers of somebody between client and server, who does not know what stands behind the key and gives no proof. */
import fc from 'fast-check'
import { SamekeyError } from '../../src/errors.ts'
import { wildJson } from './junk.ts'

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The body breaks off, or never ends. */
  readonly end: 'whole' | 'breaks' | 'never'
}

const foreignCodes = [
  'idempotency_unavailable',
  'idempotency_in_progress',
  'idempotency_conflict',
  'idempotency_expired',
  'idempotency_scope_mismatch',
  'idempotency_inconsistent',
  'idempotency_key_invalid',
  'constructor',
  '__proto__',
  'toString',
] as const

/** What a monitor may say without settling anything, and one thing wrong in what settles. */
const foreignMonitor = fc.oneof(
  fc.constantFrom('processing', 'failed_retryable', 'done', '').map((status) => JSON.stringify({ id: 'k', status })),
  fc
    .tuple(fc.constantFrom('succeeded', 'failed', 'voided'), fc.constantFrom(null, '', 0, {}, []))
    .map(([status, id]) => JSON.stringify({ id, status })),
  fc
    .constantFrom(
      { id: 'k', status: 'succeeded', response: { status: 500 } },
      { id: 'k', status: 'failed', response: { status: 201 } },
      { id: 'k', status: 'succeeded', response: { status: 201, body: 7 } },
      { id: 'k', status: 'succeeded', requestDigest: 'x' },
      { id: 'k', status: 'processing', retryAfter: Number.MAX_SAFE_INTEGER, resultExpiresAt: '9999-12-31T23:59:59Z' },
      { id: 'k', status: 'processing', retryAfter: -1, resultExpiresAt: '0001-01-01T00:00:00Z' },
    )
    .map((document) => JSON.stringify(document)),
)

const anyBody = fc.oneof(
  foreignMonitor,
  fc.constantFrom(...foreignCodes).map((code) => JSON.stringify({ type: 'about:blank', title: 't', code })),
  fc.constantFrom(
    '',
    '<h1>Log in</h1>',
    '{"error":{"code":"x"}}',
    '{"monitor":"/tasks/9","status":"processing","id":"k"}',
  ),
  // Not a settled document by chance: of such a one the client may believe every word.
  wildJson.filter((text) => !/succeeded|failed|voided/.test(text)),
)

export const headerValue = fc.oneof(
  fc.constantFrom(
    '0',
    '1',
    '-1',
    '99999999999999999999',
    '1e3',
    'soon',
    '',
    'Fri, 31 Dec 9999 23:59:59 GMT',
    'Sat, 01 Jan 0000 00:00:00 GMT',
    'Tue, 01 Dec 2026 12:00:00 GMT',
    'Tue, 01 Dec 1970 12:00:00 GMT',
    '/tasks/1',
    '/orders',
    '//evil.example/x',
    'https://evil.example/x',
    'http://api.example.com/x',
    'https://u:p@api.example.com/x',
    'blob:https://api.example.com/x',
    'javascript:0',
    'http://[',
    'false',
    'omitted',
    'application/problem+json',
    'application/json',
    'text/html',
    'image/png',
  ),
  fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((unit) => String.fromCharCode(unit)) }),
)
const foreignHeader = fc.constantFrom(
  'content-type',
  'retry-after',
  'date',
  'location',
  'idempotency-key',
  'idempotency-body',
  'set-cookie',
  'content-length',
  'content-encoding',
  'x-whatever',
)
const statuses = [
  200, 200, 201, 202, 204, 205, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 413, 417,
  422, 425, 429, 451, 500, 501, 502, 503, 504, 599,
] as const
export const end = fc.constantFrom<Reply['end']>('whole', 'whole', 'whole', 'breaks', 'never')

export const anyReply: fc.Arbitrary<Reply> = fc.record({
  status: fc.oneof(fc.constantFrom(...statuses), fc.integer({ min: 200, max: 599 })),
  headers: fc.dictionary(foreignHeader, headerValue, { maxKeys: 4 }),
  body: anyBody,
  end,
})

const bodyless = new Set([204, 205, 304])

export function responseOf({ status, headers, body, end: how }: Reply): Response {
  if (bodyless.has(status)) return new Response(null, { status, headers })
  if (how === 'whole') return new Response(body, { status, headers })
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(body))
    },
    pull(controller) {
      if (how === 'breaks') controller.error(new TypeError('terminated'))
      return how === 'never' ? new Promise(() => {}) : undefined
    },
  })
  return new Response(stream, { status, headers })
}

/** Takes note of what a promise came to; only typed errors are fine. */
export async function typed(promise: Promise<unknown>): Promise<void> {
  try {
    await promise
  } catch (error) {
    if (!(error instanceof SamekeyError)) throw error
  }
}
