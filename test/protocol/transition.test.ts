/** What the machine does with one intent, scenario by scenario. The whole table is walked in transitions.test.ts. */
import { describe, expect, it } from 'vitest'
import type { EventName, IntentEvent } from '../../src/protocol/events.ts'
import { historyLimit, type IntentRecord, isInDoubt } from '../../src/protocol/record.ts'
import type { State } from '../../src/protocol/states.ts'
import { transition } from '../../src/protocol/transition.ts'
import { undatable } from '../../src/protocol/window.ts'
import {
  answer,
  CUT_OFF,
  context,
  DAY,
  event,
  firstAttempt,
  HOUR,
  inDoubt,
  lived,
  MONITOR,
  NONE,
  NOW,
  PLAIN,
  POLICY,
  record,
  secondAttempt,
  sending,
  step,
} from '../support/machine.ts'

const nothing = (before: IntentRecord, happening: IntentEvent | EventName, where = {}): void => {
  expect(transition(before, typeof happening === 'string' ? event(happening) : happening, context(where))).toBeNull()
}
const waiting: State = { name: 'waiting', because: 'ambiguous' }
const queued: State = { name: 'queued' }
const processing: State = { name: 'processing', monitor: MONITOR }
const unknown: State = { name: 'unknown', because: 'window_over' }
const cancelling = (purpose: Extract<State, { name: 'cancelling' }>['purpose']): State => ({
  name: 'cancelling',
  purpose,
})
const inCase = (before: IntentRecord, happening: IntentEvent | EventName, where = {}): State =>
  step(before, happening, where).record.state
const named = { lane: 'l', kind: 'named' } as const

describe('sending', () => {
  it('P17: is stored as sending before it is sent, and can be found if its holder dies', () => {
    const sent = step(record({ dueAt: null }), 'due', { serverNow: NOW + 5 })
    expect(sent.effects).toEqual(['persist', 'announce', 'send'])
    expect(sent.record).toMatchObject({
      state: { name: 'sending', attempt: { number: 1, at: NOW, serverAt: NOW + 5, exact: true } },
      attempts: 1,
      spent: 1,
      lastHandOverAt: NOW,
      dueAt: NOW,
      doubt: null,
    })
    expect(isInDoubt(sent.record)).toBe(true)
  })

  it('P24: an operation that nobody registered is parked and looked at again, never sent by guess', () => {
    const parked = step(record(), 'due', { policy: { ...POLICY, operationKnown: false } }).record
    expect(parked).toMatchObject({ state: { name: 'blocked', on: 'operation' }, dueAt: NOW + POLICY.slowPollMs })
    expect(inCase(parked, 'due')).toMatchObject({ name: 'sending' })
  })

  it.each([processing, cancelling('cancel')])(
    'P24: nor is it asked about while it is $name: by what rules?',
    (state) => {
      const parked = step(inDoubt(state), 'due', { policy: { ...POLICY, operationKnown: false } })
      expect(parked).toMatchObject({ record: { state, dueAt: NOW + POLICY.slowPollMs }, effects: ['persist'] })
    },
  )

  it('P34: waits for its lane without a time of its own, and goes on when the lane is free', () => {
    const blocked = step(record(), 'due', { laneFree: false }).record
    expect(blocked).toMatchObject({ state: { name: 'blocked', on: 'lane' }, dueAt: null })
    expect(inCase(blocked, 'due')).toMatchObject({ name: 'sending' })
  })

  it('P29, H47: attempts used up and not in doubt: blocked until a person retries, never failed', () => {
    const last = firstAttempt({ spent: POLICY.maxAttempts })
    const blocked = step(last, 'neverDelivered').record
    expect(blocked).toMatchObject({ state: { name: 'blocked', on: 'attempts' }, dueAt: null })
    const looked = step({ ...blocked, dueAt: NOW }, 'due').record
    expect(looked).toMatchObject({ state: { name: 'blocked', on: 'attempts' }, dueAt: null })
    const retried = step(blocked, 'retryAsked').record
    expect(retried).toMatchObject({ state: { name: 'waiting', because: 'retried_by_person' }, spent: 0, dueAt: NOW })
    expect(inCase(retried, 'due')).toMatchObject({ name: 'sending' })
  })

  it('P29: attempts used up and in doubt: unknown, whichever answer came last', () => {
    const last = { spent: POLICY.maxAttempts }
    expect(inCase(secondAttempt(last), 'neverDelivered')).toEqual({ name: 'unknown', because: 'attempts_spent' })
    expect(inCase(firstAttempt(last), 'ambiguous')).toEqual({ name: 'unknown', because: 'attempts_spent' })
    expect(inCase(inDoubt(waiting, last), 'due')).toEqual({ name: 'unknown', because: 'attempts_spent' })
  })

  it('P1, F24, B52: to a server that does not de-duplicate, an ambiguous attempt is not repeated', () => {
    const lost = step(firstAttempt(), 'ambiguous', { policy: NONE }).record
    expect(lost).toMatchObject({ state: { name: 'unknown', because: 'server_does_not_deduplicate' }, dueAt: null })
    nothing(lost, 'retryAsked', { policy: NONE })
    expect(inCase(inDoubt(waiting), 'due', { policy: NONE })).toMatchObject({ because: 'server_does_not_deduplicate' })
  })

  it('H4: the same server is asked again after what surely had no effect', () => {
    for (const safe of ['neverDelivered', 'refusedWithoutEffect'] as const) {
      expect(inCase(lived(firstAttempt(), [safe, { policy: NONE }]), 'due', { policy: NONE })).toMatchObject({
        name: 'sending',
      })
    }
  })

  it('P20, F6: a dead holder leaves doubt, a spent attempt, and the same key to send after back-off', () => {
    const found = step(firstAttempt(), 'recovered').record
    expect(found).toMatchObject({
      state: { name: 'waiting', because: 'recovered' },
      attempts: 1,
      spent: 1,
      handedOver: true,
    })
    expect(found.doubt).toEqual({ at: NOW, serverAt: null })
    expect(found.dueAt).toBeGreaterThan(NOW)
  })

  it('H15, P20: a dead holder leaves unknown where the server does not de-duplicate, or may have forgotten', () => {
    expect(inCase(firstAttempt(), 'recovered', { policy: NONE })).toMatchObject({
      because: 'server_does_not_deduplicate',
    })
    expect(inCase(firstAttempt(), 'recovered', { now: NOW + DAY })).toMatchObject({ because: 'window_over' })
  })

  it('P35, H9: what the last look forbade was no attempt: nothing is spent, nothing is in doubt', () => {
    const held = step(firstAttempt(), 'notHandedOver').record
    expect(held).toMatchObject({
      state: { name: 'waiting', because: 'not_handed_over' },
      attempts: 0,
      spent: 0,
      doubt: null,
    })
    expect(held).toMatchObject({ handedOver: false, dueAt: NOW })
    const other = step(firstAttempt(), 'scopeDiffers').record
    expect(other).toMatchObject({ state: { name: 'blocked', on: 'scope' }, attempts: 0, doubt: null })
  })

  it('P30: taking an attempt back never takes back the doubt of an earlier one in the same millisecond', () => {
    const two = inDoubt(sending({ number: 2, exact: false }), { attempts: 2, spent: 2 })
    expect(two.doubt?.at).toBe(NOW)
    const held = step(two, 'notHandedOver', { exact: false }).record
    expect(held.doubt).toEqual({ at: NOW, serverAt: null })
    expect(inCase(held, 'cancelAsked')).toEqual(cancelling('cancel'))
  })

  it('P30, H16, H17, H49: where the transport may repeat, nothing clears an attempt and nothing is refused for good', () => {
    const copies = firstAttempt({ state: sending({ exact: false }) })
    for (const name of ['neverDelivered', 'refusedWithoutEffect', 'needsCredentials', 'scopeMismatch'] as const) {
      const next = step(copies, name).record
      expect(next.doubt, name).toEqual({ at: NOW, serverAt: null })
      nothing(next, 'cancelAsked', { policy: PLAIN })
    }
    expect(inCase(copies, 'refused', { policy: PLAIN })).toEqual({ name: 'waiting', because: 'refused_without_proof' })
    const voids = step(copies, 'refused').record
    expect(voids).toMatchObject({ state: cancelling('refusal'), doubt: { at: NOW } })
    expect(inCase(copies, 'conflict')).toEqual({ name: 'unknown', because: 'conflict_in_doubt' })
    expect(inCase(copies, 'expired')).toEqual({ name: 'unknown', because: 'expired_in_doubt' })
    const last = firstAttempt({ state: sending({ exact: false }), spent: POLICY.maxAttempts })
    expect(inCase(last, 'neverDelivered')).toEqual({ name: 'unknown', because: 'attempts_spent' })
  })

  it('P31, B92: a 202 that cannot be asked is repeated at the pace of asking, which grows, and spends no attempts', () => {
    let now = NOW
    let intent = record()
    const waits: number[] = []
    for (let round = 0; round < 8; round++) {
      intent = lived(intent, ['due', { now }], [event('accepted', { monitorUrl: null }), { now }])
      expect(intent).toMatchObject({ state: { name: 'waiting', because: 'accepted_unmonitored' }, spent: 0 })
      waits.push((intent.dueAt ?? 0) - now)
      now = intent.dueAt ?? 0
    }
    expect(waits.slice(0, 3)).toEqual([750, 1250, 2250])
    expect(waits.at(-1)).toBe(30_250)
  })
})

