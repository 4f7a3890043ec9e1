/** Every statement that the SQLite store runs, prepared once. Synchronous; transactions are the caller's. */

import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import type { BlobName, RowFilter, RowKey, StoredRow } from '../ports.ts'
import { wholeLimit } from './rows.ts'

/** The tables of one open database. */
export interface SqliteTables {
  /** The current row of an id. */
  current(client: string, scope: string, id: string): StoredRow | undefined
  /** The row of a key. */
  byKey(key: RowKey): StoredRow | undefined
  /** Adds a row and returns its seq; the row's own is ignored. */
  add(row: StoredRow): number
  /** Writes all of a row that may change. */
  change(row: StoredRow): void
  /** Removes a row with its blobs. */
  drop(row: StoredRow): void
  /** Writes a blob, or removes it with null. */
  writeBlob(seq: number, name: BlobName, bytes: Uint8Array | null): void
  /** Reads a blob. */
  blob(key: RowKey, name: BlobName): Uint8Array | undefined
  /** Rows with `dueAt <= now`, the longest due first. */
  due(client: string, scope: string, now: number, limit: number): StoredRow[]
  /** The smallest `dueAt` above `after`, or null. */
  nextDueAt(client: string, scope: string, after: number): number | null
  /** The first row that holds its lane. */
  laneHead(client: string, lane: string): StoredRow | undefined
  /** Rows with this twin. */
  twins(client: string, scope: string, twin: string): StoredRow[]
  /** Rows by filter. */
  list(client: string, filter: RowFilter): StoredRow[]
  /** Open rows of other scopes. */
  countElsewhere(client: string, scope: string): number
}

/** Prepares the statements for a database whose schema is up to date. */
export function sqliteTables(db: DatabaseSync): SqliteTables {
  const currentRow = db.prepare(`${select} WHERE client = $client AND scope = $scope AND id = $id AND current = 1`)
  const rowByKey = db.prepare(`${select} WHERE client = $client AND scope = $scope AND key = $key`)
  const addRow = db.prepare(`
    INSERT INTO rows (client, scope, id, key, revision, current, token, leaseUntil, state, open, dueAt, lane, laneHolds,
      laneWaits, twin, format, data)
    VALUES ($client, $scope, $id, $key, $revision, $current, $token, $leaseUntil, $state, $open, $dueAt, $lane,
      $laneHolds, $laneWaits, $twin, $format, $data)`)
  const changeRow = db.prepare(`
    UPDATE rows SET revision = $revision, current = $current, token = $token, leaseUntil = $leaseUntil, state = $state,
      open = $open, dueAt = $dueAt, laneHolds = $laneHolds, laneWaits = $laneWaits, twin = $twin, format = $format,
      data = $data
    WHERE seq = $seq`)
  const dropRow = db.prepare('DELETE FROM rows WHERE seq = $seq')
  const dropBlobs = db.prepare('DELETE FROM blobs WHERE seq = $seq')
  // An empty array arrives as NULL, because SQLite is given no address for it.
  const putBlob = db.prepare(`
    INSERT INTO blobs (seq, name, bytes) VALUES ($seq, $name, coalesce($bytes, x''))
    ON CONFLICT (seq, name) DO UPDATE SET bytes = excluded.bytes`)
  const dropBlob = db.prepare('DELETE FROM blobs WHERE seq = $seq AND name = $name')
  const readBlob = db.prepare(`
    SELECT bytes FROM rows JOIN blobs ON blobs.seq = rows.seq AND name = $name
    WHERE client = $client AND scope = $scope AND key = $key`)
  const dueRows = db.prepare(`
    ${select} WHERE client = $client AND scope = $scope AND dueAt <= $now ORDER BY dueAt, seq LIMIT $limit`)
  const nextDue = db.prepare(`
    SELECT dueAt FROM rows WHERE client = $client AND scope = $scope AND dueAt > $after ORDER BY dueAt LIMIT 1`)
  const headRow = db.prepare(`
    ${select} WHERE client = $client AND lane = $lane AND laneHolds = 1 ORDER BY seq LIMIT 1`)
  const twinRows = db.prepare(`${select} WHERE client = $client AND scope = $scope AND twin = $twin ORDER BY seq`)
  const elsewhere = db.prepare(`
    SELECT (SELECT count(*) FROM rows WHERE client = $client AND scope < $scope AND open = 1)
         + (SELECT count(*) FROM rows WHERE client = $client AND scope > $scope AND open = 1) AS count`)
  const lists = new Map<string, StatementSync>()

  return {
    current: (client, scope, id) => rowFrom(currentRow.get({ client, scope, id })),
    byKey: ({ client, scope, key }) => rowFrom(rowByKey.get({ client, scope, key })),
    add: ({ seq: _, ...row }) => Number(addRow.run(columns(row)).lastInsertRowid),
    change: ({ client, scope, id, key, lane, ...changing }) => void changeRow.run(columns(changing)),

    drop({ seq }) {
      dropBlobs.run({ seq })
      dropRow.run({ seq })
    },

    writeBlob(seq, name, bytes) {
      if (bytes === null) dropBlob.run({ seq, name })
      else putBlob.run({ seq, name, bytes })
    },

    blob({ client, scope, key }, name) {
      const found = readBlob.get({ client, scope, key, name }) as { bytes: Uint8Array } | undefined
      return found?.bytes
    },

    due: (client, scope, now, limit) => dueRows.all({ client, scope, now, limit: wholeLimit(limit) }).map(presentRow),
    nextDueAt: (client, scope, after) =>
      (nextDue.get({ client, scope, after }) as { dueAt: number } | undefined)?.dueAt ?? null,
    laneHead: (client, lane) => rowFrom(headRow.get({ client, lane })),
    twins: (client, scope, twin) => twinRows.all({ client, scope, twin }).map(presentRow),

    list(client, filter) {
      const { sql, values } = listQuery(client, filter)
      const statement = lists.get(sql) ?? db.prepare(sql)
      lists.set(sql, statement)
      return statement.all(values).map(presentRow)
    },

    countElsewhere: (client, scope) => (elsewhere.get({ client, scope }) as { count: number }).count,
  }
}

