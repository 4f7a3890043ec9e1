/** A store in the browser's IndexedDB: intents outlive the page, and all tabs of the origin share them. */

import { get, promisifyRequest } from 'idb-keyval'
import type { BlobName, Clock, IntentStore, RowFilter, RowKey, StoredRow } from '../ports.ts'
import { type IndexedDbConnection, indexedDbConnection } from './indexeddb-connection.ts'
import {
  changedRow,
  checkFilter,
  checkKey,
  checkRow,
  checkText,
  copiedBlobs,
  headWithTurn,
  insertedRow,
  matches,
  obstacle,
  supersededRow,
  wholeLimit,
} from './rows.ts'

/** Options of {@link indexedDbStore} and {@link indexedDbAvailable}. */
export interface IndexedDbStoreOptions {
  /** Name of the database. Default: `samekey`. */
  readonly databaseName?: string
  /** How long to wait for opening, and again for each transaction, in ms. Default: 5000 (5 seconds). */
  readonly timeoutMs?: number
  /** The IndexedDB to use. Default: the platform's. */
  readonly factory?: IDBFactory
  /** Where time limits come from. Default: the platform's timers. */
  readonly clock?: Pick<Clock, 'timer'>
}

/**
 * Keeps intents in IndexedDB. The database is opened at the first call; a write that resolved was committed with strict
 * durability, where the browser knows it. Where IndexedDB is missing or blocked, every call rejects with `StoreFailure`
 * (`unavailable`, written: 'no'), so that no intent is sent without being stored; {@link indexedDbAvailable} tells before.
 *
 * After a newer version of the page changed the database's layout, calls reject with `unavailable` and ask for a reload.
 *
 * @example
 * ```ts
 * import { createClient } from 'samekey'
 * import { samekey } from 'samekey/dialects'
 * import { indexedDbStore } from 'samekey/indexeddb'
 *
 * // A client in a browser makes one of these by itself; give one to choose the database's name.
 * const api = createClient({ dialect: samekey, scope: () => session.userId, store: indexedDbStore({ databaseName: 'shop' }) })
 * ```
 */
export function indexedDbStore(options: IndexedDbStoreOptions = {}): IntentStore {
  const { databaseName = defaultName } = options
  const { use, close } = connect(options)

  return {
    kind: 'indexeddb',
    durable: true,
    location: `indexeddb:${databaseName}`,

    async insert(row, blobs, supersedes) {
      checkRow(row)
      // Taken now: opening may take a while, and what the caller changes until then is not meant (P9).
      const given = insertedRow(row, 0)
      const copies = copiedBlobs(blobs)
      return use('readwrite', async (store) => {
        const [current, sameKey, last = 0] = await Promise.all([
          currentRow(store, given.client, given.scope, given.id),
          storedRow(store, given),
          promisifyRequest<number | undefined>(store.get(lastSeq)),
        ])
        const obstructed = obstacle(current, sameKey, supersedes)
        if (obstructed !== undefined) return obstructed
        if (current !== undefined) putRow(store, supersededRow(current))
        const inserted = { ...given, seq: last + 1 }
        store.put(inserted.seq, lastSeq)
        putRow(store, inserted)
        putBlobs(store, inserted, copies)
        return { inserted: true, row: await afterTurn(store, inserted) }
      })
    },

    async update(change, expected, blobs) {
      checkRow(change)
      checkText(expected.token)
      const { revision, token } = expected
      const given = insertedRow(change, 0)
      const copies = copiedBlobs(blobs)
      return use('readwrite', async (store) => {
        const stored = await storedRow(store, given)
        if (stored?.revision !== revision || stored.token !== token) return null
        const row = changedRow(stored, given)
        putRow(store, row)
        putBlobs(store, row, copies)
        return afterTurn(store, row)
      })
    },

    async remove(key, { revision }) {
      checkKey(key)
      const { client, scope, key: named } = key
      return use('readwrite', async (store) => {
        const stored = await storedRow(store, { client, scope, key: named })
        if (stored?.revision !== revision) return false
        store.delete(rowName(stored))
        store.delete(under('blob', client, scope, named))
        await afterTurn(store, stored)
        return true
      })
    },

    async current(client, scope, id) {
      checkText(client, scope, id)
      return use('readonly', (store) => currentRow(store, client, scope, id))
    },

    async byKey(key) {
      checkKey(key)
      return (await get<Kept>(rowName(key), use))?.row
    },

    async blob(key, name) {
      checkKey(key)
      return get<Uint8Array>(blobName(key, name), use)
    },

    async due(client, scope, now, limit) {
      checkText(client, scope)
      return use('readonly', (store) => {
        const range = IDBKeyRange.bound([client, scope], [client, scope, now, []])
        return rowsIn(store, 'due', range, limit)
      })
    },

    async nextDueAt(client, scope, after) {
      checkText(client, scope)
      return use('readonly', async (store) => {
        // An array sorts behind every number, so this begins behind all rows that are due at `after`.
        const range =
          after === undefined
            ? under(client, scope)
            : IDBKeyRange.bound([client, scope, after, []], [client, scope, []])
        const first = await promisifyRequest(store.index('due').openKeyCursor(range))
        return (first?.key as Keys['due'] | undefined)?.[2] ?? null
      })
    },

    async laneHead(client, lane) {
      checkText(client, lane)
      return use('readonly', (store) => headOf(store, client, lane))
    },

    async twins(client, scope, twin) {
      checkText(client, scope, twin)
      return use('readonly', (store) => rowsIn(store, 'twin', under(client, scope, twin)))
    },

    async list(client, filter) {
      checkFilter(client, filter)
      const { scope } = filter
      return use('readonly', (store) =>
        scope === undefined ? listAll(store, client, filter) : listScope(store, client, scope, filter),
      )
    },

    async countElsewhere(client, scope) {
      checkText(client, scope)
      return use('readonly', async (store) => {
        const open = store.index('open')
        const [all = 0, own = 0] = await Promise.all(
          [under(client), under(client, scope)].map((range) => promisifyRequest(open.count(range))),
        )
        return all - own
      })
    },

    close,
  }
}

