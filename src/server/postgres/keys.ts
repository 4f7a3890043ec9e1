/**
 * Key rows in PostgreSQL, in the same database and transaction as the business rows: `samekey/server/postgres`. What
 * the SQL relies on was tried on real servers; see PROTOCOL.md section 12.
 */
import { CommitUnknownError, StoreUnavailableError } from './errors.ts'
import {
  isTransient,
  type PgClient,
  type PgPool,
  type PgQueryable,
  type PgResult,
  sqlState,
} from './postgres-client.ts'
import { answerValues, type DbRow, epochMs, keyValues, rowOf, SELECT_ROW, WHERE_KEY } from './postgres-rows.ts'
import type { BeginOptions, Claim, Ending, KeyId, NewKey, Reading, ServerStore, Unit } from './store.ts'

export { type Migration, migrate, migrations } from './migrate.ts'
export type { PgClient, PgPool, PgQueryable, PgResult } from './postgres-client.ts'

/** What {@link postgresServerStore} can be told. */
export interface PostgresServerStoreOptions {
  /** Epoch ms; for tests that own time. Default: the database's clock, which all servers share. */
  readonly now?: () => number
}

/**
 * Keeps keys in the table `samekey_keys` of this pool's database; see `migrate`. `execute` gets the transaction's
 * client, cut down to `query`, and writes its business rows through it.
 *
 * Give the pool an `error` listener, as `pg` asks for, and a `connectionTimeoutMillis`: a request that finds no free
 * connection is then told so (503) instead of waiting for ever. A request that waits for a rival holds a connection.
 *
 * @param pool on the primary of PostgreSQL 13 or later: a standby knows too little, too late (P61).
 * @example
 * ```ts
 * import pg from 'pg'
 * import { migrate, postgresServerStore } from 'samekey/server/postgres'
 *
 * const pool = new pg.Pool({ connectionTimeoutMillis: 5000 })
 * pool.on('error', console.error)
 * await migrate(pool)
 * const store = postgresServerStore(pool)
 * setInterval(() => void store.reap().catch(console.error), 60_000)
 * ```
 */
export function postgresServerStore(pool: PgPool, options: PostgresServerStoreOptions = {}): ServerStore<PgQueryable> {
  /** Fills in the time: the database's, or that of a test. */
  const timed: Timed = (sql, values) => {
    if (options.now === undefined) return [sql.replaceAll('$NOW', 'clock_timestamp()'), values]
    const parameter = `$${values.length + 1}::timestamptz`
    return [sql.replaceAll('$NOW', () => parameter), [...values, new Date(options.now()).toISOString()]]
  }

  async function readWith(client: PgQueryable, id: KeyId): Promise<Reading> {
    const result = await client.query<DbRow>(SELECT_ROW, keyValues(id))
    const [row] = result.rows
    if (row === undefined) throw new Error('The key query gave no row at all.')
    return { row: rowOf(row), now: options.now?.() ?? row.now }
  }

  /** One statement outside of any transaction. */
  async function alone<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      throw new StoreUnavailableError('The key store failed.', error)
    }
  }

  async function begin<T>(settings: BeginOptions, work: (unit: Unit<PgQueryable>) => Promise<Ending<T>>): Promise<T> {
    const session = await openSession(pool)
    try {
      const { commit, value } = await runWork(session, settings, work)
      // Nothing was written, so a connection that breaks here changes nothing about the value.
      if (commit) await commitStatement(session)
      else await rollbackStatement(session)
      return value
    } finally {
      session.release()
    }
  }

  /** Rolls back, and says why in the port's words, when anything goes wrong before the commit. */
  async function runWork<T>(
    session: Session,
    settings: BeginOptions,
    work: (unit: Unit<PgQueryable>) => Promise<Ending<T>>,
  ): Promise<Ending<T>> {
    try {
      const lockTimeout = await beginStatement(session, settings)
      return await work(unitOf(session, lockTimeout, timed, readWith))
    } catch (error) {
      await rollbackStatement(session)
      throw session.broken() !== null || isTransient(error) ? rolledBack(error) : error
    } finally {
      session.close()
    }
  }

  return {
    begin,

    find: (id) => alone(() => readWith(pool, id)),

    complete: (id, { status, result, error, retryAfterSeconds }) =>
      alone(async () => {
        const finished = status === 'succeeded' || status === 'failed'
        const values = [
          ...keyValues(id),
          status,
          error === null ? null : JSON.stringify(error),
          finished ? null : retryAfterSeconds,
          ...answerValues(result),
          finished,
        ]
        const { rowCount } = await pool.query(...timed(COMPLETE, values))
        return rowCount === 1
      }),

    reap: (limit = 1000) =>
      alone(async () => {
        const { rowCount } = await pool.query(...timed(REAP, [limit]))
        return rowCount ?? 0
      }),
  }
}

