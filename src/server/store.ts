/**
 * What the server kit needs from a database: a port, types only, each with its failure contract. `postgres.ts` is the
 * real one; `memory.ts` is for the mock and for trying things out.
 */
import type { Fingerprint } from '../protocol/fingerprint.ts'
import type { Busy, Inserted, KeyRow, StoredAnswer, TaskView } from './decide.ts'

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

/** How the work of a 202 begins, for its monitor. */
export interface NewTask {
  /** Pace of the client's polls, whole seconds. */
  readonly retryAfterSeconds: number
}

/** One transaction, READ COMMITTED. Its methods are called one after the other, `claim` first. */
export interface Unit<Transaction> {
  /** What `execute` gets. It stops working when the unit ends. */
  readonly transaction: Transaction

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
   * Takes back everything since the mark, even if a statement has failed since; the key row stays (P56: a refusal
   * that is remembered although its business change is not).
   *
   * @throws StoreUnavailableError
   */
  undo(): Promise<void>

  /**
   * Saves the finished answer in the claimed row (P54).
   *
   * @param task given when the answer is a 202 whose work goes on; its monitor says `processing` from now on.
   * @throws StoreUnavailableError
   * @throws Error when a failed statement of `execute` was swallowed, or `execute` ended the transaction by itself.
   */
  finish(id: KeyId, answer: StoredAnswer, task: NewTask | null): Promise<void>
}

/** How to begin. */
export interface BeginOptions {
  /** How long the claim waits for an uncommitted rival, ms; `Infinity` for as long as it takes. */
  readonly waitMs: number
}

/** What a worker has to say about accepted work. Null leaves it out. */
export type TaskProgress = Pick<TaskView, 'status' | 'result' | 'error' | 'retryAfterSeconds'>

/** The part of a store that whoever does accepted work needs. */
export interface TaskStore {
  /**
   * Says how far accepted work is; `succeeded` and `failed` finish it, with the answer that the monitor then shows.
   * Finishing keeps the result for at least another retention.
   *
   * @returns false where there is no unfinished work under this id: nothing was changed then.
   * @throws StoreUnavailableError it may or may not have been written; saying it again is harmless.
   */
  complete(id: KeyId, progress: TaskProgress): Promise<boolean>
}

/** Keeps key rows, in the same database as the business rows: that is what makes the promise true (P54). */
export interface ServerStore<Transaction> extends TaskStore {
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
   * @throws StoreUnavailableError
   */
  find(id: KeyId): Promise<Reading>

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
