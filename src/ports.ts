/**
 * What the engine needs from the world, as types only. Each port says how it may fail and what holds when several
 * contexts use it at once; an adapter that keeps these sentences is a good adapter, whatever it is built on.
 */

/** The part of a record that a store must be able to search and compare. Everything else is opaque `data`. */
export interface StoredRow {
  /** Name of the client that owns the row (P4). Rows of other clients are never returned. */
  readonly client: string
  /** Whose intent it is (P3). */
  readonly scope: string
  /** The app's name for the intent. At most one *current* row per `(client, scope, id)` (P6). */
  readonly id: string
  /** The idempotency key. `(client, scope, key)` is the row's identity for good. */
  readonly key: string
  /** Counts the writes of this row; the store sets it: 1 at insert, plus one at each update. */
  readonly revision: number
  /** Insertion order within the store; the store sets it, and it never changes. */
  readonly seq: number
  /** False once a newer intent took the id over; the store sets it. */
  readonly current: boolean
  /** Who works on the row now, or null (P47). */
  readonly token: string | null
  /** Epoch ms until which `token` is to be respected. */
  readonly leaseUntil: number | null
  /** Name of the record's state, for lists and counts. */
  readonly state: string
  /** False once settled; unknown counts as open here: a person still has to settle it. */
  readonly open: boolean
  /** Epoch ms at which the row wants attention, or null when nothing is to be done by itself. */
  readonly dueAt: number | null
  /** Name of the ordered lane the row stands in, or null (P34). */
  readonly lane: string | null
  /** True while rows behind it in the lane have to wait for it. */
  readonly laneHolds: boolean
  /** True while it waits for nothing but its turn; see {@link IntentStore.update}. */
  readonly laneWaits: boolean
  /** Fingerprint digest while the intent is in doubt or unknown, else null: to find possible duplicates (P10). */
  readonly twin: string | null
  /** Version of `data`'s format (P23). */
  readonly format: number
  /** The rest of the record, as text. The store gives it back unchanged and never looks into it. */
  readonly data: string
}

/** What is given at insert: the store sets revision, seq and current itself. */
export type NewRow = Omit<StoredRow, 'revision' | 'seq' | 'current'>

/** What may change later: identity, order and lane stay as they were inserted. */
export type RowChange = Omit<StoredRow, 'revision' | 'seq' | 'current'>

/** Bytes kept beside a row: the request's body and the answer's body. */
export type BlobName = 'request' | 'answer'

/** Blobs to write with a row in the same transaction; null removes one, a missing name leaves it alone. */
export type BlobChange = { readonly [name in BlobName]?: Uint8Array | null }

/** The row was inserted, or the row that stands in its way. */
export type InsertResult =
  | { readonly inserted: true; readonly row: StoredRow }
  /** `taken: 'id'`: another current row has this id. `taken: 'key'`: another intent has this key. */
  | { readonly inserted: false; readonly taken: 'id' | 'key'; readonly row: StoredRow }

/** What to list. All given conditions hold at once. */
export interface RowFilter {
  /** Only this scope; left out only by the store owner's tools. */
  readonly scope?: string
  /** Only rows in one of these states. */
  readonly states?: readonly string[]
  /** Only rows of this intent id, superseded ones included. */
  readonly id?: string
  /** Only rows that are (or are not) open. */
  readonly open?: boolean
  /** Only rows with a `seq` above this: for paging. Order is always ascending `seq`. */
  readonly afterSeq?: number
  /** At most so many rows. */
  readonly limit: number
}

/** Names one row. */
export interface RowKey {
  readonly client: string
  readonly scope: string
  readonly key: string
}

/**
 * A store is compare-and-set, not get and put. Every method is one atomic transaction over rows, id slots, due
 * entries, lane order and blobs; two contexts that write at once see one of them win and the other told so.
 *
 * Failure contract: a method rejects with `StoreFailure` (see errors.ts). `written: 'no'` is a promise that nothing
 * of the call will ever be visible; whatever cannot promise that says `'maybe'` (P18). A method that resolves has
 * made its write durable to the degree that `durable` says (P17). Rows and bytes are taken as they are when a method
 * is called. Text with NUL characters or halves of surrogate pairs is refused (`other`, written: 'no'), in searches too:
 * not every database keeps it.
 */
export interface IntentStore {
  /** What kind of store, for messages: `memory`, `indexeddb`, `sqlite`, `postgres`. */
  readonly kind: string
  /** False when rows are gone with the process or page. */
  readonly durable: boolean
  /** Two store objects with an equal location see the same rows. */
  readonly location: string

  /**
   * Inserts `row` as the current one of its id. When `supersedes` is given, the current row must be exactly that one
   * at that revision, and stops being current in the same transaction (which is no update: its revision stays); where
   * nothing is current any more, nothing stands in the way. Otherwise there must be no current row. The id is looked at
   * before the key.
   */
  insert(
    row: NewRow,
    blobs: BlobChange,
    supersedes?: { readonly key: string; readonly revision: number },
  ): Promise<InsertResult>

