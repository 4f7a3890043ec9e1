/** The app's part of a transaction: what it may do there, and for how long. */
import { CommitUnknownError } from '../errors.ts'
import type { PgQueryable, PgResult } from './client.ts'

/** The kit's savepoint. The app has any other name. */
export const MARK = 'samekey_mark'

export const SWALLOWED: string =
  'A statement failed and its error was swallowed, so the transaction was rolled back (P54). ' +
  'Let the error through, or return refuse(...) or decline(...).'

export const NO_CONTROL: string =
  'The app must not begin, commit or roll back: the business change and the answer commit together (P54). ' +
  'Return refuse(...) or decline(...) to take everything back; savepoints of other names than samekey_mark are fine.'

const NOT_AWAITED =
  'A statement was still running when the app was through, so everything was rolled back (P54): await everything that ' +
  'you start in the transaction, also where another part of it fails or takes too long.'

const OVER = 'The transaction is over: await everything that you start in it.'

/**
 * Runs it. What it gets is dead the moment it settles: a statement that came after the roll-back would be executed by
 * itself, in a transaction of its own.
 *
 * @throws Error for a statement that was left running.
 * @throws CommitUnknownError where it ended the transaction although it may not.
 */
export async function runPart<T>(client: PgQueryable, work: (transaction: PgQueryable) => T | Promise<T>): Promise<T> {
  let open = true
  let running = 0
  let ended = false

  async function query<Row extends object>(text: string, values?: unknown[]): Promise<PgResult<Row>> {
    if (!open) throw new Error(OVER)
    const statement = textOf(text)
    if (isTransactionControl(statement)) throw new Error(NO_CONTROL)
    running += 1
    try {
      const result = await client.query<Row>(text, values)
      // In disguise: behind another statement in one text, or behind a comment that only PostgreSQL reads as one.
      if (endsTransaction(result, statement)) {
        ended = true
        open = false
        throw new Error(NO_CONTROL)
      }
      return result
    } finally {
      running -= 1
    }
  }

  try {
    const value = await work({ query })
    open = false
    if (running > 0) throw new Error(NOT_AWAITED)
    // Its error was swallowed.
    if (ended) throw new Error(NO_CONTROL)
    return value
  } catch (error) {
    open = false
    // Whatever else went wrong: it may have committed half of the work.
    throw ended ? new CommitUnknownError(NO_CONTROL) : error
  }
}

/** `pg` also takes an object, as many query builders give it. */
function textOf(text: unknown): string {
  if (typeof text === 'string') return text
  const inside = typeof text === 'object' && text !== null && 'text' in text ? text.text : null
  return typeof inside === 'string' ? inside : ''
}

/** Catches a slip before it does harm. `rollback to savepoint` is fine, but for the kit's own. */
function isTransactionControl(text: string): boolean {
  if (text.includes(MARK)) return true
  const statement = text.replace(/^(?:[\s\ufeff]+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/, '')
  if (isRollbackTo(statement)) return false
  return /^(?:begin|commit|end|rollback|abort|start\s+transaction|prepare\s+transaction)\b/i.test(statement)
}

function isRollbackTo(statement: string): boolean {
  return /^rollback\s+(?:(?:work|transaction)\s+)?to\b/i.test(statement)
}

const ENDS: ReadonlySet<string> = new Set(['BEGIN', 'START TRANSACTION', 'COMMIT', 'PREPARE TRANSACTION'])

/** By what PostgreSQL says that it did. Several statements in one text give several results. */
function endsTransaction(result: unknown, statement: string): boolean {
  const results = (Array.isArray(result) ? result : [result]) as readonly (PgResult | undefined)[]
  return results.some((each) => {
    const command = each?.command ?? ''
    return (
      ENDS.has(command) || (command === 'ROLLBACK' && !/\brollback\s+(?:(?:work|transaction)\s+)?to\b/i.test(statement))
    )
  })
}
