/**
 * What every store decides alike, whatever it is built on: how a row is made and changed, what stands in the way of an
 * insert, whose turn it is in a lane, which text can be kept. Pure.
 */

import { StoreFailure } from '../errors.ts'
import type { BlobChange, BlobName, InsertResult, NewRow, RowChange, RowFilter, RowKey, StoredRow } from '../ports.ts'

/** The row that an insert stores under `seq`. Only the port's own members are taken over. */
export function insertedRow(row: NewRow, seq: number): StoredRow {
  return Object.freeze({ ...taken(row), revision: 1, seq, current: true })
}

/** The row that an update stores: identity, order and lane stay as they were inserted. */
export function changedRow(stored: StoredRow, change: RowChange): StoredRow {
  const { client, scope, id, key, lane, seq, current } = stored
  return Object.freeze({ ...taken(change), client, scope, id, key, lane, seq, current, revision: stored.revision + 1 })
}

/** The row as it is kept once a newer intent has its id. Not an update: the revision does not count up. */
export function supersededRow(stored: StoredRow): StoredRow {
  return Object.freeze({ ...stored, current: false })
}

/** The lane's head with its turn passed on to it, or undefined when it waits for something else (P34). */
export function headWithTurn(head: StoredRow | undefined): StoredRow | undefined {
  return head?.laneWaits === true && head.dueAt === null ? Object.freeze({ ...head, dueAt: 0 }) : undefined
}

/**
 * What stands in the way of an insert, or undefined when nothing does. The id is looked at before the key, so that a
 * second submit with a caller's own key joins its intent (P6). When the row to be superseded is gone and nothing took
 * its place, the id is free.
 */
export function obstacle(
  current: StoredRow | undefined,
  sameKey: StoredRow | undefined,
  supersedes: { readonly key: string; readonly revision: number } | undefined,
): (InsertResult & { readonly inserted: false }) | undefined {
  const replaced = current !== undefined && current.key === supersedes?.key && current.revision === supersedes.revision
  if (current !== undefined && !replaced) return { inserted: false, taken: 'id', row: current }
  if (sameKey !== undefined) return { inserted: false, taken: 'key', row: sameKey }
  return undefined
}

/** True when the row meets every condition of the filter; `limit` is the caller's. */
export function matches(row: StoredRow, filter: RowFilter): boolean {
  return (
    (filter.scope === undefined || row.scope === filter.scope) &&
    (filter.id === undefined || row.id === filter.id) &&
    (filter.open === undefined || row.open === filter.open) &&
    (filter.states === undefined || filter.states.includes(row.state)) &&
    (filter.afterSeq === undefined || row.seq > filter.afterSeq)
  )
}

/** A limit as databases take it: whole, not negative, not endless. */
export function wholeLimit(limit: number): number {
  return Math.min(Math.max(0, Math.floor(limit)), 2 ** 31 - 1)
}

/** The blobs as they are when the method is called: what the caller does to its buffers later does not matter (P9). */
export function copiedBlobs(blobs: BlobChange = {}): readonly (readonly [BlobName, Uint8Array<ArrayBuffer> | null])[] {
  return blobNames.flatMap((name) => {
    const bytes = blobs[name]
    return bytes === undefined ? [] : [[name, bytes === null ? null : new Uint8Array(bytes)] as const]
  })
}

/**
 * Refuses text that some store could not give back as it came: a NUL character (PostgreSQL keeps none) or half of a
 * surrogate pair (no UTF-8 has one, so two different ids could become the same). All stores refuse it alike, in
 * searches too.
 * @throws StoreFailure (`other`, written: 'no')
 */
export function checkText(...texts: readonly (string | null | undefined)[]): void {
  for (const text of texts) {
    if (typeof text === 'string' && (text.includes('\0') || loneSurrogate.test(text))) {
      const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text)
      throw new StoreFailure('other', 'no', `No store keeps NUL characters or halves of surrogate pairs: ${shown}`)
    }
  }
}

/** {@link checkText} for every text of a row. */
export function checkRow(row: NewRow): void {
  // `data` is the caller's business data: it is checked, but not shown.
  if (row.data.includes('\0') || loneSurrogate.test(row.data)) {
    throw new StoreFailure('other', 'no', 'No store keeps NUL characters or halves of surrogate pairs: in `data`')
  }
  checkText(row.client, row.scope, row.id, row.key, row.token, row.state, row.lane, row.twin)
}

/** {@link checkText} for a row's name. */
export function checkKey(key: RowKey): void {
  checkText(key.client, key.scope, key.key)
}

/** {@link checkText} for a filter. */
export function checkFilter(client: string, filter: RowFilter): void {
  checkText(client, filter.scope, filter.id, ...(filter.states ?? []))
}

/** What every method of a closed store rejects with. */
export function closedFailure(kind: string): StoreFailure {
  return new StoreFailure('closed', 'no', `The ${kind} store is closed: nothing was read or written`)
}

const blobNames: readonly BlobName[] = ['request', 'answer']

const loneSurrogate = /\p{Cs}/u

function taken(row: NewRow): NewRow {
  const {
    client,
    scope,
    id,
    key,
    token,
    leaseUntil,
    state,
    open,
    dueAt,
    lane,
    laneHolds,
    laneWaits,
    twin,
    format,
    data,
  } = row
  return {
    client,
    scope,
    id,
    key,
    token,
    leaseUntil,
    state,
    open,
    dueAt,
    lane,
    laneHolds,
    laneWaits,
    twin,
    format,
    data,
  }
}
