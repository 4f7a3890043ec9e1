/** SQLite's errors, as what a store says. */

import { StoreFailure, type StoreFailureReason } from '../errors.ts'

/**
 * The failure that an error of SQLite or of the file system amounts to.
 *
 * @param written what the caller knows about the write: SQLite's error alone does not say
 */
export function sqliteFailure(error: unknown, written: 'no' | 'maybe', path: string): StoreFailure {
  if (error instanceof StoreFailure) return error
  const reason = reasons[primaryCode(error)] ?? reasons[systemCode(error)] ?? 'other'
  const known = written === 'no' ? 'Nothing was written.' : 'It may have been written.'
  return new StoreFailure(reason, written, `${remedies[reason]} (${path}: ${messageOf(error)}). ${known}`, {
    cause: error,
  })
}

/** SQLite's primary result code, or 0 when the error is not SQLite's. */
export function primaryCode(error: unknown): number {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : 0
  return typeof code === 'number' ? code & 0xff : 0
}

/** Another connection holds the lock; it was waited for as long as was allowed. */
export const busy = 5
/** The disk, or the size that the database may have, is used up. */
export const full = 13

const reasons: Readonly<Record<number | string, StoreFailureReason>> = {
  3: 'unavailable', // PERM
  [busy]: 'timeout',
  6: 'timeout', // LOCKED
  8: 'unavailable', // READONLY
  10: 'unavailable', // IOERR
  11: 'unavailable', // CORRUPT
  [full]: 'quota',
  14: 'unavailable', // CANTOPEN
  23: 'unavailable', // AUTH
  26: 'unavailable', // NOTADB
  EACCES: 'unavailable',
  ENOENT: 'unavailable',
  ENOTDIR: 'unavailable',
  EPERM: 'unavailable',
  EROFS: 'unavailable',
  EDQUOT: 'quota',
  ENOSPC: 'quota',
}

const remedies: Readonly<Record<StoreFailureReason, string>> = {
  quota: 'No space is left for the store: free some',
  unavailable: 'The store cannot be read or written: check the file, its folder and their permissions',
  timeout: 'Another process held the store for too long: try again, or raise busyTimeoutMs',
  closed: 'The store is closed',
  other: 'The store failed',
}

function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
