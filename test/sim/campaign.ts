/** Many schedules of one seed, in several processes. Which schedules these are does not hang on how many processes. */
import { runProgram } from './child.ts'
import type { Violation } from './invariants.ts'
import type { Line, Order } from './program.ts'

export interface CampaignOrder {
  /** File of the bundled program. */
  readonly program: string
  readonly schedules: number
  readonly seed: number
  readonly jobs: number
  /** A process that has found so many violations ends. */
  readonly most?: number
  /** Ends it. */
  readonly signal?: AbortSignal
  /** Is told whenever there is something new. */
  readonly onProgress?: (progress: Progress) => void
}

export interface Progress {
  /** Schedules that have been run. */
  readonly done: number
  readonly violations: number
}

/** A schedule that broke something. */
export interface Found extends Violation {
  /** Of this schedule. */
  readonly seed: number
  /** Its place in the campaign. */
  readonly index: number
}

export interface CampaignResult {
  /** How many were run: all that were asked for, unless too many of them broke something. */
  readonly schedules: number
  readonly seed: number
  readonly jobs: number
  readonly wallMs: number
  /** Schedules per second of one process. */
  readonly perSecond: number
  /** How intents ended, by state. */
  readonly ends: Readonly<Record<string, number>>
  /** In the order of the campaign. */
  readonly found: readonly Found[]
}

/** More would teach nothing. */
const mostViolations = 1000

export async function campaign(order: CampaignOrder): Promise<CampaignResult> {
  const { schedules, seed, jobs, onProgress = () => {} } = order
  const beganAt = performance.now()
  const shares: Share[] = Array.from({ length: jobs }, (_, from) => ({ done: 0, busyMs: 0, ends: {}, found: [], from }))
  const total = (of: (share: Share) => number): number => shares.reduce((sum, share) => sum + of(share), 0)
  const tell = (): void =>
    onProgress({ done: total(({ done }) => done), violations: total(({ found }) => found.length) })
  await Promise.all(shares.map((share) => work(order, share, tell)))
  const done = total((share) => share.done)
  return {
    schedules: done,
    seed,
    jobs: Math.min(jobs, schedules),
    wallMs: performance.now() - beganAt,
    perSecond: done / (total(({ busyMs }) => busyMs) / 1000),
    ends: summed(shares.map(({ ends }) => ends)),
    found: shares.flatMap(({ found }) => found).sort((one, other) => one.index - other.index),
  }
}

/** What one process after another does: every so manieth schedule. */
interface Share {
  /** Index of its first schedule. */
  readonly from: number
  done: number
  busyMs: number
  ends: Readonly<Record<string, number>>
  readonly found: Found[]
}

async function work(order: CampaignOrder, share: Share, tell: () => void): Promise<void> {
  const { program, schedules, seed, jobs, most = mostViolations, signal } = order
  const { found, from } = share
  const count = Math.ceil((schedules - from) / jobs)
  // A process ends before its time when something broke that it cannot go on after. Another one does the rest.
  while (share.done < count && found.length < most) {
    const before = share.done
    const first = from + before * jobs
    const job: Order = { seed, from: first, count: count - before, every: jobs, most: most - found.length }
    const startedAt = performance.now()
    let busyMs: number | null = null
    await runProgram(
      program,
      job,
      (said) => {
        const line = said as Line
        share.done = before + line.done
        if (line.type === 'violation')
          found.push({ ...line.violation, seed: line.seed, index: first + (line.done - 1) * jobs })
        if (line.type === 'end') {
          busyMs = line.ms
          share.ends = summed([share.ends, line.ends])
        }
        tell()
      },
      signal,
    )
    share.busyMs += busyMs ?? performance.now() - startedAt
    if (share.done === before) throw new Error('A process of the simulator ended without having run anything.')
  }
}

function summed(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const [name, number] of counts.flatMap((count) => Object.entries(count))) sum[name] = (sum[name] ?? 0) + number
  return sum
}
