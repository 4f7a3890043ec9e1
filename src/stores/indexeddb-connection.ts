/**
 * A connection to IndexedDB that does not believe in it: opened when needed, opened again when it was closed underneath
 * (B30), given up for a newer version (B34), and never waited for without end (B31).
 */

import type { UseStore } from 'idb-keyval'
import { StoreFailure } from '../errors.ts'
import type { Clock, Timer } from '../ports.ts'
import { aborted, notBegun, reloadNeeded } from './indexeddb-failure.ts'
import { closedFailure } from './rows.ts'

/** Options of {@link indexedDbConnection}. */
export interface IndexedDbConnectionOptions {
  /** Name of the database. */
  readonly databaseName: string
  /** Version of its layout. */
  readonly version: number
  /** The object store in it. */
  readonly storeName: string
  /** Brings the layout up to date, inside the version change. */
  readonly upgrade: (database: IDBDatabase) => void
  /** How long to wait for opening, and again for each transaction, in ms. */
  readonly timeoutMs: number
  /** Default: the platform's, looked up when needed, because the mere look can throw. */
  readonly factory?: IDBFactory | undefined
  /** Default: `platformTimer` below. */
  readonly timer?: Clock['timer'] | undefined
}

/** A connection to one object store. */
export interface IndexedDbConnection {
  /**
   * Runs `callback` inside one transaction, for idb-keyval's functions or directly. A `readwrite` one asks for strict
   * durability, and resolves only once the transaction is complete (B40). The callback may wait for its requests and
   * for nothing else; when it throws, the transaction is aborted.
   * @throws StoreFailure (by rejection), whatever the reason
   */
  readonly use: UseStore
  /** Waits for what was begun and closes. */
  close(): Promise<void>
}

/** Nothing is opened before the first use. */
export function indexedDbConnection(options: IndexedDbConnectionOptions): IndexedDbConnection {
  const { databaseName, version, storeName, upgrade, timeoutMs, timer = platformTimer } = options
  const running = new Set<Promise<unknown>>()
  let database: IDBDatabase | undefined
  let opening: Promise<IDBDatabase> | undefined
  let superseded = false
  let closed = false
  let ended = false

  function opened(): Promise<IDBDatabase> {
    if (database !== undefined) return Promise.resolve(database)
    opening ??= open()
      .catch((error: unknown) => {
        throw notBegun(error)
      })
      .finally(() => {
        opening = undefined
      })
    return opening
  }

  function open(): Promise<IDBDatabase> {
    return new Promise((resolve, reject) => {
      if (superseded) throw reloadNeeded()
      const request = factoryOf(options).open(databaseName, version)
      let isBlocked = false
      const limit = patiently(timer, timeoutMs, () => reject(openTimeout(timeoutMs, isBlocked)))
      request.onupgradeneeded = () => upgrade(request.result)
      request.onblocked = () => {
        isBlocked = true
      }
      request.onsuccess = () => {
        limit.cancel()
        // It may come after the time-out: then the next call finds it open.
        resolve(adopt(request.result))
      }
      request.onerror = (event) => {
        limit.cancel()
        event.preventDefault()
        superseded ||= request.error?.name === 'VersionError'
        reject(request.error)
      }
    })
  }

  function adopt(candidate: IDBDatabase): IDBDatabase {
    if (ended || database !== undefined) {
      candidate.close()
      return database ?? candidate
    }
    database = candidate
    candidate.onclose = () => forget(candidate)
    candidate.onversionchange = ({ newVersion }) => {
      // B34: the page that asks waits for this. What was begun still completes. Deletion leaves no newer version behind.
      superseded ||= newVersion !== null
      candidate.close()
      forget(candidate)
    }
    return candidate
  }

  function forget(candidate: IDBDatabase): void {
    if (database === candidate) database = undefined
  }

  function begin(connected: IDBDatabase, mode: IDBTransactionMode): IDBTransaction {
    try {
      return connected.transaction(storeName, mode, mode === 'readwrite' ? { durability: 'strict' } : {})
    } catch (error) {
      throw notBegun(error)
    }
  }

  async function run<T>(mode: IDBTransactionMode, callback: (store: IDBObjectStore) => T | PromiseLike<T>): Promise<T> {
    const connected = await opened()
    let transaction: IDBTransaction
    try {
      transaction = begin(connected, mode)
    } catch {
      // B30: closed underneath without an event. Nothing was begun, so that once more is safe.
      connected.close()
      forget(connected)
      transaction = begin(await opened(), mode)
    }
    // Begun and used in one go: a transaction that is left alone commits.
    return perform(transaction, transaction.objectStore(storeName), callback)
  }

  function perform<T>(
    transaction: IDBTransaction,
    store: IDBObjectStore,
    callback: (store: IDBObjectStore) => T | PromiseLike<T>,
  ): Promise<T> {
    const writes = transaction.mode === 'readwrite'
    return new Promise((resolve, reject) => {
      let failure: unknown
      let abortedByUs = false
      const limit = patiently(timer, timeoutMs, () => {
        const surely = abort(transaction) || !writes
        reject(transactionTimeout(timeoutMs, surely))
      })
      const value = attempt(() => callback(store))
      value.then(
        (result) => {
          if (!writes) settle(() => resolve(result))
        },
        (error: unknown) => {
          failure = error
          abortedByUs = abort(transaction)
        },
      )
      // Listeners, not handlers: idb-keyval's functions set the handlers.
      transaction.addEventListener('complete', () => settle(() => resolve(value)))
      transaction.addEventListener('abort', () =>
        settle(() => reject(aborted(transaction.error ?? failure, abortedByUs || !writes))),
      )

      function settle(tell: () => void): void {
        limit.cancel()
        tell()
      }
    })
  }

  return {
    use(mode, callback) {
      if (closed) return Promise.reject(closedFailure('indexeddb'))
      const call = run(mode, callback)
      running.add(call)
      const done = () => running.delete(call)
      call.then(done, done)
      return call
    },

    async close() {
      closed = true
      await Promise.allSettled(running)
      ended = true
      database?.close()
      database = undefined
    },
  }
}

