/** What a worker is told, checked once when it starts. */
import { ConfigError } from '../../errors.ts'
import { systemClock } from '../../platform/clock.ts'
import { systemIds } from '../../platform/ids.ts'
import type { Clock } from '../../ports.ts'
import { type Report, reportToConsole, safely } from '../report.ts'
import type { ServerStore } from '../store.ts'
import { whole, wholeMs, wholeRetry } from '../whole.ts'
import type { RetryPolicy } from './attempt.ts'
import type { TaskHandler } from './task.ts'

/** How work is done. */
export interface WorkOptions<Transaction> {
  /** Where the work was accepted. */
  readonly store: ServerStore<Transaction>
  /** Handlers by the operation's name, as `idempotent` was given it. Other operations' work is left alone. */
  readonly work: Readonly<Record<string, TaskHandler<Transaction>>>
  /** Most tasks in hand at a time. Default 4. */
  readonly concurrency?: number
  /**
   * How long work is taken for, ms; renewed every third of it. A worker that died blocks its work for no longer. More
   * than a handler ever blocks the event loop. Default 30 seconds.
   */
  readonly leaseMs?: number
  /**
   * Full-jitter back-off after a failed attempt (P64). Defaults: `baseMs` 1 second, `capMs` 10 minutes, `maxAttempts` 20
   * (`Infinity` never gives up).
   */
  readonly retry?: Partial<RetryPolicy>
  /** Longest answer body that is kept, bytes; of a longer one, status and headers (P60). Default 1 MiB. */
  readonly answerBytes?: number
  /** Time, for tests that own it. Default: the system's. */
  readonly clock?: Clock
  /** Chance for jitter, from 0 to 1. Default: the system's. */
  readonly random?: () => number
  /** Default: one line on the console. */
  readonly report?: Report
}

/** What {@link startWorker} is told. */
export interface WorkerOptions<Transaction> extends WorkOptions<Transaction> {
  /** How often it looks for work that no hint told it of, ms, give or take a quarter. Default 1 second. */
  readonly pollMs?: number
}

/** All of it, defaults filled in. */
export interface WorkSettings<Transaction> {
  readonly store: ServerStore<Transaction>
  readonly work: ReadonlyMap<string, TaskHandler<Transaction>>
  readonly concurrency: number
  readonly leaseMs: number
  readonly retry: RetryPolicy
  readonly answerBytes: number
  readonly clock: Clock
  readonly random: () => number
  readonly report: Report
}

/** @throws ConfigError naming the option. */
export function workSettings<Transaction>(options: WorkOptions<Transaction>): WorkSettings<Transaction> {
  const { concurrency = 4, leaseMs = 30_000, retry = {}, answerBytes = 2 ** 20 } = options
  const { baseMs = 1000, capMs = 600_000, maxAttempts = 20 } = retry
  const work = new Map(Object.entries(options.work))
  if (work.size === 0) throw new ConfigError('work', 'give at least one operation with its handler')
  for (const [operation, handler] of work) {
    if (operation === '' || typeof handler !== 'function') {
      throw new ConfigError(`work.${operation}`, 'must be a function, under the name that idempotent was given')
    }
  }
  whole('concurrency', concurrency)
  wholeMs('leaseMs', leaseMs)
  if (!(answerBytes >= 0)) throw new ConfigError('answerBytes', `must be a number of at least 0, not ${answerBytes}`)
  return {
    store: options.store,
    work,
    concurrency,
    leaseMs,
    retry: wholeRetry({ baseMs, capMs, maxAttempts }),
    answerBytes,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemIds().random,
    report: safely(options.report ?? reportToConsole),
  }
}
