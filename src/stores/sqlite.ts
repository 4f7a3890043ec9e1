/** A store in one SQLite file, for Node: intents outlive the process, and several processes may share the file. */

import type { DatabaseSync } from 'node:sqlite'
import type { IntentStore, StoredRow } from '../ports.ts'
import {
  changedRow,
  checkFilter,
  checkKey,
  checkRow,
  checkText,
  closedFailure,
  copiedBlobs,
  headWithTurn,
  insertedRow,
  obstacle,
  supersededRow,
} from './rows.ts'
import { sqliteFailure } from './sqlite-failure.ts'
import { filePath, openFile } from './sqlite-file.ts'
import { groupCommit } from './sqlite-group-commit.ts'
import { type SqliteTables, sqliteTables } from './sqlite-tables.ts'

/** Options of {@link sqliteStore}. */
export interface SqliteStoreOptions {
  /**
   * How long a write waits for another process that is writing, in ms; it blocks this process meanwhile. Others hold
   * the file for one commit at a time, so it is rarely more than a few. Default: 5000 (5 seconds).
   */
  readonly busyTimeoutMs?: number
}

/**
 * Keeps intents in a SQLite file on a local disk. The file is opened at the first call, and created for its owner alone
 * (mode 0600) if it is not there. Writes of one turn of the event loop share one commit; a write that resolved survives
 * a crash and a power cut.
 *
 * @param path the file; its folder has to exist
 * @throws ConfigError when `path` cannot be a file
 * @example
 * ```ts
 * import { createClient } from 'samekey'
 * import { stripe } from 'samekey/dialects'
 * import { sqliteStore } from 'samekey/sqlite'
 *
 * const store = sqliteStore('outbox.db')
 * const payments = createClient({
 *   baseUrl: 'https://api.stripe.com/v1',
 *   dialect: stripe,
 *   store,
 *   scope: () => 'billing',
 *   auth: () => ({ scope: 'billing', headers: { authorization: `Bearer ${process.env.STRIPE_KEY}` } }),
 * })
 *
 * // At the end: the store is the app's, so the client does not close it.
 * await payments.stop()
 * await store.close()
 * ```
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): IntentStore {
  const { busyTimeoutMs = 5000 } = options
  const file = filePath(path)
  let opened: { readonly db: DatabaseSync; readonly tables: SqliteTables } | undefined
  let closing: Promise<void> | undefined

  function open(): { readonly db: DatabaseSync; readonly tables: SqliteTables } {
    if (opened === undefined) {
      const db = openFile(file, busyTimeoutMs)
      opened = { db, tables: sqliteTables(db) }
    }
    return opened
  }

  function discard(): void {
    opened?.db.close()
    opened = undefined
  }

  const commits = groupCommit({ open: () => open().db, discard, path: file })

  async function read<T>(run: (tables: SqliteTables) => T): Promise<T> {
    if (closing !== undefined) throw closedFailure('sqlite')
    try {
      return run(open().tables)
    } catch (error) {
      throw sqliteFailure(error, 'no', file)
    }
  }

  async function write<T>(run: (tables: SqliteTables) => T): Promise<T> {
    if (closing !== undefined) throw closedFailure('sqlite')
    return commits.run(() => run(open().tables))
  }

  return {
    kind: 'sqlite',
    durable: true,
    location: `sqlite:${file}`,

    async insert(row, blobs, supersedes) {
      checkRow(row)
      // Taken now: the transaction runs later, and what the caller changes until then is not meant (P9).
      const given = insertedRow(row, 0)
      const copies = copiedBlobs(blobs)
      return write((tables) => {
        const current = tables.current(given.client, given.scope, given.id)
        const obstructed = obstacle(current, tables.byKey(given), supersedes)
        if (obstructed !== undefined) return obstructed
        if (current !== undefined) tables.change(supersededRow(current))
        const inserted = { ...given, seq: tables.add(given) }
        for (const [name, bytes] of copies) tables.writeBlob(inserted.seq, name, bytes)
        passTurn(tables, inserted)
        return { inserted: true, row: tables.byKey(inserted) ?? inserted }
      })
    },

    async update(change, expected, blobs) {
      checkRow(change)
      checkText(expected.token)
      const { revision, token } = expected
      const given = insertedRow(change, 0)
      const copies = copiedBlobs(blobs)
      return write((tables) => {
        const stored = tables.byKey(given)
        if (stored?.revision !== revision || stored.token !== token) return null
        const row = changedRow(stored, given)
        tables.change(row)
        for (const [name, bytes] of copies) tables.writeBlob(row.seq, name, bytes)
        passTurn(tables, row)
        return tables.byKey(row) ?? row
      })
    },

    async remove(key, { revision }) {
      checkKey(key)
      const { client, scope, key: named } = key
      return write((tables) => {
        const stored = tables.byKey({ client, scope, key: named })
        if (stored?.revision !== revision) return false
        tables.drop(stored)
        passTurn(tables, stored)
        return true
      })
    },

    current: (client, scope, id) =>
      read((tables) => {
        checkText(client, scope, id)
        return tables.current(client, scope, id)
      }),

    byKey: (key) =>
      read((tables) => {
        checkKey(key)
        return tables.byKey(key)
      }),

    blob: (key, name) =>
      read((tables) => {
        checkKey(key)
        return tables.blob(key, name)
      }),

    due: (client, scope, now, limit) =>
      read((tables) => {
        checkText(client, scope)
        return tables.due(client, scope, now, limit)
      }),

    nextDueAt: (client, scope, after = Number.MIN_SAFE_INTEGER) =>
      read((tables) => {
        checkText(client, scope)
        return tables.nextDueAt(client, scope, after)
      }),

    laneHead: (client, lane) =>
      read((tables) => {
        checkText(client, lane)
        return tables.laneHead(client, lane)
      }),

    twins: (client, scope, twin) =>
      read((tables) => {
        checkText(client, scope, twin)
        return tables.twins(client, scope, twin)
      }),

    list: (client, filter) =>
      read((tables) => {
        checkFilter(client, filter)
        return tables.list(client, filter)
      }),

    countElsewhere: (client, scope) =>
      read((tables) => {
        checkText(client, scope)
        return tables.countElsewhere(client, scope)
      }),

    close() {
      closing ??= commits.idle().then(discard)
      return closing
    },
  }
}

/** The lane rule, inside the transaction that touched a row of the lane (P34). */
function passTurn(tables: SqliteTables, touched: StoredRow): void {
  if (touched.lane === null) return
  const turned = headWithTurn(tables.laneHead(touched.client, touched.lane))
  if (turned !== undefined) tables.change(turned)
}