type Timed = (sql: string, values: unknown[]) => [string, unknown[]]

const INSERT = `
insert into samekey_keys (tenant, principal, operation, key, state, fingerprint, request_digest, created_at, expires_at, reap_at)
select $1, $2, $3, $4, $5, $6, $7, t.now, t.now + $8 * interval '1 millisecond', t.now + $9 * interval '1 millisecond'
from (select date_trunc('milliseconds', $NOW) as now) as t
on conflict (tenant, principal, operation, key) do nothing
returning ${epochMs('created_at')} as created_at, ${epochMs('expires_at')} as expires_at`

/** `xmin`: the row was inserted by this very transaction, so `execute` has not ended it and begun another. */
const FINISH = `
update samekey_keys
set state = 'finished', answer_status = $5, answer_headers = $6, answer_body = $7,
  task_status = $8, task_retry_after = $9
where ${WHERE_KEY} and state = 'running' and xmin = pg_current_xact_id()::xid`

const COMPLETE = `
update samekey_keys
set task_status = $5, task_error = $6, task_retry_after = $7, result_status = $8, result_headers = $9, result_body = $10,
  result_expires_at = case when $11::boolean
    then greatest(expires_at, $NOW + (expires_at - created_at)) else result_expires_at end,
  reap_at = case when $11::boolean
    then greatest(reap_at, $NOW + (expires_at - created_at) + (reap_at - expires_at)) else reap_at end
where ${WHERE_KEY} and state = 'finished' and task_status in ('processing', 'failed_retryable', 'unknown')`

const REAP = `
delete from samekey_keys where (tenant, principal, operation, key) in (
  select tenant, principal, operation, key from samekey_keys
  where reap_at <= $NOW and state <> 'running' and (task_status is null or task_status in ('succeeded', 'failed'))
  order by reap_at limit $1 for update skip locked)`

/** A client of the pool for one transaction, with what happened to it. */
interface Session {
  readonly client: PgClient
  /** What `execute` gets. */
  readonly transaction: PgQueryable
  /** Ends `transaction`. */
  close(): void
  /** The error that broke the connection, or null. */
  broken(): Error | null
  /** Calls the connection broken although nobody has noticed yet. */
  breakWith(error: unknown): void
  release(): void
}

async function openSession(pool: PgPool): Promise<Session> {
  let client: PgClient
  try {
    client = await pool.connect()
  } catch (error) {
    throw new StoreUnavailableError('There is no connection to the key store.', error)
  }
  let broken: Error | null = null
  let open = true
  const onError = (error: Error): void => {
    broken = error
  }
  // Without a listener, `pg` lets a lost connection end the whole process.
  client.on('error', onError)
  return {
    client,
    transaction: {
      query(text, values) {
        if (!open) return Promise.reject(new Error('The transaction is over: await everything that execute starts.'))
        if (isTransactionControl(text)) return Promise.reject(new Error(NO_CONTROL))
        return client.query(text, values)
      },
    },
    close() {
      open = false
    },
    broken: () => broken,
    breakWith(error) {
      broken ??= error instanceof Error ? error : new Error(String(error))
    },
    release() {
      client.removeListener('error', onError)
      client.release(broken ?? undefined)
    },
  }
}

/**
 * Isolation and durability are said, not hoped for: a database may have other defaults. READ COMMITTED, because the
 * read after a lost insert must see what the rival has just committed (P54); `synchronous_commit`, because an answer
 * must not be given for what a crash can still lose (P61). A stronger setting of the latter stays.
 *
 * @returns the lock time limit that was in force.
 */
async function beginStatement({ client }: Session, { waitMs }: BeginOptions): Promise<string> {
  // 0 is PostgreSQL's word for no limit, so the shortest limit is 1.
  const limit = waitMs === Number.POSITIVE_INFINITY ? 0 : Math.min(Math.max(Math.round(waitMs), 1), 2 ** 31 - 1)
  try {
    // One round trip. Several statements in one text give several results, which the types of `pg` do not know.
    const results: unknown = await client.query(`
      begin isolation level read committed read write;
      select set_config('synchronous_commit',
        case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, true);
      select current_setting('lock_timeout') as lock_timeout;
      set local lock_timeout = ${limit}`)
    const rows = (results as PgResult<{ lock_timeout?: string }>[]).flatMap((result) => result.rows)
    return rows.find((row) => row.lock_timeout !== undefined)?.lock_timeout ?? '0'
  } catch (error) {
    throw new StoreUnavailableError('No transaction could be begun.', error)
  }
}

