/** IndexedDB's errors, as what a store says. */

import { StoreFailure, type StoreFailureReason } from '../errors.ts'

/** The database could not be opened, or a transaction not be begun: nothing was written. */
export function notBegun(error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error
  const name = nameOf(error)
  if (name === 'VersionError') return reloadNeeded(error)
  const reason: StoreFailureReason = name === 'QuotaExceededError' ? 'quota' : 'unavailable'
  return new StoreFailure(reason, 'no', `${remedies[reason]} (${describe(error)}). Nothing was written.`, {
    cause: error,
  })
}

/**
 * A transaction was aborted.
 *
 * @param surely true when we aborted it ourselves, before it began to commit
 */
export function aborted(error: unknown, surely: boolean): StoreFailure {
  if (error instanceof StoreFailure) return error
  const reason = reasons[nameOf(error)] ?? (surely ? 'other' : 'unavailable')
  // These say that a request failed, so there was no commit. Of anything else, a lost connection for one, we only know
  // that nobody told us of a commit (P18).
  const written = surely || nameOf(error) in reasons ? 'no' : 'maybe'
  const known = written === 'no' ? 'Nothing was written.' : 'It may have been written.'
  return new StoreFailure(reason, written, `${remedies[reason]} (${describe(error)}). ${known}`, { cause: error })
}

/** B34: this page is older than the database. */
export function reloadNeeded(cause?: unknown): StoreFailure {
  const message = 'Reload needed: a newer version of this page has taken over the database. Nothing was written.'
  return new StoreFailure('unavailable', 'no', message, { cause })
}

const reasons: Readonly<Record<string, StoreFailureReason>> = {
  QuotaExceededError: 'quota',
  ConstraintError: 'other',
  DataCloneError: 'other',
  DataError: 'other',
  NotFoundError: 'other',
  ReadOnlyError: 'other',
}

const remedies: Readonly<Record<StoreFailureReason, string>> = {
  quota: 'No space is left for this site: free some',
  unavailable: 'IndexedDB cannot be used here: private mode, blocked site data, or a lost connection (then reload)',
  timeout: 'IndexedDB did not answer in time',
  closed: 'The store is closed',
  other: 'The store failed',
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : ''
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error ?? 'no reason given')
}
