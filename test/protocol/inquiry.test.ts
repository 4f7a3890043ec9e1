import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/protocol/dialects/dialect.ts'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { type InquiryContext, type InquiryKind, readInquiry } from '../../src/protocol/inquiry.ts'
import type { Exchange } from '../../src/protocol/verdict.ts'
import { answered, failed, json, PORTAL, refusal } from '../support/exchanges.ts'
import { DAY, NOW } from '../support/machine.ts'

const DIGEST = 'cd'.repeat(32)
const draft = ietf({ retentionMs: DAY })
const kinds: readonly InquiryKind[] = ['poll', 'lookup', 'void']

const ask = (exchange: Exchange, change: Partial<InquiryContext> = {}) =>
  readInquiry(exchange, { kind: 'poll', dialect: samekey, bodyDigest: DIGEST, now: NOW, ...change })
const text = (body: Uint8Array | null): string | null => (body === null ? null : new TextDecoder().decode(body))

describe('what says nothing', () => {
  it.each(kinds)('P38, B89: a %s that fails is no failed operation', (kind) => {
    expect(ask(failed(), { kind })).toEqual({
      event: { type: 'inquiryFailed', detail: 'TypeError', retryAfterMs: null },
      body: null,
    })
    for (const status of [303, 400, 408, 409, 429, 500, 503]) {
      const { event } = ask(answered(status, { 'retry-after': '4' }), { kind })
      expect(event, `${status}`).toEqual({ type: 'inquiryFailed', status, retryAfterMs: 4000 })
    }
  })

  it('P40: a redirect that a browser hides is not followed, and says nothing', () => {
    expect(ask(answered(0, {}, '', { opaque: true })).event).toMatchObject({
      type: 'inquiryFailed',
      detail: 'redirect',
    })
  })

  it('P38: half an answer settles nothing', () => {
    for (const bodyState of ['cut_off', 'too_large'] as const) {
      expect(ask(json(200, { id: 'a', status: 'failed' }, {}, { bodyState })).event.type).toBe('inquiryFailed')
    }
  })

  it.each(['', '<h1>Log in</h1>', '{"id":"a"}', '[]', 'null'])('H24: a foreign page (%j) settles nothing', (page) => {
    for (const kind of kinds) expect(ask(answered(200, {}, page), { kind }).event.type).toBe('inquiryFailed')
  })

  it.each(kinds)('P38: a %s without credentials, or under another account, says nothing', (kind) => {
    expect(ask(answered(401), { kind }).event).toEqual({ type: 'inquiryUnauthorized', status: 401 })
    expect(ask(answered(403), { kind }).event.type).toBe('inquiryUnauthorized')
    expect(ask(refusal('idempotency_scope_mismatch'), { kind }).event.type).toBe('inquiryUnauthorized')
  })
})

describe('what contradicts itself', () => {
  it.each(kinds)('P27, P38: a success with an error status, or the other way round, is no news (%s)', (kind) => {
    for (const [status, code] of [
      ['succeeded', 404],
      ['succeeded', 500],
      ['failed', 201],
    ]) {
      const document = { id: 'a', status, response: { status: code, headers: {}, body: '' } }
      expect(ask(json(200, document), { kind }).event.type, `${status} ${code}`).toBe('inquiryFailed')
    }
  })

  it('section 16: a header that no answer could carry is dropped, and the others are kept', () => {
    const headers = { etag: '"1"', 'a b': '1', '': '1', x: 'a\r\nb: c', y: 'é€', authorization: 'Bearer 1' }
    const { event } = ask(json(200, { id: 'a', status: 'succeeded', response: { status: 201, headers, body: '' } }))
    expect(event.type === 'done' && event.answer.headers).toEqual([['etag', '"1"']])
  })
})