const select = 'SELECT * FROM rows'

type Flags = 'current' | 'open' | 'laneHolds' | 'laneWaits'

type SqlRow = Omit<StoredRow, Flags> & { readonly [flag in Flags]: 0 | 1 }

/** One of a few dozen texts; `open` is spelled out because SQLite uses a partial index only for what it reads there. */
function listQuery(client: string, filter: RowFilter): { sql: string; values: Record<string, SQLInputValue> } {
  const conditions = ['client = $client']
  const values: Record<string, SQLInputValue> = { client, limit: wholeLimit(filter.limit) }
  function where(condition: string, name: string, value: SQLInputValue | undefined): void {
    if (value === undefined) return
    conditions.push(condition)
    values[name] = value
  }
  where('scope = $scope', 'scope', filter.scope)
  where('id = $id', 'id', filter.id)
  where('seq > $afterSeq', 'afterSeq', filter.afterSeq)
  where('state IN (SELECT value FROM json_each($states))', 'states', filter.states && JSON.stringify(filter.states))
  if (filter.open !== undefined) conditions.push(filter.open ? 'open = 1' : 'open = 0')
  return { sql: `${select} WHERE ${conditions.join(' AND ')} ORDER BY seq LIMIT $limit`, values }
}

/** Every named value as SQLite takes it: it knows no booleans. */
function columns(row: Partial<StoredRow>): Record<string, SQLInputValue> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'boolean' ? Number(value) : value]),
  )
}

function rowFrom(row: Record<string, SQLOutputValue> | undefined): StoredRow | undefined {
  return row === undefined ? undefined : presentRow(row)
}

/** The columns are named like the members, and the tables are STRICT: only the booleans have to be turned back. */
function presentRow(row: Record<string, SQLOutputValue>): StoredRow {
  const { current, open, laneHolds, laneWaits, ...same } = row as SqlRow
  return { ...same, current: !!current, open: !!open, laneHolds: !!laneHolds, laneWaits: !!laneWaits }
}