describe('pace', () => {
  it('P32: never earlier than told, a little later than told together, and the cap bounds only our own pace', () => {
    const told = (retryAfterMs: number | null, random: number): number =>
      (step(firstAttempt(), event('refusedWithoutEffect', { retryAfterMs }), { random }).record.dueAt ?? 0) - NOW
    expect(told(10 * DAY, 0)).toBe(10 * DAY)
    expect(told(10 * DAY, 0.5)).toBe(10 * DAY + 250)
    expect(told(0, 0.5)).toBe(told(null, 0.5))
  })

  it('P33: waiting offline spends no attempts, and is no loop', () => {
    const offline = { offline: true, random: 1 }
    const first = step(firstAttempt(), 'neverDelivered', offline).record
    expect(first).toMatchObject({ attempts: 1, spent: 0, dueAt: NOW + 500 })
    const tenth = step(firstAttempt({ attempts: 10 }), 'ambiguous', offline).record
    expect(tenth).toMatchObject({ attempts: 10, spent: 0, dueAt: NOW + 60_000 })
    expect(step(firstAttempt(), 'neverDelivered').record.spent).toBe(1)
  })

  it('B74, P31: in progress waits at its own pace, spends no attempts, and is bounded by the window alone', () => {
    const asked = step(secondAttempt({ asked: 3, spent: POLICY.maxAttempts }), 'inProgress', { random: 1 }).record
    expect(asked).toMatchObject({
      state: { name: 'waiting', because: 'in_progress' },
      asked: 4,
      spent: 4,
      dueAt: NOW + 8000,
    })
    expect(inCase(secondAttempt(), 'inProgress', { now: NOW + DAY })).toEqual(unknown)
    expect(step(secondAttempt(), 'inProgress', { now: NOW + DAY }).record.spent).toBe(1)
    expect(inCase(firstAttempt(), 'inProgress', { policy: NONE })).toMatchObject({
      because: 'server_does_not_deduplicate',
    })
  })

  it('F14, P33, H44: without credentials no attempt is spent, and it is looked at again unasked', () => {
    for (const name of ['needsCredentials', 'scopeMismatch'] as const) {
      expect(step(firstAttempt(), name).record).toMatchObject({
        attempts: 1,
        spent: 0,
        dueAt: NOW + 60_000,
        handedOver: true,
      })
    }
    for (const name of ['credentialsMissing', 'scopeDiffers'] as const) {
      const blocked = step(record(), name).record
      expect(blocked).toMatchObject({ state: { name: 'blocked' }, attempts: 0, dueAt: NOW + 60_000 })
      expect(inCase(blocked, 'due')).toMatchObject({ name: 'sending' })
    }
  })
})

describe('doubt', () => {
  it('H54: a later attempt that was never delivered clears only its own doubt', () => {
    const intent = lived(
      record(),
      'due',
      'ambiguous',
      ['due', { now: NOW + 5000 }],
      ['neverDelivered', { now: NOW + 6000 }],
    )
    expect(intent.doubt).toEqual({ at: NOW, serverAt: null })
    nothing(intent, 'cancelAsked', { policy: PLAIN, now: NOW + 6000 })
    expect(inCase(intent, 'cancelAsked', { now: NOW + 6000 })).toEqual(cancelling('cancel'))
  })

  it('H48, H55: an attempt that was cleared starts no window, and cancelling it needs no void', () => {
    const days = { now: NOW + 3 * DAY }
    for (const name of ['neverDelivered', 'needsCredentials', 'refusedWithoutEffect'] as const) {
      const intent = lived(record(), 'due', name)
      expect(intent.doubt).toBeNull()
      expect(inCase(intent, 'due', days)).toMatchObject({ name: 'sending', attempt: { at: NOW + 3 * DAY } })
      expect(inCase(intent, 'cancelAsked', { policy: PLAIN })).toEqual({ name: 'cancelled', because: 'by_app' })
    }
  })

  it('H25, H26: 401, 403, 404, 413 and 429 after a lost answer say nothing about the first attempt', () => {
    for (const happening of [event('needsCredentials'), event('refused'), event('refusedWithoutEffect')]) {
      const next = step(secondAttempt(), happening, { policy: PLAIN }).record
      expect(next.doubt).toEqual({ at: NOW - 1000, serverAt: null })
      expect(['waiting', 'blocked']).toContain(next.state.name)
    }
  })

  it('P27, H25: 403 without proof after a lost answer is not "rejected" (no wrong failure)', () => {
    const revoked = event('refused', { status: 403, answer: answer({ status: 403 }) })
    expect(inCase(secondAttempt(), revoked, { policy: PLAIN })).toEqual({
      name: 'waiting',
      because: 'refused_without_proof',
    })
    expect(inCase(secondAttempt(), revoked, { policy: PLAIN, now: NOW + DAY })).toEqual(unknown)
    expect(inCase(firstAttempt(), revoked)).toEqual({ name: 'rejected' })
  })

  it('H22: a mismatch after a lost answer is unknown, not "use a new intent" (no second order)', () => {
    const conflict = step(secondAttempt(), 'conflict').record
    expect(conflict).toMatchObject({ state: { name: 'unknown', because: 'conflict_in_doubt' }, handedOver: true })
    expect(step(firstAttempt(), 'conflict').record).toMatchObject({
      state: { name: 'conflicted' },
      answer: { status: 409 },
    })
  })

  it('P11, H8, H50: a record in doubt from its creation counts its window from `since`', () => {
    const recovered = record({ since: NOW - 2 * DAY, doubt: { at: NOW - 2 * DAY, serverAt: null } })
    expect(inCase(recovered, 'due')).toEqual(unknown)
    const young = record({ since: NOW - HOUR, doubt: { at: NOW - HOUR, serverAt: null } })
    expect(inCase(young, 'due')).toMatchObject({ name: 'sending' })
    nothing(young, 'cancelAsked', { policy: PLAIN })
  })
})

