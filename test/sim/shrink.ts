/** Makes a schedule that breaks an invariant as short and as plain as can be, so that a person can read what happened. */
import type { Violation } from './invariants.ts'
import type { Schedule } from './schedule.ts'
import { halves, mergedPasses, pairs, plainer, renamed, simpler } from './simpler.ts'

export interface Shrunk {
  /** It breaks the same invariant. */
  readonly schedule: Schedule
  /** Schedules that were run for it. */
  readonly runs: number
  /** True where nothing more can go; false where the number of runs was used up before that was known. */
  readonly isSmallest: boolean
}

/** What a schedule breaks, or null. */
export type Run = (schedule: Schedule) => Promise<Pick<Violation, 'invariant'> | null>

/** Delta debugging: what still breaks the same invariant is kept, until no candidate does. */
export async function shrink(
  schedule: Schedule,
  invariant: Violation['invariant'],
  run: Run,
  mostRuns = 2000,
): Promise<Shrunk> {
  const seen = new Set<string>([JSON.stringify(schedule)])
  let current = schedule
  let runs = 0

  /** Keeps the candidate if it will do. What was tried once is not tried again. */
  async function keeps(candidate: Schedule): Promise<boolean> {
    const text = JSON.stringify(candidate)
    if (runs >= mostRuns || seen.has(text)) return false
    seen.add(text)
    runs++
    if ((await run(candidate))?.invariant !== invariant) return false
    current = candidate
    return true
  }

  /** From the back: what comes later needs what came before, not the other way round. */
  async function withoutChunks(size: number): Promise<void> {
    for (let end = current.steps.length; end > 0; end = Math.min(end - size, current.steps.length)) {
      const { setting, steps } = current
      await keeps({ setting, steps: steps.filter((_, at) => at < end - size || at >= end) })
    }
  }

  /** As long as one of the candidates will do; they are made anew from what was kept. */
  async function whileAny(candidates: (from: Schedule) => Iterable<Schedule>): Promise<void> {
    for (let kept = true; kept; ) {
      kept = false
      for (const candidate of candidates(current)) {
        kept = await keeps(candidate)
        if (kept) break
      }
    }
  }

  for (let before: Schedule | null = null; before !== current && runs < mostRuns; ) {
    before = current
    for (const size of halves(current.steps.length)) await withoutChunks(size)
    await whileAny(pairs)
    await whileAny(mergedPasses)
    await whileAny(plainer)
    await whileAny(renamed)
    await whileAny(simpler)
  }
  return { schedule: current, runs, isSmallest: runs < mostRuns }
}
