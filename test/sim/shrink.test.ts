/** What shrinking leaves is what matters, and nothing else. */
import { describe, expect, test } from 'vitest'
import { generate } from './generate.ts'
import { run } from './run.ts'
import { plainSetting, type Schedule, type Step } from './schedule.ts'
import { type Run, shrink } from './shrink.ts'

/** A schedule of chance in which these three stand, far from each other. */
const needed: Step[] = [
  { do: 'open', tab: 2 },
  { do: 'network', fates: ['portal', 'answer-lost', 'refused', 'twice'] },
  { do: 'pass', ms: 47_311 },
]
const noise = [11, 12, 13, 14].map((seed) => generate(seed).steps.filter((step) => step.do !== 'network'))
const long: Schedule = {
  setting: { ...plainSetting, dialect: 'stripe', locks: false, skewMs: 123, attempts: 4 },
  steps: noise.flatMap((steps, at) => [...steps, ...needed.slice(at, at + 1)]),
}

/** Breaks I7 where a tab is opened, later an answer is lost, and then at least 40 s pass; only without locks. */
const needsThree: Run = async ({ setting, steps }) => {
  const opened = steps.findIndex((step) => step.do === 'open')
  const lost = steps.findIndex((step, at) => at > opened && step.do === 'network' && step.fates.includes('answer-lost'))
  const passed = steps.findIndex((step, at) => at > lost && step.do === 'pass' && step.ms >= 40_000)
  return opened >= 0 && lost > 0 && passed > 0 && !setting.locks ? { invariant: 'I7' } : null
}

describe('shrinking', () => {
  test('the three steps that a failure needs are left, each in its plainest form, and the one setting', async () => {
    const { schedule, isSmallest } = await shrink(long, 'I7', needsThree)
    expect(schedule).toEqual({
      setting: { ...plainSetting, locks: false },
      steps: [
        { do: 'open', tab: 0 },
        { do: 'network', fates: ['answer-lost'] },
        { do: 'pass', ms: 60_000 },
      ],
    })
    expect(isSmallest).toBe(true)
  })

  test('the same schedule gives the same short one, in as many runs', async () => {
    expect(await shrink(long, 'I7', needsThree)).toEqual(await shrink(long, 'I7', needsThree))
  })

  test('another invariant than the one that was broken does not count', async () => {
    const other: Run = async ({ steps }) => ({ invariant: steps.length === long.steps.length ? 'I7' : 'I1' })
    const { schedule } = await shrink(long, 'I7', other)
    expect(schedule.steps).toHaveLength(long.steps.length)
  })

  test('no more runs than allowed; what was reached by then is the result, and says so', async () => {
    let runs = 0
    const { schedule, isSmallest } = await shrink(
      long,
      'I7',
      (candidate) => {
        runs++
        return needsThree(candidate)
      },
      10,
    )
    expect(runs).toBe(10)
    expect(isSmallest).toBe(false)
    expect(schedule.steps.length).toBeLessThan(long.steps.length)
    expect(await needsThree(schedule)).toEqual({ invariant: 'I7' })
  })

  test('steps that undo each other go together', async () => {
    const steps: Step[] = [{ do: 'partition' }, { do: 'open', tab: 0 }, { do: 'heal' }]
    const balanced: Run = async ({ steps: given }) => {
      const count = (kind: Step['do']): number => given.filter((step) => step.do === kind).length
      return count('open') === 1 && count('partition') === count('heal') ? { invariant: 'I15' } : null
    }
    const { schedule } = await shrink({ setting: plainSetting, steps }, 'I15', balanced)
    expect(schedule.steps).toEqual([{ do: 'open', tab: 0 }])
  })

  test('a double click, another try, a send-by time and a content go where they do not matter', async () => {
    const submit: Step = { do: 'submit', tab: 3, intent: 'till-3', content: 'broken', twice: true, sendBeforeMs: 777 }
    const needsSubmit: Run = async ({ steps }) =>
      steps.some((step) => step.do === 'submit' && step.sendBeforeMs !== undefined) ? { invariant: 'I18' } : null
    const { schedule } = await shrink(
      { setting: plainSetting, steps: [{ ...submit, again: true }] },
      'I18',
      needsSubmit,
    )
    expect(schedule.steps).toEqual([{ do: 'submit', tab: 0, intent: 'till-1', content: 'tea', sendBeforeMs: 0 }])
  })

  test('in the real world: a fault that needs a lost answer, and a tab killed after it, is told in a handful of steps', async () => {
    const steps: Step[] = [
      { do: 'open', tab: 1 },
      { do: 'hint', online: false },
      { do: 'network', fates: ['answer-lost', 'gateway-429'] },
      { do: 'submit', tab: 1, intent: 'order-2', content: 'coffee', twice: true },
      { do: 'pass', ms: 61 },
      { do: 'throttle', tab: 1 },
      { do: 'kill', tab: 1 },
      { do: 'jump', ms: 5 },
      { do: 'open', tab: 2 },
      { do: 'pass', ms: 400_000 },
      { do: 'cancel', tab: 2, intent: 'order-9' },
    ]
    const killedAfterLoss: Run = async (schedule) => {
      const { trace } = await run(schedule, true)
      const events = trace.slice(
        0,
        trace.findIndex((line) => line.endsWith('— calm')),
      )
      const lost = events.findIndex((line) => /^\S+ network: answer-lost$/.test(line))
      const isKilled = lost >= 0 && events.slice(lost).some((line) => line.endsWith('is dead'))
      return isKilled ? { invariant: 'I2' } : null
    }
    const { schedule } = await shrink({ setting: { ...plainSetting, channel: false }, steps }, 'I2', killedAfterLoss)
    expect(schedule.setting).toEqual(plainSetting)
    expect(schedule.steps.map((step) => step.do)).toEqual(['open', 'network', 'submit', 'pass', 'kill'])
  })
})
