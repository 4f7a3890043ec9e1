/** A store in memory: for tests, and for programs that accept that a crash forgets what they meant to do. */

import type { IntentStore, NewRow, RowKey, StoredRow } from '../ports.ts'
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
  matches,
  obstacle,
  supersededRow,
} from './rows.ts'

/** What several memory stores can share, as several tabs share one database. Made by {@link memoryShelf}; opaque. */
export interface MemoryShelf {
  /** Equal for all stores on this shelf, different for every other shelf of this module. */
  readonly location: string
}

/** Options of {@link memoryStore}. */
export interface MemoryStoreOptions {
  /** Shelf to stand on. Default: one of its own, gone with the store. */
  readonly shared?: MemoryShelf
}

/**
 * A shelf for several memory stores.
 *
 * @example
 * ```ts
 * import { memoryShelf, memoryStore } from 'samekey/memory'
 *
 * const shelf = memoryShelf()
 * const tabA = memoryStore({ shared: shelf })
 * const tabB = memoryStore({ shared: shelf })
 * ```
 */
export function memoryShelf(): MemoryShelf {
  shelves += 1
  const shelf: Shelf = {
    location: `memory:${shelves}`,
    lastSeq: 0,
    rows: new Map(),
    currents: new Map(),
    blobs: new Map(),
    byClient: new Map(),
    byScope: new Map(),
    byId: new Map(),
    due: new Map(),
    lanes: new Map(),
    twins: new Map(),
    open: new Map(),
  }
  return shelf
}

/**
 * Keeps intents in memory: `durable` is false, and everything is gone with the process or page. Each store object is
 * closed on its own; the rows live as long as the shelf.
 *
 * Searches go through sorted lists. A write costs a binary search and one array move per list, which is fine up to some
 * tens of thousands of rows.
 *
 * @example
 * ```ts
 * import { createClient } from 'samekey'
 * import { samekey } from 'samekey/dialects'
 * import { memoryStore } from 'samekey/memory'
 *
 * const api = createClient({
 *   baseUrl: 'https://api.example.com',
 *   dialect: samekey,
 *   anonymous: true,
 *   store: memoryStore(),
 * })
 * ```
 */
