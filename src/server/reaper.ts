/** Deletes what need not be remembered any more, in batches and for ever (P57). */
import { ConfigError } from '../errors.ts'
import { systemClock } from '../platform/clock.ts'
import { systemIds } from '../platform/ids.ts'
import type { Clock } from '../ports.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'
import { startLoop } from './loop.ts'
import { quietly } from './quietly.ts'
import type { ServerStore } from './store.ts'

/** What {@link startReaper} is told. */
export interface ReaperOptions {
  /** How often it looks, ms, give or take a quarter. Default 1 minute. */
  readonly everyMs?: number
  /** Most rows of one batch: no statement runs long, and no lock is held long. Default 1000. */
  readonly batch?: number
  /** Told when a batch failed; it is tried again. Default: nobody, because late reaping harms nobody. */
  readonly onError?: (error: unknown) => void
  /** Time, for tests that own it. Default: the system's. */
  readonly clock?: Pick<Clock, 'timer'>
  /** Chance for jitter, from 0 to 1. Default: `Math.random`. */
  readonly random?: () => number
}

/** A running reaper. */
export interface Reaper {
  /** Takes no new batch, and resolves when the running one has ended. */
  stop(): Promise<void>
}

const TROUBLE = { baseMs: 1000, capMs: 60_000, minMs: 500 }

/**
 * Starts reaping. One for each database is enough, several do no harm. It keeps the process alive until it is stopped.
 *
 * @param reap deletes one batch of at most so many, and tells how many they were: `(limit) => store.reap(limit)`, or a
 * store.
 * @throws ConfigError for an option that cannot be meant.
 * @example
 * ```ts
 * import { type ServerStore, startReaper } from 'samekey/server'
 *
 * export function tidy(store: ServerStore<unknown>): void {
 *   const reaper = startReaper(store)
 *   process.once('SIGTERM', () => void reaper.stop())
 * }
 * ```
 */
export function startReaper(
  reap: Pick<ServerStore<unknown>, 'reap'> | ((limit: number) => Promise<number>),
  options: ReaperOptions = {},
): Reaper {
  const { everyMs = 60_000, batch = 1000, onError = () => {}, clock = systemClock } = options
  const { random = systemIds().random } = options
  if (!(everyMs >= 1 && everyMs <= MAX_TIMER_MS)) throw new ConfigError('everyMs', `must be 1 to ${MAX_TIMER_MS} ms`)
  if (!(Number.isSafeInteger(batch) && batch > 0)) throw new ConfigError('batch', 'must be a whole number above 0')
  const once = typeof reap === 'function' ? reap : (limit: number) => reap.reap(limit)
  const loop = startLoop<never>({
    concurrency: 1,
    pollMs: everyMs,
    backoff: TROUBLE,
    clock,
    random,
    take: async () => ({ jobs: [], more: (await once(batch)) >= batch, nextInMs: null }),
    run: () => Promise.resolve('well'),
    giveBack: () => Promise.resolve(),
    failed: (error) => quietly(() => onError(error)),
  })
  return {
    async stop() {
      await loop.stop({ graceMs: MAX_TIMER_MS })
    },
  }
}
