/**
 * Every error of samekey. Each says what happened, what is known and what to do, and carries the key (P13); none holds
 * a body, a credential or another secret. Match on `code`: it is the same across bundles and realms, classes are not.
 */

/** All codes. Each is the `code` of exactly one class below. */
export type SamekeyErrorCode =
  | 'config'
  | 'intent_mismatch'
  | 'possible_duplicate'
  | 'key_conflict'
  | 'outcome_unknown'
  | 'still_open'
  | 'cancelled'
  | 'abandoned'
  | 'store_write'
  | 'store_failure'
  | 'unsupported_body'
  | 'body_not_stored'
  | 'record_set_aside'
  | 'submit_too_late'
  | 'not_possible'

/** What every error carries, where it is known. */
export interface ErrorFacts {
  /** The app's name of the intent. */
  readonly intentId?: string | undefined
  /** The idempotency key, once there is one. */
  readonly key?: string | undefined
  /** The error underneath. */
  readonly cause?: unknown
}

const brand = Symbol.for('samekey.error')

/** Base of all errors of this library. */
export abstract class SamekeyError extends Error {
  /** What kind of error; stable across versions and bundles. */
  abstract readonly code: SamekeyErrorCode
  /** The app's name of the intent, or undefined when there is none yet. */
  readonly intentId: string | undefined
  /** The idempotency key, or undefined when none was minted yet. */
  readonly key: string | undefined

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.intentId = facts.intentId
    this.key = facts.key
    Object.defineProperty(this, brand, { value: true })
  }

  /** A form for logs: no stack, no cause, nothing secret. */
  toJSON(): { name: string; code: SamekeyErrorCode; message: string; intentId?: string; key?: string } {
    return {
      name: this.name,
      code: this.code,
      message: this.message,
      ...(this.intentId === undefined ? {} : { intentId: this.intentId }),
      ...(this.key === undefined ? {} : { key: this.key }),
    }
  }
}

/** True for every error of this library, whichever copy of it threw. */
export function isSamekeyError(error: unknown): error is SamekeyError {
  return error instanceof Error && brand in error
}

/** A wrong option or a call that cannot be meant: names the option and the remedy. Nothing was stored or sent. */
export class ConfigError extends SamekeyError {
  override readonly name = 'ConfigError' as const
  readonly code = 'config' as const
  /** The option or argument that is wrong, e.g. `operations.orders.retentionMs`. */
  readonly option: string

  constructor(option: string, message: string, facts: ErrorFacts = {}) {
    super(`${option}: ${message}`, facts)
    this.option = option
  }
}

/** The intent id is taken by an intent with another fingerprint (P7). Nothing was stored or sent. */
export class IntentMismatchError extends SamekeyError {
  override readonly name = 'IntentMismatchError' as const
  readonly code = 'intent_mismatch' as const
  /** State of the intent that holds the id. */
  readonly state: string

  constructor(state: string, message: string, facts: ErrorFacts) {
    super(message, facts)
    this.state = state
  }
}

/** An intent with the same content is in doubt or unknown, and the operation refuses such duplicates (P10). */
export class PossibleDuplicateError extends SamekeyError {
  override readonly name = 'PossibleDuplicateError' as const
  readonly code = 'possible_duplicate' as const
  /** The intents with the same content whose outcome is not known. */
  readonly duplicates: readonly { readonly intentId: string; readonly key: string }[]

  constructor(duplicates: readonly { intentId: string; key: string }[], message: string, facts: ErrorFacts) {
    super(message, facts)
    this.duplicates = duplicates
  }
}

/** The server knows this key with another request: for good (PROTOCOL.md section 6). */
export class KeyConflictError extends SamekeyError {
  override readonly name = 'KeyConflictError' as const
  readonly code = 'key_conflict' as const
}

/** Nobody can say whether it happened. A person settles it: check, retry, resolve or abandon (P42, P45). */
export class OutcomeUnknownError extends SamekeyError {
  override readonly name = 'OutcomeUnknownError' as const
  readonly code = 'outcome_unknown' as const
  /** Why nothing more is done by itself. */
  readonly because: string

  constructor(because: string, message: string, facts: ErrorFacts) {
    super(message, facts)
    this.because = because
  }
}