/** The only timer of the stores: it bounds waiting and decides nothing else. */
const platformTimer: Clock['timer'] = (ms, run) => {
  const id = setTimeout(run, ms)
  return { cancel: () => clearTimeout(id) }
}

/**
 * A time limit in two halves. After a page was frozen or a device slept, a limit is over although the database had no
 * time to answer: the second half gives it some.
 */
function patiently(timer: Clock['timer'], ms: number, run: () => void): Timer {
  let current = timer(ms / 2, () => {
    current = timer(ms / 2, run)
  })
  return { cancel: () => current.cancel() }
}

function factoryOf(options: IndexedDbConnectionOptions): IDBFactory {
  const factory: IDBFactory | undefined = options.factory ?? globalThis.indexedDB
  if (factory !== undefined && factory !== null) return factory
  throw new StoreFailure('unavailable', 'no', 'There is no IndexedDB here. Nothing was written.')
}

/** What the callback gives, with a throw as a rejection; begun at once. */
async function attempt<T>(callback: () => T | PromiseLike<T>): Promise<T> {
  return callback()
}

/** True when the transaction surely leaves nothing behind: one that began to commit cannot be aborted. */
function abort(transaction: IDBTransaction): boolean {
  try {
    transaction.abort()
    return true
  } catch {
    return false
  }
}

function openTimeout(timeoutMs: number, isBlocked: boolean): StoreFailure {
  const why = isBlocked ? 'another tab holds an older version open: close or reload it' : 'the browser did not answer'
  return new StoreFailure(
    'timeout',
    'no',
    `The database did not open within ${timeoutMs} ms: ${why}. Nothing was written.`,
  )
}

function transactionTimeout(timeoutMs: number, surely: boolean): StoreFailure {
  const known = surely ? 'It was aborted, and nothing was written.' : 'It may have been written.'
  return new StoreFailure('timeout', surely ? 'no' : 'maybe', `A transaction took more than ${timeoutMs} ms. ${known}`)
}