export function memoryStore(options: MemoryStoreOptions = {}): IntentStore {
  const shelf = (options.shared ?? memoryShelf()) as Shelf
  let closed = false

  /** One transaction: nothing else runs in between, because nothing in it waits. */
  async function transaction<T>(run: () => T): Promise<T> {
    if (closed) throw closedFailure('memory')
    return run()
  }

  return {
    kind: 'memory',
    durable: false,
    location: shelf.location,

    insert: (given, blobs, supersedes) =>
      transaction(() => {
        checkRow(given)
        const current = currentRow(shelf, given.client, given.scope, given.id)
        const obstructed = obstacle(current, shelf.rows.get(rowName(given)), supersedes)
        if (obstructed !== undefined) return obstructed
        if (current !== undefined) replace(shelf, current, supersededRow(current))
        shelf.lastSeq += 1
        const row = insertedRow(given, shelf.lastSeq)
        replace(shelf, undefined, row)
        writeBlobs(shelf, row, copiedBlobs(blobs))
        passTurn(shelf, row)
        return { inserted: true, row: present(shelf, row) }
      }),

    update: (change, expected, blobs) =>
      transaction(() => {
        checkRow(change)
        checkText(expected.token)
        const stored = shelf.rows.get(rowName(change))
        if (stored?.revision !== expected.revision || stored.token !== expected.token) return null
        const row = changedRow(stored, change)
        replace(shelf, stored, row)
        writeBlobs(shelf, row, copiedBlobs(blobs))
        passTurn(shelf, row)
        return present(shelf, row)
      }),

    remove: (key, expected) =>
      transaction(() => {
        checkKey(key)
        const stored = shelf.rows.get(rowName(key))
        if (stored?.revision !== expected.revision) return false
        replace(shelf, stored, undefined)
        writeBlobs(shelf, stored, copiedBlobs({ request: null, answer: null }))
        passTurn(shelf, stored)
        return true
      }),

    current: (client, scope, id) =>
      transaction(() => {
        checkText(client, scope, id)
        return currentRow(shelf, client, scope, id)
      }),

    byKey: (key) =>
      transaction(() => {
        checkKey(key)
        return shelf.rows.get(rowName(key))
      }),

    blob: (key, name) =>
      transaction(() => {
        checkKey(key)
        return shelf.blobs.get(`${rowName(key)}\0${name}`)?.slice()
      }),

    due: (client, scope, now, limit) =>
      transaction(() => {
        checkText(client, scope)
        const rows = shelf.due.get(named(client, scope)) ?? []
        const end = lowerBound(rows, (row) => dueTime(row) > now)
        return rows.slice(0, Math.min(end, Math.max(0, limit)))
      }),

    nextDueAt: (client, scope, after = Number.NEGATIVE_INFINITY) =>
      transaction(() => {
        checkText(client, scope)
        const rows = shelf.due.get(named(client, scope)) ?? []
        return rows[lowerBound(rows, (row) => dueTime(row) > after)]?.dueAt ?? null
      }),

    laneHead: (client, lane) =>
      transaction(() => {
        checkText(client, lane)
        return shelf.lanes.get(named(client, lane))?.[0]
      }),

    twins: (client, scope, twin) =>
      transaction(() => {
        checkText(client, scope, twin)
        return [...(shelf.twins.get(named(client, scope, twin)) ?? [])]
      }),

    list: (client, filter) =>
      transaction(() => {
        checkFilter(client, filter)
        const rows = narrowest(shelf, client, filter.scope, filter.id)
        const found: StoredRow[] = []
        const { afterSeq = -1 } = filter
        for (let at = lowerBound(rows, (row) => row.seq > afterSeq); at < rows.length; at += 1) {
          if (found.length >= filter.limit) break
          const row = rows[at]
          if (row !== undefined && matches(row, filter)) found.push(row)
        }
        return found
      }),

    countElsewhere: (client, scope) =>
      transaction(() => {
        checkText(client, scope)
        const counts = shelf.open.get(client)
        if (counts === undefined) return 0
        return [...counts].reduce((sum, [other, count]) => (other === scope ? sum : sum + count), 0)
      }),

    async close() {
      closed = true
    },
  }
}

type SortedRows = StoredRow[]

/** What is behind a shelf. Every list holds the very rows of `rows`. */
interface Shelf extends MemoryShelf {
  lastSeq: number
  readonly rows: Map<string, StoredRow>
  readonly currents: Map<string, string>
  readonly blobs: Map<string, Uint8Array<ArrayBuffer>>
  readonly byClient: Map<string, SortedRows>
  readonly byScope: Map<string, SortedRows>
  readonly byId: Map<string, SortedRows>
  readonly due: Map<string, SortedRows>
  readonly lanes: Map<string, SortedRows>
  readonly twins: Map<string, SortedRows>
  /** Counts of open rows by client and scope. */
  readonly open: Map<string, Map<string, number>>
}

let shelves = 0

/** One string for several; no text that a store takes holds the separator. */
function named(...parts: readonly string[]): string {
  return parts.join('\0')
}

function rowName(key: RowKey): string {
  return named(key.client, key.scope, key.key)
}

function currentRow(shelf: Shelf, client: string, scope: string, id: string): StoredRow | undefined {
  const name = shelf.currents.get(named(client, scope, id))
  return name === undefined ? undefined : shelf.rows.get(name)
}

function present(shelf: Shelf, row: StoredRow): StoredRow {
  return shelf.rows.get(rowName(row)) ?? row
}

