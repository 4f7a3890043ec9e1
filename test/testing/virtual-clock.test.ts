import { readFile } from 'node:fs/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { settled, virtualClock } from '../../src/testing/index.ts'

describe('virtual clock', () => {
  afterEach(() => void vi.useRealTimers())

  it('stands still until it is moved', async () => {
    const clock = virtualClock(1000)
    const run = vi.fn()
    clock.timer(0, run)
    await settled()
    expect([clock.now(), clock.monotonic(), clock.pending()]).toEqual([1000, 0, 1])
    expect(run).not.toHaveBeenCalled()
    await clock.advance(0)
    expect(run).toHaveBeenCalledOnce()
  })

  it('runs timers at their time, in order, equal ones in the order in which they were set', async () => {
    const clock = virtualClock(0)
    const log: string[] = []
    const note = (name: string) => () => log.push(`${name} at ${clock.now()}`)
    clock.timer(20, note('c'))
    clock.timer(10, note('a'))
    clock.timer(10, note('b'))
    clock.timer(30, note('later'))
    await clock.advance(29)
    expect(log).toEqual(['a at 10', 'b at 10', 'c at 20'])
    expect([clock.now(), clock.monotonic(), clock.pending()]).toEqual([29, 29, 1])
  })

  it('lets all that follows from a timer settle before time goes on, timers that it sets included', async () => {
    const clock = virtualClock(0)
    const log: string[] = []
    clock.timer(10, () => {
      void (async () => {
        for (let step = 0; step < 50; step += 1) await new Promise(setImmediate)
        await crypto.subtle.digest('SHA-256', new Uint8Array(100_000))
        await readFile(import.meta.filename)
        await null
        clock.timer(5, () => log.push(`second at ${clock.now()}`))
      })()
    })
    clock.timer(20, () => log.push(`third at ${clock.now()}`))
    await clock.advance(100)
    expect(log).toEqual(['second at 15', 'third at 20'])
  })

  it('runs a timer that sets itself again as often as it fits', async () => {
    const clock = virtualClock(0)
    let runs = 0
    const again = () => {
      runs += 1
      clock.timer(10, again)
    }
    again()
    await clock.advance(100)
    expect(runs).toBe(11)
  })

  it('forgets a cancelled timer; cancelling it later is harmless', async () => {
    const clock = virtualClock()
    const run = vi.fn()
    const timer = clock.timer(10, run)
    const other = clock.timer(5, () => timer.cancel())
    await clock.advance(10)
    expect(run).not.toHaveBeenCalled()
    timer.cancel()
    other.cancel()
    expect(clock.pending()).toBe(0)
  })

  it('P35: jump moves wall time alone, either way', async () => {
    const clock = virtualClock(1_000_000)
    const run = vi.fn()
    clock.timer(100, run)
    clock.jump(-500_000)
    expect([clock.now(), clock.monotonic()]).toEqual([500_000, 0])
    clock.jump(10_000)
    await clock.advance(99)
    expect([clock.now(), clock.monotonic()]).toEqual([510_099, 99])
    expect(run).not.toHaveBeenCalled()
    await clock.advance(1)
    expect(run).toHaveBeenCalledOnce()
  })

  it('takes a longer wait than a platform timer can be for the longest one', async () => {
    const clock = virtualClock()
    const run = vi.fn()
    clock.timer(Number.POSITIVE_INFINITY, run)
    await clock.advance(2 ** 31 - 2)
    expect(run).not.toHaveBeenCalled()
    await clock.advance(1)
    expect(run).toHaveBeenCalledOnce()
  })

  it('does not go back, and does not swallow what a timer throws', async () => {
    const clock = virtualClock(0)
    await expect(clock.advance(-1)).rejects.toThrow(RangeError)
    await expect(clock.advance(Number.NaN)).rejects.toThrow(RangeError)
    clock.timer(10, () => {
      throw new Error('from the timer')
    })
    await expect(clock.advance(50)).rejects.toThrow('from the timer')
    expect(clock.now()).toBe(10)
  })

  it('settles in its own way when it is given one', async () => {
    const settle = vi.fn(async () => {})
    const clock = virtualClock({ startAt: 5, settle })
    clock.timer(1, () => {})
    await clock.advance(2)
    expect(clock.now()).toBe(7)
    expect(settle).toHaveBeenCalledTimes(2)
  })

  it('works while a framework holds all timers', async () => {
    vi.useFakeTimers()
    const clock = virtualClock()
    const run = vi.fn()
    clock.timer(10, run)
    await clock.advance(10)
    expect(run).toHaveBeenCalledOnce()
  })

  it('settles where there is no setImmediate and no process, as in a browser', async () => {
    vi.stubGlobal('setImmediate', undefined)
    vi.stubGlobal('process', undefined)
    vi.resetModules()
    const browser = await import('../../src/testing/virtual-clock.ts')
    vi.unstubAllGlobals()
    const clock = browser.virtualClock()
    const run = vi.fn()
    clock.timer(10, () => void Promise.resolve().then(() => clock.timer(5, run)))
    await clock.advance(15)
    expect(run).toHaveBeenCalledOnce()
  })
})
