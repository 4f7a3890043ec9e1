/**
 * What the server kit needs from a database: a port, types only, each with its failure contract. `postgres.ts` is the
 * real one; `memory.ts` is for the mock and for trying things out.
 */
import type { Fingerprint } from '../protocol/fingerprint.ts'
import type { Busy, Inserted, KeyRow, StoredAnswer } from './decide.ts'
import type { CallRow } from './tasks/call-row.ts'
import type { NewTask, TaskRow } from './tasks/task-row.ts'

/** The identity of a key (P53). Tenant and principal come from authentication, never from the request's fields. */
export interface KeyId {
  /** From authentication. */
  readonly tenant: string
  /** From authentication. */
  readonly principal: string
  /** Name of the operation. */
  readonly operation: string
  /** The idempotency key. */
  readonly key: string
}

/** The row to insert. */
export interface NewKey {
  /** `running` to execute, `voided` to void (P58). */
  readonly state: 'running' | 'voided'
  /** Null when voiding: there is no request. */
  readonly fingerprint: Fingerprint | null
  /** SHA-256 of the request's body bytes; null when voiding. */
  readonly requestDigest: string | null
  /** How long the key is promised to be remembered, ms from now by the store's clock. */
  readonly retentionMs: number
  /** How much longer the row lives, ms (P57). */
  readonly graceMs: number
}

/** There is a committed row, or there was one a moment ago: read it in a new statement. */
export interface Taken {
  readonly seen: 'taken'
}

/** What an insert found. */
export type Claim = Inserted | Taken | Busy

/** A row as it is committed now, and the store's time at that moment, epoch ms. */
export interface Reading {
  /** Null where there is none. */
  readonly row: KeyRow | null
  /** Epoch ms by the store's clock. */
  readonly now: number
}

/** How a unit of work ends. */
export interface Ending<T> {
  /** False rolls back. */
  readonly commit: boolean
  /** What `begin` resolves with once it has ended so. */
  readonly value: T
}

/** A task row that is now locked, and the store's time, epoch ms. */
export interface LockedTask {
  readonly seen: 'task'
  /** Null where there is none. */
  readonly row: TaskRow | null
  readonly now: number
}

/** Where a call belongs. */
export interface CallPlace {
  /** Of the task. */
  readonly id: KeyId
  /** Name of the call within its task. */
  readonly name: string
}

/**
 * One transaction, READ COMMITTED. Its methods are called one after the other: `claim` first for a key, `lockTask` (or
 * `findCall`) first for a task.
 */
export interface Unit<Transaction> {
  /**
   * Runs the app's part in the transaction. What it gets works until it settles, either way, and not a moment longer: a
   * statement that it left running behind it would otherwise be executed after the roll-back, by itself, for good.
   *
   * @throws Error where it settled and left a statement running; it counts as failed then, and so does the unit.
   * @throws CommitUnknownError where it ended the transaction by itself: what was committed by that, nobody knows.
   * @throws whatever it throws.
   */
  run<T>(work: (transaction: Transaction) => T | Promise<T>): Promise<T>

  /**
   * Inserts the row if there is none with this id: on conflict, nothing. Waits for an uncommitted rival, at most for
   * the `waitMs` of {@link ServerStore.begin}, and that limit counts for this statement alone (P54, H41). When it
   * inserted, a mark stands behind it to which {@link undo} goes back. After `busy`, the unit can only be rolled back.
   *
   * @throws StoreUnavailableError
   */
  claim(id: KeyId, key: NewKey): Promise<Claim>

  /**
   * Reads in a statement of its own, so that it sees what the rival has just committed (P54).
   *
   * @throws StoreUnavailableError
   */
  read(id: KeyId): Promise<Reading>

  /**
   * Takes back everything since the mark, even if a statement has failed since; the key row, and what was locked and
   * saved before the mark, stay (P56: a refusal that is remembered although its business change is not).
   *
   * @throws StoreUnavailableError
   */
  undo(): Promise<void>

  /**
   * Saves the finished answer in the claimed row (P54).
   *
   * @param task given when the answer is a 202 whose work goes on (P62): its row commits with the answer.
   * @throws StoreUnavailableError
   * @throws Error when a failed statement of `execute` was swallowed, or `execute` ended the transaction by itself.
   */
  finish(id: KeyId, answer: StoredAnswer, task: NewTask | null): Promise<void>