describe('refusals by key', () => {
  it.each(kinds)('P43, P44, P57: expired, voided and in progress are said of the key (%s)', (kind) => {
    expect(ask(refusal('idempotency_expired'), { kind }).event).toEqual({ type: 'expired', status: 409, answer: null })
    expect(ask(refusal('idempotency_voided'), { kind }).event).toEqual({ type: 'voided', status: 409 })
    const busy = refusal('idempotency_in_progress', { 'retry-after': '2' })
    expect(ask(busy, { kind }).event).toEqual({ type: 'inProgress', status: 409, retryAfterMs: 2000 })
    expect(ask(refusal('idempotency_inconsistent'), { kind }).event.type).toBe('inquiryFailed')
    expect(ask(json(409, { code: 'toString' }), { kind }).event.type).toBe('inquiryFailed')
  })

  it('P38, B88: a monitor that is missing is told apart; it proves nothing', () => {
    for (const status of [404, 410]) {
      expect(ask(answered(status)).event).toEqual({ type: 'monitorMissing', status })
    }
  })

  it('P43, H36: a look-up that finds nothing proves nothing', () => {
    for (const kind of ['lookup', 'void'] as const) {
      for (const status of [404, 410]) expect(ask(answered(status), { kind }).event.type).toBe('inquiryFailed')
    }
  })

  it('P44: a server that cannot void says so', () => {
    for (const status of [405, 501]) {
      expect(ask(answered(status), { kind: 'void' }).event).toEqual({ type: 'voidNotOffered', status })
      expect(ask(answered(status), { kind: 'lookup' }).event.type).toBe('inquiryFailed')
    }
  })
})

describe('documents of section 16', () => {
  const document = (change: object, headers = {}) => json(200, { id: 'a', status: 'processing', ...change }, headers)

  it.each(kinds)('P38: at work, and "the server tries again by itself", are told apart (%s)', (kind) => {
    const times = { retryAfter: 5, resultExpiresAt: '2027-01-20T00:00:00Z' }
    expect(ask(document(times), { kind }).event).toEqual({
      type: 'stillProcessing',
      status: 200,
      phase: 'running',
      monitorUrl: null,
      resultExpiresAt: Date.UTC(2027, 0, 20),
      retryAfterMs: 5000,
    })
    expect(ask(document({ status: 'failed_retryable' }), { kind }).event).toMatchObject({
      phase: 'retrying',
      resultExpiresAt: null,
      retryAfterMs: null,
    })
  })

  it('P39, P41: the header comes before the body, which stands in where the header cannot be read', () => {
    expect(ask(document({ retryAfter: 5 }, { 'retry-after': '9' })).event).toMatchObject({ retryAfterMs: 9000 })
    expect(ask(document({ retryAfter: 5, resultExpiresAt: 'x' })).event).toMatchObject({
      retryAfterMs: 5000,
      resultExpiresAt: null,
    })
  })

  it('P38: completed, with the stored answer and its bytes', () => {
    const response = {
      status: 201,
      headers: { 'Content-Type': 'application/json', 'Set-Cookie': 'a=b' },
      body: '{"id":9}',
      bodyEncoding: 'utf8',
    }
    const { event, body } = ask(document({ status: 'succeeded', response }))
    expect(event).toEqual({
      type: 'done',
      status: 200,
      answer: { status: 201, headers: [['content-type', 'application/json']], url: '', body: 'stored', replayed: true },
    })
    expect(text(body)).toBe('{"id":9}')
  })

  it('P22, P60: binary, empty, omitted and missing bodies', () => {
    const found = (response: object) => ask(document({ status: 'succeeded', response: { status: 200, ...response } }))
    expect(found({ body: '/wA=', bodyEncoding: 'base64' }).body).toEqual(new Uint8Array([0xff, 0]))
    expect(found({ body: '' })).toMatchObject({ event: { answer: { body: 'empty' } }, body: null })
    const omitted = found({ headers: { 'Idempotency-Body': 'omitted' } })
    expect(omitted).toMatchObject({ event: { answer: { body: 'omitted_by_server' } }, body: null })
    const bare = ask(document({ status: 'succeeded' }))
    expect(bare).toMatchObject({ event: { type: 'done', answer: { status: 200, body: 'not_given' } }, body: null })
  })

  it('P38: failed for good is proof, with what went wrong', () => {
    const failure = ask(document({ status: 'failed', error: { code: 'no_stock' } }))
    expect(failure.event).toMatchObject({
      type: 'refused',
      proof: true,
      answer: { status: 500, body: 'stored', headers: [['content-type', 'application/problem+json']] },
    })
    expect(text(failure.body)).toBe('{"code":"no_stock"}')
    expect(ask(document({ status: 'failed' })).event).toMatchObject({
      proof: true,
      answer: { body: 'not_given', headers: [] },
    })
    const response = { status: 422, body: 'no' }
    expect(ask(document({ status: 'failed', response })).event).toMatchObject({
      type: 'refused',
      answer: { status: 422 },
    })
  })

  it.each(kinds)('P38, P44: unknown and voided (%s)', (kind) => {
    expect(ask(document({ status: 'unknown' }), { kind }).event).toEqual({ type: 'serverUnknown', status: 200 })
    expect(ask(document({ status: 'voided' }), { kind }).event).toEqual({ type: 'voided', status: 200 })
  })

  it.each(kinds)('H37: nothing is settled from an answer to another payload (%s)', (kind) => {
    const other = document({ status: 'succeeded', requestDigest: 'ab'.repeat(32) })
    expect(ask(other, { kind }).event).toEqual({ type: 'otherPayload', status: 200 })
    expect(ask(document({ status: 'succeeded', requestDigest: DIGEST }), { kind }).event.type).toBe('done')
    expect(ask(document({ status: 'succeeded', requestDigest: 'short' }), { kind }).event.type).toBe('inquiryFailed')
  })
})

