/** How an execution of accepted work ends: what a handler returns. */
import type { MonitorError } from '../../protocol/wire.ts'
import { keepable } from '../error-text.ts'
import type { Answer, Refusal } from '../results.ts'

/** The finished answer of the work: from now on its monitor gives it. */
export type TaskAnswer = (Answer & { readonly outcome?: never }) | Refusal

/** Made by {@link finish}. */
export interface Finish<Transaction> {
  readonly outcome: 'finish'
  readonly work: (transaction: Transaction) => TaskAnswer | Promise<TaskAnswer>
}

/** Made by {@link retry}. */
export interface Retry {
  readonly outcome: 'retry'
  readonly afterMs: number | null
  readonly error: MonitorError | null
}

/** Made by {@link leaveUnknown}. */
export interface LeaveUnknown {
  readonly outcome: 'unknown'
  readonly error: MonitorError | null
}

/** What a handler returns. */
export type TaskEnd<Transaction> = TaskAnswer | Finish<Transaction> | Retry | LeaveUnknown

/**
 * The last business writes and the finished answer, in one transaction: both commit, or neither, and neither if another
 * worker has the work by now (P54, P63). An answer below 400 is `succeeded`. `refuse` is `failed`: what `work` wrote is
 * taken back, the refusal is kept (P56).
 *
 * @param work as `execute`: local rows only, no call to another service.
 */
export function finish<Transaction>(
  work: (transaction: Transaction) => TaskAnswer | Promise<TaskAnswer>,
): Finish<Transaction> {
  return { outcome: 'finish', work }
}

/**
 * Not now: our server tries again by itself, and the monitor says so (P64). Counts as an attempt.
 *
 * @param options.afterMs not before so many ms. Default: full-jitter back-off by attempt.
 * @param options.error what the monitor shows meanwhile: clients see it. Default: that an attempt failed.
 * @throws RangeError for a time that is none.
 */
export function retry(options: { readonly afterMs?: number; readonly error?: MonitorError } = {}): Retry {
  const { afterMs = null, error = null } = options
  if (afterMs !== null && !(Number.isFinite(afterMs) && afterMs >= 0)) {
    throw new RangeError(`retry({ afterMs }) must be milliseconds of at least 0, not ${afterMs}.`)
  }
  return { outcome: 'retry', afterMs, error: shownOf(error) }
}

/**
 * Nobody knows whether it took effect, and no worker can find out: it waits for a person, see `unknownTasks` (P65).
 *
 * @param options.error what the monitor shows: clients see it. Default: that it is not known.
 */
export function leaveUnknown(options: { readonly error?: MonitorError } = {}): LeaveUnknown {
  return { outcome: 'unknown', error: shownOf(options.error ?? null) }
}

/** The four texts that a monitor has, as every database keeps them; whatever else is in it is not for clients. */
function shownOf(error: MonitorError | null): MonitorError | null {
  if (error === null) return null
  const texts = (['code', 'type', 'title', 'detail'] as const).flatMap((name) => {
    const text: unknown = error[name]
    return typeof text === 'string' ? [[name, keepable(text)]] : []
  })
  return Object.fromEntries(texts) as MonitorError
}
