/**
 * Accepted work as a row, and what may become of it: pure functions, so that PostgreSQL, the memory store and every
 * test world change tasks by these same lines (P62-P64). A store locks the row, one of these says what it is next, the
 * store saves it. Null means: not any more; whoever asked has lost the work, and nothing may be written.
 */
import type { MonitorError, MonitorStatus } from '../../protocol/wire.ts'
import type { KeyRow, StoredAnswer, TaskStatus, TaskView } from '../decide.ts'

/** One accepted piece of work. */
export interface TaskRow {
  /** `processing`: waits for a worker, or one has it. `failed_retryable`: waits to be tried again. */
  readonly status: MonitorStatus
  /** JSON text for the worker, as `accepted` was given it. Null: the work is not ours to do, see `complete`. */
  readonly input: string | null
  /** The execution number. Grows with every takeover, so that whoever had the work before writes nothing (P63). */
  readonly epoch: number
  /** Executions begun since it was accepted, or since a person last let it go on. */
  readonly attempts: number
  /** Epoch ms from which a worker may take it; while one has it, the end of its lease. Null: nobody may. */
  readonly dueAt: number | null
  /**
   * Something may have happened that a void cannot take back: a call to another service was written down, or a step of
   * the work has been committed (P58).
   */
  readonly effectsBegun: boolean
  /** What last went wrong, for people and programs. */
  readonly error: MonitorError | null
  /** The finished answer. */
  readonly result: StoredAnswer | null
  /** Pace of the client's polls, whole seconds. */
  readonly retryAfterSeconds: number
  /** What the person who settled it wrote. */
  readonly note: string | null
}

/** How the work of a 202 begins. */
export interface NewTask {
  /** JSON text; null where no worker of ours is to do it. */
  readonly input: string | null
  /** Pace of the client's polls, whole seconds. */
  readonly retryAfterSeconds: number
}

/** Accepted a moment ago. */
export function newTask({ input, retryAfterSeconds }: NewTask, now: number): TaskRow {
  return {
    status: 'processing',
    input,
    epoch: 0,
    attempts: 0,
    dueAt: input === null ? null : now,
    effectsBegun: false,
    error: null,
    result: null,
    retryAfterSeconds,
    note: null,
  }
}

/** True for an end that nothing changes any more. */
export function isSettled({ status }: Pick<TaskRow, 'status'>): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'voided'
}

/** Takes it for `leaseMs`: a new epoch, so that an earlier holder is out from here on (F9). */
export function claimed(row: TaskRow, now: number, leaseMs: number): TaskRow | null {
  if (row.dueAt === null || row.dueAt > now || isSettled(row)) return null
  return {
    ...row,
    status: 'processing',
    epoch: row.epoch + 1,
    attempts: row.attempts + 1,
    dueAt: now + leaseMs,
  }
}

/** The fence of P63. A lease that is over keeps its holder as long as nobody took the work: the epoch alone decides. */
export function isHeld(row: TaskRow, epoch: number): boolean {
  return row.epoch === epoch && row.status === 'processing' && row.dueAt !== null
}

/**
 * Nobody took it since this execution, which may have let go of it meanwhile: what it still learns about its own calls
 * counts, and what it does not.
 */
export function isUntaken(row: TaskRow, epoch: number): boolean {
  return row.epoch === epoch && (row.status === 'processing' || row.status === 'failed_retryable')
}

/** Goes on for another `leaseMs`. */
export function renewed(row: TaskRow, epoch: number, now: number, leaseMs: number): TaskRow | null {
  return isHeld(row, epoch) ? { ...row, dueAt: now + leaseMs } : null
}

/** Gives it back untried, at a shutdown: the next worker need not wait for the lease, and no attempt was spent. */
export function released(row: TaskRow, epoch: number, now: number): TaskRow | null {
  return isHeld(row, epoch) ? { ...row, dueAt: now, attempts: row.attempts - 1 } : null
}

/** From now on a void can take nothing back (P58); whoever writes that goes on for another `leaseMs`. */
export function begun(row: TaskRow, epoch: number, now: number, leaseMs: number): TaskRow | null {
  const next = renewed(row, epoch, now, leaseMs)
  return next === null ? null : { ...next, effectsBegun: true }
}

/** Failed for now: our server tries again by itself (P64, H32). */
export function retried(row: TaskRow, epoch: number, dueAt: number, error: MonitorError | null): TaskRow | null {
  return isHeld(row, epoch) ? { ...row, status: 'failed_retryable', dueAt, error } : null
}

/** Nobody knows, and no worker can find out: it waits for a person (P65). */
export function leftUnknown(row: TaskRow, epoch: number, error: MonitorError | null): TaskRow | null {
  return isHeld(row, epoch) ? { ...row, status: 'unknown', dueAt: null, error } : null
}

/** Done, well or badly: from now on the monitor gives this answer. */
export function settled(row: TaskRow, epoch: number, result: StoredAnswer): TaskRow | null {
  if (!isHeld(row, epoch)) return null
  return { ...row, status: result.status < 400 ? 'succeeded' : 'failed', dueAt: null, error: null, result }
}

/**
 * Never happened and never will, P58: only before anything that cannot be taken back. The new epoch is what stops a
 * worker that has it at this moment (H34).
 */
export function voidedTask(row: TaskRow): TaskRow | null {
  if (isSettled(row) || row.effectsBegun || row.status === 'unknown') return null
  return { ...row, status: 'voided', epoch: row.epoch + 1, dueAt: null, error: null }
}

/** What somebody other than a worker of ours has to say about unfinished work: an app's own worker, or a person. */
export interface TaskWord {
  readonly status: TaskStatus
  readonly result: StoredAnswer | null
  readonly error: MonitorError | null
  /** Null leaves the pace as it is. */
  readonly retryAfterSeconds: number | null
  /** Default: none. */
  readonly note?: string
}

/** They know better than any worker that still has it: the new epoch fences those out. */
export function told(row: TaskRow, word: TaskWord): TaskRow | null {
  if (isSettled(row)) return null
  const { status, result, error, retryAfterSeconds, note } = word
  // Our workers say how far their work is. "Goes on" from anybody else would take it from them, and nobody did it then.
  if (row.input !== null && (status === 'processing' || status === 'failed_retryable')) return null
  return {
    ...row,
    status,
    epoch: row.epoch + 1,
    dueAt: null,
    result,
    error,
    retryAfterSeconds: retryAfterSeconds ?? row.retryAfterSeconds,
    note: note ?? row.note,
  }
}

/** Goes on: what was unknown has been settled, or a person says "again". Only for work that workers of ours do. */
export function reopened(row: TaskRow, now: number, note: string | null): TaskRow | null {
  if (isSettled(row) || row.input === null) return null
  return {
    ...row,
    status: 'processing',
    epoch: row.epoch + 1,
    attempts: 0,
    dueAt: now,
    error: null,
    note: note ?? row.note,
  }
}

/** What a monitor shows of it. */
export function viewOf(row: TaskRow, resultExpiresAt: number): TaskView {
  const { status, result, error, retryAfterSeconds } = row
  return { status, result, error, retryAfterSeconds: isSettled(row) ? null : retryAfterSeconds, resultExpiresAt }
}

/** State of the key whose work this is. */
export function keyStateOf(row: TaskRow): KeyRow['state'] {
  if (row.status === 'voided') return 'voided'
  return isSettled(row) ? 'finished' : 'accepted'
}
