/** What becomes of work whose attempt failed: pure, time and chance are arguments (P64, P27). */
import { backoffMs } from '../../protocol/backoff.ts'
import { PROBLEM_MEDIA_TYPE } from '../../protocol/problem.ts'
import type { MonitorError } from '../../protocol/wire.ts'
import { otherProblem } from '../answer-for.ts'
import type { StoredAnswer } from '../decide.ts'
import { leftUnknown, retried, settled, type TaskRow } from './task-row.ts'

/** How often, and how far apart. */
export interface RetryPolicy {
  /** Upper end of the wait after the first attempt, ms; doubled with each one. */
  readonly baseMs: number
  /** Upper end of any wait, ms. */
  readonly capMs: number
  /** Executions before it is given up. `Infinity`: never. */
  readonly maxAttempts: number
}

/** What is known about the failure. */
export interface Failure {
  /** What the monitor shows. Null: that an attempt failed. */
  readonly error: MonitorError | null
  /** The handler's own wait, ms. Null: back-off. */
  readonly afterMs: number | null
  /** Epoch ms by the store's clock; whatever the wait is, not before. */
  readonly notBefore: number | null
}

/** A failure without particulars. */
export const plainFailure: Failure = { error: null, afterMs: null, notBefore: null }

/** What monitors say where the handler says nothing: the error itself is for operators, clients see this. */
export const attemptFailed: MonitorError = {
  code: 'attempt_failed',
  title: 'An attempt failed; the server tries again by itself.',
}
export const workUnknown: MonitorError = {
  code: 'work_unknown',
  title: 'What became of it is not known; a person has to find out.',
}

/**
 * Tries again, or gives it up after so many attempts: as failed only where nothing can have taken effect, else as
 * unknown, for a person (P27: what may have happened is never called failed).
 *
 * @param random from 0 to 1.
 * @returns null when the work is lost.
 */
export function afterFailure(
  row: TaskRow,
  epoch: number,
  { error, afterMs, notBefore }: Failure,
  { now, random, policy }: { readonly now: number; readonly random: number; readonly policy: RetryPolicy },
): TaskRow | null {
  if (row.attempts >= policy.maxAttempts) {
    return row.effectsBegun ? leftUnknown(row, epoch, workUnknown) : settled(row, epoch, givenUp)
  }
  const waitMs = waitOf(afterMs) ?? backoffMs({ ...policy, minMs: 0 }, row.attempts, random)
  const earliest = Number.isFinite(notBefore) ? (notBefore ?? 0) : 0
  return retried(row, epoch, Math.max(now + waitMs, earliest), error ?? attemptFailed)
}

/** The handler's own wait, where it is one. */
function waitOf(ms: number | null): number | null {
  return ms !== null && ms >= 0 ? Math.min(ms, LONGEST_WAIT_MS) : null
}

/** A year: more than that is a slip, and a date that databases can keep. */
const LONGEST_WAIT_MS = 365 * 24 * 3_600_000

/** The answer of work that was given up before anything took effect. */
const givenUp: StoredAnswer = {
  status: 500,
  headers: [['Content-Type', PROBLEM_MEDIA_TYPE]],
  body: {
    kind: 'bytes',
    bytes: new TextEncoder().encode(
      JSON.stringify(otherProblem(500, 'work-given-up', 'The work was tried often and never took effect.')),
    ),
  },
}
