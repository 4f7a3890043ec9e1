/**
 * Lets the simulator look for planted faults: one bundle for each, run until the first violation. What chance does not
 * meet within its schedules, the scripted holes have to.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { bundle } from '../bundle.ts'
import { campaign } from '../campaign.ts'
import { runProgram } from '../child.ts'
import { holes } from '../holes/all.ts'
import { linesOf } from '../holes/hole.ts'
import type { HoleLine } from '../holes/program.ts'
import type { Mutant } from './mutant.ts'

/** What became of a planted fault. */
export interface Hunted {
  readonly name: string
  /** The promise that it breaks. */
  readonly rule: string
  /** The invariant that caught it, or the scripted hole that ended otherwise than it says; null for a survivor. */
  readonly killedBy: string | null
  /** How many schedules that took, or how many it survived. */
  readonly schedules: number
  /** The random schedule that caught it; null where a scripted one did. */
  readonly seed: number | null
}

export interface HuntOrder {
  readonly mutants: readonly Mutant[]
  /** Where the bundles go. */
  readonly folder: string
  readonly seed: number
  /** So many schedules have to be enough, the scripted ones among them. */
  readonly most: number
  readonly onHunted?: (hunted: Hunted) => void
  readonly signal?: AbortSignal
}

/** In the order of the mutants. */
export async function hunt({ mutants, folder, seed, most, onHunted, signal }: HuntOrder): Promise<readonly Hunted[]> {
  const hunted: Hunted[] = []
  let next = 0

  async function work(): Promise<void> {
    for (let at = next++; at < mutants.length; at = next++) {
      const mutant = mutants[at]
      if (mutant === undefined || signal?.aborted === true) return
      const program = join(folder, `mutant-${at}.mjs`)
      await bundle(program, mutant.edits)
      const order = { program, schedules: most - holes.length, seed, jobs: 1, most: 1 }
      const { found, schedules } = await campaign(signal === undefined ? order : { ...order, signal })
      const [first] = found
      const { name, rule } = mutant
      const one: Hunted =
        first === undefined
          ? { name, rule, seed: null, ...(await byScript(mutant, join(folder, `scripts-${at}.mjs`), schedules)) }
          : { name, rule, seed: first.seed, killedBy: first.invariant, schedules: first.index + 1 }
      hunted[at] = one
      onHunted?.(one)
    }
  }

  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, work))
  return hunted
}

async function byScript(
  { edits }: Mutant,
  program: string,
  before: number,
): Promise<Pick<Hunted, 'killedBy' | 'schedules'>> {
  await bundle(program, edits, 'holes/program.ts')
  const lines: HoleLine[] = []
  // A process that a fault brings down says so with its last line.
  await runProgram(program, { holes: holes.map(({ hole }) => hole) }, (line) => lines.push(line as HoleLine)).catch(
    () => {},
  )
  const caught = lines.findIndex(({ hole, violation, ends }) => {
    const told = holes.find((one) => one.hole === hole)?.ends ?? []
    return violation !== null || JSON.stringify(ends) !== JSON.stringify(linesOf(told, told))
  })
  const line = lines[caught]
  if (line === undefined) return { killedBy: null, schedules: before + lines.length }
  return { killedBy: line.violation?.invariant ?? `script ${line.hole}`, schedules: before + caught + 1 }
}
