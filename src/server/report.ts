import { quietly } from './quietly.ts'
import type { KeyId } from './store.ts'

/** Something that an operator should know. Holds no body and no secret of ours; what the app throws is the app's. */
export interface ServerEvent {
  /**
   * - `inconsistent`: a key row without a finished answer, or one that this release cannot compare (F21).
   * - `unavailable`: the store failed; nothing was executed (F4).
   * - `commitUnknown`: the connection was lost while committing (P61, F20).
   * - `executeFailed`: `execute` threw, or returned what cannot be sent; rolled back.
   * - `entryFailed`: `scope` or `authorize` threw; nothing was executed.
   * - `answerFailed`: what the key knows could not be told: a damaged row, or a mistake of the kit.
   * - `bodyNotStored`: an answer over the limit for answers was sent, or given by a worker, and its body not kept (P60).
   * - `taskFailed`: an execution of accepted work failed; it is tried again, or was given up (P64).
   * - `taskUnknown`: accepted work waits for a person (P65).
   * - `workLost`: a worker lost work that it had in hand; what it writes from then on is refused (P63, F10).
   * - `requestChanged`: a call to another service was made with another request than at the first try (P65).
   * - `workerTrouble`: a worker could not take work, or could not write down how it ended: the store failed.
   */
  readonly kind:
    | 'inconsistent'
    | 'unavailable'
    | 'commitUnknown'
    | 'executeFailed'
    | 'entryFailed'
    | 'answerFailed'
    | 'bodyNotStored'
    | 'taskFailed'
    | 'taskUnknown'
    | 'workLost'
    | 'requestChanged'
    | 'workerTrouble'
  /** Name of the operation; of a worker's own trouble, the names of all that it does. */
  readonly operation: string
  /** Null where the request failed before it was known whose it is. */
  readonly id: KeyId | null
  /** What happened, for a person. */
  readonly detail: string
  /** What was thrown, or undefined. */
  readonly error: unknown
}

/** Receives events. What it throws is ignored: telling about a request must not change it (P28). */
export type Report = (event: ServerEvent) => void

/** One line per event on the console: silence would be the wrong default for damage. */
export const reportToConsole: Report = ({ kind, operation, id, detail, error }) => {
  const whose = id === null ? '' : ` key ${id.key} of ${id.tenant}/${id.principal}`
  // biome-ignore lint/suspicious/noConsole: the default where the app gives no `report`; a server has a console.
  console.error(`samekey: ${kind} in ${operation}${whose}: ${detail}`, ...(error === undefined ? [] : [error]))
}

/** A report that cannot throw. */
export function safely(report: Report): Report {
  return (event) => quietly(() => report(event))
}