describe('an answer whose body broke off', () => {
  const known = inDoubt({ name: 'waiting', because: 'answer_incomplete' }, { answer: CUT_OFF })

  it('section 6: the same key is sent again for the replay, and a whole answer replaces it', () => {
    const intent = lived(record(), 'due', 'doneIncomplete')
    expect(intent).toMatchObject({
      state: { name: 'waiting', because: 'answer_incomplete' },
      answer: { body: 'cut_off' },
    })
    expect(lived(intent, 'due', 'done')).toMatchObject({ state: { name: 'succeeded' }, answer: { body: 'stored' } })
  })

  it('H58: where asking again would execute again, or comes to nothing, it is succeeded without body', () => {
    expect(inCase(firstAttempt(), 'doneIncomplete', { policy: NONE })).toMatchObject({ name: 'succeeded' })
    expect(inCase(firstAttempt(), 'doneIncomplete', { now: NOW + DAY })).toMatchObject({ name: 'succeeded' })
    expect(inCase(firstAttempt({ spent: 5 }), 'doneIncomplete')).toMatchObject({ name: 'succeeded' })
    expect(inCase(known, 'due', { now: NOW + DAY })).toMatchObject({ name: 'succeeded' })
  })

  it('P27, P42: nothing that comes later makes it unknown (no lost success)', () => {
    const again = secondAttempt({ answer: CUT_OFF })
    for (const name of ['conflict', 'expired', 'storedFailure'] as const) {
      expect(inCase(again, name), name).toEqual({ name: 'succeeded', by: 'answer' })
    }
    expect(inCase(again, 'ambiguous', { now: NOW + DAY })).toEqual({ name: 'succeeded', by: 'answer' })
    expect(inCase(again, 'refused', { now: NOW + DAY })).toEqual({ name: 'succeeded', by: 'answer' })
    expect(inCase(again, 'refused')).toEqual({ name: 'waiting', because: 'refused_without_proof' })
    const late = inDoubt(known.state, { answer: CUT_OFF, sendBefore: NOW })
    expect(inCase(late, 'due')).toEqual({ name: 'succeeded', by: 'answer' })
  })

  it.each([
    event('cancelAsked'),
    event('skipAsked'),
    event('resolvedNotHappened'),
    event('abandonAsked'),
    event('abandonAsked', { force: true }),
  ])('P27, H30: $type comes too late for it: succeeded, and the id stays taken (no second order)', (wish) => {
    expect(inCase(known, wish)).toEqual({ name: 'succeeded', by: 'answer' })
    expect(inCase(known, wish, { policy: PLAIN })).toEqual({ name: 'succeeded', by: 'answer' })
  })

  it('P27: nor does a person who acts while it is asked for again make it cancelled', () => {
    for (const wish of ['cancelAsked', 'skipAsked'] as const) {
      expect(inCase(secondAttempt({ answer: CUT_OFF }), wish)).toEqual({ name: 'succeeded', by: 'answer' })
    }
    nothing(known, 'absent')
  })

  it('P27: a refusal whose body broke off is no success', () => {
    const refusal = answer({ status: 422, body: 'cut_off' })
    const kept = step(secondAttempt(), event('refused', { answer: refusal })).record
    expect(kept).toMatchObject({ state: cancelling('refusal'), answer: refusal })
    expect(step(kept, 'due', { now: NOW + DAY }).record).toMatchObject({
      state: { because: 'void_window_over' },
      answer: null,
    })
  })
})

describe('a refusal without proof, where the server voids (H61)', () => {
  const refusal = step(secondAttempt(), event('refused', { answer: answer({ status: 422 }) })).record

  it('section 6: the key is voided, and voided means rejected with this answer', () => {
    expect(refusal).toMatchObject({ state: cancelling('refusal'), dueAt: NOW })
    expect(step(refusal, 'due').effects).toEqual(['persist', 'void'])
    expect(step(refusal, 'voided').record).toMatchObject({ state: { name: 'rejected' }, answer: { status: 422 } })
  })

  it('section 6: else the stored answer decides', () => {
    expect(step(refusal, 'done').record).toMatchObject({ state: { name: 'succeeded' }, answer: { status: 201 } })
    const proven = event('refused', { proof: true, answer: answer({ status: 402 }) })
    expect(step(refusal, proven).record).toMatchObject({ state: { name: 'rejected' }, answer: { status: 402 } })
    for (const name of ['stillProcessing', 'accepted'] as const) {
      expect(step(refusal, name).record).toMatchObject({ state: { name: 'processing' }, answer: null })
    }
  })

  it('P27: where the void cannot be had, it is unknown, and the refusal is not its answer', () => {
    for (const name of ['voidNotOffered', 'storedFailure', 'serverUnknown', 'otherPayload', 'expired'] as const) {
      expect(step(refusal, name).record, name).toMatchObject({ state: { name: 'unknown' }, answer: null })
    }
  })
})

