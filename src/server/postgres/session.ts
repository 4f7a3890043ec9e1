/** One transaction on one connection of the pool, with what becomes of it. */
import { CommitUnknownError, StoreUnavailableError } from '../errors.ts'
import type { Ending } from '../store.ts'
import { isTransient, type PgClient, type PgPool, type PgQueryable, type PgResult, sqlState } from './client.ts'

/** A transaction that has begun. */
export interface OpenTransaction {
  /** For the kit's own statements. */
  readonly client: PgQueryable
  /** For the app's statements: refuses to end the transaction, and stops working when it ends. */
  readonly transaction: PgQueryable
  /**
   * Marks a point to go back to (`rollback to savepoint samekey_execute`), and gives lock waits back the limit that they
   * had: the one of this transaction was for its first statement alone (P54, H41).
   */
  mark(): Promise<void>
}

/**
 * Runs `work` in one transaction, and tells its three ends apart: committed, rolled back, and nobody knows (P61).
 *
 * @param lockWaitMs how long a statement waits for a lock until the first mark, ms; `Infinity` for as long as it takes.
 * @param idleMs how long the transaction may stand still between two statements, ms. Where the database has a limit of
 * its own, that one counts.
 * @throws StoreUnavailableError nothing was committed, and never will be.
 * @throws CommitUnknownError the connection was lost while committing.
 * @throws whatever `work` throws; nothing was committed then.
 */
export async function inTransaction<T>(
  pool: PgPool,
  lockWaitMs: number,
  work: (open: OpenTransaction) => Promise<Ending<T>>,
  idleMs: number = IDLE_MS,
): Promise<T> {
  const session = await openSession(pool)
  try {
    const { commit, value } = await runWork(session, { lockWaitMs, idleMs }, work)
    // Nothing was written, so a connection that breaks here changes nothing about the value.
    if (commit) await commitStatement(session)
    else await rollbackStatement(session)
    return value
  } finally {
    session.release()
  }
}

/** Longer than any honest pause between two statements. */
export const IDLE_MS: number = 60_000

/** Runs statements of the kit, and says in the port's words that one of them failed. */
export async function own<T>(what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw new StoreUnavailableError(`The key store failed: ${what}.`, error)
  }
}

/** Lock and statement time limits: either ends a wait for a rival. */
const LIMIT_REACHED: ReadonlySet<string> = new Set(['55P03', '57014'])

/** True where a statement that may wait for a rival, and does nothing else that takes time, reached its limit. */
export function isBusy(error: unknown): boolean {
  return LIMIT_REACHED.has(sqlState(error) ?? '')
}

/** True after a failed statement whose error was swallowed ("current transaction is aborted"). */
export function isAborted(error: unknown): boolean {
  return sqlState(error) === '25P02'
}

export const SWALLOWED: string =
  'A statement of execute failed and its error was swallowed, so the transaction was rolled back (P54). ' +
  'Let the error through, or return refuse(...) or decline(...).'

export const NO_CONTROL: string =
  'execute must not begin, commit or roll back: the business change and the answer commit together (P54). ' +
  'Return refuse(...) or decline(...) to take everything back; savepoints are fine.'

interface Session {
  readonly client: PgClient
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

interface TransactionLimits {
  readonly lockWaitMs: number
  readonly idleMs: number
}

/** Rolls back, and says why in the port's words, when anything goes wrong before the commit. */
async function runWork<T>(
  session: Session,
  limits: TransactionLimits,
  work: (open: OpenTransaction) => Promise<Ending<T>>,
): Promise<Ending<T>> {
  const { client, transaction } = session
  try {
    const lockTimeout = await beginStatement(client, limits)
    const mark = async (): Promise<void> => {
      await own('savepoint', () => client.query(`set local lock_timeout = '${lockTimeout}'; savepoint samekey_execute`))
    }
    return await work({ client, transaction, mark })
  } catch (error) {
    await rollbackStatement(session)
    throw session.broken() !== null || isTransient(error) ? rolledBack(error) : error
  } finally {
    session.close()
  }
}

/**
 * Isolation and durability are said, not hoped for: a database may have other defaults. READ COMMITTED, because the
 * read after a lost insert must see what the rival has just committed (P54); `synchronous_commit`, because an answer
 * must not be given for what a crash can still lose (P61). A stronger setting of the latter stays. And a server that is
 * frozen or cut off in the middle of a transaction must not hold its key, or its work, for as long as the database
 * believes in the connection: hours, by default (P49, B115).
 *
 * @returns the lock time limit that was in force.
 */
async function beginStatement(client: PgQueryable, { lockWaitMs, idleMs }: TransactionLimits): Promise<string> {
  try {
    // One round trip. Several statements in one text give several results, which the types of `pg` do not know.
    const results: unknown = await client.query(`
      begin isolation level read committed read write;
      select set_config('synchronous_commit',
        case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, true);
      select set_config('idle_in_transaction_session_timeout', '${settingOf(idleMs)}', true)
      where current_setting('idle_in_transaction_session_timeout') = '0';
      select current_setting('lock_timeout') as lock_timeout;
      set local lock_timeout = ${settingOf(lockWaitMs)}`)
    const rows = (results as PgResult<{ lock_timeout?: string }>[]).flatMap((result) => result.rows)
    return rows.find((row) => row.lock_timeout !== undefined)?.lock_timeout ?? '0'
  } catch (error) {
    throw new StoreUnavailableError('No transaction could be begun.', error)
  }
}

/** 0 is PostgreSQL's word for no limit, so the shortest limit is 1. */
function settingOf(ms: number): number {
  return ms === Number.POSITIVE_INFINITY ? 0 : Math.min(Math.max(Math.round(ms), 1), 2 ** 31 - 1)
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

/** Catches a slip, not an attack: after comments, the first word says it. `rollback to savepoint` is fine. */
function isTransactionControl(text: string): boolean {
  const statement = text.replace(/^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/, '')
  if (/^rollback\s+(?:(?:work|transaction)\s+)?to\b/i.test(statement)) return false
  return /^(?:begin|commit|end|rollback|abort|start\s+transaction|prepare\s+transaction)\b/i.test(statement)
}
