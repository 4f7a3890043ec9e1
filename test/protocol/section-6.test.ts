/** PROTOCOL.md section 6, row by row: an exchange, the verdict on it, and where the intent stands after it. */
import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/protocol/dialects/dialect.ts'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { stripe } from '../../src/protocol/dialects/stripe.ts'
import type { Verdict } from '../../src/protocol/events.ts'
import type { Policy } from '../../src/protocol/policy.ts'
import type { IntentRecord } from '../../src/protocol/record.ts'
import type { State } from '../../src/protocol/states.ts'
import type { ClassifyContext, Exchange } from '../../src/protocol/verdict.ts'
import { answered, failed, json, judge, PORTAL, PROOF, REPLAYED, refusal } from '../support/exchanges.ts'
import { DAY, firstAttempt, MONITOR, NONE, NOW, PLAIN, POLICY, secondAttempt, step } from '../support/machine.ts'

const draft = ietf({ retentionMs: DAY })
const dialects: Readonly<Record<string, Dialect>> = { samekey, ietf: draft, stripe, none }

/** The circumstances, as columns of the table. */
const columns = {
  /** The first attempt: nothing is in doubt but this. */
  first: [firstAttempt(), POLICY, NOW + 1000],
  /** An earlier attempt's answer was lost; the server voids. */
  inDoubt: [secondAttempt(), POLICY, NOW + 1000],
  /** The same, and the server does not void. */
  noVoid: [secondAttempt(), PLAIN, NOW + 1000],
  /** The same, and the window closed while the attempt was under way. */
  over: [secondAttempt(), POLICY, NOW + DAY],
  /** The server does not de-duplicate: there is only ever a first attempt in doubt. */
  none: [firstAttempt(), NONE, NOW + 1000],
} satisfies Record<string, [IntentRecord, Policy, number]>

type Column = keyof typeof columns
/** A state and what it says, or `never` where the dialect cannot be in these circumstances. */
type Ends = { readonly [column in Column]?: string }

interface Row {
  readonly what: string
  readonly dialect: keyof typeof dialects
  readonly exchange: Exchange
  readonly context?: Partial<ClassifyContext>
  readonly verdict: Verdict['type']
  readonly ends: Ends
}

const same = (first: string, change: Ends = {}): Ends => ({
  first,
  inDoubt: first,
  noVoid: first,
  over: first,
  ...change,
})

/** In doubt afterwards, and tried again while that is safe. */
const again = (because: string): Ends =>
  same(`waiting: ${because}`, { over: 'unknown: window_over', none: 'unknown: server_does_not_deduplicate' })

/** Refused, where this attempt is all there is; else it says nothing about the earlier one. */
const refused: Ends = {
  first: 'rejected',
  inDoubt: 'cancelling: refusal',
  noVoid: 'waiting: refused_without_proof',
  over: 'unknown: window_over',
  none: 'rejected',
}

