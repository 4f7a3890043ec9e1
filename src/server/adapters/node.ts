/**
 * The server kit on Node's own HTTP server.
 *
 * ```ts
 * import { createServer } from 'node:http'
 * import { idempotencyRoutes, type IdempotentHandler } from 'samekey/server'
 * import { nodeHandler } from 'samekey/server/node'
 *
 * export function serve(createOrder: IdempotentHandler) {
 *   const keys = idempotencyRoutes({ keysUrl: '/idempotency-keys', operations: [createOrder] })
 *   return createServer(nodeHandler(async (request) => (await keys(request)) ?? createOrder(request)))
 * }
 * ```
 */
import { ConfigError } from '../../errors.ts'
import { quietly } from '../quietly.ts'
import { ask, type Incoming, type Outgoing, type WebHandler } from './exchange.ts'
import { send } from './send.ts'

export type { Incoming, Outgoing, WebHandler } from './exchange.ts'

/** What {@link nodeHandler} can be told. */
export interface NodeHandlerOptions {
  /** Is told what the handler threw, after which the client gets 500. Default: one line on the console. */
  readonly onError?: (error: unknown) => void
}

/**
 * Makes a web-standard handler a request listener of `node:http`, `node:https` and `node:http2`. Null is answered with
 * 404. Origin of the URL is the connection's own; behind a proxy give `idempotent` a `publicOrigin`.
 *
 * @throws ConfigError, to `onError`, when the body was read before the handler and `rawBody` does not hold its bytes.
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { cors } from 'samekey/server'
 * import { nodeHandler } from 'samekey/server/node'
 *
 * const withCors = cors({ origins: ['https://shop.example'] })
 * createServer(nodeHandler(withCors(async () => new Response('hello')))).listen(3000)
 * ```
 */
export function nodeHandler(
  handler: WebHandler,
  options: NodeHandlerOptions = {},
): (incoming: Incoming, outgoing: Outgoing) => void {
  const { onError = toConsole } = options
  return (incoming, outgoing) => {
    const { rawBody } = incoming as { rawBody?: unknown }
    const kept = rawBody instanceof Uint8Array ? { body: rawBody } : {}
    ask(handler, { incoming, outgoing, ...kept, bodyIsGone })
      .catch((error: unknown) => {
        quietly(() => onError(error))
        return new Response(null, { status: 500 })
      })
      .then((response) => send(response ?? new Response(null, { status: 404 }), outgoing))
      .catch((error: unknown) => quietly(() => onError(error)))
  }
}

function bodyIsGone(): ConfigError {
  return new ConfigError('nodeHandler', 'the request body was read before: give the request to this handler first')
}

function toConsole(error: unknown): void {
  // biome-ignore lint/suspicious/noConsole: the default where the app gives no `onError`; a server has a console.
  console.error('samekey: a handler failed:', error)
}
