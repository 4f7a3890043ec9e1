/** What is pasted into a test is the schedule itself. */
import { transform } from 'esbuild'
import { expect, test } from 'vitest'
import { seedOf } from '../support/chance.ts'
import { generate } from './generate.ts'
import { literalOf } from './literal.ts'
import { plainSetting, type Schedule } from './schedule.ts'

test('the literal of a schedule is TypeScript that gives the same schedule', async () => {
  const schedules = Array.from({ length: 50 }, (_, index) => generate(seedOf(5, index)))
  for (const schedule of schedules) {
    const { code } = await transform(literalOf(schedule), { loader: 'ts' })
    const read = new Function('plainSetting', `${code}; return schedule`) as (plain: object) => Schedule
    expect(read(plainSetting)).toEqual(schedule)
  }
})

test('the literal is written as the rest of the tests', () => {
  const schedule: Schedule = {
    setting: { ...plainSetting, dialect: 'ietf', skewMs: -3_600_000 },
    steps: [
      { do: 'pass', ms: 1_500 },
      { do: 'network', fates: ['portal', 'refused'] },
    ],
  }
  expect(literalOf(schedule)).toBe(`const schedule: Schedule = {
  setting: { ...plainSetting, dialect: 'ietf', skewMs: -3_600_000 },
  steps: [
    { do: 'pass', ms: 1_500 },
    { do: 'network', fates: ['portal', 'refused'] },
  ],
}`)
})