describe('clocks and windows', () => {
  const dated = { doubt: { at: NOW, serverAt: NOW } }

  it('P35, F13, B82: the window over: unknown, nothing sent, and nothing automatic follows', () => {
    const over = step(inDoubt(waiting), 'due', { now: NOW + DAY - 90_000 })
    expect(over).toMatchObject({ record: { state: unknown, dueAt: null }, effects: ['persist', 'announce'] })
    expect(inCase(inDoubt(waiting), 'due', { now: NOW + DAY - 90_001 })).toMatchObject({ name: 'sending' })
  })

  it('H40, P35: a clock that stepped back hides the age: a look-up may bring a date, else unknown', () => {
    const back = inDoubt(waiting, { seenAt: NOW + DAY })
    expect(step(back, 'due')).toMatchObject({ effects: ['persist', 'lookup'], record: { state: waiting, asked: 1 } })
    expect(inCase(back, 'due', { policy: PLAIN })).toEqual({ name: 'unknown', because: 'age_unknown' })
    const asked = inDoubt(waiting, { seenAt: NOW + DAY, asked: POLICY.maxAttempts })
    expect(inCase(asked, 'due')).toEqual({ name: 'unknown', because: 'age_unknown' })
  })

  it('H40: a server date tells the age where the first hand-over had one', () => {
    const back = inDoubt(waiting, { seenAt: NOW + DAY, ...dated })
    expect(inCase(back, 'due', { serverNow: NOW + HOUR })).toMatchObject({ name: 'sending' })
    expect(inCase(back, 'due', { serverNow: NOW + DAY })).toEqual(unknown)
  })

  it('P35: an attempt during which the clock stepped back is asked about before it is given up', () => {
    const back = firstAttempt({ seenAt: NOW + 1001 })
    for (const name of ['ambiguous', 'inProgress', 'recovered'] as const) {
      expect(step(back, name).record).toMatchObject({
        state: { name: 'waiting', because: 'clock_stepped_back' },
        doubt: { at: NOW },
      })
      expect(inCase(back, name, { policy: PLAIN })).toEqual({ name: 'unknown', because: 'age_unknown' })
      const asked = { ...back, asked: POLICY.maxAttempts }
      expect(inCase(asked, name)).toEqual({ name: 'unknown', because: 'age_unknown' })
    }
  })

  it('H53: not in doubt, a record whose clock was wrong starts afresh at its next attempt', () => {
    const wrong = record({ seenAt: NOW + 3000 * DAY })
    const sent = step(wrong, 'due').record
    expect(sent.seenAt).toBe(NOW)
    const lost = step(sent, 'ambiguous', { now: NOW + 10 }).record
    expect(lost).toMatchObject({ state: { name: 'waiting', because: 'ambiguous' }, seenAt: NOW + 10 })
  })

  it('H53: a due time of a wrong clock is not waited for: what was left to wait is', () => {
    const years = NOW + 3000 * DAY
    const wrong = record({ seenAt: years, dueAt: years + 5000 })
    const mended = step(wrong, 'clockSteppedBack')
    expect(mended).toMatchObject({ record: { seenAt: NOW, dueAt: NOW + 5000 }, effects: ['persist'] })
    expect(step(record({ seenAt: years, dueAt: NOW }), 'clockSteppedBack').record.dueAt).toBe(NOW)
    const blocked = record({ state: { name: 'blocked', on: 'lane' }, seenAt: years, dueAt: null })
    expect(step(blocked, 'clockSteppedBack').record.dueAt).toBeNull()
  })

  it.each([waiting, processing, cancelling('cancel')])(
    'P35, P39: in doubt ($name), it is looked at soon, and being told again does not hurry it (no loop)',
    (state) => {
      const years = NOW + 3000 * DAY
      const wrong = inDoubt(state, { seenAt: years, dueAt: years + 5000 })
      const soon = step(wrong, 'clockSteppedBack').record
      expect(soon).toMatchObject({ dueAt: NOW + POLICY.slowPollMs, seenAt: undatable })
      expect(step(soon, 'clockSteppedBack', { now: NOW + 1000 }).record.dueAt).toBe(NOW + POLICY.slowPollMs)
      expect(step({ ...wrong, dueAt: null }, 'clockSteppedBack').record.dueAt).toBeNull()
    },
  )
})

describe('sendBefore (P36)', () => {
  const over = { now: NOW + HOUR }

  it('H29: not in doubt: cancelled, not sent twenty hours later', () => {
    const ended = step(record({ sendBefore: NOW + HOUR }), 'due', over)
    expect(ended.record).toMatchObject({
      state: { name: 'cancelled', because: 'send_before_passed' },
      settledAt: NOW + HOUR,
    })
    expect(inCase(record({ sendBefore: NOW + HOUR }), 'due')).toMatchObject({ name: 'sending' })
  })

  it('P36, P44: in doubt: voided where that is offered, else unknown', () => {
    const late = inDoubt(waiting, { sendBefore: NOW + HOUR })
    const voiding = step(late, 'due', over).record
    expect(voiding).toMatchObject({ state: cancelling('send_before'), dueAt: NOW + HOUR })
    expect(inCase(voiding, 'voided', over)).toEqual({ name: 'cancelled', because: 'send_before_passed' })
    expect(inCase(late, 'due', { ...over, policy: PLAIN })).toEqual({ name: 'unknown', because: 'send_before_passed' })
    expect(inCase(late, 'due', { now: NOW + DAY })).toEqual({ name: 'unknown', because: 'send_before_passed' })
  })
})

describe('answers that cannot be told from a foreign page (P41)', () => {
  const unmarked = event('ambiguous', { unmarked: true })

  it('H59: the second 2xx across origins without a readable marker stops the sending, and says why', () => {
    const once = step(firstAttempt(), unmarked).record
    expect(once).toMatchObject({ state: { name: 'waiting' }, unmarked: 1 })
    const twice = step({ ...once, state: sending({ number: 2 }) }, unmarked).record
    expect(twice).toMatchObject({ state: { name: 'unknown', because: 'markers_unreadable' }, unmarked: 2 })
    expect(step(twice, 'retryAsked').record).toMatchObject({ state: { name: 'waiting' }, unmarked: 0 })
  })

  it('P41: other ambiguous answers do not count', () => {
    const lost = step(secondAttempt({ unmarked: 1 }), 'ambiguous').record
    expect(lost).toMatchObject({ state: { name: 'waiting' }, unmarked: 1 })
  })
})

