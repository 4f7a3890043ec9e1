import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { decodeRecord, encodeRecord } from '../../src/protocol/codec.ts'
import { type EventName, eventNames, type IntentEvent } from '../../src/protocol/events.ts'
import type { Context } from '../../src/protocol/guards.ts'
import { firstHandOver, type IntentRecord, isHandedOver, isInDoubt, recordFormat } from '../../src/protocol/record.ts'
import { isOpen, isSettled, rank } from '../../src/protocol/states.ts'
import { type Step, transition } from '../../src/protocol/transition.ts'
import { transitions } from '../../src/protocol/transitions.ts'
import { isWindowOpen } from '../../src/protocol/window.ts'
import { anyMembers, DAY, eventWith, HOUR, NONE, NOW, PLAIN, POLICY, record } from '../support/machine.ts'

vi.setConfig({ testTimeout: 30_000 })

/** What only a person, or a check that a person asked for, brings about. */
const byPerson: ReadonlySet<EventName> = new Set<EventName>([
  'cancelAsked',
  'retryAsked',
  'abandonAsked',
  'skipAsked',
  'resolvedNotHappened',
  'foundElsewhere',
  'absent',
  'stillProcessing',
])

const anyPolicy = fc
  .record({
    base: fc.constantFrom(POLICY, PLAIN, NONE),
    retentionMs: fc.constantFrom(null, 2 * 60_000, DAY),
    operationKnown: fc.boolean(),
    maxAttempts: fc.constantFrom(1, 2, 50),
  })
  .map(({ base, retentionMs, operationKnown, maxAttempts }) => ({
    ...base,
    retentionMs,
    operationKnown,
    maxAttempts,
  }))

/** Mostly forwards, sometimes far, sometimes back. */
const anyMove = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(0, 1, 500, 20_000) },
  { weight: 2, arbitrary: fc.constantFrom(100_000, HOUR, 2 * DAY, 30 * DAY, 3000 * DAY) },
  { weight: 1, arbitrary: fc.constantFrom(-1, -HOUR, -3000 * DAY) },
)

const anyHappening = fc.record({
  // Mostly an event that means something to the state it meets: the table has many cells that nothing comes to.
  among: fc.constantFrom<'own' | 'all' | 'due'>('own', 'own', 'own', 'all', 'due'),
  which: fc.nat(1000),
  members: anyMembers,
  move: anyMove,
  server: fc.constantFrom(null, -HOUR, 0, HOUR),
  random: fc.constantFrom(0, 0.5, 0.999),
  exact: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  laneFree: fc.boolean(),
  offline: fc.boolean(),
})

const anyStart = fc
  .record({
    since: fc.constantFrom(null, NOW - HOUR, NOW),
    sendBefore: fc.constantFrom(null, NOW + 10_000),
    lane: fc.constantFrom(null, { lane: 'l', kind: 'named' as const }, { lane: 'l', kind: 'serial' as const }),
  })
  .map(({ since, ...rest }) => record({ ...rest, since, doubt: since === null ? null : { at: since, serverAt: null } }))

interface Passed {
  readonly before: IntentRecord
  readonly event: IntentEvent
  readonly context: Context
  readonly step: Step
}

/** Checks a claim on every step of random lives. */
function always(claim: (passed: Passed) => void): void {
  fc.assert(
    fc.property(
      anyStart,
      fc.array(anyPolicy, { minLength: 1, maxLength: 2 }),
      fc.array(anyHappening, { minLength: 1, maxLength: 40, size: 'max' }),
      (start, policies, happenings) => {
        let current = start
        let now = NOW
        for (const [index, { among, which, members, move, server, ...rest }] of happenings.entries()) {
          now += move
          const own = Object.keys(transitions[current.state.name]) as EventName[]
          const names = { own, all: eventNames, due: ['due'] as const }[among]
          const event = eventWith(names[which % names.length] ?? 'due', members)
          const context: Context = {
            ...rest,
            times: { now, serverNow: server === null ? null : now + server },
            policy: policies[index % policies.length] ?? POLICY,
          }
          const step = transition(current, event, context)
          if (step === null) continue
          claim({ before: current, event, context, step })
          if (step.effects.includes('remove')) return
          current = step.record
        }
      },
    ),
    { numRuns: 3000 },
  )
}

