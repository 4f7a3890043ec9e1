/** A campaign, and afterwards a closer look at what it found: the first few of each kind, made short. */
import { join } from 'node:path'
import { bundle, type Edit } from './bundle.ts'
import { type CampaignOrder, type CampaignResult, campaign, type Found, type Progress } from './campaign.ts'
import { runProgram } from './child.ts'
import type { Replay } from './replay-program.ts'

/** Both programs of the simulator, each in one file. */
export interface Programs {
  readonly program: string
  readonly replay: string
}

/** Bundles them into a folder. */
export async function programsIn(folder: string, edits: readonly Edit[] = []): Promise<Programs> {
  const programs = { program: join(folder, 'program.mjs'), replay: join(folder, 'replay.mjs') }
  await Promise.all([bundle(programs.program, edits), bundle(programs.replay, edits, 'replay-program.ts')])
  return programs
}

export interface Simulation extends CampaignResult {
  /** The first ones of each invariant, by the seed of the schedule. */
  readonly replays: ReadonlyMap<number, Replay>
}

export type Sight = Progress & {
  /** Schedules that are left to be made short; null until all have been run. */
  readonly toShrink: number | null
}

export type SimulationOrder = Omit<CampaignOrder, 'program' | 'onProgress'> & {
  readonly programs: Programs
  readonly onSight?: (sight: Sight) => void
}

/** So many violations of each invariant are shown. */
export const shownPerInvariant = 3

export async function simulate({ programs, onSight = () => {}, ...order }: SimulationOrder): Promise<Simulation> {
  const onProgress = (progress: Progress): void => onSight({ ...progress, toShrink: null })
  const result = await campaign({ ...order, program: programs.program, onProgress })
  const { schedules: done, found, jobs } = result
  const queue = shownOf(found).map(({ seed }) => seed)
  const replays = new Map<number, Replay>()
  let toShrink = queue.length

  async function shrinkThem(): Promise<void> {
    for (let seed = queue.shift(); seed !== undefined; seed = queue.shift()) {
      onSight({ done, violations: found.length, toShrink })
      replays.set(seed, await replay(programs.replay, seed, true, order.signal))
      toShrink--
    }
  }

  await Promise.all(Array.from({ length: jobs }, shrinkThem))
  return { ...result, replays }
}

/** One schedule again. */
export async function replay(file: string, seed: number, shrinks: boolean, signal?: AbortSignal): Promise<Replay> {
  const replays: Replay[] = []
  await runProgram(file, { seeds: [seed], shrinks }, (line) => void replays.push(line as Replay), signal)
  const [only] = replays
  if (only === undefined) throw new Error(`The replay of ${seed} said nothing.`)
  return only
}

/** The first ones of each invariant. */
function shownOf(found: readonly Found[]): Found[] {
  const counts = new Map<string, number>()
  return found.filter(({ invariant }) => {
    const before = counts.get(invariant) ?? 0
    counts.set(invariant, before + 1)
    return before < shownPerInvariant
  })
}