/**
 * B33: whether intents can be kept in IndexedDB here, found out by writing to it. False in some private modes, with
 * blocked site data, outside browsers, and when it does not answer within `timeoutMs`. Never rejects.
 *
 * @example
 * ```ts
 * import { indexedDbAvailable } from 'samekey/indexeddb'
 *
 * if (!(await indexedDbAvailable())) showMessage('Orders cannot be kept on this device: is this a private window?')
 * ```
 */
export async function indexedDbAvailable(options: IndexedDbStoreOptions = {}): Promise<boolean> {
  const { use, close } = connect(options)
  try {
    await use('readwrite', (store) => {
      store.put(true, ['probe'])
      store.delete(['probe'])
    })
    return true
  } catch {
    return false
  } finally {
    await close()
  }
}

const defaultName = 'samekey'
const storeName = 'intents'
const version = 1
const lastSeq: IDBValidKey = ['seq']

/**
 * What a row is found by. An index holds a row only while the row has the member, so that an index over what is due, in
 * doubt or open holds nothing else.
 */
interface Keys {
  readonly current?: readonly [client: string, scope: string, id: string]
  readonly byId: readonly [client: string, scope: string, id: string, seq: number]
  readonly inScope: readonly [client: string, scope: string, seq: number]
  readonly open?: readonly [client: string, scope: string, seq: number]
  readonly due?: readonly [client: string, scope: string, dueAt: number, seq: number]
  readonly lane?: readonly [client: string, lane: string, seq: number]
  readonly twin?: readonly [client: string, scope: string, twin: string, seq: number]
}

/** What is kept under a row's name. */
interface Kept {
  readonly row: StoredRow
  readonly keys: Keys
}

const indexNames: readonly (keyof Keys)[] = ['current', 'byId', 'inScope', 'open', 'due', 'lane', 'twin']

function connect(options: IndexedDbStoreOptions): IndexedDbConnection {
  const { databaseName = defaultName, timeoutMs = 5000, factory, clock } = options
  const timer: Clock['timer'] | undefined = clock && ((ms, run) => clock.timer(ms, run))
  return indexedDbConnection({ databaseName, version, storeName, upgrade, timeoutMs, factory, timer })
}

function upgrade(database: IDBDatabase): void {
  const store = database.createObjectStore(storeName)
  for (const name of indexNames) store.createIndex(name, `keys.${name}`, { unique: name === 'current' })
}

