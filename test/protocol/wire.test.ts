import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as wire from '../../src/protocol/wire.ts'

const DIGEST = 'ab'.repeat(32)
const FULL: wire.MonitorDocument = {
  id: 'op-1',
  status: 'succeeded',
  monitor: '/operations/op-1',
  response: { status: 201, headers: { location: '/orders/1' }, body: '{"id":1}', bodyEncoding: 'utf8' },
  error: { code: 'c', type: 't', title: 'T', detail: 'D' },
  requestDigest: DIGEST,
  retryAfter: 3,
  resultExpiresAt: '2026-12-02T00:00:00Z',
}
const read = (change: object) => wire.readMonitor({ ...FULL, ...change })

describe('header names', () => {
  it('section 16: pages on another origin may send and read what the protocol needs', () => {
    expect(wire.CORS_ALLOW_HEADERS.join(', ')).toBe(
      'Idempotency-Key, Idempotency-Age, Idempotency-Since, Idempotency-Scope',
    )
    expect(wire.CORS_EXPOSE_HEADERS.join(', ')).toBe(
      'Idempotent-Replayed, Idempotency-Expires, Idempotency-Body, Retry-After, Location, Date',
    )
  })

  it('P2: the header that names an intent is none that may be sent', () => {
    expect(wire.SAMEKEY_INTENT).toBe('samekey-intent')
    expect(wire.CORS_ALLOW_HEADERS).not.toContain(wire.SAMEKEY_INTENT)
  })
})

describe('readMonitor', () => {
  it('P38: a full document is read as it is, without unknown members', () => {
    expect(read({ progress: 50 })).toEqual(FULL)
  })

  it.each(['processing', 'succeeded', 'failed', 'failed_retryable', 'unknown', 'voided'])(
    'P38: %s is a status',
    (status) => {
      expect(wire.readMonitor({ id: 'a', status })).toEqual({ id: 'a', status })
    },
  )

  it.each([
    null,
    undefined,
    1,
    'a',
    [],
    {},
    { id: 'a' },
    { status: 'failed' },
    { id: '', status: 'failed' },
    { id: 1, status: 'failed' },
    { id: 'a', status: 'done' },
    { id: 'a', status: 'toString' },
    { id: 'a', status: ['failed'] },
  ])('P38: %j is junk', (json) => {
    expect(wire.readMonitor(json)).toBeNull()
  })

  it('malformed hints are left out', () => {
    const hints = { monitor: 1, error: 'broken', resultExpiresAt: 5 }
    for (const retryAfter of ['3', -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, null]) {
      const { id, status, response, requestDigest } = FULL
      expect(read({ ...hints, retryAfter })).toEqual({ id, status, response, requestDigest })
    }
    expect(read({ error: { code: 1, title: 'T', more: {} } })?.error).toEqual({ title: 'T' })
  })

  it('null counts as absent', () => {
    const document = read({ response: null, requestDigest: null, error: null })
    expect(Object.keys(document ?? {})).toEqual(['id', 'status', 'monitor', 'retryAfter', 'resultExpiresAt'])
  })

  it.each(['ab', 1, 'x'.repeat(64), {}])(
    'a digest %j cannot be checked, so nothing is settled by it',
    (requestDigest) => {
      expect(read({ requestDigest })).toBeNull()
    },
  )

  it('a digest in upper case is the same digest', () => {
    expect(read({ requestDigest: DIGEST.toUpperCase() })?.requestDigest).toBe(DIGEST)
  })

  it.each([
    'text',
    [],
    {},
    { status: '201' },
    { status: 99 },
    { status: 600 },
    { status: 200.5 },
    { status: 200, headers: [] },
    { status: 200, body: {} },
    { status: 200, body: 'a', bodyEncoding: 'base64' },
    { status: 200, body: '-_==', bodyEncoding: 'base64' },
    { status: 200, body: '', bodyEncoding: 'gzip' },
  ])('a malformed response makes the document junk: %j', (response) => {
    expect(read({ response })).toBeNull()
  })

  it('a response without headers, body and encoding is an empty one', () => {
    expect(read({ response: { status: 204 } })?.response).toEqual({
      status: 204,
      headers: {},
      body: '',
      bodyEncoding: 'utf8',
    })
  })

  it('a binary answer comes as base64', () => {
    const response = { status: 200, headers: { a: '1', b: 2 }, body: 'AP8=', bodyEncoding: 'base64' }
    expect(read({ response })?.response).toEqual({ ...response, headers: { a: '1' } })
  })

  it('never throws', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (a, b) => {
        wire.readMonitor(a)
        read({ response: a, error: b, requestDigest: b, headers: a })
      }),
    )
  })
})
