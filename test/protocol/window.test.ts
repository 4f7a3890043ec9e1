import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ageMs, ageSeconds, clockGainMs, clockSteppedBack, isWindowOpen, windowMs } from '../../src/protocol/window.ts'
import { DAY, firstAttempt, HOUR, inDoubt, NOW, POLICY, record, secondAttempt, sending } from '../support/machine.ts'

const at = (now: number, serverNow: number | null = null) => ({ now, serverNow })
const lost = inDoubt({ name: 'waiting', because: 'ambiguous' })
const dated = { ...lost, doubt: { at: NOW, serverAt: NOW + HOUR } }

describe('windowMs', () => {
  it('P35, H10: the retention less the time limit of an attempt and the transit', () => {
    expect(windowMs(POLICY)).toBe(DAY - 90_000)
  })

  it('P35: an unknown retention is none, and a short one is not negative', () => {
    expect(windowMs({ ...POLICY, retentionMs: null })).toBe(0)
    expect(windowMs({ ...POLICY, retentionMs: 1000 })).toBe(0)
  })
})

describe('ageMs', () => {
  it('P19: counts from the earliest attempt that may have taken effect, and is 0 without one', () => {
    expect(ageMs(record(), at(NOW + DAY))).toBe(0)
    expect(ageMs(lost, at(NOW + 5))).toBe(5)
    expect(ageMs(firstAttempt(), at(NOW + 5))).toBe(5)
    expect(ageMs(secondAttempt(), at(NOW + 5))).toBe(1005)
  })

  it('H48, H55: an attempt that was cleared starts no window', () => {
    const refused = record({ state: { name: 'blocked', on: 'credentials' }, attempts: 1, handedOver: true })
    expect(ageMs(refused, at(NOW + 3 * DAY))).toBe(0)
    expect(isWindowOpen(refused, POLICY, at(NOW + 3 * DAY))).toBe(true)
  })

  it('H40: of two clocks that disagree, the larger age counts', () => {
    expect(ageMs(dated, at(NOW + 5, NOW + HOUR + DAY))).toBe(DAY)
    expect(ageMs(dated, at(NOW + DAY, NOW + HOUR + 5))).toBe(DAY)
    expect(ageMs(dated, at(NOW + 5, NOW))).toBe(5)
    expect(ageMs(dated, at(NOW + 5))).toBe(5)
    expect(ageMs(lost, at(NOW + 5, NOW + DAY))).toBe(5)
  })

  it("H40, H53: below the highest time seen, only the server's clock tells an age", () => {
    expect(ageMs(lost, at(NOW - 1001))).toBeNull()
    expect(ageMs(lost, at(NOW - 1001, NOW))).toBeNull()
    expect(ageMs(dated, at(NOW - 1001))).toBeNull()
    expect(ageMs(dated, at(NOW - 1001, NOW + HOUR + 7))).toBe(7)
    expect(ageMs(dated, at(NOW - 1001, NOW))).toBe(0)
    expect(clockSteppedBack(lost, at(NOW - 1001))).toBe(true)
    expect(clockSteppedBack(lost, at(NOW))).toBe(false)
    // A correction is no step: the transit leaves room for it.
    expect(clockSteppedBack(lost, at(NOW - 1000))).toBe(false)
    expect(ageMs(lost, at(NOW - 1000))).toBe(0)
  })

  it("H53: one record's wrong clock is not another's", () => {
    expect(ageMs(inDoubt(lost.state, { seenAt: NOW + 3000 * DAY }), at(NOW + 5))).toBeNull()
    expect(ageMs(lost, at(NOW + 5))).toBe(5)
  })

  it('P11: counts from `since` where an earlier life may have sent it', () => {
    const derived = record({ since: NOW - HOUR, doubt: { at: NOW - HOUR, serverAt: null } })
    expect(ageMs(derived, at(NOW))).toBe(HOUR)
    expect(ageMs({ ...derived, state: sending() }, at(NOW))).toBe(HOUR)
  })
})

describe('isWindowOpen', () => {
  it('P35, B82: closes exactly when the key may be forgotten, and stays closed', () => {
    expect(isWindowOpen(lost, POLICY, at(NOW + DAY - 90_001))).toBe(true)
    expect(isWindowOpen(lost, POLICY, at(NOW + DAY - 90_000))).toBe(false)
    expect(isWindowOpen(lost, POLICY, at(NOW + 30 * DAY))).toBe(false)
  })

  it('B84: each operation has its own', () => {
    expect(isWindowOpen(lost, { ...POLICY, retentionMs: HOUR }, at(NOW + 2 * HOUR))).toBe(false)
    expect(isWindowOpen(lost, POLICY, at(NOW + 2 * HOUR))).toBe(true)
  })

  it('H40: is closed while the age is not known', () => {
    expect(isWindowOpen(lost, POLICY, at(NOW - 1001))).toBe(false)
  })

  it('P35, H54: is never open later than the earliest hand-over allows, whatever attempts follow', () => {
    fc.assert(
      fc.property(fc.nat(3 * DAY), fc.nat(3 * DAY), (firstMs, laterMs) => {
        const two = { ...lost, state: sending({ number: 2, at: NOW + firstMs }), seenAt: NOW }
        const now = NOW + Math.max(firstMs, laterMs)
        expect(isWindowOpen(two, POLICY, at(now))).toBe(now - NOW < windowMs(POLICY))
      }),
    )
  })
})

describe('ageSeconds', () => {
  it('section 16: whole seconds, rounded up: never younger than it is', () => {
    expect(ageSeconds(record(), at(NOW))).toBe(0)
    expect(ageSeconds(lost, at(NOW))).toBe(0)
    expect(ageSeconds(lost, at(NOW + 1))).toBe(1)
    expect(ageSeconds(lost, at(NOW + 1000))).toBe(1)
    expect(ageSeconds(lost, at(NOW + 1001))).toBe(2)
    expect(ageSeconds(lost, at(NOW - 1001))).toBeNull()
  })

  it('H9: an attempt that was marked and frozen is as old as its mark', () => {
    expect(ageSeconds(firstAttempt(), at(NOW + 3 * DAY))).toBe(3 * 86_400)
    expect(isWindowOpen(firstAttempt(), POLICY, at(NOW + 3 * DAY))).toBe(false)
  })
})

describe('clockGainMs', () => {
  it("H53: tells how far the clock ran ahead of the server's since the first hand-over", () => {
    expect(clockGainMs(dated, at(NOW + DAY, NOW + HOUR + 1000))).toBe(DAY - 1000)
    expect(clockGainMs(dated, at(NOW + 1000, NOW + HOUR + DAY))).toBe(0)
    expect(clockGainMs(dated, at(NOW + DAY))).toBeNull()
    expect(clockGainMs(lost, at(NOW + DAY, NOW))).toBeNull()
    expect(clockGainMs(record(), at(NOW + DAY, NOW))).toBeNull()
  })
})
