import type { KeyId } from '../store.ts'
import type { TaskEnd } from './ends.ts'
import type { Held } from './held.ts'

/** Accepted work, in the hands of a handler. */
export interface Task<Transaction> {
  /** The key that was accepted. */
  readonly id: KeyId
  /** The idempotency key alone. */
  readonly key: string
  /** Name of the operation. */
  readonly operation: string
  /** What `accepted({ work })` was given, parsed. */
  readonly work: unknown
  /** The execution number. Grows with every takeover: effects outside may carry it (P63). */
  readonly epoch: number
  /** 1 for the first execution; starts anew after a person let it go on. */
  readonly attempt: number
  /**
   * Aborted when the work is lost or the worker stops: nothing that is written afterwards will be kept. Pass it on to
   * whatever takes long.
   */
  readonly signal: AbortSignal

  /**
   * Writes business rows in a transaction of their own, before the end of the work. It commits only while this worker
   * has the work (P63); from then on the work cannot be voided any more (P58). The handler may run again after a crash,
   * and then its steps do too: write them so that twice is once (P59).
   *
   * No step and no call to another service inside of it: they would wait for its lock.
   *
   * @param name for messages. Default: none.
   * @returns what `work` returns, once it is committed.
   * @throws WorkLostError nothing was written.
   * @throws StoreUnavailableError nothing was written.
   * @throws CommitUnknownError it may have been written.
   * @throws whatever `work` throws; nothing was written then.
   */
  step<T>(work: (transaction: Transaction) => T | Promise<T>): Promise<T>
  step<T>(name: string, work: (transaction: Transaction) => T | Promise<T>): Promise<T>

  /** For `externalCall`. */
  readonly held: Held<Transaction>
}

/**
 * Does accepted work, and says how it ended. It may be run again at any time: after a failure, after a crash, after
 * another worker was thought to be dead. What it throws is an attempt that failed (P64).
 */
export type TaskHandler<Transaction> = (task: Task<Transaction>) => TaskEnd<Transaction> | Promise<TaskEnd<Transaction>>

/** The task that a handler gets. */
export function taskOf<Transaction>(held: Held<Transaction>): Task<Transaction> {
  const { id, row, signal } = held

  function step<T>(
    ...given:
      | [work: (transaction: Transaction) => T | Promise<T>]
      | [name: string, work: (transaction: Transaction) => T | Promise<T>]
  ): Promise<T> {
    const [name, work] = given.length === 1 ? [null, given[0]] : given
    return held.effect(name === null ? 'A step' : `The step ${name}`, async (unit) => ({
      commit: true,
      value: await unit.run(work),
    }))
  }

  return {
    id,
    key: id.key,
    operation: id.operation,
    work: row.input === null ? null : (JSON.parse(row.input) as unknown),
    epoch: row.epoch,
    attempt: row.attempts,
    signal,
    step,
    held,
  }
}