/** The caller's waiting ended; the intent did not. It is stored and goes on; submit the same id again to join it (P36). */
export class StillOpenError extends SamekeyError {
  override readonly name = 'StillOpenError' as const
  readonly code = 'still_open' as const
  /** State of the intent when the waiting ended. */
  readonly state: string
  /** What it waits for, in a fixed word such as `credentials`; null where the state says it all. */
  readonly detail: string | null
  /** True when an attempt was handed to the network that may have taken effect. */
  readonly inDoubt: boolean

  constructor(
    known: { readonly state: string; readonly detail: string | null; readonly inDoubt: boolean },
    message: string,
    facts: ErrorFacts,
  ) {
    super(message, facts)
    this.state = known.state
    this.detail = known.detail
    this.inDoubt = known.inDoubt
  }
}

/** The intent was cancelled before it took effect, and never will. */
export class CancelledError extends SamekeyError {
  override readonly name = 'CancelledError' as const
  readonly code = 'cancelled' as const
}

/** A person gave the intent up. `mayStillHappen` says whether it may yet take effect (P45). */
export class AbandonedError extends SamekeyError {
  override readonly name = 'AbandonedError' as const
  readonly code = 'abandoned' as const
  /** True when an attempt may still arrive or may have taken effect. */
  readonly mayStillHappen: boolean

  constructor(mayStillHappen: boolean, message: string, facts: ErrorFacts) {
    super(message, facts)
    this.mayStillHappen = mayStillHappen
  }
}

/** The store could not keep the intent (F1). Nothing was sent; `stored` says whether it may be stored and sent later. */
export class StoreWriteError extends SamekeyError {
  override readonly name = 'StoreWriteError' as const
  readonly code = 'store_write' as const
  /** `no`: nothing is stored and nothing will be sent. `maybe`: it may be stored and may be sent; the id stays claimed (P18). */
  readonly stored: 'no' | 'maybe'

  constructor(stored: 'no' | 'maybe', message: string, facts: ErrorFacts) {
    super(message, facts)
    this.stored = stored
  }
}

/** Why a store failed, as far as it can tell. */
export type StoreFailureReason = 'quota' | 'unavailable' | 'timeout' | 'closed' | 'other'

/** What a store rejects with; the engine turns it into a {@link StoreWriteError} for callers. */
export class StoreFailure extends SamekeyError {
  override readonly name = 'StoreFailure' as const
  readonly code = 'store_failure' as const
  /** What kind of failure. */
  readonly reason: StoreFailureReason
  /** `no` is a promise that nothing of the call will ever be visible. */
  readonly written: 'no' | 'maybe'

  constructor(reason: StoreFailureReason, written: 'no' | 'maybe', message: string, facts: ErrorFacts = {}) {
    super(message, facts)
    this.reason = reason
    this.written = written
  }
}

/** The body cannot be kept and sent again unchanged: it says which part and what would work. */
export class UnsupportedBodyError extends SamekeyError {
  override readonly name = 'UnsupportedBodyError' as const
  readonly code = 'unsupported_body' as const
}

/** The intent is settled, but its answer's body was not kept (P22). The outcome itself is known. */
export class BodyNotStoredError extends SamekeyError {
  override readonly name = 'BodyNotStoredError' as const
  readonly code = 'body_not_stored' as const
}

/** The intent's record is damaged or from a newer version; its id is kept until a person settles it (P23). */
export class RecordSetAsideError extends SamekeyError {
  override readonly name = 'RecordSetAsideError' as const
  readonly code = 'record_set_aside' as const
  /** `damaged`, or `newer` when a later version of samekey wrote it. */
  readonly reason: 'damaged' | 'newer'

  constructor(reason: 'damaged' | 'newer', message: string, facts: ErrorFacts) {
    super(message, facts)
    this.reason = reason
  }
}

/** The submit was frozen for longer than intents are remembered, so a new key could double an old effect (P8). */
export class SubmitTooLateError extends SamekeyError {
  override readonly name = 'SubmitTooLateError' as const
  readonly code = 'submit_too_late' as const
}

/** A person's action that the intent's state does not allow; the message says what does help. */
export class NotPossibleError extends SamekeyError {
  override readonly name = 'NotPossibleError' as const
  readonly code = 'not_possible' as const
  /** State of the intent. */
  readonly state: string

  constructor(state: string, message: string, facts: ErrorFacts) {
    super(message, facts)
    this.state = state
  }
}
