/** What a server store throws. Match on `code`: it is the same across bundles, classes are not. */

/**
 * The store could not be reached or could not do its work, and nothing of the transaction is or will be visible: it
 * was never committed. The handler answers 503 `idempotency_unavailable`.
 */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError' as const
  readonly code = 'store_unavailable' as const

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
  }
}

/**
 * The connection was lost while committing: it may be committed or not, and only the row can tell (P61, F20). The
 * handler says exactly that, and the next request with the key finds the truth.
 */
export class CommitUnknownError extends Error {
  override readonly name = 'CommitUnknownError' as const
  readonly code = 'commit_unknown' as const

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
  }
}

/** The app's `scope`, `authorize` or `reread` threw, or the body is gone: nothing was executed by this request. */
export class EntryError extends Error {
  override readonly name = 'EntryError' as const

  constructor(what: string, cause: unknown) {
    super(`${what} failed.`, { cause })
  }
}
