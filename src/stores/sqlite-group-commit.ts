/**
 * One commit for all writes of one turn of the event loop. Making a commit durable costs the disk one flush, whatever
 * is in it: a hundred intents submitted together then cost one, not a hundred.
 */

import type { DatabaseSync } from 'node:sqlite'
import { busy, full, primaryCode, sqliteFailure } from './sqlite-failure.ts'

/** Writes that go to disk together. */
export interface GroupCommit {
  /**
   * Runs `write` in the next commit, and resolves with what it returned once that is on disk.
   * @throws StoreFailure (by rejection): its own, without harm to the others, or that of the commit, like all of them
   */
  run<T>(write: () => T): Promise<T>
  /** Resolves when everything asked for so far has been decided. */
  idle(): Promise<void>
}

/** The database that the writes go to. */
export interface GroupCommitOptions {
  /** The open database; opens it if need be. */
  readonly open: () => DatabaseSync
  /** Closes the database, whose state is not known any more; `open` is called again for the next commit. */
  readonly discard: () => void
  /** For messages. */
  readonly path: string
}

/** Collects writes. Nothing else may begin transactions on the same connection. */
export function groupCommit(options: GroupCommitOptions): GroupCommit {
  let queue: Queued[] = []
  let flushed: Promise<void> | undefined

  function flush(): void {
    const batch = queue
    queue = []
    flushed = undefined
    const failAll = (error: unknown, written: 'no' | 'maybe') => {
      for (const each of batch) each.reject(sqliteFailure(error, written, options.path))
    }

    let db: DatabaseSync
    try {
      db = options.open()
      db.exec('BEGIN IMMEDIATE')
    } catch (error) {
      failAll(error, 'no')
      return
    }
    const settle: (() => void)[] = []
    for (const each of batch) {
      const failed = attempt(db, each, settle)
      if (failed === undefined) continue
      if (undo(db)) settle.push(() => each.reject(sqliteFailure(failed, 'no', options.path)))
      else {
        // SQLite rolled all of it back by itself, as it does when the disk is full or fails.
        options.discard()
        failAll(failed, 'no')
        return
      }
    }
    try {
      db.exec('COMMIT')
    } catch (error) {
      // With no room for the commit, or no turn for it, there is none. After a failed flush it may be on disk all the
      // same and come to light after a crash (P18).
      options.discard()
      failAll(error, [full, busy].includes(primaryCode(error)) ? 'no' : 'maybe')
      return
    }
    for (const tell of settle) tell()
  }

  return {
    run(write) {
      return new Promise((resolve, reject) => {
        queue.push({ write, resolve: resolve as (value: unknown) => void, reject })
        flushed ??= new Promise<void>((done) => {
          setImmediate(() => {
            flush()
            done()
          })
        })
      })
    },

    async idle() {
      while (flushed !== undefined) await flushed
    },
  }
}

interface Queued {
  readonly write: () => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Runs one write in a savepoint of its own; returns its error, if it failed. */
function attempt(db: DatabaseSync, queued: Queued, settle: (() => void)[]): unknown {
  try {
    db.exec('SAVEPOINT one')
    const value = queued.write()
    db.exec('RELEASE one')
    settle.push(() => queued.resolve(value))
    return undefined
  } catch (error) {
    return error ?? new Error('a write failed without saying why')
  }
}

/** Takes back what a failed write did; false when the whole transaction is gone. */
function undo(db: DatabaseSync): boolean {
  try {
    db.exec('ROLLBACK TO one; RELEASE one')
    return true
  } catch {
    return false
  }
}
