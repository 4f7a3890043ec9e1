import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  admit,
  forgiven,
  freshPace,
  type Health,
  isOut,
  type OriginPace,
  type PacePolicy,
  report,
} from '../../src/protocol/pacing.ts'

const POLICY: PacePolicy = { budget: 3, refillMs: 1000, outageAfter: 2, outageWaitMs: 24_000, spreadMs: 2000 }
const FIRST = { retry: false, waited: false }
const RETRY = { retry: true, waited: false }
const WAITED = { retry: true, waited: true }

const fresh = freshPace(POLICY, 0)
const ask = (pace: OriginPace, wish = RETRY, now = 0, random = 0.5) => admit(pace, POLICY, wish, now, random)
const told = (pace: OriginPace, health: Health, now = 0, pauseMs: number | null = null) =>
  report(pace, POLICY, health, pauseMs, now)
const outage = told(told(fresh, 'failed'), 'failed')

describe('budget (P31)', () => {
  it('P31: retries are limited per origin, first attempts are not', () => {
    let pace = fresh
    for (let retry = 0; retry < 3; retry++) {
      const admission = ask(pace)
      expect(admission.waitMs).toBe(0)
      pace = admission.pace
    }
    expect(ask(pace).waitMs).toBe(1000)
    expect(ask(pace, RETRY, 250).waitMs).toBe(750)
    expect(ask(pace, FIRST)).toMatchObject({ waitMs: 0, pace: { tokens: 0 } })
  })

  it('P31: time and success give retries back, never more than a burst', () => {
    const empty = { ...fresh, tokens: 0 }
    expect(ask(empty, RETRY, 1000)).toMatchObject({ waitMs: 0, pace: { tokens: 0, tokensAt: 1000 } })
    expect(ask(empty, FIRST, 1e9).pace.tokens).toBe(3)
    expect(told(empty, 'well').tokens).toBe(1)
    expect(told(fresh, 'well').tokens).toBe(3)
  })
})

describe('outage (P31, B68)', () => {
  const later = 1000

  it('P31: one probe goes first, the rest wait for it', () => {
    const probe = ask(outage, RETRY, later)
    expect(probe).toMatchObject({ waitMs: 0, pace: { probing: true } })
    expect(ask(probe.pace, RETRY, later, 0).waitMs).toBe(1)
    expect(ask(probe.pace, FIRST, later, 0.5).waitMs).toBe(1001)
  })

  it('P31: the longer it lasts, the less often what can wait probes, up to a limit; who just asked is told soon', () => {
    const soonest = (failures: number, wish = RETRY): number => ask({ ...outage, failures }, wish, 0, 0).waitMs
    const latest = (failures: number, wish = RETRY): number => ask({ ...outage, failures }, wish, 0, 1).waitMs
    expect([2, 3, 4, 5, 1e9].map((failures) => soonest(failures))).toEqual([1000, 2000, 4000, 8000, 8000])
    expect([2, 3, 4, 5, 1e9].map((failures) => latest(failures))).toEqual([3000, 6000, 12_000, 24_000, 24_000])
    expect(soonest(5, { retry: false, waited: true })).toBe(8000)
    expect([soonest(1e9, FIRST), latest(1e9, FIRST)]).toEqual([1000, 3000])
    expect(ask({ ...outage, failures: 4 }, RETRY, 3999, 0).waitMs).toBe(1)
    expect(ask({ ...outage, failures: 4 }, RETRY, 4000).waitMs).toBe(0)
  })

  it('P31: once something changed for the better, the next may probe at once', () => {
    expect(ask(forgiven({ ...outage, failures: 9 }), RETRY, 1)).toMatchObject({ waitMs: 0, pace: { probing: true } })
    expect([isOut(fresh, POLICY), isOut(told(fresh, 'failed'), POLICY), isOut(outage, POLICY)]).toEqual([
      false,
      false,
      true,
    ])
  })

  it('P31: a probe that fails makes room for the next; one that succeeds ends the outage, and the rest are spread', () => {
    const { pace } = ask(outage, RETRY, later)
    expect(ask(told(pace, 'failed', later), RETRY, 9000).waitMs).toBe(0)
    const over = told(pace, 'well', later)
    expect(over).toMatchObject({ failures: 0, probing: false, spreadUntil: 3000 })
    expect([0, 0.25, 0.999].map((random) => ask(over, RETRY, later, random).waitMs)).toEqual([1, 500, 1998])
    expect(ask(over, WAITED, 1600).waitMs).toBe(0)
    expect(ask(over, FIRST, later).waitMs).toBe(0)
    expect(ask(over, RETRY, 3000).waitMs).toBe(0)
  })

  it('P31: a single failure is no outage, and a success forgets it', () => {
    expect(ask(told(fresh, 'failed')).waitMs).toBe(0)
    const over = told(told(fresh, 'failed'), 'well')
    expect(over.failures).toBe(0)
    expect(ask(over, RETRY).waitMs).toBe(0)
  })
})

describe('pauses (P32, B68)', () => {
  it('P32, B68: one 429 slows all intents of that origin, first attempts too, and not all come back at once', () => {
    const paused = told(fresh, 'throttled', 100, 5000)
    expect(paused).toMatchObject({ pausedUntil: 5100, tokens: 0, tokensAt: 100 })
    for (const wish of [FIRST, RETRY, WAITED]) expect(ask(paused, wish, 100, 0).waitMs).toBe(5000)
    expect(ask(paused, RETRY, 1100, 0.5).waitMs).toBe(5000)
    expect(ask(paused, FIRST, 5100).waitMs).toBe(0)
  })

  it('B68: a 429 that names no time slows them all the same', () => {
    expect(told(fresh, 'throttled')).toMatchObject({ pausedUntil: 1000, tokens: 0, failures: 0 })
    expect(told(fresh, 'well').pausedUntil).toBeLessThanOrEqual(0)
  })

  it('P32: a shorter pause never ends a longer one', () => {
    const long = told(fresh, 'throttled', 0, 60_000)
    expect(told(long, 'throttled', 10, 10).pausedUntil).toBe(60_000)
    expect(told(long, 'well', 10).pausedUntil).toBe(60_000)
    expect(told(long, 'failed', 10, 70_000)).toMatchObject({ pausedUntil: 70_010, failures: 1 })
  })

  it('P31: who was throttled in an outage is alive', () => {
    expect(told(outage, 'throttled')).toMatchObject({ failures: 0, spreadUntil: 2000 })
  })
})

it('P33: whatever happened, somebody may try again after a finite time', () => {
  const anyHealth = fc.constantFrom<Health>('well', 'failed', 'throttled')
  fc.assert(
    fc.property(fc.array(fc.tuple(anyHealth, fc.nat(5000), fc.option(fc.nat(9999))), { maxLength: 30 }), (reports) => {
      let pace = fresh
      let now = 0
      for (const [health, ms, pauseMs] of reports) {
        now += ms
        pace = report(admit(pace, POLICY, RETRY, now, 0.5).pace, POLICY, health, pauseMs, now)
      }
      for (let tries = 0; tries < 10; tries++) {
        const { waitMs, pace: next } = admit(pace, POLICY, WAITED, now, 0.5)
        if (waitMs === 0) return
        expect(waitMs).toBeGreaterThan(0)
        pace = next
        now += waitMs
      }
      expect.fail('nobody was admitted')
    }),
  )
})
