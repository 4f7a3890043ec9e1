/** What the functions of a task throw. Match on `code`: it is the same across bundles, classes are not. */

/**
 * This worker does not have the work any more: its lease was over, somebody else took it, it was voided or ended by
 * hand, or the worker is stopping. What was to be written was not written, and nothing will be (P63, F10).
 */
export class WorkLostError extends Error {
  override readonly name = 'WorkLostError' as const
  readonly code = 'work_lost' as const

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
  }
}

/**
 * A call to another service may have taken effect and nobody knows yet (P65). The worker tries again: with the same
 * operation id, or by asking first. A handler need not catch it.
 */
export class CallOpenError extends Error {
  override readonly name = 'CallOpenError' as const
  readonly code = 'call_open' as const
  /** Name of the call. */
  readonly call: string
  /** Epoch ms by the store's clock before which a try says nothing; null where the usual back-off does. */
  readonly retryAt: number | null

  constructor(call: string, message: string, retryAt: number | null, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.call = call
    this.retryAt = retryAt
  }
}

/** A call surely never reached the service: nothing took effect (P65). The worker tries again. */
export class CallUndeliveredError extends Error {
  override readonly name = 'CallUndeliveredError' as const
  readonly code = 'call_undelivered' as const
  /** Name of the call. */
  readonly call: string

  constructor(call: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.call = call
  }
}

/** A call may have taken effect and no worker can find out: the work waits for a person, see `settle` (P65). */
export class CallUnknownError extends Error {
  override readonly name = 'CallUnknownError' as const
  readonly code = 'call_unknown' as const
  /** Name of the call. */
  readonly call: string
  /** What `settle` takes. */
  readonly operationId: string

  constructor(call: string, operationId: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.call = call
    this.operationId = operationId
  }
}

/** True for an error of this kind, whichever copy of the library threw it. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
