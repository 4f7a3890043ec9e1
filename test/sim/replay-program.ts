/** A process that runs single schedules again, with all that happens in them, and says one line of JSON for each. */
import { generate } from './generate.ts'
import type { Violation } from './invariants.ts'
import type { Schedule } from './schedule.ts'
import { shrink } from './shrink.ts'
import { runStrictly } from './strict.ts'

/** What it is asked for, as JSON in its first argument. */
export interface ReplayOrder {
  /** Seeds of schedules. */
  readonly seeds: readonly number[]
  /** Makes those short that break an invariant. */
  readonly shrinks: boolean
}

/** One schedule, run again. */
export interface Replay {
  readonly seed: number
  readonly schedule: Schedule
  readonly trace: readonly string[]
  /** Null where everything held. */
  readonly violation: Violation | null
  /** The short one and what happens in it; null where nothing was broken, or nobody asked. */
  readonly shrunk: {
    readonly schedule: Schedule
    readonly trace: readonly string[]
    readonly violation: Violation | null
    readonly runs: number
    readonly isSmallest: boolean
  } | null
}

async function replay(seed: number, shrinks: boolean): Promise<Replay> {
  const schedule = generate(seed)
  const { trace, violation } = await runStrictly(schedule, true)
  return { seed, schedule, trace, violation, shrunk: violation && shrinks ? await short(schedule, violation) : null }
}

async function short(schedule: Schedule, { invariant }: Violation): Promise<Replay['shrunk']> {
  const shrunk = await shrink(schedule, invariant, async (candidate) => (await runStrictly(candidate)).violation)
  const { trace, violation } = await runStrictly(shrunk.schedule, true)
  return { ...shrunk, trace, violation }
}

const { seeds, shrinks } = JSON.parse(process.argv[2] ?? '') as ReplayOrder
for (const seed of seeds) process.stdout.write(`${JSON.stringify(await replay(seed, shrinks))}\n`)
