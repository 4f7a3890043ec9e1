/** Stands for real authentication: tokens that end. There is no password, so never use it for anything else. */
import { randomBytes } from 'node:crypto'
import type { Pool } from 'pg'

/** A token for an account. */
export async function signIn(database: Pool, account: string, hours = 12): Promise<string> {
  const token = randomBytes(24).toString('base64url')
  await database.query(`insert into sessions values ($1, $2, now() + $3 * interval '1 hour')`, [token, account, hours])
  return token
}

/** Whose request it is, or null: read at every request, so that a token that has ended helps nobody. */
export async function accountOf(database: Pool, request: Request): Promise<string | null> {
  const token = /^Bearer ([\w-]+)$/.exec(request.headers.get('authorization') ?? '')?.[1]
  if (token === undefined) return null
  const { rows } = await database.query<{ account: string }>(
    'select account from sessions where token = $1 and expires_at > now()',
    [token],
  )
  return rows[0]?.account ?? null
}