describe('processing', () => {
  const working = inDoubt(processing)

  it('P37, B90: the stored monitor is asked, never the request sent again', () => {
    expect(step(working, 'due')).toMatchObject({ effects: ['persist', 'poll'], record: { state: processing } })
    const accepted = event('accepted', { resultExpiresAt: NOW + HOUR })
    expect(inCase(firstAttempt(), accepted)).toEqual({
      name: 'processing',
      monitor: { ...MONITOR, resultExpiresAt: NOW + HOUR },
    })
  })

  it('P38: running and "the server tries again by itself" are told apart, also while polls fail', () => {
    const retrying = step(working, event('stillProcessing', { phase: 'retrying', resultExpiresAt: NOW + 1 })).record
    expect(retrying.state).toMatchObject({ monitor: { phase: 'retrying', url: MONITOR.url, resultExpiresAt: NOW + 1 } })
    expect(inCase(retrying, 'inquiryFailed')).toMatchObject({ monitor: { phase: 'retrying', errors: 1 } })
    expect(inCase(retrying, 'accepted')).toMatchObject({ monitor: { phase: 'running', resultExpiresAt: NOW + 1 } })
  })

  it('P38: completed, failed for good, unknown, voided', () => {
    expect(step(working, 'done').record).toMatchObject({ state: { name: 'succeeded' }, handedOver: true })
    expect(inCase(working, event('refused', { proof: true }))).toEqual({ name: 'rejected' })
    nothing(working, 'refused')
    expect(inCase(working, 'serverUnknown')).toEqual({ name: 'unknown', because: 'server_unknown' })
    expect(inCase(working, 'otherPayload')).toEqual({ name: 'unknown', because: 'other_payload' })
    expect(inCase(working, 'expired')).toEqual({ name: 'unknown', because: 'expired_in_doubt' })
    expect(inCase(working, 'storedFailure')).toEqual({ name: 'unknown', because: 'stored_failure' })
    expect(inCase(working, 'voided')).toEqual({ name: 'cancelled', because: 'voided' })
  })

  it('P38: failed, and the client may send the same key again: it does, while that is safe', () => {
    expect(step(working, 'clientMayRetry').record).toMatchObject({
      state: { name: 'waiting', because: 'server_asks_again' },
      doubt: { at: NOW },
    })
    const spent = inDoubt(processing, { spent: POLICY.maxAttempts })
    expect(inCase(spent, 'clientMayRetry')).toEqual({ name: 'unknown', because: 'attempts_spent' })
    expect(inCase(working, 'clientMayRetry', { now: NOW + DAY })).toEqual(unknown)
    expect(inCase(working, 'clientMayRetry', { policy: NONE })).toEqual(unknown)
  })

  it('B88: a monitor that is missing right after the 202 is borne for a while', () => {
    expect(inCase(working, 'monitorMissing', { now: NOW + 29_999 })).toEqual(processing)
    expect(inCase(working, 'monitorMissing', { now: NOW + 30_000 })).toEqual({
      name: 'waiting',
      because: 'monitor_lost',
    })
  })

  it('P38: a monitor that stays missing proves nothing: the request is replayed inside the window, else unknown', () => {
    const lost = { name: 'unknown', because: 'monitor_lost' }
    expect(inCase(working, 'monitorMissing', { now: NOW + DAY })).toEqual(lost)
    expect(inCase(working, 'monitorMissing', { now: NOW + HOUR, policy: NONE })).toEqual(lost)
    expect(inCase(inDoubt(processing, { spent: 5 }), 'monitorMissing', { now: NOW + HOUR })).toEqual(lost)
  })

  it('B89, P39: consecutive failed polls are counted, a good one starts anew', () => {
    const failing = lived(working, 'inquiryFailed', 'inquiryFailed', 'inquiryFailed')
    expect(failing.state).toMatchObject({ monitor: { errors: 3 } })
    expect(lived(failing, 'stillProcessing').state).toMatchObject({ monitor: { errors: 0 } })
    expect(inCase(failing, 'inquiryFailed')).toEqual({ name: 'waiting', because: 'monitor_lost' })
    const lost = { name: 'unknown', because: 'monitor_lost' }
    expect(inCase(failing, 'inquiryFailed', { policy: NONE })).toEqual(lost)
    expect(inCase(failing, 'inquiryFailed', { now: NOW + DAY })).toEqual(lost)
    expect(inCase({ ...failing, spent: POLICY.maxAttempts }, 'inquiryFailed')).toEqual(lost)
  })

  it('P39, B92: polls keep the pace told, a minimum, and a pace that grows', () => {
    const once = step(working, event('stillProcessing', { retryAfterMs: 7000 }), { random: 0 }).record
    expect(once).toMatchObject({ dueAt: NOW + 7000, asked: 1 })
    expect(step({ ...working, asked: 9 }, 'stillProcessing', { random: 1 }).record.dueAt).toBe(NOW + 60_000)
    expect(step(working, 'inProgress', { random: 0 })).toMatchObject({
      record: { dueAt: NOW + 500 },
      effects: ['persist'],
    })
  })

  it("P39: polling ends at the retention of the result, by the server's clock where that is known", () => {
    const kept = inDoubt({ name: 'processing', monitor: { ...MONITOR, resultExpiresAt: NOW + HOUR } })
    expect(step(kept, 'due', { now: NOW + HOUR - 1 }).effects).toContain('poll')
    expect(inCase(kept, 'due', { now: NOW + HOUR })).toEqual({ name: 'waiting', because: 'monitor_lost' })
    expect(step(kept, 'due', { now: NOW + HOUR, serverNow: NOW }).effects).toContain('poll')
    expect(inCase(kept, 'due', { now: NOW + DAY })).toEqual({ name: 'unknown', because: 'result_expired' })
    const never = { now: NOW + HOUR, policy: NONE }
    expect(inCase(kept, 'due', never)).toEqual({ name: 'unknown', because: 'result_expired' })
  })

  it('P3, P38: without credentials or under another account a poll waits, and nothing is concluded', () => {
    for (const name of ['credentialsMissing', 'scopeDiffers', 'inquiryUnauthorized'] as const) {
      expect(step(working, name)).toMatchObject({
        record: { state: processing, dueAt: NOW + 60_000 },
        effects: ['persist'],
      })
    }
  })

  it('P45: a person who retries asks the monitor at once', () => {
    expect(step({ ...working, asked: 9 }, 'retryAsked').record).toMatchObject({
      state: processing,
      dueAt: NOW,
      asked: 0,
    })
  })
})

describe('what an inquiry finds while the intent rests', () => {
  it('P38: the server is at work on it: then it may happen, even if this device never sent it', () => {
    const other = step(record(), event('stillProcessing', { monitorUrl: MONITOR.url }), { now: NOW + 1000 }).record
    expect(other).toMatchObject({ state: { name: 'processing', monitor: { url: MONITOR.url } }, doubt: { at: NOW } })
    nothing(other, 'cancelAsked', { policy: PLAIN, now: NOW + 1000 })
    const byKey = step(inDoubt(waiting), 'stillProcessing').record
    expect(byKey.state).toEqual({ name: 'processing', monitor: { ...MONITOR, url: '' } })
  })

  it('section 16, F18, H37: what it says of an intent in doubt counts; one that is not in doubt is simply sent', () => {
    for (const [name, because] of [
      ['serverUnknown', 'server_unknown'],
      ['otherPayload', 'other_payload'],
      ['expired', 'expired_in_doubt'],
      ['storedFailure', 'stored_failure'],
    ] as const) {
      expect(inCase(inDoubt(waiting), name)).toEqual({ name: 'unknown', because })
      nothing(record(), name)
    }
  })
})