describe('whatever happens, in whatever order, by whatever clock', () => {
  it('P48: a state never moves back, unless a person moves unknown back to open', () => {
    always(({ before, event, step }) => {
      if (rank[step.record.state.name] >= rank[before.state.name]) return
      expect(before.state.name).toBe('unknown')
      expect(isOpen(step.record.state.name)).toBe(true)
      expect(byPerson).toContain(event.type)
    })
  })

  it('P35, P1, P17: nothing is sent outside the window, again to a server that does not de-duplicate, or undue', () => {
    always(({ before, event, context, step }) => {
      if (step.record.state.name !== 'sending') return
      const { policy, times } = context
      expect(event.type).toBe('due')
      expect(step.effects).toEqual(['persist', 'announce', 'send'])
      expect(policy.operationKnown && context.laneFree && before.spent < policy.maxAttempts).toBe(true)
      expect(before.sendBefore === null || times.now < before.sendBefore).toBe(true)
      if (isInDoubt(before)) expect(policy.deduplicates && isWindowOpen(before, policy, times)).toBe(true)
      // H40, H53: what goes out now has a known age.
      expect(isWindowOpen(step.record, { ...policy, retentionMs: policy.retentionMs ?? DAY }, times)).toBe(true)
    })
  })

  it('P19: doubt begins at the earliest attempt that may have taken effect, and ends only with the intent', () => {
    always(({ before, step: { record: next } }) => {
      if (before.doubt === null) return
      if (isSettled(next.state.name)) expect(next.doubt).toBeNull()
      else expect(next.doubt).toEqual(before.doubt)
    })
  })

  it('P19, P30: an attempt leaves doubt behind unless it was cleared, and one with copies always does', () => {
    const clears: ReadonlySet<EventName> = new Set<EventName>([
      'neverDelivered',
      'refusedWithoutEffect',
      'needsCredentials',
      'scopeMismatch',
    ])
    const never: ReadonlySet<EventName> = new Set<EventName>(['notHandedOver', 'scopeDiffers'])
    always(({ before, event, step: { record: next } }) => {
      if (before.state.name !== 'sending' || next.state.name === 'sending' || isSettled(next.state.name)) return
      const expected = never.has(event.type) || (clears.has(event.type) && isExact(before, event))
      if (expected) return expect(next.doubt).toEqual(before.doubt)
      // Its own answer may have told when that was by the server's clock; what was known before is never refreshed.
      const first = firstHandOver(before)
      expect(next.doubt?.at).toBe(first?.at)
      if (before.doubt !== null || first?.serverAt != null) expect(next.doubt?.serverAt).toBe(first?.serverAt)
    })
  })

  it('P19: handed over is a fact that stays, and begins with whatever was heard of an attempt', () => {
    const unheard: ReadonlySet<EventName> = new Set<EventName>(['neverDelivered', 'notHandedOver', 'scopeDiffers'])
    always(({ before, event, step: { record: next } }) => {
      const begins = before.state.name === 'sending' && !unheard.has(event.type)
      if (before.handedOver || begins) expect(isHandedOver(next)).toBe(true)
      // Of a record in doubt, an earlier life was handed over at the latest; of copies, one may have been.
      const surely = before.doubt === null && isExact(before, event)
      if (surely && unheard.has(event.type)) {
        expect(next.handedOver).toBe(before.handedOver)
      }
    })
  })

  it('P27, H25, H26, H54: in doubt, only proof or a void leads to rejected, conflicted or cancelled', () => {
    always(({ before, event, step }) => {
      const wasInDoubt = before.doubt !== null || (before.state.name === 'sending' && !isExact(before, event))
      const no = ['rejected', 'conflicted', 'cancelled'].includes(step.record.state.name)
      if (!wasInDoubt || !no) return
      const proven = event.type === 'voided' || (event.type === 'refused' && event.proof)
      // P43: not found, after the server said that it has forgotten the key.
      const absent =
        event.type === 'absent' && before.state.name === 'unknown' && before.state.because === 'expired_in_doubt'
      expect(proven || absent).toBe(true)
    })
  })

  it('P27: an attempt under way is never called cancelled but by a void', () => {
    always(({ before, event, step }) => {
      if (before.state.name === 'sending' && step.record.state.name === 'cancelled') expect(event.type).toBe('voided')
    })
  })

  it('P42: a success that was heard is lost to nothing but a proof to the contrary', () => {
    always(({ before, event, step }) => {
      const knownDone = before.answer?.body === 'cut_off' && before.answer.status < 300 && !isSettled(before.state.name)
      const next = step.record.state.name
      if (!knownDone || next === 'succeeded' || event.type === 'voided') return
      if (event.type === 'refused' && event.proof) return
      expect(isOpen(next)).toBe(true)
    })
  })

  it('P33: what is open wakes by itself, or waits for its lane or a person', () => {
    always(({ step: { record: next } }) => {
      if (!isOpen(next.state.name) || next.dueAt !== null) return
      expect(next.state.name === 'blocked' && ['lane', 'attempts'].includes(next.state.on)).toBe(true)
    })
  })

  it('P19: what is processing, being voided or unknown may have happened', () => {
    always(({ step: { record: next } }) => {
      if (['processing', 'cancelling', 'unknown'].includes(next.state.name)) expect(next.doubt).not.toBeNull()
    })
  })

  it('P5, P9, P16: key, name, scope, fingerprint and request never change', () => {
    always(({ before, step: { record: next } }) => {
      const { key, id, scope, client, fingerprint, request, createdAt, since } = before
      expect(next).toMatchObject({ key, id, scope, client, fingerprint, request, createdAt, since })
    })
  })

  it('P8, P45, H30: an id is freed only by force, and forgotten only when settled, noted and no longer remembered', () => {
    always(({ before, event, context, step }) => {
      const { state } = step.record
      if (state.name === 'abandoned' && state.freed && !(before.state.name === 'abandoned' && before.state.freed)) {
        expect(event.type === 'abandonAsked' && event.force).toBe(true)
      }
      if (!step.effects.includes('remove')) return
      expect(isSettled(before.state.name) && before.acknowledgedAt !== null).toBe(true)
      expect(context.times.now >= (before.settledAt ?? 0) + 7 * DAY).toBe(true)
    })
  })

  it('P21: attempts are counted up by sends alone, and taken back only where nothing was handed over', () => {
    always(({ before, event, step: { record: next } }) => {
      const change = next.attempts - before.attempts
      if (next.state.name === 'sending' && before.state.name !== 'sending') expect(change).toBe(1)
      else if (event.type === 'notHandedOver' || (event.type === 'scopeDiffers' && before.state.name === 'sending'))
        expect(change).toBe(-1)
      else expect(change).toBe(0)
      expect(Math.min(next.attempts, next.spent, next.asked)).toBeGreaterThanOrEqual(0)
    })
  })

  it('P22: what is settled says when, and comes back to the inbox when it is settled anew', () => {
    always(({ before, context, step: { record: next } }) => {
      expect(next.settledAt !== null).toBe(isSettled(next.state.name))
      if (next.state.name === before.state.name || !isSettled(next.state.name)) return
      expect(next).toMatchObject({ settledAt: context.times.now, acknowledgedAt: null })
    })
  })

  it('P23: every record that can come about is read back as it was', () => {
    always(({ step: { record: next } }) => {
      expect(decodeRecord(recordFormat, encodeRecord(next))).toEqual({ ok: true, record: next })
    })
  })

  it('P45: what a person did is written down once, and nothing of it is ever lost', () => {
    always(({ before, step: { record: next } }) => {
      expect(next.actions.slice(0, before.actions.length)).toEqual(before.actions)
      expect(next.actions.length - before.actions.length).toBeLessThanOrEqual(1)
    })
  })
})

/** True where the attempt under way is one request, and no other copy of it is about (P30, H16). */
function isExact({ state }: IntentRecord, event: IntentEvent): boolean {
  return state.name === 'sending' && state.attempt.exact && !('repeated' in event)
}