/** The one place that changes rows: takes the old one out of every list and puts the new one in. */
function replace(shelf: Shelf, old: StoredRow | undefined, row: StoredRow | undefined): void {
  if (old !== undefined) {
    shelf.rows.delete(rowName(old))
    if (old.current) shelf.currents.delete(named(old.client, old.scope, old.id))
    for (const [index, name, order] of entries(shelf, old)) drop(index, name, order, old)
    if (old.open) countOpen(shelf, old, -1)
  }
  if (row !== undefined) {
    shelf.rows.set(rowName(row), row)
    if (row.current) shelf.currents.set(named(row.client, row.scope, row.id), rowName(row))
    for (const [index, name, order] of entries(shelf, row)) add(index, name, order, row)
    if (row.open) countOpen(shelf, row, 1)
  }
}

type Order = (a: StoredRow, b: StoredRow) => number

function entries(shelf: Shelf, row: StoredRow): (readonly [Map<string, SortedRows>, string, Order])[] {
  const { client, scope, id, dueAt, lane, twin } = row
  return [
    [shelf.byClient, client, bySeq],
    [shelf.byScope, named(client, scope), bySeq],
    [shelf.byId, named(client, scope, id), bySeq],
    ...(dueAt === null ? [] : [[shelf.due, named(client, scope), byDueTime] as const]),
    ...(lane === null || !row.laneHolds ? [] : [[shelf.lanes, named(client, lane), bySeq] as const]),
    ...(twin === null ? [] : [[shelf.twins, named(client, scope, twin), bySeq] as const]),
  ]
}

function narrowest(shelf: Shelf, client: string, scope: string | undefined, id: string | undefined): SortedRows {
  if (scope === undefined) return shelf.byClient.get(client) ?? []
  if (id === undefined) return shelf.byScope.get(named(client, scope)) ?? []
  return shelf.byId.get(named(client, scope, id)) ?? []
}

function passTurn(shelf: Shelf, touched: StoredRow): void {
  if (touched.lane === null) return
  const head = shelf.lanes.get(named(touched.client, touched.lane))?.[0]
  const turned = headWithTurn(head)
  if (turned !== undefined) replace(shelf, head, turned)
}

function writeBlobs(shelf: Shelf, row: NewRow, blobs: ReturnType<typeof copiedBlobs>): void {
  for (const [name, bytes] of blobs) {
    const at = `${rowName(row)}\0${name}`
    if (bytes === null) shelf.blobs.delete(at)
    else shelf.blobs.set(at, bytes)
  }
}

function countOpen(shelf: Shelf, row: StoredRow, by: 1 | -1): void {
  const counts = shelf.open.get(row.client) ?? new Map<string, number>()
  const count = (counts.get(row.scope) ?? 0) + by
  if (count === 0) counts.delete(row.scope)
  else counts.set(row.scope, count)
  shelf.open.set(row.client, counts)
}

function bySeq(a: StoredRow, b: StoredRow): number {
  return a.seq - b.seq
}

function byDueTime(a: StoredRow, b: StoredRow): number {
  return dueTime(a) - dueTime(b) || a.seq - b.seq
}

function dueTime(row: StoredRow): number {
  return row.dueAt ?? Number.POSITIVE_INFINITY
}

function add(index: Map<string, SortedRows>, name: string, order: Order, row: StoredRow): void {
  const rows = index.get(name) ?? []
  rows.splice(
    lowerBound(rows, (other) => order(other, row) > 0),
    0,
    row,
  )
  index.set(name, rows)
}

function drop(index: Map<string, SortedRows>, name: string, order: Order, row: StoredRow): void {
  const rows = index.get(name) ?? []
  const at = lowerBound(rows, (other) => order(other, row) >= 0)
  if (rows[at] === row) rows.splice(at, 1)
  if (rows.length === 0) index.delete(name)
}

/** The first place at which `isPast` holds; it has to hold from there to the end. */
function lowerBound(rows: SortedRows, isPast: (row: StoredRow) => boolean): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const row = rows[middle]
    if (row !== undefined && isPast(row)) high = middle
    else low = middle + 1
  }
  return low
}
