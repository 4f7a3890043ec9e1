/** What the kit uses of `pg`, as types: any pool that looks like this one will do. */

/** What a statement came to. */
export interface PgResult<Row = Record<string, unknown>> {
  /** What it gave back. */
  readonly rows: Row[]
  /** How many rows it gave back or changed; null where it counts none. */
  readonly rowCount: number | null
  /** `SELECT`, `COMMIT` and so on, as the database reports it. */
  readonly command: string
}

/** The part of a client that `execute` may use. */
export interface PgQueryable {
  /**
   * Runs one statement.
   *
   * @param values for `$1` and so on. Default: none.
   */
  query<Row extends object = Record<string, unknown>>(text: string, values?: unknown[]): Promise<PgResult<Row>>
}

/** A client that was taken from a pool. */
export interface PgClient extends PgQueryable {
  /** Gives it back; with an error or true, the connection is closed instead. */
  release(error?: Error | boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'notification', listener: () => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'notification', listener: () => void): unknown
}

/** A `pg` pool on the primary (P61). */
export interface PgPool extends PgQueryable {
  /** Takes a client of the pool; `release` gives it back. */
  connect(): Promise<PgClient>
  /** As emitters have it; where a pool has it, new connections are listened to from their first moment. */
  on?(event: 'connect', listener: (client: PgClient) => void): unknown
}

const heeded = new WeakSet<PgPool>()

/**
 * Takes a client. A connection that dies in the tick in which it was made has nobody listening to it: the pool does not
 * any more, and whoever awaits it does not yet. Such an `error` would end the process.
 */
export function connect(pool: PgPool): Promise<PgClient> {
  if (!heeded.has(pool)) {
    heeded.add(pool)
    pool.on?.('connect', (client) => void client.on('error', () => {}))
  }
  return pool.connect()
}

/**
 * The SQLSTATE of an error of the database, or null. Five characters: `ECONNRESET` and the like are codes too, and say
 * nothing about a statement.
 */
export function sqlState(error: unknown): string | null {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null
}

/**
 * True when the same transaction may well succeed a moment later: connection and resource trouble, deadlock, time
 * limits, shutdown, a standby that took over. A lock time limit of a *business* statement is such a moment too, and
 * not "in progress" (H41).
 */
export function isTransient(error: unknown): boolean {
  return /^(?:08|40|53|55P03|57|58|25006|25P03)/.test(sqlState(error) ?? '')
}
