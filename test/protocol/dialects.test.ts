import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/protocol/dialects/dialect.ts'
import { type IetfOptions, ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { stripe } from '../../src/protocol/dialects/stripe.ts'
import type { Verdict } from '../../src/protocol/events.ts'
import { PROBLEMS, type ProblemCode } from '../../src/protocol/problem.ts'
import type { AnsweredExchange } from '../../src/protocol/verdict.ts'
import { answered, json, judge, PORTAL, PROOF, REPLAYED, refusal } from '../support/exchanges.ts'
import { DAY, HOUR } from '../support/machine.ts'

type Rows = readonly (readonly [what: string, exchange: AnsweredExchange, verdict: Verdict['type']])[]

function speaks(dialect: Dialect, rows: Rows): void {
  it.each(rows)('section 6: %s', (_what, exchange, verdict) => {
    expect(judge(exchange, dialect).type).toBe(verdict)
  })
}

const replayed = { 'idempotent-replayed': 'true' }

describe('samekey (section 16)', () => {
  const verdicts: Readonly<Record<ProblemCode, Verdict['type']>> = {
    idempotency_key_missing: 'refused',
    idempotency_key_invalid: 'refused',
    idempotency_scope_mismatch: 'scopeMismatch',
    idempotency_conflict: 'conflict',
    idempotency_in_progress: 'inProgress',
    idempotency_expired: 'expired',
    idempotency_voided: 'voided',
    idempotency_inconsistent: 'ambiguous',
    idempotency_unavailable: 'refusedWithoutEffect',
  }
  speaks(samekey, [
    ...(Object.keys(PROBLEMS) as ProblemCode[]).map((code) => [code, refusal(code), verdicts[code]] as const),
    ['B76: 422 of the application', json(422, { code: 'out_of_stock' }), 'refused'],
    ['B77: 200 of a captive portal', PORTAL, 'ambiguous'],
    ['B78: 500', answered(500), 'ambiguous'],
    ['B75: 500, replayed', json(500, {}, REPLAYED), 'storedFailure'],
    ['201 with proof', json(201, {}, PROOF), 'done'],
  ])

  it('H5: a scope mismatch, and nothing else of its refusals, waits for another account', () => {
    expect(Object.entries(verdicts).filter(([, verdict]) => verdict === 'scopeMismatch')).toHaveLength(1)
  })

  it('P1, P12, P35: what it declares', () => {
    expect(samekey).toMatchObject({
      deduplicates: true,
      methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
      retentionMs: DAY,
      tellsAge: true,
      byKey: true,
      quoted: false,
      keyHeader: 'Idempotency-Key',
      marker: 'Idempotency-Expires',
    })
  })
})

describe('ietf (the draft)', () => {
  const draft = ietf({ retentionMs: DAY })
  const type = 'https://developer.example.com/idempotency'
  speaks(draft, [
    ['B74: 409 while the first request runs', json(409, { type, title: 'A request is outstanding' }), 'inProgress'],
    ['B74: a bare 409', answered(409), 'inProgress'],
    ['B74: 409 with about:blank', json(409, { type: 'about:blank', title: 'Conflict' }), 'inProgress'],
    ['B74: 409 with an idempotency code', json(409, { code: 'idempotency_in_flight' }), 'inProgress'],
    ['B76: 409 of the application, by type', json(409, { type: 'https://x.example/out-of-stock' }), 'refused'],
    ['B76: 409 of the application, by code', json(409, { code: 'version_mismatch' }), 'refused'],
    ['B76: 409 that was stored is not in progress', answered(409, replayed), 'refused'],
    ['B76: 422 validation', json(422, { title: 'amount must be positive' }), 'refused'],
    ['B76: a bare 422', answered(422), 'refused'],
    ['B76: 422 mismatch by title alone', json(422, { title: 'Idempotency-Key is already used' }), 'conflict'],
    ['B76: 422 mismatch by code', json(422, { code: 'idempotency_conflict' }), 'conflict'],
    ['B76: 422 mismatch by type', json(422, { type }), 'conflict'],
    ['400 key missing', json(400, { type, title: 'Idempotency-Key is missing' }), 'refused'],
    ['B77: a redirect to another origin', json(200, {}, {}, { redirected: true }), 'ambiguous'],
    ['B77: 200 of a captive portal', PORTAL, 'ambiguous'],
    ['B78: 500', answered(500), 'ambiguous'],
    ['B75: 500, replayed', json(500, {}, replayed), 'storedFailure'],
  ])

  it("P35: the retention is the app's to say; the rest has defaults", () => {
    expect(ietf({ retentionMs: HOUR })).toMatchObject({
      retentionMs: HOUR,
      quoted: false,
      marker: null,
      keyRules: {},
      methods: ['POST', 'PATCH'],
      tellsAge: false,
      byKey: false,
    })
    const options: IetfOptions = { retentionMs: HOUR, quoted: true, marker: 'x-key', keyRules: { uuidVersion: 4 } }
    expect(ietf(options)).toMatchObject(options)
  })

  it('H24: with a marker of its own, only what shows it is proven', () => {
    const marked = ietf({ retentionMs: HOUR, marker: 'X-Key-Seen' })
    expect(judge(json(201, {}), marked)).toMatchObject({ type: 'ambiguous', detail: 'no_marker' })
    expect(judge(json(201, {}, { 'x-key-seen': '' }), marked)).toMatchObject({ type: 'done' })
    expect(judge(json(422, {}, { 'x-key-seen': '' }), marked)).toMatchObject({ type: 'refused', proof: true })
    expect(judge(json(409, {}, { 'x-key-seen': '' }), marked)).toMatchObject({ type: 'refused', proof: true })
  })
})

describe('stripe', () => {
  const error = (status: number, body: unknown, headers = {}): AnsweredExchange =>
    json(status, { error: body }, headers)
  const retry = (word: string) => ({ 'stripe-should-retry': word })
  speaks(stripe, [
    ['B74: 409 idempotency_key_in_use', error(409, { code: 'idempotency_key_in_use' }), 'inProgress'],
    [
      'B74: in use, whatever type it comes with',
      error(409, { type: 'idempotency_error', code: 'idempotency_key_in_use' }),
      'inProgress',
    ],
    ['B74: a bare 409', answered(409), 'inProgress'],
    ['B76: 400 for another payload', error(400, { type: 'idempotency_error' }), 'conflict'],
    ['B76: 400 of the application', error(400, { type: 'invalid_request_error' }), 'refused'],
    ['402 declined, not yet stored', error(402, { code: 'card_declined' }), 'refused'],
    [
      '429 lock_timeout: an object lock, nothing was executed',
      error(429, { code: 'lock_timeout' }),
      'refusedWithoutEffect',
    ],
    ['429', answered(429), 'refusedWithoutEffect'],
    ['401', error(401, {}), 'needsCredentials'],
    ['B75: 500 that will be replayed', error(500, {}, retry('false')), 'storedFailure'],
    ['B75: 500, replayed', error(500, {}, replayed), 'storedFailure'],
    ['B78: 500 without advice', error(500, {}), 'ambiguous'],
    ['P25: 500 that may be asked again', error(500, {}, { ...retry('true'), ...replayed }), 'ambiguous'],
    ['P25: 400 that may be asked again', error(400, {}, retry('true')), 'ambiguous'],
    ['P25: 409 that may be asked again', error(409, {}, retry('true')), 'inProgress'],
    ['P25: 429 that may be asked again', error(429, {}, retry('true')), 'refusedWithoutEffect'],
    ['P25: 401 that may be asked again', error(401, {}, retry('true')), 'needsCredentials'],
    ['P25: 402 that may not', error(402, {}, retry('false')), 'refused'],
    ['P25: advice on a 2xx says nothing', error(200, {}, retry('true')), 'done'],
    ['junk in place of an error', json(400, [1]), 'refused'],
    ['null in place of an error', json(400, { error: null }), 'refused'],
    ['null in place of a body', json(400, null), 'refused'],
    ['B77: 200 of a captive portal', PORTAL, 'ambiguous'],
  ])

  it('P1, P12, P35: what it declares', () => {
    expect(stripe).toMatchObject({
      deduplicates: true,
      methods: ['POST'],
      retentionMs: DAY,
      keyRules: { maxLength: 255 },
    })
  })
})

describe('none (P1, F24)', () => {
  speaks(none, [
    ['201', json(201, {}), 'done'],
    ['B77: 200 of a captive portal', PORTAL, 'ambiguous'],
    ['B78: 500', answered(500), 'ambiguous'],
    ['B76: 422', answered(422), 'refused'],
    ['409 has no meaning of its own', answered(409), 'refused'],
    ['a replay marker proves nothing where nothing is replayed', json(500, {}, replayed), 'ambiguous'],
  ])

  it('P1: sends no key, because none would be heard, and assumes no retention', () => {
    expect(none).toMatchObject({ deduplicates: false, keyHeader: null, retentionMs: null, methods: [], marker: null })
  })
})
