import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/protocol/dialects/dialect.ts'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { stripe } from '../../src/protocol/dialects/stripe.ts'
import { answerOf, hear, readAccepted } from '../../src/protocol/verdict.ts'
import { answered, failed, json, judge, PORTAL, PROOF, REPLAYED, refusal } from '../support/exchanges.ts'
import { DAY, NOW } from '../support/machine.ts'

const draft = ietf({ retentionMs: DAY })

describe('classify', () => {
  it('P26: an attempt without an answer is ambiguous, with its reason', () => {
    expect(judge(failed(), samekey)).toEqual({
      type: 'ambiguous',
      detail: 'TypeError',
      retryAfterMs: null,
      unmarked: false,
    })
    expect(judge(failed(true), samekey)).toEqual({ type: 'neverDelivered', detail: 'TypeError' })
  })

  it("P32: the server's word on when to come back is read, dates against its own clock", () => {
    const dates = { date: 'Fri, 15 Jan 2027 08:00:00 GMT', 'retry-after': 'Fri, 15 Jan 2027 08:00:07 GMT' }
    expect(judge(answered(503, dates), samekey)).toMatchObject({ type: 'ambiguous', retryAfterMs: 7000 })
    expect(judge(answered(429, { 'retry-after': '3' }), samekey)).toMatchObject({ retryAfterMs: 3000 })
    expect(judge(answered(429, { 'retry-after': 'abc' }), samekey)).toMatchObject({ retryAfterMs: null })
  })

  it('B78: a plain 500 keeps the intent alive', () => {
    expect(judge(answered(500), samekey)).toMatchObject({ type: 'ambiguous', status: 500 })
  })

  it('P22: the answer is kept as it was, without cookies and what speaks of one connection', () => {
    const headers = {
      'content-type': 'application/json',
      location: '/orders/9',
      'set-cookie': 'sid=1',
      'content-encoding': 'gzip',
      'content-length': '9',
      ...REPLAYED,
    }
    expect(judge(json(201, { id: 9 }, headers), samekey)).toEqual({
      type: 'done',
      status: 201,
      answer: {
        status: 201,
        headers: [['content-type', 'application/json'], ['location', '/orders/9'], ...Object.entries(REPLAYED)],
        url: 'https://api.example.com/orders',
        body: 'stored',
        replayed: true,
      },
    })
  })

  it('P22, P60: why a body is not there is said, never an empty value', () => {
    const body = (change: Parameters<typeof answered>[3], headers = {}, text = 'x'): string =>
      answerOf(answered(200, headers, text, change), samekey).body
    expect(body({})).toBe('stored')
    expect(body({}, {}, '')).toBe('empty')
    expect(body({ bodyState: 'cut_off' })).toBe('cut_off')
    expect(body({ bodyState: 'too_large' })).toBe('too_large')
    expect(body({}, { 'idempotency-body': 'omitted' }, '')).toBe('omitted_by_server')
  })

  it('P41, H59: an unmarked 2xx counts as unreadable only across origins', () => {
    expect(judge(json(201, {}), samekey)).toMatchObject({ type: 'ambiguous', detail: 'no_marker', unmarked: false })
    expect(judge(json(201, {}, {}, { crossOrigin: true }), samekey)).toMatchObject({ unmarked: true })
    const answerInProgress = refusal('idempotency_in_progress')
    expect(judge({ ...answerInProgress, crossOrigin: true }, samekey)).toMatchObject({ type: 'inProgress' })
  })

  it('H24, B77: a foreign page is told by its type, also where its body broke off or was not read', () => {
    for (const bodyState of ['cut_off', 'too_large'] as const) {
      const portal = { ...PORTAL, body: new Uint8Array(), bodyState }
      expect(judge(portal, draft)).toMatchObject({ type: 'ambiguous', detail: 'media_type' })
    }
    expect(judge(PORTAL, draft, { accept: null })).toMatchObject({ type: 'done' })
    expect(judge(PORTAL, draft, { appAccepts: true })).toMatchObject({ type: 'done' })
    expect(judge(PORTAL, draft, { appAccepts: false })).toMatchObject({ type: 'ambiguous', detail: 'not_accepted' })
    expect(judge({ ...PORTAL, redirected: true }, draft)).toMatchObject({ type: 'ambiguous', detail: 'redirect' })
  })

  it('section 6: a whole answer that is too large to keep is done all the same', () => {
    const large = json(200, {}, PROOF, { bodyState: 'too_large', body: new Uint8Array() })
    expect(judge(large, samekey)).toMatchObject({ type: 'done', answer: { body: 'too_large' } })
  })

  it('P26: a refusal with proof is one even where its body broke off; without proof it may be another', () => {
    const cut = { bodyState: 'cut_off', body: new Uint8Array() } as const
    expect(judge(json(422, {}, PROOF, cut), samekey)).toMatchObject({ type: 'refused', proof: true })
    expect(judge(json(422, {}, {}, cut), samekey)).toMatchObject({ type: 'ambiguous', status: 422 })
    expect(judge(json(401, {}, {}, cut), samekey)).toMatchObject({ type: 'needsCredentials' })
  })

  it('P25: a code comes before the status, a hint before the code', () => {
    const dialect: Dialect = {
      ...none,
      codes: { busy: 'inProgress' },
      statuses: { 400: 'refusedWithoutEffect' },
      hint: ({ header }) => (header('x-final') === null ? null : 'refused'),
    }
    expect(judge(json(400, { code: 'busy' }), dialect)).toMatchObject({ type: 'inProgress' })
    expect(judge(json(400, { code: 'other' }), dialect)).toMatchObject({ type: 'refusedWithoutEffect' })
    expect(judge(json(400, { code: 'busy' }, { 'x-final': '1' }), dialect)).toMatchObject({ type: 'refused' })
    expect(judge(json(403, { code: 'toString' }), dialect)).toMatchObject({ type: 'refused' })
    expect(judge(answered(400, { 'content-type': 'text/html' }, '{"code":"busy"}'), dialect)).toMatchObject({
      type: 'refusedWithoutEffect',
    })
  })

  it('F18: a stored failure is one by its replay marker, not by its status', () => {
    expect(judge(json(500, {}, REPLAYED), samekey)).toMatchObject({ type: 'storedFailure', answer: { status: 500 } })
    expect(judge(json(500, {}, PROOF), samekey)).toMatchObject({ type: 'ambiguous' })
    expect(judge(json(500, {}, REPLAYED), none)).toMatchObject({ type: 'ambiguous' })
  })

  it('P37, P39: a 202 tells where to ask and how long its result is kept', () => {
    const body = { id: 'a', status: 'processing', resultExpiresAt: '2027-01-20T00:00:00Z' }
    expect(
      judge(json(202, body, { ...PROOF, 'retry-after': '2' }), samekey, { monitorUrl: 'https://m.example/' }),
    ).toEqual({
      type: 'accepted',
      status: 202,
      retryAfterMs: 2000,
      monitorUrl: 'https://m.example/',
      resultExpiresAt: Date.UTC(2027, 0, 20),
    })
    expect(judge(answered(202, PROOF, 'later'), samekey)).toMatchObject({ monitorUrl: null, resultExpiresAt: null })
  })

  it('section 6: a 202 without a way to ask is done where the operation says so, and asked again where it says nothing', () => {
    expect(judge(answered(202, PROOF, 'taken'), samekey, { appAccepts: true }).type).toBe('done')
    expect(judge(answered(202, PROOF, 'taken'), samekey, { appAccepts: null }).type).toBe('accepted')
    const monitorUrl = 'https://m.example/'
    expect(judge(answered(202, PROOF, 'taken'), samekey, { appAccepts: true, monitorUrl }).type).toBe('accepted')
  })

  it('P28: whatever the bytes, classification never throws', () => {
    const dialects = [samekey, draft, stripe, none]
    const anyHeaders = fc.dictionary(
      fc.constantFrom('content-type', 'retry-after', 'date', 'idempotency-expires', 'idempotent-replayed', 'location'),
      fc.constantFrom('', 'application/json', 'true', '9e9', 'Fri, 15 Jan 2027 08:00:00 GMT', 'ü'),
    )
    const anyBody = fc.oneof(fc.json(), fc.string(), fc.constantFrom('{"error":null}', '{"error":{"code":1}}', '[]'))
    fc.assert(
      fc.property(
        fc.nat(999),
        anyHeaders,
        anyBody,
        fc.constantFrom('complete' as const, 'cut_off' as const, 'too_large' as const),
        fc.constantFrom(...dialects),
        (status, headers, body, bodyState, dialect) => {
          expect(judge(answered(status, headers, body, { bodyState }), dialect).type).toBeTypeOf('string')
        },
      ),
    )
  })
})

