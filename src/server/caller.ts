/** Who asks, and may they: the same for submits, replays, look-ups, monitors and voids (P55). */
import { ConfigError } from '../errors.ts'
import { IDEMPOTENCY_AGE, IDEMPOTENCY_SCOPE, IDEMPOTENCY_SINCE } from '../protocol/wire.ts'
import { type Asked, type KeyReading, readAge, readScopeTag } from './decide.ts'
import { EntryError } from './errors.ts'
import type { AuthorizeContext, Scope, Settings } from './options.ts'
import { forbidden, toResponse } from './respond.ts'

/** A request that has been authenticated, with what every decision needs of it. */
export interface Caller {
  readonly request: Request
  readonly scope: Scope
  readonly asked: Asked
}

/**
 * Authenticates, and reads what every request brings along. Nothing is touched yet.
 *
 * @returns the app's own Response where it refuses.
 * @throws EntryError
 */
export async function callerOf<Transaction>(
  { scope: scopeOf, retentionMs, transitMs }: Settings<Transaction>,
  request: Request,
  key: KeyReading,
): Promise<Caller | Response> {
  const scope = await entry('scope', async () => checkScope(await scopeOf(request)))
  if (isResponse(scope)) return scope
  const header = (name: string): string | null => request.headers.get(name)
  const age = readAge(header(IDEMPOTENCY_AGE), header(IDEMPOTENCY_SINCE))
  const tag = readScopeTag(header(IDEMPOTENCY_SCOPE), scope.tag)
  return { request, scope, asked: { key, age, scope: tag, retentionMs, transitMs } }
}

/**
 * Asks for today's authorisation.
 *
 * @returns the answer that refuses, or null.
 * @throws EntryError
 */
export async function refusal<Transaction>(
  { authorize, operation }: Settings<Transaction>,
  { request, scope }: Caller,
  about: Pick<AuthorizeContext, 'key' | 'purpose' | 'body' | 'answer'>,
): Promise<Response | null> {
  const allowed = await entry('authorize', () => authorize({ request, scope, operation, ...about }))
  if (allowed === true) return null
  return isResponse(allowed) ? allowed : toResponse(forbidden())
}

async function entry<T>(what: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw new EntryError(what, error)
  }
}

function checkScope(scope: Scope | Response): Scope | Response {
  if (isResponse(scope)) return scope
  for (const part of [scope.tenant, scope.principal]) {
    // An undefined or empty principal would be one that all callers without an account share.
    if (typeof part !== 'string' || part === '' || part.includes('\0') || /\p{Surrogate}/u.test(part)) {
      throw new ConfigError('scope', 'must give tenant and principal, each a well-formed text that is not empty')
    }
  }
  // An empty tag would be the tag of everybody whose tag could not be computed.
  if (scope.tag === '') throw new ConfigError('scope', 'must give a tag that is not empty, or none')
  return scope
}

/** By shape: some HTTP servers bring a `Response` class of their own. */
function isResponse(value: unknown): value is Response {
  return typeof value === 'object' && value !== null && 'status' in value && 'headers' in value
}
