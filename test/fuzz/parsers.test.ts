/** Everything that reads what others wrote, fed with junk: it may understand nothing, but never throws (P23, P28, P32). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeRecord, encodeRecord } from '../../src/protocol/codec.ts'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { stripe } from '../../src/protocol/dialects/stripe.ts'
import { parseHttpDate } from '../../src/protocol/http-date.ts'
import { readInquiry } from '../../src/protocol/inquiry.ts'
import { readKeyHeader } from '../../src/protocol/key.ts'
import { canonicalMediaType, isJsonMediaType } from '../../src/protocol/media-type.ts'
import { makeProblem, readProblem } from '../../src/protocol/problem.ts'
import { recordFormat } from '../../src/protocol/record.ts'
import { MAX_RETRY_AFTER_MS, retryAfterMs } from '../../src/protocol/retry-after.ts'
import { parseTimestamp } from '../../src/protocol/timestamp.ts'
import { readAccepted } from '../../src/protocol/verdict.ts'
import { type MonitorDocument, readMonitor } from '../../src/protocol/wire.ts'
import { answered, judge } from '../support/exchanges.ts'
import { FULL, inDoubt, MONITOR, NOW } from '../support/machine.ts'
import { anyDamage, damaged, oddValue, wildJson, wildText } from './junk.ts'
import { runs } from './runs.ts'

const dialects = [samekey, ietf({ retentionMs: 86_400_000 }), stripe, none]

const monitor: MonitorDocument = {
  id: 'k-1',
  status: 'succeeded',
  monitor: '/tasks/1',
  response: {
    status: 201,
    headers: { etag: '"1"', 'content-type': 'application/json' },
    body: '{"id":9}',
    bodyEncoding: 'utf8',
  },
  error: { code: 'c', type: 'urn:t', title: 't', detail: 'd' },
  requestDigest: 'ab'.repeat(32),
  retryAfter: 2,
  resultExpiresAt: '2027-01-20T00:00:00Z',
}

/** A sound document with one thing wrong, as text. */
const brokenMonitor = anyDamage.map((damage) => JSON.stringify(damaged(monitor, damage)))
const brokenProblem = anyDamage.map((damage) => JSON.stringify(damaged(makeProblem('idempotency_voided', 'd'), damage)))
const body = fc.oneof(brokenMonitor, brokenProblem, wildJson)
const headerValue = fc.oneof(
  wildText,
  oddValue.map(String),
  fc.constantFrom(
    'Fri, 31 Dec 9999 23:59:59 GMT',
    'Sat, 01 Jan 0000 00:00:00 GMT',
    'true',
    'omitted',
    '/a',
    '//',
    'http://[',
  ),
)
const headerName = fc.constantFrom(
  'content-type',
  'retry-after',
  'date',
  'location',
  'idempotency-expires',
  'idempotent-replayed',
  'idempotency-body',
  'set-cookie',
  'stripe-should-retry',
)
const headers = fc.dictionary(headerName, headerValue)
const bodyState = fc.constantFrom('complete' as const, 'cut_off' as const, 'too_large' as const)
const jsonType = { 'content-type': 'application/problem+json' }