  /**
   * Locks and reads the row of accepted work. Waits for whoever has it locked as {@link claim} does for a rival, and
   * leaves a mark like that one.
   *
   * @throws StoreUnavailableError
   */
  lockTask(id: KeyId): Promise<LockedTask | Busy>

  /**
   * Saves a locked row. Where its status is a last one, the key row is finished too: it may be reaped from then on, the
   * result having been kept for at least another retention. Where it is `voided`, the key is voided.
   *
   * @throws StoreUnavailableError
   * @throws Error as {@link finish} does.
   */
  saveTask(id: KeyId, row: TaskRow): Promise<void>

  /**
   * Reads a call of a task whose row is locked.
   *
   * @throws StoreUnavailableError
   */
  readCall(id: KeyId, name: string): Promise<CallRow | null>

  /**
   * Finds a call by its operation id, and locks nothing.
   *
   * @throws StoreUnavailableError
   */
  findCall(operationId: string): Promise<CallPlace | null>

  /**
   * Inserts or replaces a call of a task whose row is locked.
   *
   * @throws StoreUnavailableError
   */
  saveCall(id: KeyId, name: string, row: CallRow): Promise<void>

  /**
   * True while some call of this task may have taken effect and nobody knows, see `isOpen`.
   *
   * @throws StoreUnavailableError
   */
  hasOpenCalls(id: KeyId): Promise<boolean>
}

/** How to begin. */
export interface BeginOptions {
  /** How long the first statement waits for a rival, ms; `Infinity` for as long as it takes. */
  readonly waitMs: number
}

/** Work that a worker has just taken. */
export interface ClaimedTask {
  readonly id: KeyId
  readonly row: TaskRow
}

/** What a person has to look at. */
export interface UnknownTask {
  readonly id: KeyId
  readonly row: TaskRow
  /** Its calls that are not known to have ended. */
  readonly calls: readonly { readonly name: string; readonly row: CallRow }[]
  /** Epoch ms by the store's clock at which it was accepted. */
  readonly acceptedAt: number
}

/** Keeps key rows and task rows, in the same database as the business rows: that is what makes the promise true (P54). */
export interface ServerStore<Transaction> {
  /**
   * Runs `work` in one transaction and commits it or rolls it back as its ending says. Rolls back when `work` throws,
   * and throws the same error then, unless the store itself was the reason.
   *
   * @throws StoreUnavailableError nothing was committed, and never will be.
   * @throws CommitUnknownError the connection was lost while committing (P61).
   * @throws whatever `work` throws; nothing was committed then.
   */
  begin<T>(options: BeginOptions, work: (unit: Unit<Transaction>) => Promise<Ending<T>>): Promise<T>

  /**
   * Reads a row outside of any transaction, from the primary (P61). Does not wait for a rival: an uncommitted row is
   * not there.
   *
   * @throws StoreUnavailableError also on a standby: it knows too little, too late.
   */
  find(id: KeyId): Promise<Reading>

  /**
   * Takes work that is due, oldest first, without waiting for any that somebody has locked (P63).
   *
   * @throws StoreUnavailableError nothing was taken. CommitUnknownError: it may have been; its lease then ends unused.
   */
  claimTasks(options: {
    /** Names of operations. */
    readonly operations: readonly string[]
    readonly limit: number
    readonly leaseMs: number
  }): Promise<readonly ClaimedTask[]>

  /**
   * Unknown work, oldest first (P65).
   *
   * @param limit Default 100.
   * @throws StoreUnavailableError
   */
  unknownTasks(limit?: number): Promise<readonly UnknownTask[]>

  /**
   * Calls `wake` soon after work was accepted somewhere. A hint that may be missed: whoever gets it polls as well.
   *
   * @returns ends it.
   */
  onTask(wake: () => void): () => void

  /**
   * Deletes rows whose retention and grace are over, in one batch. Rows without a finished answer and unfinished or
   * unknown work are never deleted (P57).
   *
   * @param limit at most so many rows. Default 1000.
   * @returns how many were deleted; call again while it is `limit`.
   * @throws StoreUnavailableError
   */
  reap(limit?: number): Promise<number>
}
