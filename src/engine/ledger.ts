/**
 * Records in and out of the store: text and columns, leases, compare-and-set. The only place that knows both the
 * record and the row.
 */
import type { BlobChange, IntentStore, NewRow, Platform, RowChange, RowKey, StoredRow } from '../ports.ts'
import { type Decoded, decodeRecord, encodeRecord } from '../protocol/codec.ts'
import { holdsLane, type IntentRecord, isInDoubt, recordFormat } from '../protocol/record.ts'
import { isSettled } from '../protocol/states.ts'

/** A record as it stands in the store. */
export interface Loaded {
  readonly row: StoredRow
  readonly record: IntentRecord
}

/** A row whose record cannot be read (P23). Its id stays taken. */
export interface SetAside {
  readonly row: StoredRow
  readonly reason: 'damaged' | 'newer'
}

/** True for a row that could not be read. */
export function isSetAside(found: Loaded | SetAside): found is SetAside {
  return 'reason' in found
}

export interface Ledger {
  read(row: StoredRow): Loaded | SetAside
  /** Writes the record if it still stands as `loaded`; with a lease when `leased`, else without. Null when it moved on. */
  commit(loaded: Loaded, record: IntentRecord, leased: boolean, blobs?: BlobChange): Promise<Loaded | null>
  /** The same in two steps, for a write that may be tried more than once. */
  changeTo(record: IntentRecord, leased: boolean): RowChange
  write(loaded: Loaded, change: RowChange, blobs?: BlobChange): Promise<StoredRow | null>
  /** The row if a write that is said to have failed is there after all (P18); null when it is not, or cannot be read now. */
  landed(loaded: Loaded, change: RowChange): Promise<StoredRow | null>
  /** The row under which a new record is inserted. */
  newRow(record: IntentRecord): NewRow
  /** True when nobody holds the row now: no lease, an old one, or one whose holder is known to be gone (P47, P49). */
  isFree(row: StoredRow): Promise<boolean>
}

/** Texts of records whose meaning is kept at hand: a few more than are worked on at once. */
const mostKnown = 50

/** Names the row of a record. */
export function keyOf({ client, scope, key }: RowKey): RowKey {
  return { client, scope, key }
}

export function createLedger(store: IntentStore, platform: Platform, leaseMs: number): Ledger {
  const { clock, ids, liveness } = platform

  /** A row is looked at several times before it changes: what its text says is found out once. */
  const known = new Map<string, Decoded>()

  function decoded(format: number, data: string): Decoded {
    const found = format === recordFormat ? known.get(data) : undefined
    if (found !== undefined) return found
    const read = decodeRecord(format, data)
    if (format !== recordFormat) return read
    if (known.size >= mostKnown) known.clear()
    known.set(data, read)
    return read
  }

  /** What could not be read again must not replace what can (P23). Never the case, or a bug: then nothing is written. */
  function readable(data: string): string {
    if (decoded(recordFormat, data).ok) return data
    throw new Error('The changed record could not be read again, so it is not stored.')
  }

  function columns(record: IntentRecord, leased: boolean): NewRow {
    const leaseUntil = leased ? clock.now() + leaseMs : null
    const { client, scope, id, key, state } = record
    return {
      client,
      scope,
      id,
      key,
      token: leased ? `${liveness.holder}.${ids.token()}` : null,
      leaseUntil,
      state: state.name,
      open: !isSettled(state.name),
      // Under a lease, the row wants attention when the lease is over: that is how a dead holder's work is found (P20).
      dueAt: leaseUntil ?? record.dueAt,
      lane: record.lane?.lane ?? null,
      laneHolds: holdsLane(record),
      laneWaits: state.name === 'blocked' && state.on === 'lane',
      twin: isInDoubt(record) || state.name === 'abandoned' ? record.fingerprint.digest : null,
      format: recordFormat,
      data: readable(encodeRecord(record)),
    }
  }

  function write({ row }: Loaded, change: RowChange, blobs?: BlobChange): Promise<StoredRow | null> {
    const { revision, token } = row
    return store.update(change, { revision, token }, blobs)
  }

  return {
    read(row) {
      const found = decoded(row.format, row.data)
      if (!found.ok) return { row, reason: found.reason }
      const { record } = found
      // A record that does not belong to its row was mixed up by something: never work on it.
      const same =
        record.key === row.key && record.id === row.id && record.scope === row.scope && record.client === row.client
      return same && hasLease(row) ? { row, record } : { row, reason: 'damaged' }
    },

    async commit(loaded, record, leased, blobs) {
      const row = await write(loaded, columns(record, leased), blobs)
      return row === null ? null : { row, record }
    },

    changeTo: columns,
    write,

    async landed({ row }, change) {
      try {
        const found = await store.byKey(keyOf(row))
        // The token tells it from what another context made of the same record in the same moment.
        const isOurs =
          found?.revision === row.revision + 1 && found.token === change.token && found.data === change.data
        return found !== undefined && isOurs ? found : null
      } catch {
        return null
      }
    },

    newRow: (record) => columns(record, false),

    async isFree({ token, leaseUntil }) {
      if (token === null || leaseUntil === null) return true
      // No clock that agrees with ours gave a lease so long: its holder's was wrong, or ours is (P35, P49).
      const isOver = leaseUntil <= clock.now() || leaseUntil > clock.now() + 2 * leaseMs
      if (isOver) return true
      const holder = token.slice(0, token.indexOf('.'))
      return holder !== liveness.holder && (await liveness.isGone(holder))
    },
  }
}

/** What every change is compared with, and whose turn it is, must be of its kind: else nobody could ever change the row. */
function hasLease({ token, leaseUntil }: StoredRow): boolean {
  return (token === null || typeof token === 'string') && (leaseUntil === null || Number.isFinite(leaseUntil))
}
