import { startReaper } from 'samekey/server'
import { virtualClock } from 'samekey/testing'
import { expect, it } from 'vitest'

it('P57: works in batches until nothing is left, then looks again at its pace', async () => {
  const clock = virtualClock()
  let rows = 25
  const batches: number[] = []
  const reaper = startReaper(
    (limit) => {
      const taken = Math.min(rows, limit)
      rows -= taken
      batches.push(taken)
      return Promise.resolve(taken)
    },
    { batch: 10, everyMs: 60_000, clock, random: () => 0.5 },
  )
  await clock.advance(0)
  expect(batches).toEqual([10, 10, 5])
  rows = 3
  await clock.advance(59_999)
  expect(rows).toBe(3)
  await clock.advance(1)
  expect(batches.at(-1)).toBe(3)
  await reaper.stop()
  await clock.advance(600_000)
  expect(batches).toHaveLength(4)
})

it('a database that is away is asked less and less, and a report that throws changes nothing', async () => {
  const clock = virtualClock()
  let tries = 0
  const reaper = startReaper(
    {
      reap() {
        tries += 1
        return Promise.reject(new Error('away'))
      },
    },
    {
      clock,
      random: () => 1,
      onError() {
        throw new Error('and so is the log')
      },
    },
  )
  await clock.advance(600_000)
  expect(tries).toBeGreaterThan(8)
  expect(tries).toBeLessThan(20)
  await reaper.stop()
})

it('options that cannot be meant are refused at the start', () => {
  for (const options of [{ everyMs: 0 }, { everyMs: Number.NaN }, { batch: 0 }, { batch: 1.5 }]) {
    expect(() => startReaper(() => Promise.resolve(0), options)).toThrow(/must be/)
  }
})