describe('reconcile (P43)', () => {
  it('P43: found under the business identity: succeeded, and the key is voided besides where that is possible', () => {
    const found = event('foundElsewhere', { answer: answer({ status: 200 }) })
    const voiding = step(inDoubt(unknown), found).record
    expect(voiding).toMatchObject({ state: cancelling('found'), answer: { status: 200 } })
    expect(step(voiding, 'voided').record).toMatchObject({
      state: { name: 'succeeded', by: 'reconcile' },
      answer: { status: 200 },
    })
    const plain = step(inDoubt(unknown), found, { policy: PLAIN }).record
    expect(plain).toMatchObject({ state: { name: 'succeeded', by: 'reconcile' }, answer: { status: 200 } })
    expect(inCase(record(), found)).toEqual({ name: 'succeeded', by: 'reconcile' })
    expect(inCase(inDoubt(unknown), found, { now: NOW + DAY })).toEqual({ name: 'succeeded', by: 'reconcile' })
  })

  it.each([
    event('stillProcessing'),
    event('accepted'),
    event('refused', { proof: true }),
    event('expired'),
    event('voidNotOffered'),
    event('storedFailure'),
    event('serverUnknown'),
    event('otherPayload'),
    event('abandonAsked'),
    event('abandonAsked', { force: true }),
  ])('P27, P43: what was found stays found, whatever the void says: $type (no lost success)', (said) => {
    const voiding = inDoubt(cancelling('found'), { answer: answer({ status: 200 }) })
    expect(step(voiding, said).record).toMatchObject({
      state: { name: 'succeeded', by: 'reconcile' },
      answer: { status: 200 },
    })
  })

  it('P43: what is found while a void is under way counts too, and once the intent was abandoned', () => {
    const found = event('foundElsewhere', { answer: answer({ status: 200 }) })
    expect(step(inDoubt(cancelling('cancel'), { dueAt: NOW + HOUR }), found).record).toMatchObject({
      state: cancelling('found'),
      answer: { status: 200 },
      dueAt: NOW,
    })
    nothing(inDoubt(cancelling('found')), 'refused')
    expect(inCase(inDoubt(cancelling('found')), 'due', { now: NOW + DAY })).toEqual({
      name: 'succeeded',
      by: 'reconcile',
    })
    const abandoned = record({ state: { name: 'abandoned', mayStillHappen: true, freed: false }, settledAt: NOW })
    expect(step(abandoned, found).record).toMatchObject({
      state: { name: 'succeeded', by: 'reconcile' },
      answer: { status: 200 },
    })
  })

  it('P43, H36: not found is no proof: cancelled only after a void', () => {
    const voiding = step(inDoubt(unknown), 'absent').record
    expect(voiding.state).toEqual(cancelling('absent'))
    expect(inCase(voiding, 'voided')).toEqual({ name: 'cancelled', because: 'reconciled_absent' })
    nothing(inDoubt(unknown), 'absent', { policy: PLAIN })
    nothing(inDoubt(unknown), 'absent', { now: NOW + 2 * DAY })
  })

  it('P43: what was never handed over is absent of course, and is not cancelled for it (no lost intent)', () => {
    nothing(record(), 'absent')
    nothing(record({ state: { name: 'blocked', on: 'credentials' } }), 'absent')
  })

  it('P43, H57: not found after the key was forgotten, and after the transit: cancelled; sooner, or the other way round: not', () => {
    const later = { now: NOW + 2 * DAY, serverNow: NOW + 2 * DAY }
    const forgotten = step(inDoubt(unknown, { doubt: { at: NOW, serverAt: NOW } }), 'expired', later).record
    expect(forgotten.state).toEqual({ name: 'unknown', because: 'expired_in_doubt' })
    // By the device's clock alone, nobody knows whether that time has passed or was only jumped over.
    nothing(forgotten, 'absent', { now: NOW + 2 * DAY })
    expect(inCase(forgotten, 'absent', later)).toEqual({ name: 'cancelled', because: 'reconciled_absent' })
    const transit = POLICY.transitMs + POLICY.attemptTimeoutMs
    nothing(forgotten, 'absent', { now: NOW + transit, serverNow: NOW + transit, policy: PLAIN })
    const over = { now: NOW + transit + 1, serverNow: NOW + transit + 1, policy: PLAIN }
    expect(inCase(forgotten, 'absent', over)).toMatchObject({ name: 'cancelled' })
    // Work that was still going on when the app looked may have ended since: only what is heard afterwards counts.
    const voiding = step(inDoubt(unknown), 'absent').record
    expect(inCase(voiding, 'expired', later)).toEqual({ name: 'unknown', because: 'expired_in_doubt' })
  })

  it('H57, P11: an earlier life of this device may have sent until the record was made', () => {
    const derived = record({
      state: { name: 'unknown', because: 'expired_in_doubt' },
      since: NOW - 2 * DAY,
      doubt: { at: NOW - 2 * DAY, serverAt: NOW - 2 * DAY },
    })
    nothing(derived, 'absent', { now: NOW + 90_000, serverNow: NOW + 90_000 })
    expect(inCase(derived, 'absent', { now: NOW + 90_001, serverNow: NOW + 90_001 })).toMatchObject({
      name: 'cancelled',
    })
  })

  it('H57, H53: time that the clock only jumped over has not passed', () => {
    const jumped = inDoubt({ name: 'unknown', because: 'expired_in_doubt' }, { doubt: { at: NOW, serverAt: NOW } })
    nothing(jumped, 'absent', { now: NOW + 2 * DAY, serverNow: NOW + 1000 })
    expect(inCase(jumped, 'absent', { now: NOW + 2 * DAY, serverNow: NOW + 2 * DAY })).toMatchObject({
      name: 'cancelled',
    })
  })
})

describe('void (P44)', () => {
  const voiding = inDoubt(cancelling('cancel'))

  it('H35: cancelling is stored first, and repeated until answered', () => {
    const asked = step(inDoubt(waiting), 'cancelAsked')
    expect(asked).toMatchObject({
      record: { state: cancelling('cancel'), dueAt: NOW },
      effects: ['persist', 'announce'],
    })
    expect(step(asked.record, 'due')).toMatchObject({ effects: ['persist', 'void'], record: { asked: 1 } })
    for (const name of [
      'inquiryFailed',
      'inProgress',
      'inquiryUnauthorized',
      'credentialsMissing',
      'scopeDiffers',
    ] as const) {
      const next = step(voiding, name)
      expect(next).toMatchObject({ record: { state: cancelling('cancel') }, effects: ['persist'] })
      expect(next.record.dueAt).toBeGreaterThan(NOW)
    }
  })

  it('P44, F19: cancelled for certain, or what the server stored', () => {
    expect(inCase(voiding, 'voided')).toEqual({ name: 'cancelled', because: 'voided' })
    expect(inCase(voiding, 'done')).toEqual({ name: 'succeeded', by: 'answer' })
    expect(inCase(voiding, event('refused', { proof: true }))).toEqual({ name: 'rejected' })
    expect(inCase(voiding, 'storedFailure')).toEqual({ name: 'unknown', because: 'stored_failure' })
    expect(inCase(voiding, 'expired')).toEqual({ name: 'unknown', because: 'expired_in_doubt' })
  })

  it('H33: accepted work is processing, not succeeded', () => {
    expect(inCase(voiding, 'stillProcessing')).toMatchObject({ name: 'processing', monitor: { url: '' } })
    expect(inCase(voiding, 'accepted')).toMatchObject({ name: 'processing', monitor: { url: MONITOR.url } })
    nothing(voiding, event('accepted', { monitorUrl: null }))
  })

  it('P44, H1: only inside the window: after it a key that is free again proves nothing', () => {
    expect(inCase(voiding, 'due', { now: NOW + DAY })).toEqual({ name: 'unknown', because: 'void_window_over' })
    nothing(inDoubt(waiting), 'cancelAsked', { now: NOW + DAY })
  })

  it('P44, P48: a person cancels while the attempt is under way: its late answer still counts, its refusal does not', () => {
    const asked = step(firstAttempt(), 'cancelAsked').record
    expect(asked).toMatchObject({ state: cancelling('cancel'), doubt: { at: NOW }, handedOver: true })
    expect(inCase(asked, 'done')).toMatchObject({ name: 'succeeded' })
    expect(inCase(asked, 'doneIncomplete')).toMatchObject({ name: 'succeeded' })
    for (const name of ['refused', 'neverDelivered', 'ambiguous', 'needsCredentials', 'conflict'] as const)
      nothing(asked, name)
    nothing(firstAttempt(), 'cancelAsked', { policy: PLAIN })
  })

  it('P45: a person hurries it', () => {
    const slow = { ...voiding, dueAt: NOW + HOUR, asked: 9 }
    expect(step(slow, 'retryAsked').record).toMatchObject({ dueAt: NOW, asked: 0 })
    expect(step(slow, 'cancelAsked').record).toMatchObject({ dueAt: NOW, asked: 9 })
    expect(inCase(slow, 'resolvedSucceeded')).toEqual({ name: 'succeeded', by: 'person' })
  })
})

