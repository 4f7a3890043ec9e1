/** A hole played in the simulator: what was violated, and whether it ended as it says. */
import type { Violation } from '../invariants.ts'
import { run } from '../run.ts'
import { type Hole, linesOf, scheduleOf } from './hole.ts'

/** What came of it. */
export interface Played {
  readonly violation: Violation | null
  /** How the intents ended, one line each. */
  readonly ends: readonly string[]
  readonly trace: readonly string[]
}

/** @param traced keeps a trace. */
export async function play(hole: Pick<Hole, 'setting' | 'steps' | 'ends'>, traced = false): Promise<Played> {
  const { violation, rest, trace } = await run(scheduleOf(hole), traced)
  return { violation, ends: linesOf(rest, hole.ends), trace }
}