const rows: readonly Row[] = [
  {
    what: 'the connection was never made',
    dialect: 'samekey',
    exchange: failed(true),
    verdict: 'neverDelivered',
    ends: same('waiting: never_delivered', { none: 'waiting: never_delivered' }),
  },
  {
    what: 'any other network error, time limit or abort',
    dialect: 'samekey',
    exchange: failed(),
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  {
    what: '2xx with proof',
    dialect: 'samekey',
    exchange: json(201, { id: 9 }, PROOF),
    verdict: 'done',
    ends: same('succeeded: answer'),
  },
  {
    what: '2xx with proof from any page that the app would not accept by type',
    dialect: 'samekey',
    exchange: answered(200, { 'content-type': 'text/csv', ...PROOF }, 'a,b'),
    verdict: 'done',
    ends: same('succeeded: answer'),
  },
  {
    what: '2xx without the marker that the dialect has (captive portal)',
    dialect: 'samekey',
    exchange: PORTAL,
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  {
    what: '2xx without the marker, and accept says yes',
    dialect: 'samekey',
    exchange: json(200, { id: 9 }),
    context: { appAccepts: true },
    verdict: 'done',
    ends: same('succeeded: answer'),
  },
  {
    what: '2xx without the marker, and accept says no (error in a 200)',
    dialect: 'samekey',
    exchange: json(200, { error: 'no stock' }),
    context: { appAccepts: false },
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  {
    what: '2xx, no marker in the dialect, of a type that was asked for',
    dialect: 'ietf',
    exchange: json(201, { id: 9 }),
    verdict: 'done',
    ends: same('succeeded: answer'),
  },
  {
    what: 'an empty 204',
    dialect: 'ietf',
    exchange: answered(204),
    verdict: 'done',
    ends: same('succeeded: answer'),
  },
  {
    what: 'an empty 201',
    dialect: 'none',
    exchange: answered(201),
    verdict: 'done',
    ends: { none: 'succeeded: answer' },
  },
  {
    what: '2xx, no marker in the dialect, of another type',
    dialect: 'ietf',
    exchange: PORTAL,
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  {
    what: '2xx, no marker in the dialect, redirected',
    dialect: 'ietf',
    exchange: json(200, { id: 9 }, {}, { redirected: true }),
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  {
    what: '2xx with proof, body cut off',
    dialect: 'samekey',
    exchange: json(201, { id: 9 }, PROOF, { bodyState: 'cut_off', body: new Uint8Array() }),
    verdict: 'doneIncomplete',
    ends: same('waiting: answer_incomplete', { over: 'succeeded: answer', none: 'succeeded: answer' }),
  },
  {
    what: '202 with a way to ask',
    dialect: 'samekey',
    exchange: json(202, {}, { location: '/tasks/1', ...PROOF }),
    context: { monitorUrl: MONITOR.url },
    verdict: 'accepted',
    ends: same('processing', { none: 'processing' }),
  },
  {
    what: '202 without',
    dialect: 'samekey',
    exchange: json(202, {}, PROOF),
    verdict: 'accepted',
    ends: again('accepted_unmonitored'),
  },
  {
    what: '401',
    dialect: 'samekey',
    exchange: json(401, {}),
    verdict: 'needsCredentials',
    ends: same('blocked: credentials', { none: 'blocked: credentials' }),
  },
  {
    what: '403 idempotency_scope_mismatch',
    dialect: 'samekey',
    exchange: refusal('idempotency_scope_mismatch'),
    verdict: 'scopeMismatch',
    ends: same('blocked: scope'),
  },
  ...[408, 500, 502, 503, 504, 599].map(
    (status): Row => ({
      what: `${status}`,
      dialect: 'samekey',
      exchange: answered(status, { 'retry-after': '7' }),
      verdict: 'ambiguous',
      ends: again('ambiguous'),
    }),
  ),
  {
    what: '503 that says "nothing was executed"',
    dialect: 'samekey',
    exchange: refusal('idempotency_unavailable'),
    verdict: 'refusedWithoutEffect',
    ends: same('waiting: refused_for_now'),
  },
  ...[425, 429].map(
    (status): Row => ({
      what: `${status}`,
      dialect: 'stripe',
      exchange: answered(status),
      verdict: 'refusedWithoutEffect',
      ends: same('waiting: refused_for_now', { none: 'waiting: refused_for_now' }),
    }),
  ),
  {
    what: '409 in progress',
    dialect: 'samekey',
    exchange: refusal('idempotency_in_progress', { 'retry-after': '1' }),
    verdict: 'inProgress',
    ends: again('in_progress'),
  },
  {
    what: '409 mismatch',
    dialect: 'samekey',
    exchange: refusal('idempotency_conflict'),
    verdict: 'conflict',
    ends: {
      first: 'conflicted',
      inDoubt: 'unknown: conflict_in_doubt',
      noVoid: 'unknown: conflict_in_doubt',
      over: 'unknown: conflict_in_doubt',
    },
  },
  {
    what: '422 mismatch elsewhere',
    dialect: 'ietf',
    exchange: json(422, { type: 'https://x.example/idempotency', title: 'Idempotency-Key is already used' }),
    verdict: 'conflict',
    ends: { first: 'conflicted', noVoid: 'unknown: conflict_in_doubt' },
  },
  {
    what: '400 mismatch elsewhere',
    dialect: 'stripe',
    exchange: json(400, { error: { type: 'idempotency_error' } }),
    verdict: 'conflict',
    ends: { first: 'conflicted', noVoid: 'unknown: conflict_in_doubt' },
  },
  {
    what: '409 expired',
    dialect: 'samekey',
    exchange: refusal('idempotency_expired'),
    verdict: 'expired',
    ends: { first: 'rejected', inDoubt: 'unknown: expired_in_doubt', noVoid: 'unknown: expired_in_doubt' },
  },
  {
    what: '409 voided',
    dialect: 'samekey',
    exchange: refusal('idempotency_voided'),
    verdict: 'voided',
    ends: same('cancelled: voided'),
  },
  {
    what: '500, replayed',
    dialect: 'samekey',
    exchange: json(500, {}, REPLAYED),
    verdict: 'storedFailure',
    ends: same('unknown: stored_failure'),
  },
  {
    what: '500 inconsistent: an operator is told, and the row may yet be mended (F21)',
    dialect: 'samekey',
    exchange: refusal('idempotency_inconsistent'),
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  ...(['idempotency_key_missing', 'idempotency_key_invalid'] as const).map(
    (code): Row => ({ what: code, dialect: 'samekey', exchange: refusal(code), verdict: 'refused', ends: refused }),
  ),
  ...[400, 402, 403, 404, 409, 413, 417, 422].map(
    (status): Row => ({
      what: `${status} without proof`,
      dialect: 'samekey',
      exchange: json(status, { code: 'other' }),
      verdict: 'refused',
      ends: refused,
    }),
  ),
  {
    what: '422 with proof',
    dialect: 'samekey',
    exchange: json(422, { code: 'no_stock' }, PROOF),
    verdict: 'refused',
    ends: same('rejected'),
  },
  {
    what: '402 replayed, which is proof too',
    dialect: 'stripe',
    exchange: json(402, { error: { code: 'card_declined' } }, { 'idempotent-replayed': 'true' }),
    verdict: 'refused',
    ends: same('rejected'),
  },
  {
    what: 'a redirect of a browser: opaque',
    dialect: 'samekey',
    exchange: answered(0, {}, '', { opaque: true }),
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  {
    what: 'a redirect of Node that was not followed',
    dialect: 'samekey',
    exchange: answered(302, { location: 'https://login.example.com/' }),
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  {
    what: '303 on the same origin with proof, fetched by GET',
    dialect: 'samekey',
    exchange: json(200, { id: 9 }, {}, { redirected: true, seeOtherProof: true }),
    verdict: 'done',
    ends: same('succeeded: answer'),
  },
  {
    what: '303 to a login page (H51)',
    dialect: 'ietf',
    exchange: answered(200, { 'content-type': 'text/html' }, '<form>', { redirected: true }),
    context: { accept: null },
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  {
    what: 'a refusal from where a redirect led',
    dialect: 'samekey',
    exchange: json(404, {}, {}, { redirected: true }),
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
  {
    what: 'a refusal of which the body, and with it the code, broke off',
    dialect: 'samekey',
    exchange: json(409, {}, {}, { bodyState: 'cut_off', body: new Uint8Array() }),
    verdict: 'ambiguous',
    ends: again('ambiguous'),
  },
]

describe('section 6: what an attempt proved', () => {
  describe.each(rows)('$dialect: $what', ({ dialect, exchange, context, verdict, ends }) => {
    const judged = judge(exchange, dialects[dialect] ?? none, context)

    it(`P25: is ${verdict}`, () => {
      expect(judged.type).toBe(verdict)
    })

    it.each(Object.entries(ends) as [Column, string][])('P19, P27: %s -> %s', (column, end) => {
      const [before, policy, now] = columns[column]
      expect(named(step(before, judged, { policy, now }).record.state)).toBe(end)
    })
  })

  it('P27: no row ends rejected, conflicted or cancelled for an intent in doubt, but by proof or a void', () => {
    for (const { what, ends, verdict } of rows) {
      const proven = verdict === 'voided' || what.includes('with proof') || what.includes('proof too')
      for (const end of [ends.inDoubt, ends.noVoid, ends.over]) {
        if (!proven && end !== undefined) expect(end, what).not.toMatch(/^(?:rejected|conflicted|cancelled)/)
      }
    }
  })
})

function named(state: State): string {
  switch (state.name) {
    case 'waiting':
    case 'unknown':
    case 'cancelled':
      return `${state.name}: ${state.because}`
    case 'blocked':
      return `blocked: ${state.on}`
    case 'cancelling':
      return `cancelling: ${state.purpose}`
    case 'succeeded':
      return `succeeded: ${state.by}`
    default:
      return state.name
  }
}