describe('the person who settles it (P45)', () => {
  it('P45: what a person does is written down with its time and note', () => {
    const noted = step(inDoubt(unknown), event('resolvedSucceeded', { note: 'seen in the ledger' })).record
    expect(noted).toMatchObject({ state: { name: 'succeeded', by: 'person' }, settledAt: NOW })
    expect(noted.actions).toEqual([{ at: NOW, action: 'resolve', note: 'seen in the ledger' }])
    expect(step(record(), 'retryAsked').record.actions).toEqual([{ at: NOW, action: 'retry' }])
  })

  it('P45, P48: retries what is unknown, with the same key, inside the window', () => {
    const spent = inDoubt({ name: 'unknown', because: 'attempts_spent' }, { spent: 5, asked: 2 })
    expect(step(spent, 'retryAsked').record).toMatchObject({
      state: { name: 'waiting' },
      spent: 0,
      asked: 0,
      dueAt: NOW,
    })
    nothing(spent, 'retryAsked', { now: NOW + DAY })
  })

  it('H31: "it did not happen" voids first; where that cannot be done it counts as abandoned, with its id taken', () => {
    expect(inCase(inDoubt(unknown), 'resolvedNotHappened')).toEqual(cancelling('resolve'))
    const abandoned = { name: 'abandoned', mayStillHappen: true, freed: false }
    expect(inCase(inDoubt(unknown), 'resolvedNotHappened', { policy: PLAIN })).toEqual(abandoned)
    expect(inCase(inDoubt(cancelling('resolve')), 'voidNotOffered')).toEqual(abandoned)
    expect(inCase(record(), 'resolvedNotHappened')).toEqual({ name: 'cancelled', because: 'by_app' })
  })

  it('H30: giving up voids first; without that it may still happen, and only force frees the id', () => {
    const force = event('abandonAsked', { force: true })
    expect(inCase(inDoubt(unknown), force)).toEqual(cancelling('abandon'))
    expect(inCase(inDoubt(cancelling('abandon')), 'voided')).toEqual({ name: 'cancelled', because: 'voided' })
    expect(inCase(inDoubt(cancelling('abandon')), 'voidNotOffered')).toMatchObject({ name: 'abandoned', freed: false })
    expect(inCase(inDoubt(unknown), 'abandonAsked', { policy: PLAIN })).toMatchObject({
      name: 'abandoned',
      freed: false,
    })
    expect(inCase(inDoubt(unknown), force, { policy: PLAIN })).toMatchObject({ name: 'abandoned', freed: true })
    const kept = record({ state: { name: 'abandoned', mayStillHappen: true, freed: false }, settledAt: NOW })
    nothing(kept, 'abandonAsked')
    expect(inCase(kept, force)).toMatchObject({ name: 'abandoned', freed: true })
    expect(inCase(record(), 'abandonAsked')).toEqual({ name: 'cancelled', because: 'by_app' })
  })

  it('P45: giving up while a void is under way goes on with the void, or says that it may still happen', () => {
    const voiding = inDoubt(cancelling('refusal'), { answer: answer({ status: 422 }) })
    expect(step(voiding, 'abandonAsked').record).toMatchObject({ state: cancelling('abandon'), answer: null })
    expect(step(voiding, 'resolvedNotHappened').record).toMatchObject({ state: cancelling('resolve'), answer: null })
    const over = { name: 'abandoned', mayStillHappen: true, freed: false }
    expect(inCase(voiding, 'resolvedNotHappened', { now: NOW + DAY })).toEqual(over)
    expect(inCase(inDoubt(cancelling('found')), 'resolvedNotHappened')).toEqual({ name: 'succeeded', by: 'reconcile' })
    expect(inCase(voiding, event('abandonAsked', { force: true }))).toMatchObject({ name: 'abandoned', freed: true })
    expect(inCase(voiding, 'abandonAsked', { now: NOW + DAY })).toMatchObject({ name: 'abandoned', freed: false })
  })
})

describe('late answers (P48)', () => {
  const ended = (state: State): IntentRecord => record({ state, settledAt: NOW, acknowledgedAt: NOW, dueAt: NOW + DAY })

  it('H39: an answer from behind the key settles what became unknown, also one whose body broke off', () => {
    const heard = { state: { name: 'succeeded', by: 'answer' }, answer: { status: 201 } }
    expect(step(inDoubt(unknown), 'done').record).toMatchObject(heard)
    expect(step(inDoubt(unknown), 'doneIncomplete').record).toMatchObject(heard)
    expect(inCase(inDoubt(unknown), event('refused', { proof: true }))).toEqual({ name: 'rejected' })
    expect(inCase(inDoubt(unknown), 'voided')).toEqual({ name: 'cancelled', because: 'voided' })
    nothing(inDoubt(unknown), 'refused')
  })

  it('P48, P42: a late answer whose body broke off is kept, and the replay or the monitor may yet bring the body', () => {
    const heard = step(inDoubt(waiting), 'doneIncomplete').record
    expect(heard).toMatchObject({
      state: { name: 'waiting', because: 'answer_incomplete' },
      answer: { body: 'cut_off' },
    })
    expect(inCase(heard, 'due', { now: NOW + DAY })).toMatchObject({ name: 'succeeded' })
    expect(inCase(inDoubt(waiting), 'doneIncomplete', { now: NOW + DAY })).toMatchObject({ name: 'succeeded' })
    expect(inCase(inDoubt(waiting), 'doneIncomplete', { policy: NONE })).toMatchObject({ name: 'succeeded' })
    expect(inCase(inDoubt(waiting, { spent: 5 }), 'doneIncomplete')).toMatchObject({ name: 'succeeded' })
    expect(step(record(), 'doneIncomplete').record.doubt).toEqual({ at: NOW, serverAt: null })
    const working = step(inDoubt(processing), 'doneIncomplete').record
    expect(working).toMatchObject({ state: processing, answer: { body: 'cut_off' } })
    expect(inCase(working, 'serverUnknown')).toMatchObject({ name: 'succeeded' })
  })

  it('P42: later proof never restarts sending', () => {
    for (const name of ['ambiguous', 'accepted', 'inProgress', 'clientMayRetry', 'monitorMissing', 'due'] as const) {
      nothing(inDoubt(unknown), name)
    }
  })

  it('P48: success surpasses every other end, and is announced anew', () => {
    const ends: State[] = [
      { name: 'rejected' },
      { name: 'conflicted' },
      { name: 'cancelled', because: 'by_app' },
      { name: 'abandoned', mayStillHappen: true, freed: true },
    ]
    for (const state of ends) {
      for (const name of ['done', 'doneIncomplete'] as const) {
        const late = step(ended(state), name, { now: NOW + 5 })
        expect(late.record).toMatchObject({
          state: { name: 'succeeded' },
          settledAt: NOW + 5,
          acknowledgedAt: null,
          dueAt: null,
        })
        expect(late.effects).toContain('announce')
      }
      if (state.name !== 'abandoned') nothing(ended(state), event('refused', { proof: true }))
    }
    nothing(ended({ name: 'succeeded', by: 'answer' }), 'done')
  })

  it('P48: what was abandoned ends as it is proven', () => {
    const abandoned = ended({ name: 'abandoned', mayStillHappen: true, freed: false })
    expect(inCase(abandoned, event('refused', { proof: true }))).toEqual({ name: 'rejected' })
    expect(inCase(abandoned, 'voided')).toEqual({ name: 'cancelled', because: 'voided' })
    expect(inCase(abandoned, 'resolvedSucceeded')).toEqual({ name: 'succeeded', by: 'person' })
  })
})