function keysOf(row: StoredRow): Keys {
  const { client, scope, id, seq, dueAt, lane, twin } = row
  return {
    ...(row.current && { current: [client, scope, id] }),
    byId: [client, scope, id, seq],
    inScope: [client, scope, seq],
    ...(row.open && { open: [client, scope, seq] }),
    ...(dueAt !== null && { due: [client, scope, dueAt, seq] }),
    ...(lane !== null && row.laneHolds && { lane: [client, lane, seq] }),
    ...(twin !== null && { twin: [client, scope, twin, seq] }),
  }
}

function rowName({ client, scope, key }: RowKey): string[] {
  return ['row', client, scope, key]
}

function blobName({ client, scope, key }: RowKey, name: BlobName): string[] {
  return ['blob', client, scope, key, name]
}

/** Every key that begins with these parts: an array sorts after all that can follow them. */
function under(...parts: readonly string[]): IDBKeyRange {
  return IDBKeyRange.bound(parts, [...parts, []])
}

async function currentRow(
  store: IDBObjectStore,
  client: string,
  scope: string,
  id: string,
): Promise<StoredRow | undefined> {
  const kept: Kept | undefined = await promisifyRequest(store.index('current').get([client, scope, id]))
  return kept?.row
}

async function storedRow(store: IDBObjectStore, key: RowKey): Promise<StoredRow | undefined> {
  const kept: Kept | undefined = await promisifyRequest(store.get(rowName(key)))
  return kept?.row
}

async function headOf(store: IDBObjectStore, client: string, lane: string): Promise<StoredRow | undefined> {
  const [head] = await rowsIn(store, 'lane', under(client, lane), 1)
  return head
}

async function rowsIn(
  store: IDBObjectStore,
  index: keyof Keys,
  range: IDBKeyRange,
  limit?: number,
): Promise<StoredRow[]> {
  const count = limit === undefined ? undefined : wholeLimit(limit)
  // IndexedDB takes 0 for "all".
  if (count === 0) return []
  const found: Kept[] = await promisifyRequest(store.index(index).getAll(range, count))
  return found.map((kept) => kept.row)
}

function putRow(store: IDBObjectStore, row: StoredRow): void {
  const kept: Kept = { row, keys: keysOf(row) }
  store.put(kept, rowName(row))
}

/** Bytes, never a `Blob`: Safari and Firefox have lost those. */
function putBlobs(store: IDBObjectStore, row: StoredRow, blobs: ReturnType<typeof copiedBlobs>): void {
  for (const [name, bytes] of blobs) {
    if (bytes === null) store.delete(blobName(row, name))
    else store.put(bytes, blobName(row, name))
  }
}

/** Keeps the lane rule (P34), in the transaction that touched `row`; the row as it stands then. */
async function afterTurn(store: IDBObjectStore, row: StoredRow): Promise<StoredRow> {
  if (row.lane === null) return row
  const turned = headWithTurn(await headOf(store, row.client, row.lane))
  if (turned === undefined) return row
  putRow(store, turned)
  return turned.seq === row.seq ? turned : row
}

async function listScope(
  store: IDBObjectStore,
  client: string,
  scope: string,
  filter: RowFilter,
): Promise<StoredRow[]> {
  const limit = wholeLimit(filter.limit)
  const [index, prefix]: [keyof Keys, string[]] =
    filter.id !== undefined ? ['byId', [client, scope, filter.id]] : [filter.open ? 'open' : 'inScope', [client, scope]]
  const found: StoredRow[] = []
  let afterSeq = filter.afterSeq ?? Number.NEGATIVE_INFINITY
  // The filter may leave out what was read, so it takes as many pages as it takes.
  while (found.length < limit) {
    const page = await rowsIn(store, index, IDBKeyRange.bound([...prefix, afterSeq], [...prefix, []], true), limit)
    found.push(...page.filter((row) => matches(row, filter)))
    const last = page.at(-1)
    if (last === undefined || page.length < limit) break
    afterSeq = last.seq
  }
  return found.slice(0, limit)
}

/** For the store owner's tools: reads all rows of the client, because no page lists other scopes (P50). */
async function listAll(store: IDBObjectStore, client: string, filter: RowFilter): Promise<StoredRow[]> {
  const all: Kept[] = await promisifyRequest(store.getAll(under('row', client)))
  const rows = all.map((kept) => kept.row).filter((row) => matches(row, filter))
  return rows.sort((a, b) => a.seq - b.seq).slice(0, wholeLimit(filter.limit))
}
