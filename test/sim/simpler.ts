/** Schedules that are a little shorter or plainer than a given one: what shrinking tries. */
import { plainSetting, type Schedule, type Setting, type Step } from './schedule.ts'

/** Sizes of chunks to leave out: half of all, a quarter, and so on down to 1. */
export function halves(length: number): number[] {
  const sizes: number[] = []
  for (let size = Math.ceil(length / 2); size > 1; size = Math.ceil(size / 2)) sizes.push(size)
  return length === 0 ? [] : [...sizes, 1]
}

/** Beyond so many steps, pairs would be too many. */
const mostForPairs = 16

/** Without two steps that undo each other, so that neither can go alone: a network that is gone and is back. */
export function* pairs({ setting, steps }: Schedule): Iterable<Schedule> {
  if (steps.length > mostForPairs) return
  for (let first = 0; first < steps.length; first++)
    for (let second = first + 1; second < steps.length; second++)
      yield { setting, steps: steps.filter((_, at) => at !== first && at !== second) }
}

/** With one pass in the place of two that follow each other. */
export function* mergedPasses({ setting, steps }: Schedule): Iterable<Schedule> {
  for (const [at, step] of steps.entries()) {
    const next = steps[at + 1]
    if (step.do === 'pass' && next?.do === 'pass')
      yield { setting, steps: steps.toSpliced(at, 2, { do: 'pass', ms: step.ms + next.ms }) }
  }
}

/** With more of the usual setting: all of it, then member by member. */
export function* plainer({ setting, steps }: Schedule): Iterable<Schedule> {
  yield { setting: plainSetting, steps }
  for (const name of Object.keys(plainSetting) as (keyof Setting)[])
    if (setting[name] !== plainSetting[name]) yield { setting: { ...setting, [name]: plainSetting[name] }, steps }
}

/** With fewer tabs and fewer intents, or with lower numbers of them, throughout. */
export function* renamed({ setting, steps }: Schedule): Iterable<Schedule> {
  const tabs = new Set(steps.flatMap((step) => ('tab' in step ? [step.tab] : [])))
  for (const tab of tabs)
    for (let lower = 0; lower < tab; lower++)
      yield {
        setting,
        steps: steps.map((step) => ('tab' in step && step.tab === tab ? { ...step, tab: lower } : step)),
      }
  const intents = new Set(steps.flatMap((step) => ('intent' in step ? [step.intent] : [])))
  for (const intent of intents)
    for (const other of lowerNames(intent))
      yield {
        setting,
        steps: steps.map((step) => ('intent' in step && step.intent === intent ? { ...step, intent: other } : step)),
      }
}

/** `till-3` could as well be `till-1` or `till-2`. */
function lowerNames(intent: string): string[] {
  const [kind = '', number = ''] = intent.split('-')
  return Array.from({ length: Math.max(0, Number(number) - 1) }, (_, at) => `${kind}-${at + 1}`)
}

/** With one step in a plainer form. */
export function* simpler({ setting, steps }: Schedule): Iterable<Schedule> {
  for (const [at, step] of steps.entries())
    for (const form of simplerForms(step)) yield { setting, steps: steps.with(at, form) }
}

function* simplerForms(step: Step): Iterable<Step> {
  if ('tab' in step) for (let tab = 0; tab < step.tab; tab++) yield { ...step, tab }
  switch (step.do) {
    case 'pass':
    case 'sleep':
    case 'jump':
      for (const ms of rounder(step.ms)) yield { ...step, ms }
      return
    case 'network':
      if (step.fates.length > 1)
        for (const at of step.fates.keys()) yield { ...step, fates: step.fates.toSpliced(at, 1) }
      return
    case 'kill-at':
    case 'freeze-at':
      for (let operation = 1; operation < step.operation; operation++) yield { ...step, operation }
      return
    case 'store':
      for (let operation = 0; operation < step.operation; operation++) yield { ...step, operation }
      return
    case 'submit': {
      const { twice, again, sendBeforeMs, ...rest } = step
      const [double, once, before] = [
        twice && { twice },
        again && { again },
        sendBeforeMs !== undefined && { sendBeforeMs },
      ]
      if (double) yield { ...rest, ...once, ...before }
      if (once) yield { ...rest, ...double, ...before }
      if (before) yield { ...rest, ...double, ...once }
      if (step.content !== 'tea') yield { ...step, content: 'tea' }
      if (before) for (const ms of rounder(before.sendBeforeMs)) yield { ...step, sendBeforeMs: ms }
      return
    }
  }
}

const [second, minute, hour] = [1000, 60_000, 3_600_000]
/** Times that a reader need not think about. */
const roundTimes = [
  ...[0, 1, 10, 100, second, 2 * second, 5 * second, 10 * second, 20 * second, 30 * second],
  ...[minute, 2 * minute, 5 * minute, 10 * minute, 20 * minute, 30 * minute, hour, 24 * hour, 240 * hour],
]

/**
 * Shorter round times, shortest first; then the nearest longer one, and whole minutes and seconds near by. Each is
 * rounder than the one before it, or as round and shorter: this comes to an end.
 */
function rounder(ms: number): number[] {
  const sign = Math.sign(ms)
  const long = Math.abs(ms)
  const shorter = roundTimes.filter((time) => time < long)
  if (roundTimes.includes(long)) return shorter.map((time) => sign * time)
  const near = [minute, second].filter((unit) => long % minute !== 0 && long % unit !== 0)
  const longer = roundTimes.filter((time) => time > long).slice(0, 1)
  const whole = near.flatMap((unit) => [Math.floor(long / unit) * unit, Math.ceil(long / unit) * unit])
  return [...shorter, ...longer, ...whole].map((time) => sign * time)
}
