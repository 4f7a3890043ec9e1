import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffMs, MAX_TIMER_MS } from '../../src/protocol/backoff.ts'

const POLICY = { baseMs: 500, capMs: 60_000, minMs: 100 }

describe('backoffMs', () => {
  it('P31: the upper end doubles with each attempt, up to the cap', () => {
    expect([1, 2, 3, 4, 7, 8, 9, 10_000].map((attempt) => backoffMs(POLICY, attempt, 1))).toEqual([
      500, 1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000,
    ])
  })

  it('P31: jitter is full: from the minimum to the upper end', () => {
    expect(backoffMs(POLICY, 5, 0)).toBe(100)
    expect(backoffMs(POLICY, 5, 0.5)).toBe(4050)
    expect(backoffMs(POLICY, 5, 1)).toBe(8000)
  })

  it('fewer attempts than one count as one', () => {
    for (const attempt of [0, -3, Number.NEGATIVE_INFINITY]) expect(backoffMs(POLICY, attempt, 1)).toBe(500)
  })

  it('a minimum above the cap wins', () => {
    expect(backoffMs({ baseMs: 1, capMs: 10, minMs: 50 }, 3, 1)).toBe(50)
  })

  it('what is no number means the slow end', () => {
    expect(backoffMs(POLICY, Number.NaN, 1)).toBe(60_000)
    expect(backoffMs(POLICY, 1, Number.NaN)).toBe(500)
    expect(backoffMs({ ...POLICY, baseMs: Number.NaN }, 1, 1)).toBe(60_000)
    expect(backoffMs({ baseMs: Number.NaN, capMs: Number.NaN, minMs: Number.NaN }, 1, 1)).toBe(MAX_TIMER_MS)
  })

  it('B62: forty days and infinity fit into a timer', () => {
    const fortyDays = 40 * 86_400_000
    expect(backoffMs({ baseMs: fortyDays, capMs: fortyDays, minMs: 0 }, 1, 1)).toBe(MAX_TIMER_MS)
    const infinite = Number.POSITIVE_INFINITY
    expect(backoffMs({ baseMs: infinite, capMs: infinite, minMs: infinite }, infinite, infinite)).toBe(MAX_TIMER_MS)
    expect(backoffMs({ baseMs: 0, capMs: infinite, minMs: 0 }, infinite, 1)).toBe(0)
  })

  it('P31: whatever the arguments, the wait is a whole number that a timer can hold', () => {
    const number = fc.oneof(fc.double(), fc.integer(), fc.nat(10_000))
    fc.assert(
      fc.property(number, number, number, number, number, (baseMs, capMs, minMs, attempt, random) => {
        const ms = backoffMs({ baseMs, capMs, minMs }, attempt, random)
        expect(Number.isInteger(ms) && ms >= 0 && ms <= MAX_TIMER_MS).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })
})