describe('P28, P32: junk on the wire is not understood, and nothing throws', () => {
  it('P32: Retry-After is a number of ms from 0 to ten years, or null: no NaN, no negative wait', () => {
    fc.assert(
      fc.property(
        headerValue,
        fc.option(headerValue),
        fc.constantFrom(NOW, 0, -1e15, 1e300, Number.NaN),
        (value, date, now) => {
          const ms = retryAfterMs(value, now, date)
          if (ms !== null) expect(ms >= 0 && ms <= MAX_RETRY_AFTER_MS).toBe(true)
        },
      ),
      runs(1, 2000),
    )
  })

  it('P28: dates, times, keys and media types are read or refused, never thrown', () => {
    fc.assert(
      fc.property(headerValue, (text) => {
        for (const read of [parseHttpDate(text), parseHttpDate(text, NOW), parseTimestamp(text)])
          expect(read === null || Number.isFinite(read)).toBe(true)
        expect(readKeyHeader(text).ok).toBeTypeOf('boolean')
        expect(isJsonMediaType(text)).toBeTypeOf('boolean')
        expect(canonicalMediaType(text)).toBeTypeOf('string')
      }),
      runs(2, 2000),
    )
  })

  it('P28: of a problem document only texts come through, and no member of Object.prototype', () => {
    fc.assert(
      fc.property(body, (text) => {
        const problem = readProblem('application/json', text)
        if (problem === null) return
        for (const [name, value] of Object.entries(problem)) {
          expect(['code', 'type', 'title']).toContain(name)
          expect(value).toBeTypeOf('string')
        }
      }),
      runs(3, 2000),
    )
  })

  it('P27, P38: a monitor document is sound in all its facts, or junk: nothing is settled from half an answer', () => {
    fc.assert(
      fc.property(body, (text) => {
        const read = readMonitor(jsonOrNull(text))
        if (read === null) return
        expect(['processing', 'succeeded', 'failed', 'failed_retryable', 'unknown', 'voided']).toContain(read.status)
        expect(read.id).not.toBe('')
        if (read.requestDigest !== undefined) expect(read.requestDigest).toMatch(/^[0-9a-f]{64}$/)
        if (read.retryAfter !== undefined)
          expect(Number.isSafeInteger(read.retryAfter) && read.retryAfter >= 0).toBe(true)
        if (read.response === undefined) return
        expect(read.response.status >= 200 && read.response.status <= 599).toBe(true)
        // What the document holds can be made into an answer, or it would damage the record that keeps it.
        expect(() => new Response(null, { headers: { ...read.response?.headers } })).not.toThrow()
      }),
      runs(4, 2000),
    )
  })

  it('P39: no hint of a 202 makes a time that no store keeps', () => {
    fc.assert(
      fc.property(body, (text) => {
        const read = readAccepted(text)
        if (read?.retryAfterMs != null) expect(Number.isSafeInteger(NOW + read.retryAfterMs)).toBe(true)
        if (read?.resultExpiresAt != null) expect(Number.isFinite(read.resultExpiresAt)).toBe(true)
      }),
      runs(5, 2000),
    )
  })

  it('P25, P28: every answer has a verdict, and what the record keeps of it can be read again (P23)', () => {
    fc.assert(
      fc.property(
        fc.nat(999),
        headers,
        body,
        bodyState,
        fc.constantFrom(...dialects),
        (status, given, text, state, dialect) => {
          const verdict = judge(answered(status, { ...jsonType, ...given }, text, { bodyState: state }), dialect)
          if (!('answer' in verdict) || status < 200) return
          const sendable = Object.values(given).every((value) => /^[\t\x20-\x7e\x80-\xff]*$/.test(value))
          if (!sendable) return
          const kept = { ...inDoubt({ name: 'waiting', because: 'ambiguous' }), answer: verdict.answer }
          expect(decodeRecord(recordFormat, encodeRecord(kept))).toEqual({ ok: true, record: kept })
        },
      ),
      runs(6, 3000),
    )
  })

  it('P38: every inquiry has a finding, and none of a broken document is proof of an end it does not tell', () => {
    fc.assert(
      fc.property(
        fc.nat(999),
        headers,
        body,
        fc.constantFrom('poll' as const, 'lookup' as const, 'void' as const),
        fc.constantFrom(...dialects),
        (status, given, text, kind, dialect) => {
          const exchange = answered(status, { ...jsonType, ...given }, text)
          const { event } = readInquiry(exchange, { kind, dialect, bodyDigest: monitor.requestDigest!, now: NOW })
          if ('retryAfterMs' in event && event.retryAfterMs !== null) {
            expect(event.retryAfterMs).toBeGreaterThanOrEqual(0)
            expect(event.retryAfterMs).toBeLessThanOrEqual(MAX_RETRY_AFTER_MS)
          }
        },
      ),
      runs(7, 3000),
    )
  })
})

describe('P23: junk in the store is damage, newer, or a record that can be worked on', () => {
  const states = fc.constantFrom(
    FULL.state,
    { name: 'processing' as const, monitor: MONITOR },
    { name: 'unknown' as const, because: 'window_over' as const },
  )
  const brokenRecord = fc
    .tuple(states, anyDamage)
    .map(([state, damage]) => JSON.stringify(damaged({ ...FULL, state }, damage)))

  it('P23: decoding never throws, and what it accepts is written and read again unchanged', () => {
    fc.assert(
      fc.property(fc.oneof(brokenRecord, wildJson), fc.constantFrom(1, 0, -1, 2, 99, Number.NaN), (text, format) => {
        const decoded = decodeRecord(format, text)
        if (decoded.ok) expect(decodeRecord(recordFormat, encodeRecord(decoded.record))).toEqual(decoded)
        else expect(['damaged', 'newer']).toContain(decoded.reason)
      }),
      runs(8, 3000),
    )
  })

  it('P23: a record that is accepted can be sent: its request and its answer can be made', () => {
    fc.assert(
      fc.property(brokenRecord, (text) => {
        const decoded = decodeRecord(recordFormat, text)
        if (!decoded.ok) return
        const { request, answer: kept } = decoded.record
        const headersOf = (pairs: readonly (readonly [string, string])[]) =>
          new Headers(pairs.map(([name, value]): [string, string] => [name, value]))
        const { method, credentials, mode, hasBody } = request
        const referrerPolicy = request.referrerPolicy as ReferrerPolicy
        const init = {
          method,
          credentials,
          mode,
          referrerPolicy,
          headers: headersOf(request.headers),
          ...(hasBody && { body: '{}' }),
        }
        expect(() => new Request(request.url, init), text).not.toThrow()
        if (kept !== null)
          expect(() => new Response(null, { status: kept.status, headers: headersOf(kept.headers) })).not.toThrow()
      }),
      runs(9, 3000),
    )
  })
})

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