  /**
   * Replaces the row of `change.key` if it stands at exactly this revision and token; resolves with the row as stored,
   * or null when it moved on or is gone.
   *
   * Lane rule, in the same transaction, after an insert, update or removal of any row with a lane: the lane's first
   * row (lowest seq) with `laneHolds` is its head; if that head has `laneWaits` and no `dueAt`, its `dueAt` becomes 0,
   * so that it is due at once (its revision does not count up). This is what passes the turn on, crash or no crash.
   */
  update(
    change: RowChange,
    expected: { readonly revision: number; readonly token: string | null },
    blobs?: BlobChange,
  ): Promise<StoredRow | null>

  /** Removes a row with its blobs if it stands at this revision; false when it moved on or is gone. */
  remove(key: RowKey, expected: { readonly revision: number }): Promise<boolean>

  /** The current row of an id. */
  current(client: string, scope: string, id: string): Promise<StoredRow | undefined>
  /** The row of a key, current or superseded. */
  byKey(key: RowKey): Promise<StoredRow | undefined>
  /** One blob of a row, as a copy that the caller may keep. */
  blob(key: RowKey, name: BlobName): Promise<Uint8Array | undefined>

  /**
   * Rows of this scope with `dueAt <= now`, the longest due first, ties by `seq`. Cost grows with what is due, not with
   * what is stored.
   */
  due(client: string, scope: string, now: number, limit: number): Promise<readonly StoredRow[]>
  /** The smallest `dueAt` of this scope above `after` (default: of all), or null. */
  nextDueAt(client: string, scope: string, after?: number): Promise<number | null>
  /** The lane's first row with `laneHolds`, or undefined when nothing is in the way. */
  laneHead(client: string, lane: string): Promise<StoredRow | undefined>
  /** Rows of this scope whose `twin` is this digest. */
  twins(client: string, scope: string, twin: string): Promise<readonly StoredRow[]>
  /** Rows by filter, ascending seq. */
  list(client: string, filter: RowFilter): Promise<readonly StoredRow[]>
  /** How many open rows belong to other scopes (P50: a count is all that is shown of them). */
  countElsewhere(client: string, scope: string): Promise<number>

  /** Waits for what was begun and closes. Later calls reject with `StoreFailure` (`closed`, written: 'no'). */
  close(): Promise<void>
}

/** A running timer. */
export interface Timer {
  /** Stops it; harmless when it already ran. */
  cancel(): void
}

/** Time, handed in so that tests own it. */
export interface Clock {
  /** Wall time in epoch ms. May jump either way. */
  now(): number
  /** Milliseconds from an arbitrary start; never goes back within one run. */
  monotonic(): number
  /** Calls `run` once after at least `ms` (at most `MAX_TIMER_MS`). Does not keep a Node process alive by itself unless `hold`. */
  timer(ms: number, run: () => void, hold?: boolean): Timer
}

/** Chance, handed in so that tests own it. */
export interface Ids {
  /**
   * A fresh idempotency key.
   * @throws ConfigError when there is no secure source of randomness (P12).
   */
  key(uuidVersion: 4 | 7): string
  /** A fresh random value for leases; same source as keys. */
  token(): string
  /** A number in [0, 1) for jitter. Never names anything. */
  random(): number
}

/** Hints from the platform. They trigger work and never forbid it for good (P33). */
export interface Signals {
  /** False when the platform believes that there is no network. A hint. */
  online(): boolean
  /** Calls `wake` when something suggests looking again: online, focus, page shown. Returns the unsubscriber. */
  onWake(wake: (why: 'online' | 'visible') => void): () => void
}

/** A message between contexts of one store: ids and revisions only (P50). */
export interface ChannelMessage {
  readonly client: string
  readonly key: string
  readonly revision: number
}

/** Tells other contexts that a row changed. Lossy: a missed message costs time, never truth. */
export interface Channel {
  post(message: ChannelMessage): void
  onMessage(listener: (message: ChannelMessage) => void): () => void
  close(): void
}

/** Finds out early that a lease's holder died. Wrong answers cost traffic, never truth (P47). */
export interface Liveness {
  /** Name of this context; begins every lease token it mints. Holds no `.` character. */
  readonly holder: string
  /** True only when the holder is known to be gone. */
  isGone(holder: string): Promise<boolean>
  close(): void
}

/** The network, one attempt at a time. */
export interface Transport {
  /** `fetch`, with redirects left to the caller (`redirect: 'manual'`). */
  readonly fetch: (request: Request) => Promise<Response>
  /** True when a refused connection, a failed look-up or a connect time-out reported by it proves non-delivery (PROTOCOL.md section 6, row 1). */
  readonly provesNonDelivery: boolean
  /** True when it may repeat a request by itself (P30). */
  readonly repeats: boolean
}

/** Everything of the platform that the engine uses. */
export interface Platform {
  readonly clock: Clock
  readonly ids: Ids
  readonly signals: Signals
  readonly liveness: Liveness
  readonly transport: Transport
  /** A channel that reaches the other contexts of this store location. */
  channel(location: string): Channel
  /** Origin of the page, or null outside a browser. */
  readonly pageOrigin: string | null
  /** Names of the clients that live in this context, by store location (P4). */
  readonly liveClients: Set<string>
}
