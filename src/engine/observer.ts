/** What a client tells the app's logs and metrics, and the guarded way to tell it (P28). */
import type { EventName } from '../protocol/events.ts'
import type { StateName } from '../protocol/states.ts'

/** An intent's state changed, was stored, and is now announced (P22). */
export interface StateNote {
  readonly type: 'state'
  readonly intentId: string
  /** The idempotency key (P13). */
  readonly key: string
  /** Registered name of the operation, else method and path. */
  readonly operation: string
  /** State before, or null when the intent was just stored, or another context stored the change. Equal to `to` where only what the state waits for changed. */
  readonly from: StateName | null
  /** State as it is stored now. */
  readonly to: StateName
  /** The event that caused it; `elsewhere` when another tab or process stored it: told to subscribers, not to the observer. */
  readonly because: EventName | 'submitted' | 'elsewhere'
  /** Attempts made so far, over all restarts. */
  readonly attempts: number
  /** True while an attempt may have taken effect and nothing has said whether. */
  readonly inDoubt: boolean
}

/** Something that a person who runs the app should know. `code` is stable, `message` says what to do. */
export interface WarningNote {
  readonly type: 'warning'
  /**
   * - `possible_duplicate`: a new intent has the content of one that may have happened (P10).
   * - `markers_unreadable`, `monitor_unreadable`, `cors_suspected`: the page seems not to be allowed to read or send what
   *   the protocol needs; the message has the CORS lines (P41).
   * - `monitor_refused`: accepted work names a monitor on another origin (P40).
   * - `record_set_aside`: a record is damaged or from a newer version (P23).
   * - `auth_failed`: `auth` threw; the intent waits.
   * - `auth_header_refused`: `auth` gave a header that is not known to be a credential (P9).
   * - `app_code_failed`: `accept` or `reconcile` threw; nothing is concluded from it (P28).
   * - `store_failed`: the store could not be read or written; it is tried again.
   * - `store_not_durable`: intents are gone with this process or page.
   * - `window_closed`: the retention leaves no time in which a retry is safe (P35).
   * - `keys_url_unused`: `keysUrl` is given, but no operation that it could serve.
   * - `operation_unknown`: an intent's operation is not registered here (P24).
   * - `lane_stopped`: a named lane stands behind an intent that did not succeed (P34).
   */
  readonly code:
    | 'possible_duplicate'
    | 'markers_unreadable'
    | 'monitor_unreadable'
    | 'monitor_refused'
    | 'cors_suspected'
    | 'record_set_aside'
    | 'auth_failed'
    | 'auth_header_refused'
    | 'app_code_failed'
    | 'store_failed'
    | 'store_not_durable'
    | 'window_closed'
    | 'keys_url_unused'
    | 'operation_unknown'
    | 'lane_stopped'
  /** What happened and what to do, for a person. Its wording is not stable. */
  readonly message: string
  /** The intent that it is about, if it is about one. */
  readonly intentId?: string
  /** Its idempotency key. */
  readonly key?: string
  /** The error underneath; holds no secret of ours, but may be the app's own. */
  readonly error?: unknown
}

/** Everything an observer may be told. */
export type Note = StateNote | WarningNote

/** Gets every note, synchronously and after what it tells was stored. What it throws is ignored (P28). */
export type Observer = (note: Note) => void

/** Calls the app's code; an exception there, now or later, does nobody harm and never causes a second request (P28). */
export function guarded(run: () => unknown): void {
  try {
    const given = run()
    // An async function is a fine observer, too; its rejection must not end the process.
    if (given instanceof Promise) given.catch(() => {})
  } catch {
    // Nowhere to report it to: this is the reporter.
  }
}