describe('plain monitors', () => {
  const plain = (exchange: Exchange, change: Partial<InquiryContext> = {}) =>
    ask(exchange, { dialect: draft, accept: 'application/json', ...change })

  it('P38, B92: 202, or a word for it in a 200, is still at work', () => {
    expect(plain(answered(202, { 'retry-after': '3' })).event).toEqual({
      type: 'stillProcessing',
      status: 202,
      phase: 'running',
      monitorUrl: null,
      resultExpiresAt: null,
      retryAfterMs: 3000,
    })
    for (const status of ['Running', 'not started', 'IN_PROGRESS', 'in-progress', 'queued', 'accepted']) {
      expect(plain(json(200, { status })).event.type, status).toBe('stillProcessing')
    }
  })

  it('P38: anything else is the result itself, with its bytes', () => {
    const { event, body } = plain(json(200, { id: 9, status: 7 }))
    expect(event).toMatchObject({ type: 'done', status: 200, answer: { body: 'stored' } })
    expect(text(body)).toBe('{"id":9,"status":7}')
    expect(plain(answered(204)).event).toMatchObject({ type: 'done', answer: { body: 'empty' } })
    expect(plain(json(200, [])).event.type).toBe('done')
    expect(plain(json(200, { status: 'Succeeded' })).event.type).toBe('done')
  })

  it('P38: failed and cancelled are failed for good', () => {
    for (const status of ['Failed', 'Canceled', 'cancelled']) {
      expect(plain(json(200, { status })).event).toMatchObject({ type: 'refused', proof: true })
    }
  })

  it('H24, H51: a captive portal or a login page is no result (no wrong success)', () => {
    expect(plain(PORTAL).event.type).toBe('inquiryFailed')
    expect(plain(json(200, {}, {}, { redirected: true })).event.type).toBe('inquiryFailed')
    expect(plain({ ...PORTAL, status: 202 }).event.type).toBe('inquiryFailed')
    expect(plain(PORTAL, { accept: null }).event.type).toBe('done')
    const { accept: _accept, ...bare } = {
      kind: 'poll',
      dialect: draft,
      bodyDigest: DIGEST,
      now: NOW,
      accept: null,
    } as const
    expect(readInquiry(PORTAL, bare).event.type).toBe('done')
  })

  it('section 6: what is proven, or followed on the same origin with proof, is believed', () => {
    const replayed = { 'idempotent-replayed': 'true', 'content-type': 'text/plain' }
    expect(plain(answered(200, replayed, 'ok')).event.type).toBe('done')
    expect(plain(json(200, {}, {}, { redirected: true, seeOtherProof: true })).event.type).toBe('done')
  })

  it("section 6: the operation's own word decides on a 2xx", () => {
    expect(plain(json(200, { status: 'pending' }), { appAccepts: true }).event.type).toBe('done')
    expect(plain(PORTAL, { appAccepts: true }).event.type).toBe('done')
    expect(plain(json(200, { id: 9 }), { appAccepts: false }).event.type).toBe('inquiryFailed')
    expect(plain(json(202, {}), { appAccepts: true }).event.type).toBe('stillProcessing')
  })

  it('P43: look-up and void speak in documents whatever the monitor does', () => {
    for (const kind of ['lookup', 'void'] as const)
      expect(plain(json(200, { id: 9 }), { kind }).event.type).toBe('inquiryFailed')
  })
})

it('P28: whatever the bytes, reading an inquiry never throws', () => {
  const dialects: readonly Dialect[] = [samekey, draft]
  fc.assert(
    fc.property(
      fc.nat(999),
      fc.oneof(fc.json(), fc.string()),
      fc.constantFrom(...kinds),
      fc.constantFrom(...dialects),
      (status, body, kind, dialect) => {
        const found = ask(answered(status, { 'content-type': 'application/json' }, body), { kind, dialect })
        expect(found.event.type).toBeTypeOf('string')
      },
    ),
  )
})
