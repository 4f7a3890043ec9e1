/** One transaction on one connection of the pool, with what becomes of it. */
import { CommitUnknownError, StoreUnavailableError } from '../errors.ts'
import type { Ending } from '../store.ts'
import { MARK, runPart, SWALLOWED } from './app-part.ts'
import {
  connect,
  isTransient,
  type PgClient,
  type PgPool,
  type PgQueryable,
  type PgResult,
  sqlState,
} from './client.ts'

/** A transaction that has begun. */
export interface OpenTransaction {
  /** For the kit's own statements. */
  readonly client: PgQueryable
  /** Runs the app's part, see `Unit.run`: what it gets refuses to end the transaction, and stops working with it. */
  run<T>(work: (transaction: PgQueryable) => T | Promise<T>): Promise<T>
  /**
   * Marks a point to go back to (`rollback to savepoint`, {@link MARK}), and gives lock waits back the limit that they
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
    throw failureOf(what, error)
  }
}

/** A database that refuses a statement is not away: trying the same again is of no use, and an operator has to see why. */
export function failureOf(what: string, error: unknown): Error {
  const message = `The key store failed: ${what}.`
  if (REFUSED.test(sqlState(error) ?? '')) return new Error(message, { cause: error })
  return new StoreUnavailableError(message, error)
}

/** A value or a constraint: the statement itself cannot be carried out. */
const REFUSED = /^(?:22|23)/

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

interface Session {
  readonly client: PgClient
  /** The error that broke the connection, or null. */
  broken(): Error | null
  /** Rejects when the connection breaks: nobody need wait for what was going on then. */
  readonly death: Promise<never>
  /** Calls the connection broken although nobody has noticed yet. */
  breakWith(error: unknown): void
  release(): void
}

async function openSession(pool: PgPool): Promise<Session> {
  let client: PgClient
  try {
    client = await connect(pool)
  } catch (error) {
    throw new StoreUnavailableError('There is no connection to the key store.', error)
  }
  let broken: Error | null = null
  let die: (error: Error) => void = () => {}
  const death = new Promise<never>((_, reject) => {
    die = reject
  })
  // Nobody may be listening when it happens.
  death.catch(() => {})
  const onError = (error: Error): void => {
    broken = error
    die(error)
  }
  // Without a listener, `pg` lets a lost connection end the whole process.
  client.on('error', onError)
  return {
    client,
    death,
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
  const { client } = session
  try {
    const { lock_timeout, statement_timeout } = await beginStatement(client, limits)
    const restore = `set local lock_timeout = '${lock_timeout}'; set local statement_timeout = '${statement_timeout}'`
    const mark = async (): Promise<void> => {
      await own('savepoint', () => client.query(`${restore}; savepoint ${MARK}`))
    }
    // Whoever waits for something else than the database, for ever perhaps, must not keep the connection for ever.
    return await Promise.race([work({ client, run: (part) => runPart(client, part), mark }), session.death])
  } catch (error) {
    await rollbackStatement(session)
    if (error instanceof CommitUnknownError) throw error
    throw session.broken() !== null || isTransient(error) ? rolledBack(error) : error
  }
}

/**
 * Isolation and durability are said, not hoped for: a database may have other defaults. READ COMMITTED, because the
 * read after a lost insert must see what the rival has just committed (P54); `synchronous_commit`, because an answer
 * must not be given for what a crash can still lose (P61). A stronger setting of the latter stays. And a server that is
 * frozen or cut off in the middle of a transaction must not hold its key, or its work, for as long as the database
 * believes in the connection: hours, by default (P49, B115).
 *
 * @returns the time limits that were in force.
 */
async function beginStatement(client: PgQueryable, { lockWaitMs, idleMs }: TransactionLimits): Promise<TimeLimits> {
  try {
    // One round trip. Several statements in one text give several results, which the types of `pg` do not know.
    const results: unknown = await client.query(`
      begin isolation level read committed read write;
      select set_config('synchronous_commit',
        case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, true);
      select set_config('idle_in_transaction_session_timeout', '${settingOf(idleMs)}', true)
      where current_setting('idle_in_transaction_session_timeout') = '0';
      select current_setting('lock_timeout') as lock_timeout, current_setting('statement_timeout') as statement_timeout;
      ${totalWait(lockWaitMs)}
      set local lock_timeout = ${settingOf(lockWaitMs)}`)
    const rows = (results as PgResult<Partial<TimeLimits>>[]).flatMap((result) => result.rows)
    const { lock_timeout = '0', statement_timeout = '0' } = rows.find((row) => row.lock_timeout !== undefined) ?? {}
    return { lock_timeout, statement_timeout }
  } catch (error) {
    throw new StoreUnavailableError('No transaction could be begun.', error)
  }
}

interface TimeLimits {
  readonly lock_timeout: string
  readonly statement_timeout: string
}

/** The lock limit starts anew with every rival that fails and leaves the key to the next one; this one does not. */
function totalWait(lockWaitMs: number): string {
  if (lockWaitMs === Number.POSITIVE_INFINITY) return ''
  const limit = settingOf(lockWaitMs + SPARE_MS)
  return `select set_config('statement_timeout', '${limit}', true)
    where current_setting('statement_timeout') = '0'
    or current_setting('statement_timeout')::interval > interval '${limit} milliseconds';`
}

/** For what the statement does besides waiting. */
const SPARE_MS = 1000

/** 0 is PostgreSQL's word for no limit, so the shortest limit is 1. */
function settingOf(ms: number): number {
  return ms === Number.POSITIVE_INFINITY ? 0 : Math.min(Math.max(Math.round(ms), 1), 2 ** 31 - 1)
}

/** Connection and server trouble: a pooler may say so of a server that it lost in COMMIT, on a session that goes on. */
const SAYS_NOTHING = /^(?:08|57P|58|XX)/

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
    const state = sqlState(error)
    if (state !== null && !SAYS_NOTHING.test(state) && (await isUsable(session)))
      throw isTransient(error) ? rolledBack(error) : error
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