describe('lanes (P34)', () => {
  const head = { lane: named }

  it('F23, H42: a lane stopped by its head is told to go on, by resuming or by skipping', () => {
    const rejected = record({ ...head, state: { name: 'rejected' }, settledAt: NOW })
    for (const wish of ['laneResumed', 'skipAsked'] as const) {
      expect(step(rejected, wish).record).toMatchObject({ laneReleased: true, state: { name: 'rejected' } })
    }
  })

  it('P34: skipping a head cancels it, voids it where it is in doubt, or says that order is no longer promised', () => {
    expect(step(record(head), 'skipAsked').record).toMatchObject({ state: { name: 'cancelled' }, laneReleased: true })
    const voiding = step(inDoubt(waiting, head), 'skipAsked').record
    expect(voiding).toMatchObject({ state: cancelling('skip'), laneReleased: false })
    const broken = step(inDoubt(waiting, head), 'skipAsked', { policy: PLAIN }).record
    expect(broken).toMatchObject({ state: waiting, laneReleased: true })
    expect(step(firstAttempt(head), 'skipAsked').record).toMatchObject({
      state: cancelling('skip'),
      laneReleased: false,
      doubt: { at: NOW, serverAt: null },
    })
    nothing(firstAttempt(head), 'skipAsked', { policy: PLAIN })
    nothing(firstAttempt(head), 'skipAsked', { now: NOW + DAY })
    nothing(firstAttempt(head), 'cancelAsked', { now: NOW + DAY })
  })

  it('P34: the lane goes on once the void has its end, whichever', () => {
    const voiding = inDoubt(cancelling('skip'), head)
    for (const name of [
      'voided',
      'done',
      'doneIncomplete',
      'stillProcessing',
      'accepted',
      'voidNotOffered',
      'expired',
    ] as const) {
      expect(step(voiding, name).record.laneReleased, name).toBe(true)
    }
    expect(step(voiding, event('refused', { proof: true })).record.laneReleased).toBe(true)
    expect(step(voiding, 'due', { now: NOW + DAY }).record.laneReleased).toBe(true)
    expect(step(inDoubt(cancelling('cancel'), head), 'voided').record.laneReleased).toBe(false)
  })

  it('P34: a head that is being voided already can be skipped too (no lane stuck for a day)', () => {
    for (const purpose of ['cancel', 'send_before', 'skip'] as const) {
      const skipped = step(inDoubt(cancelling(purpose), head), 'skipAsked').record
      expect(skipped).toMatchObject({ state: cancelling('skip'), laneReleased: false, dueAt: NOW })
    }
    const refusal = step(inDoubt(cancelling('refusal'), head), 'skipAsked').record
    expect(refusal).toMatchObject({ state: cancelling('refusal'), laneReleased: true })
  })
})

describe('memory (P8, P22)', () => {
  const succeeded = record({ state: { name: 'succeeded', by: 'answer' }, settledAt: NOW, dueAt: null })
  const acknowledged = step(succeeded, 'acknowledged', { now: NOW + 5 }).record

  it('P8, H20: acknowledging clears the inbox and frees nothing', () => {
    expect(acknowledged).toMatchObject({ state: succeeded.state, acknowledgedAt: NOW + 5, dueAt: NOW + 7 * DAY })
    const lost = step(record({ state: { name: 'rejected' } }), 'acknowledged').record
    expect(lost.dueAt).toBe(NOW + 7 * DAY)
  })

  it('P8: it is forgotten when it is no longer remembered, and not by a stray look before', () => {
    nothing(succeeded, 'due', { now: NOW + 9 * DAY })
    nothing(acknowledged, 'due', { now: NOW + 7 * DAY - 1 })
    expect(step(acknowledged, 'due', { now: NOW + 7 * DAY }).effects).toEqual(['remove'])
  })

  it('P34, F23: the head of a stopped lane is not forgotten: the lane would go on by itself', () => {
    const head = { ...acknowledged, state: { name: 'rejected' } as const, lane: named }
    const kept = step(head, 'due', { now: NOW + 7 * DAY })
    expect(kept).toMatchObject({ effects: ['persist'], record: { dueAt: NOW + 14 * DAY } })
    expect(step({ ...head, laneReleased: true }, 'due', { now: NOW + 7 * DAY }).effects).toEqual(['remove'])
  })

  it('P45, H30: what was abandoned without force keeps its id for good', () => {
    const state = (freed: boolean): State => ({ name: 'abandoned', mayStillHappen: true, freed })
    expect(step({ ...acknowledged, state: state(false) }, 'due', { now: NOW + 7 * DAY }).effects).toEqual(['persist'])
    expect(step({ ...acknowledged, state: state(true) }, 'due', { now: NOW + 7 * DAY }).effects).toEqual(['remove'])
  })

  it("P8, H53: a clock that jumped ahead of the server's forgets nothing (no second key)", () => {
    const years = NOW + 3000 * DAY
    expect(step(acknowledged, 'due', { now: years, serverNow: NOW + DAY }).effects).toEqual(['persist'])
    expect(step(acknowledged, 'due', { now: years, serverNow: years }).effects).toEqual(['remove'])
  })

  it("P8: a server's date in whole seconds, or a clock that is ahead by a constant, keeps nothing for ever", () => {
    const now = NOW + 7 * DAY
    expect(step(acknowledged, 'due', { now, serverNow: now - 999 }).effects).toEqual(['remove'])
    const kept = step(acknowledged, 'due', { now, serverNow: now - 3_600_000 })
    expect(kept).toMatchObject({ effects: ['persist'], record: { dueAt: now + 7 * DAY } })
    const later = { now: now + 7 * DAY, serverNow: now + 7 * DAY - 3_600_000 }
    expect(step(kept.record, 'due', later).effects).toEqual(['remove'])
  })
})

describe('history', () => {
  it('P51: says what happened in fixed words, with attempt, status and detail', () => {
    const intent = lived(record(), 'due', [
      event('refusedWithoutEffect', { status: 429, detail: 'busy' }),
      { now: NOW + 9 },
    ])
    expect(intent.history).toEqual([
      { at: NOW, event: 'due', attempt: 1 },
      { at: NOW + 9, event: 'refusedWithoutEffect', attempt: 1, status: 429, detail: 'busy' },
    ])
  })

  it('P51: waiting and bookkeeping leave no lines', () => {
    expect(step(inDoubt(processing), 'due').record.history).toEqual([])
    expect(step(record({ seenAt: NOW + 1 }), 'clockSteppedBack').record.history).toEqual([])
    expect(step(record({ state: { name: 'rejected' } }), 'acknowledged').record.history).toEqual([])
  })

  it('P51: is bounded: the first lines and the latest stay', () => {
    let intent = record()
    for (let round = 0; round < 50; round++)
      intent = lived(intent, ['due', { now: NOW + round }], ['needsCredentials', { now: NOW + round }])
    expect(intent.history).toHaveLength(historyLimit)
    expect(intent.history[0]).toEqual({ at: NOW, event: 'due', attempt: 1 })
    expect(intent.history.at(-1)).toMatchObject({ at: NOW + 49, attempt: 50 })
  })

  it('P35: the highest wall time seen is kept per record, and no step is taken for an event without meaning', () => {
    expect(step(record({ seenAt: NOW + 5 }), 'credentialsMissing').record.seenAt).toBe(NOW + 5)
    expect(step(record(), 'credentialsMissing', { now: NOW + 7 }).record.seenAt).toBe(NOW + 7)
    nothing(record({ state: queued }), 'voidNotOffered')
  })
})
