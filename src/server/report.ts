import type { KeyId } from './store.ts'

/** Something that an operator should know. Holds no body and no secret of ours; what the app throws is the app's. */
export interface ServerEvent {
  /**
   * - `inconsistent`: a key row without a finished answer, or one that this release cannot compare (F21).
   * - `unavailable`: the store failed; nothing was executed (F4).
   * - `commitUnknown`: the connection was lost while committing (P61, F20).
   * - `executeFailed`: `execute` threw, or returned what cannot be sent; rolled back.
   * - `entryFailed`: `scope` or `authorize` threw; nothing was executed.
   * - `bodyNotStored`: an answer over `limits.answerBytes` was sent and its body not kept (P60).
   */
  readonly kind: 'inconsistent' | 'unavailable' | 'commitUnknown' | 'executeFailed' | 'entryFailed' | 'bodyNotStored'
  /** Name of the operation. */
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
  return (event) => {
    try {
      report(event)
    } catch {
      // See above.
    }
  }
}
