/** What a client tells the app's logs and metrics, and the guarded way to tell it (P28). */
import type { EventName } from '../protocol/events.ts'
import type { StateName } from '../protocol/states.ts'

/** An intent's state changed, was stored, and is now announced (P22). */
export interface StateNote {
  readonly type: 'state'
  readonly intentId: string
  readonly key: string
  readonly operation: string
  /** State before, or null when the intent was just stored. */
  readonly from: StateName | null
  readonly to: StateName
  /** The event that caused it. */
  readonly because: EventName | 'submitted'
  readonly attempts: number
  readonly inDoubt: boolean
}

/** Something that a person who runs the app should know. `code` is stable, `message` says what to do. */
export interface WarningNote {
  readonly type: 'warning'
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
    | 'operation_unknown'
    | 'lane_stopped'
  readonly message: string
  readonly intentId?: string
  readonly key?: string
  /** The error underneath; holds no secret of ours, but may be the app's own. */
  readonly error?: unknown
}

/** Everything an observer may be told. */
export type Note = StateNote | WarningNote

/** Gets every note, synchronously. */
export type Observer = (note: Note) => void

/** Calls the app's code; an exception there is reported to nobody's harm and never causes a second request (P28). */
export function guarded(run: () => void): void {
  try {
    run()
  } catch {
    // Nowhere to report it to: this is the reporter.
  }
}
