/**
 * The table from any record that the format allows, reached or not: an old release, a rescued shelf or a bug may have
 * left one that no life of today leads to. (Lives from a fresh record: test/protocol/transition-properties.test.ts.)
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { decodeRecord, encodeRecord } from '../../src/protocol/codec.ts'
import { eventNames } from '../../src/protocol/events.ts'
import type { Policy } from '../../src/protocol/policy.ts'
import { type IntentRecord, recordFormat } from '../../src/protocol/record.ts'
import { isOpen, isSettled, rank, type State } from '../../src/protocol/states.ts'
import { transition } from '../../src/protocol/transition.ts'
import {
  answer,
  anyMembers,
  DAY,
  eventWith,
  HOUR,
  MONITOR,
  NONE,
  NOW,
  PLAIN,
  POLICY,
  record,
} from '../support/machine.ts'
import { runs } from './runs.ts'

const anyTime = fc.constantFrom(NOW, NOW - 1, NOW + 1, NOW - HOUR, NOW + 3 * DAY, NOW - 3000 * DAY, 0, -1e12, 8e15)
const maybeTime = fc.option(anyTime, { nil: null, freq: 2 })

const anyState: fc.Arbitrary<State> = fc.oneof(
  fc.constantFrom<State>(
    { name: 'queued' },
    { name: 'rejected' },
    { name: 'conflicted' },
    { name: 'waiting', because: 'ambiguous' },
    { name: 'waiting', because: 'constructor' as never },
    { name: 'unknown', because: 'expired_in_doubt' },
    { name: 'unknown', because: '__proto__' as never },
    { name: 'abandoned', mayStillHappen: true, freed: false },
    { name: 'abandoned', mayStillHappen: true, freed: true },
  ),
  fc
    .constantFrom('credentials', 'scope', 'operation', 'lane', 'attempts')
    .map((on): State => ({ name: 'blocked', on }) as State),
  fc
    .constantFrom('cancel', 'send_before', 'skip', 'resolve', 'abandon', 'refusal', 'absent', 'found')
    .map((purpose): State => ({ name: 'cancelling', purpose }) as State),
  fc.constantFrom('answer', 'reconcile', 'person').map((by): State => ({ name: 'succeeded', by }) as State),
  fc
    .constantFrom('by_app', 'voided', 'send_before_passed', 'reconciled_absent')
    .map((because): State => ({ name: 'cancelled', because }) as State),
  fc
    .record({ number: fc.nat(3), at: anyTime, serverAt: maybeTime, exact: fc.boolean() })
    .map((attempt): State => ({ name: 'sending', attempt })),
  fc.record({ resultExpiresAt: maybeTime, errors: fc.nat(20), since: anyTime, named: fc.boolean() }).map(
    ({ named, ...rest }): State => ({
      name: 'processing',
      monitor: { ...MONITOR, ...rest, ...(!named && { url: '' }) },
    }),
  ),
)

const anyRecord: fc.Arbitrary<IntentRecord> = fc
  .record({
    state: anyState,
    dueAt: maybeTime,
    since: maybeTime,
    sendBefore: maybeTime,
    attempts: fc.integer({ min: 1, max: 60 }),
    spent: fc.integer({ min: -3, max: 60 }),
    asked: fc.nat(60),
    handedOver: fc.boolean(),
    doubt: fc.option(fc.record({ at: anyTime, serverAt: maybeTime }), { nil: null }),
    lastHandOverAt: maybeTime,
    unmarked: fc.nat(3),
    seenAt: anyTime,
    answer: fc.constantFrom(null, answer(), answer({ body: 'cut_off' }), answer({ status: 422 })),
    settledAt: maybeTime,
    acknowledgedAt: maybeTime,
    laneReleased: fc.boolean(),
    lane: fc.constantFrom(null, { lane: 'l', kind: 'named' as const }, { lane: 'l', kind: 'serial' as const }),
  })
  .map(record)

const anyPolicy: fc.Arbitrary<Policy> = fc
  .record({
    base: fc.constantFrom(POLICY, PLAIN, NONE),
    retentionMs: fc.constantFrom(null, 0, DAY),
    operationKnown: fc.boolean(),
    maxAttempts: fc.constantFrom(0, 1, 50),
  })
  .map(({ base, ...rest }) => ({ ...base, ...rest }))

const anyHappening = fc.record({
  name: fc.constantFrom(...eventNames),
  members: anyMembers,
  policy: anyPolicy,
  now: anyTime,
  serverNow: maybeTime,
  random: fc.constantFrom(0, 0.5, 0.999_999),
  exact: fc.boolean(),
  laneFree: fc.boolean(),
  offline: fc.boolean(),
})

it('P48, P27, P5, P9, P17, P23: from any record, by any events: nothing throws, goes back, is denied without proof, or is lost', () => {
  fc.assert(
    fc.property(anyRecord, fc.array(anyHappening, { minLength: 1, maxLength: 12 }), (start, happenings) => {
      let before = start
      for (const { name, members, policy, now, serverNow, ...rest } of happenings) {
        const event = eventWith(name, members)
        const step = transition(before, event, { ...rest, policy, times: { now, serverNow } })
        if (step === null) continue
        const { record: next, effects } = step
        const [from, to] = [before.state.name, next.state.name]
        if (rank[to] < rank[from]) {
          expect(from, 'P48: only unknown goes back').toBe('unknown')
          expect(isOpen(to)).toBe(true)
        }
        const wasInDoubt =
          !isSettled(from) &&
          (before.doubt !== null ||
            (before.state.name === 'sending' && (!before.state.attempt.exact || 'repeated' in event)))
        if (wasInDoubt && ['rejected', 'conflicted', 'cancelled'].includes(to)) {
          const absent =
            event.type === 'absent' && before.state.name === 'unknown' && before.state.because === 'expired_in_doubt'
          expect(
            event.type === 'voided' || (event.type === 'refused' && event.proof) || absent,
            `P27: ${event.type}`,
          ).toBe(true)
        }
        const { key, id, scope, client, fingerprint, request } = before
        expect(next, 'P5, P9').toMatchObject({ key, id, scope, client, fingerprint, request })
        expect(effects[0], 'P17').toBe(effects.includes('remove') ? 'remove' : 'persist')
        expect(decodeRecord(recordFormat, encodeRecord(next)), 'P23').toEqual({ ok: true, record: next })
        expect(next.dueAt === null || Number.isFinite(next.dueAt), 'P33').toBe(true)
        if (effects.includes('remove')) return
        before = next
      }
    }),
    runs(60, 3000),
  )
})
