/** Who is calling, in a mock. */
import { otherProblem, problemAnswer } from '../server/answer-for.ts'
import type { Scope } from '../server/options.ts'
import { toResponse } from '../server/respond.ts'

/** Everybody is the same, and there is no tag to compare `Idempotency-Scope` with. */
export function anonymous(): Scope {
  return { tenant: 'mock', principal: 'anonymous' }
}

/**
 * `scope` for tests with several users: the bearer token is the principal, and the tag too. Without one: 401.
 *
 * @example
 * ```ts
 * import { bearerScope, createMockServer } from 'samekey/msw'
 *
 * const mock = createMockServer({ scope: bearerScope })
 * await mock.fetch('/orders', { method: 'POST', headers: { authorization: 'Bearer ann' } })
 * ```
 */
export function bearerScope(request: Request): Scope | Response {
  const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '') ?? []
  if (token !== undefined) return { tenant: 'mock', principal: token, tag: token }
  const { status, headers, body } = problemAnswer(otherProblem(401, 'unauthenticated', 'Sign in first.'))
  return toResponse({ status, headers: [...headers, ['WWW-Authenticate', 'Bearer']], body })
}
