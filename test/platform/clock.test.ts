import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'

describe("the platform's clock", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1000 }))
  afterEach(() => void vi.useRealTimers())

  it.each([40 * 86_400_000, Number.POSITIVE_INFINITY])(
    'B62: a timer of %d ms does not overflow into a hot loop',
    (ms) => {
      const run = vi.fn()
      systemClock.timer(ms, run)
      vi.advanceTimersByTime(20 * 86_400_000)
      expect(run).not.toHaveBeenCalled()
    },
  )

  it('runs once, not before its time, and not after it was cancelled', () => {
    const run = vi.fn()
    systemClock.timer(500, run)
    systemClock.timer(500, run).cancel()
    vi.advanceTimersByTime(499)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1000)
    expect(run).toHaveBeenCalledOnce()
    expect(systemClock.now()).toBe(2499)
  })

  it('a timer that nobody waits for does not keep a Node process alive', () => {
    vi.useRealTimers()
    const spy = vi.spyOn(globalThis, 'setTimeout')
    const timers = [systemClock.timer(60_000, () => {}), systemClock.timer(60_000, () => {}, true)]
    expect(spy.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())).toEqual([false, true])
    for (const timer of timers) timer.cancel()
  })
})
