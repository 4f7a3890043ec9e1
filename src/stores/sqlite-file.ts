/** The database file: where it is, how it is created and opened, and which versions of it we touch. */

import { closeSync, existsSync, openSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ConfigError, StoreFailure } from '../errors.ts'
import { busy, primaryCode, sqliteFailure } from './sqlite-failure.ts'

/** Version of the tables below, kept in the file's `user_version`. */
const schemaVersion = 1

/**
 * The absolute path of a database file, links resolved, so that two stores on one file know it.
 * @throws ConfigError when it names no file
 */
export function filePath(path: string): string {
  if (path === '' || path === ':memory:') {
    throw new ConfigError('path', 'a file is needed; for intents that may be lost, use memoryStore()')
  }
  if (/^file:/i.test(path)) throw new ConfigError('path', 'give the path of a file, not a URL')
  const absolute = resolve(path)
  if (existsSync(absolute)) return realpathSync(absolute)
  const folder = dirname(absolute)
  return existsSync(folder) ? join(realpathSync(folder), basename(absolute)) : absolute
}

/**
 * Opens the file, creating it (readable by its owner alone) or bringing it up to date.
 * @throws StoreFailure (written: 'no') when that cannot be done, or the file is somebody else's or a newer version's:
 *   such a file is left as it is
 */
export function openFile(path: string, busyTimeoutMs: number): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    createPrivately(path)
    db = new DatabaseSync(path, { enableForeignKeyConstraints: false })
    db.exec(`PRAGMA busy_timeout = ${Math.max(0, Math.floor(busyTimeoutMs))}`)
    refuseOthers(db, path)
    writeAhead(db, path, busyTimeoutMs)
    // P17: a commit that returned survives a power cut. macOS calls a disk flushed too early without `fullfsync`.
    db.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON')
    migrate(db)
    return db
  } catch (error) {
    db?.close()
    throw sqliteFailure(error, 'no', path)
  }
}

/** Marks the file as ours: "skey". */
const applicationId = 0x736b6579

const pauseMs = 5

const schema = `
  CREATE TABLE rows (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    client TEXT NOT NULL,
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    current INTEGER NOT NULL,
    token TEXT,
    leaseUntil REAL,
    state TEXT NOT NULL,
    open INTEGER NOT NULL,
    dueAt REAL,
    lane TEXT,
    laneHolds INTEGER NOT NULL,
    laneWaits INTEGER NOT NULL,
    twin TEXT,
    format INTEGER NOT NULL,
    data TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX rowsByKey ON rows (client, scope, key);
  CREATE UNIQUE INDEX rowsCurrent ON rows (client, scope, id) WHERE current = 1;
  CREATE INDEX rowsById ON rows (client, scope, id, seq);
  CREATE INDEX rowsByClient ON rows (client, seq);
  CREATE INDEX rowsByScope ON rows (client, scope, seq);
  CREATE INDEX rowsOpen ON rows (client, scope, seq) WHERE open = 1;
  CREATE INDEX rowsDue ON rows (client, scope, dueAt, seq) WHERE dueAt IS NOT NULL;
  CREATE INDEX rowsInLane ON rows (client, lane, seq) WHERE laneHolds = 1;
  CREATE INDEX rowsByTwin ON rows (client, scope, twin, seq) WHERE twin IS NOT NULL;
  CREATE TABLE blobs (
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (seq, name)
  ) STRICT;
`

/**
 * SQLite would create the file for everybody to read. It gives the files beside it (-wal, -shm) the same permissions.
 * Only a new file is opened here: closing any handle on a database in use would drop this process's locks on it.
 */
function createPrivately(path: string): void {
  if (existsSync(path)) return
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (existsSync(path)) return
    throw error
  }
}

/** Only an empty file, or one of ours that is not newer than this code, is ever written to. */
function refuseOthers(db: DatabaseSync, path: string): void {
  const version = versionOf(db)
  if (version === 0 && scalar(db, 'SELECT count(*) FROM sqlite_schema') === 0) return
  if (scalar(db, 'PRAGMA application_id') !== applicationId) {
    const message = `${path} is another program's database, and was left as it is: give the store a file of its own`
    throw new StoreFailure('unavailable', 'no', message)
  }
  if (version > schemaVersion) {
    const message = `${path} was written by a newer version of samekey, and was left as it is (schema ${version}, known here: ${schemaVersion}): upgrade, or use another file`
    throw new StoreFailure('unavailable', 'no', message)
  }
}

/** When it fails, the file is closed, which takes it back. */
function migrate(db: DatabaseSync): void {
  if (versionOf(db) === schemaVersion) return
  db.exec('BEGIN IMMEDIATE')
  // Read again under the lock: another process may have been faster.
  if (versionOf(db) < schemaVersion) {
    db.exec(schema)
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}`)
  }
  db.exec('COMMIT')
}

/**
 * Readers then never wait for the writer. Of two processes that open a new file at once, SQLite refuses one here without
 * waiting for its turn, so the waiting is done by hand.
 */
function writeAhead(db: DatabaseSync, path: string, busyTimeoutMs: number): void {
  for (let waitedMs = 0; ; waitedMs += pauseMs) {
    try {
      const mode = scalar(db, 'PRAGMA journal_mode = WAL')
      if (mode === 'wal') return
      const message = `${path} cannot have a write-ahead log (journal mode ${mode}): put it on a local disk`
      throw new StoreFailure('unavailable', 'no', message)
    } catch (error) {
      if (primaryCode(error) !== busy || waitedMs >= busyTimeoutMs) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
    }
  }
}

function versionOf(db: DatabaseSync): number {
  return Number(scalar(db, 'PRAGMA user_version'))
}

function scalar(db: DatabaseSync, sql: string): string | number | undefined {
  return Object.values(db.prepare(sql).get() ?? {})[0] as string | number | undefined
}