function unitOf(
  session: Session,
  lockTimeout: string,
  timed: Timed,
  readWith: (client: PgQueryable, id: KeyId) => Promise<Reading>,
): Unit<PgQueryable> {
  const { client } = session

  async function own<T>(what: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      throw new StoreUnavailableError(`The key store failed: ${what}.`, error)
    }
  }

  async function claim(id: KeyId, key: NewKey): Promise<Claim> {
    const { state, requestDigest, retentionMs, graceMs } = key
    const fingerprint = key.fingerprint === null ? null : JSON.stringify(key.fingerprint)
    const values = [...keyValues(id), state, fingerprint, requestDigest, retentionMs, retentionMs + graceMs]
    let result: PgResult<{ created_at: number; expires_at: number }>
    try {
      result = await client.query(...timed(INSERT, values))
    } catch (error) {
      // Either limit ends a wait for a rival: nothing else in this statement takes time.
      if (LIMIT_REACHED.has(sqlState(error) ?? '')) return { seen: 'busy' }
      throw new StoreUnavailableError('The key store failed: insert.', error)
    }
    const [row] = result.rows
    if (row === undefined) return { seen: 'taken' }
    // The limit was for the insert alone: a business statement that waits for a lock is no rival of this key (H41).
    await own('savepoint', () => client.query(`set local lock_timeout = '${lockTimeout}'; savepoint samekey_execute`))
    return { seen: 'inserted', now: row.created_at, expiresAt: row.expires_at }
  }

  return {
    transaction: session.transaction,
    claim,
    read: (id) => own('read', () => readWith(client, id)),

    async undo() {
      await own('rollback to savepoint', () => client.query('rollback to savepoint samekey_execute'))
    },

    async finish(id, answer, task) {
      const values = [...keyValues(id), ...answerValues(answer), task && 'processing', task?.retryAfterSeconds ?? null]
      let result: PgResult
      try {
        result = await client.query(FINISH, values)
      } catch (error) {
        if (sqlState(error) === ABORTED) throw new Error(SWALLOWED, { cause: error })
        throw new StoreUnavailableError('The key store failed: save the answer.', error)
      }
      if (result.rowCount !== 1) throw new Error(NO_CONTROL)
    },
  }
}

/**
 * Commits, and tells the three ends apart. An error that leaves the session usable came before the commit: rolled back
 * for certain (a deferred constraint, for instance). Any other failure leaves it open whether the commit happened (P61);
 * severities would say the same, but the server translates them.
 */
async function commitStatement(session: Session): Promise<void> {
  const { client } = session
  let result: PgResult
  try {
    result = await client.query('commit')
  } catch (error) {
    if (sqlState(error) !== null && (await isUsable(session))) throw isTransient(error) ? rolledBack(error) : error
    session.breakWith(error)
    throw new CommitUnknownError('The connection was lost while committing.', error)
  }
  // PostgreSQL answers "commit" in a failed transaction with a rollback and no error.
  if (result.command === 'ROLLBACK') throw new Error(SWALLOWED)
}

function rolledBack(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  return new StoreUnavailableError('The transaction was rolled back and may be tried again.', error)
}

async function isUsable(session: Session): Promise<boolean> {
  if (session.broken() !== null) return false
  try {
    await session.client.query('select 1')
    return session.broken() === null
  } catch {
    return false
  }
}

/** A rollback that fails needs no care: the connection is closed then, which rolls back as well. */
async function rollbackStatement(session: Session): Promise<void> {
  if (session.broken() !== null) return
  try {
    await session.client.query('rollback')
  } catch (error) {
    session.breakWith(error)
  }
}

/** Lock and statement time limits. */
const LIMIT_REACHED: ReadonlySet<string> = new Set(['55P03', '57014'])

/** "Current transaction is aborted": an earlier statement failed. */
const ABORTED = '25P02'

const SWALLOWED =
  'A statement of execute failed and its error was swallowed, so the transaction was rolled back (P54). ' +
  'Let the error through, or return refuse(...) or decline(...).'

const NO_CONTROL =
  'execute must not begin, commit or roll back: the business change and the answer commit together (P54). ' +
  'Return refuse(...) or decline(...) to take everything back; savepoints are fine.'

/** Catches a slip, not an attack: after comments, the first word says it. `rollback to savepoint` is fine. */
function isTransactionControl(text: string): boolean {
  const statement = text.replace(/^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/, '')
  if (/^rollback\s+(?:(?:work|transaction)\s+)?to\b/i.test(statement)) return false
  return /^(?:begin|commit|end|rollback|abort|start\s+transaction|prepare\s+transaction)\b/i.test(statement)
}
