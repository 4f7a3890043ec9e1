/** The keys as resources: `GET` looks up (and is the monitor of a 202), `DELETE` voids (section 16). */
import { ConfigError } from '../errors.ts'
import { otherProblem, problemAnswer } from './answer-for.ts'
import type { IdempotentHandler } from './idempotent.ts'
import { toResponse } from './respond.ts'

/** What {@link idempotencyRoutes} is told. */
export interface IdempotencyRoutesOptions {
  /** Path, or absolute URL, under which the keys lie: the clients' `keysUrl`. */
  readonly keysUrl: string
  /** The handlers that `idempotent` made. */
  readonly operations: readonly IdempotentHandler[]
}

/**
 * Handles `<keysUrl>/{operation}/{key}` for these operations, with each one's own authentication and scope.
 *
 * @returns a handler that answers null for every other path, so that it can stand before or behind other routes.
 * @throws ConfigError when two handlers have one operation's name.
 * @example
 * ```ts
 * import { type IdempotentHandler, idempotencyRoutes } from 'samekey/server'
 *
 * export function withKeys(createOrder: IdempotentHandler): (request: Request) => Promise<Response> {
 *   const keys = idempotencyRoutes({ keysUrl: '/idempotency-keys', operations: [createOrder] })
 *   return async (request) => (await keys(request)) ?? createOrder(request)
 * }
 * ```
 */
export function idempotencyRoutes(options: IdempotencyRoutesOptions): (request: Request) => Promise<Response | null> {
  const byName = new Map(options.operations.map((handler) => [handler.operation, handler]))
  if (byName.size < options.operations.length) {
    throw new ConfigError(
      'operations',
      'two handlers have the same operation name, so a key of theirs means two things',
    )
  }
  const base = new URL(options.keysUrl, 'http://any.invalid').pathname.replace(/\/+$/, '')

  if (base === '') throw new ConfigError('keysUrl', 'must be a path of its own, such as /idempotency-keys')

  return async (request) => {
    const { pathname } = new URL(request.url)
    if (!pathname.startsWith(`${base}/`)) return null
    const [operation, key, ...more] = pathname
      .slice(base.length + 1)
      .split('/')
      .map(decoded)
    if (operation === undefined || key === undefined || more.length > 0) return notFound()
    const handler = operation === null ? undefined : byName.get(operation)
    if (handler === undefined || key === null) return notFound()
    if (request.method === 'GET') return handler.lookup(request, key)
    if (request.method === 'HEAD') return withoutBody(await handler.lookup(request, key))
    if (request.method === 'DELETE') return handler.void(request, key)
    const refused = problemAnswer(
      otherProblem(405, 'method-not-allowed', 'A key can be looked up (GET) and voided (DELETE).'),
    )
    return toResponse({ ...refused, headers: [...refused.headers, ['Allow', 'GET, HEAD, DELETE']] })
  }
}

/** Null for what is not percent-encoded properly. */
function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}

function withoutBody({ status, headers }: Response): Response {
  return new Response(null, { status, headers })
}

function notFound(): Response {
  return toResponse(problemAnswer(otherProblem(404, 'not-found', 'There is no such operation here.')))
}
