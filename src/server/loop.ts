/**
 * Takes jobs from somewhere and runs them, so many at a time: wakes on hints, polls because hints get lost, backs off
 * while the store is broken, and stops gracefully. Knows neither what a job is nor where it comes from.
 */
import type { Clock, Timer } from '../ports.ts'
import { type BackoffPolicy, backoffMs } from '../protocol/backoff.ts'

/** What a look found. */
export interface Taken<Job> {
  readonly jobs: readonly Job[]
  /** There may be more right now. Only true where this look got something done, or the loop would spin. */
  readonly more: boolean
  /** When the next one is known to be due, ms from now; null where only the poll can tell. */
  readonly nextInMs: number | null
}

/** What a loop is made of. */
export interface LoopOptions<Job> {
  /** Most jobs at a time, at least 1. */
  readonly concurrency: number
  /** How often it looks without being told, ms, give or take a quarter: many processes must not look in step. */
  readonly pollMs: number
  /** Pace while the store is broken. `minMs` above 0 keeps the loop from being hot. */
  readonly backoff: BackoffPolicy
  readonly clock: Pick<Clock, 'timer'>
  /** From 0 to 1. */
  readonly random: () => number
  /** Takes at most `free` jobs. Rejects when the store is broken. */
  take(free: number): Promise<Taken<Job>>
  /**
   * Runs one. Must not reject.
   *
   * @param signal aborted when the grace of a stop is over.
   * @returns `trouble` when the store was the reason that it did not go well: then the loop backs off too.
   */
  run(job: Job, signal: AbortSignal): Promise<'well' | 'trouble'>
  /** The loop was stopped while this one was being taken: nobody has begun it. Must not reject. */
  giveBack(job: Job): Promise<unknown>
  /** A look failed; the next one comes in `waitMs`. Must not throw. */
  failed(error: unknown, waitMs: number): void
}

/** A loop that runs. */
export interface Loop {
  /** Look now. Harmless at any time; while the store is broken it is no reason to hurry. */
  wake(): void
  /** How many jobs are in hand at this moment. */
  running(): number
  /**
   * Takes nothing more, waits for what runs, aborts it after `graceMs`, and then waits a little longer: a job that
   * cannot be stopped must not keep the process from ending. The second call waits for the first.
   *
   * @returns how many jobs would not let go.
   */
  stop(options: { readonly graceMs: number }): Promise<number>
}

/** How long a stop waits for jobs that were aborted, ms. */
const STILL_MS = 15_000

/** Starts looking at once. Keeps the process alive until it is stopped. */
export function startLoop<Job>(options: LoopOptions<Job>): Loop {
  const { concurrency, pollMs, backoff, clock, random } = options
  const over = new AbortController()
  const onQuiet = new Set<() => void>()
  let running = 0
  let looking = false
  /** Woken during a look, which may have missed what it was woken for. */
  let wanted = false
  /** Backing off: wakes are ignored. */
  let resting = false
  let failures = 0
  let timer: Timer | null = null
  let stopped: Promise<number> | null = null

  function wake(): void {
    if (stopped !== null || resting) return
    if (looking) wanted = true
    else if (running < concurrency) void look()
  }

  async function look(): Promise<void> {
    timer?.cancel()
    looking = true
    wanted = false
    let taken: Taken<Job>
    try {
      taken = await options.take(concurrency - running)
    } catch (error) {
      looking = false
      options.failed(error, rest())
      return
    }
    looking = false
    // A store that gives jobs and takes no results is still broken: there, a job has to go well.
    if (taken.jobs.length === 0) failures = 0
    for (const job of taken.jobs) void handle(job)
    if (stopped !== null) tellQuiet()
    // With every place taken, the end of a job looks again.
    else if (running < concurrency && !resting) {
      if (taken.more || wanted) void look()
      else later(Math.min(pollMs * (0.75 + random() / 2), taken.nextInMs ?? Number.POSITIVE_INFINITY))
    }
  }

  async function handle(job: Job): Promise<void> {
    running += 1
    let end: 'well' | 'trouble' = 'well'
    try {
      if (stopped === null) end = await options.run(job, over.signal)
      else await options.giveBack(job)
    } catch {
      end = 'trouble'
    }
    running -= 1
    if (end === 'well') failures = 0
    if (stopped !== null) tellQuiet()
    else if (end === 'trouble' && !resting) rest()
    else wake()
  }

  /** @returns for how long, ms. */
  function rest(): number {
    failures += 1
    const waitMs = backoffMs(backoff, failures, random())
    if (stopped !== null) {
      tellQuiet()
      return waitMs
    }
    resting = true
    later(waitMs)
    return waitMs
  }

  function later(ms: number): void {
    timer?.cancel()
    // Held: a process whose database is away for a moment has nothing else that keeps it alive.
    timer = clock.timer(
      ms,
      () => {
        resting = false
        wake()
      },
      true,
    )
  }

  function tellQuiet(): void {
    if (running === 0 && !looking) for (const tell of onQuiet) tell()
  }

  /** True when everything ended in time. */
  function quietWithin(ms: number): Promise<boolean> {
    if (running === 0 && !looking) return Promise.resolve(true)
    return new Promise((resolve) => {
      const end = (quiet: boolean): void => {
        onQuiet.delete(tell)
        limit.cancel()
        resolve(quiet)
      }
      const tell = (): void => end(true)
      const limit = clock.timer(ms, () => end(false), true)
      onQuiet.add(tell)
    })
  }

  async function stop(graceMs: number): Promise<number> {
    timer?.cancel()
    if (await quietWithin(graceMs)) return 0
    over.abort(new Error('It is being stopped.'))
    await quietWithin(STILL_MS)
    return running
  }

  void look()
  return {
    wake,
    running: () => running,
    stop({ graceMs }) {
      stopped ??= stop(graceMs)
      return stopped
    },
  }
}
