/** The server's half of the promise, as Request to Response (PROTOCOL.md section 12). */
import { CommitUnknownError, EntryError, StoreUnavailableError } from './errors.ts'
import { lookup, voidKey } from './inquire.ts'
import { type IdempotentOptions, type Settings, settingsOf } from './options.ts'
import { answerFailed, executeFailed, outcomeUnknown, toResponse, unavailable } from './respond.ts'
import { submit } from './submit.ts'
import { type Trail, trailOf } from './trail.ts'

/** A handler of one operation. Call it with requests; `idempotencyRoutes` mounts the other two. */
export interface IdempotentHandler {
  /** Executes once per key, or answers what the key already knows. Never rejects. */
  (request: Request): Promise<Response>
  /** Name of the operation. */
  readonly operation: string
  /**
   * Tells what the key knows: a look-up, and the monitor of a 202 (P43, P62). Never rejects.
   *
   * @param key decoded.
   */
  lookup(request: Request, key: string): Promise<Response>
  /**
   * Makes sure that the key is never executed, or tells that it was (P58). Never rejects.
   *
   * @param key decoded.
   */
  void(request: Request, key: string): Promise<Response>
}

/**
 * Makes an operation idempotent: one business change per key, committed together with its answer, and the same answer
 * for every repetition.
 *
 * @throws ConfigError for an option that cannot be meant.
 * @example
 * ```ts
 * import pg from 'pg'
 * import { idempotent, json } from 'samekey/server'
 * import { migrate, postgresServerStore } from 'samekey/server/postgres'
 *
 * const pool = new pg.Pool()
 * pool.on('error', console.error)
 * await migrate(pool)
 *
 * export const createOrder = idempotent({
 *   store: postgresServerStore(pool),
 *   operation: 'orders.create',
 *   keysUrl: '/idempotency-keys',
 *   scope: (request) => {
 *     const user = request.headers.get('authorization') // your authentication
 *     return user === null ? new Response(null, { status: 401 }) : { tenant: 'shop', principal: user }
 *   },
 *   execute: async ({ transaction, body }) => {
 *     const order = body.kind === 'json' ? JSON.stringify(body.value) : '{}'
 *     const { rows } = await transaction.query<{ id: number }>(
 *       'insert into orders (content) values ($1) returning id',
 *       [order],
 *     )
 *     return json(201, rows[0])
 *   },
 * })
 * ```
 */
export function idempotent<Transaction>(options: IdempotentOptions<Transaction>): IdempotentHandler {
  const settings = settingsOf(options)
  const handle = (request: Request): Promise<Response> =>
    answered(settings, (trail) => submit(settings, request, trail))
  return Object.assign(handle, {
    operation: settings.operation,
    lookup: (request: Request, key: string) => answered(settings, (trail) => lookup(settings, request, key, trail)),
    void: (request: Request, key: string) => answered(settings, (trail) => voidKey(settings, request, key, trail)),
  })
}

/** Every failure becomes the answer that says what is known, and no more. */
async function answered<Transaction>(
  settings: Settings<Transaction>,
  run: (trail: Trail) => Promise<Response>,
): Promise<Response> {
  const trail = trailOf(settings)
  try {
    return await run(trail)
  } catch (error) {
    const detail = error instanceof Error ? error.message : 'Something was thrown that is no Error.'
    if (error instanceof StoreUnavailableError) {
      trail.tell('unavailable', detail, error.cause)
      return toResponse(unavailable())
    }
    if (error instanceof CommitUnknownError) {
      trail.tell('commitUnknown', detail, error.cause)
      return toResponse(outcomeUnknown())
    }
    if (error instanceof EntryError) {
      trail.tell('entryFailed', detail, error.cause)
      return toResponse(unavailable('The request could not be authenticated or authorised; nothing was executed.'))
    }
    if (trail.isInside()) {
      trail.tell('executeFailed', detail, error)
      return toResponse(executeFailed())
    }
    trail.tell('answerFailed', detail, error)
    return toResponse(answerFailed())
  }
}