describe('hear', () => {
  it('names compare without regard to case, and the text is decoded once and leniently', () => {
    const heard = hear(answered(200, { location: '/a' }, '', { body: new Uint8Array([0xff, 0x41]) }))
    expect(heard.header('Location')).toBe('/a')
    expect(heard.header('date')).toBeNull()
    expect(heard.text).toBe('\ufffdA')
    expect(heard.text).toBe('\ufffdA')
  })
})

describe('readAccepted', () => {
  it('section 16: monitor, pace and retention of a 202', () => {
    const body = { monitor: '/tasks/1', retryAfter: 3, resultExpiresAt: '2027-01-20T00:00:00Z' }
    expect(readAccepted(JSON.stringify(body))).toEqual({
      monitor: '/tasks/1',
      retryAfterMs: 3000,
      resultExpiresAt: Date.UTC(2027, 0, 20),
    })
  })

  it.each(['', 'later', '1', 'null', '"a"'])('%j says nothing', (text) => {
    expect(readAccepted(text)).toBeNull()
  })

  it.each([
    { monitor: 1, retryAfter: '3', resultExpiresAt: 5 },
    { retryAfter: -1, resultExpiresAt: 'soon' },
    { retryAfter: 1.5 },
    { retryAfter: 1e300 },
    [],
  ])('B63: %j holds no readable hint', (body) => {
    expect(readAccepted(JSON.stringify(body))).toEqual({ monitor: null, retryAfterMs: null, resultExpiresAt: null })
  })

  it('P32: times are read from the answer, not from this device', () => {
    expect(judge(json(202, { resultExpiresAt: 'x' }, PROOF), samekey, { now: NOW })).toMatchObject({
      resultExpiresAt: null,
    })
  })
})
