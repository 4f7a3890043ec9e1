/**
 * The server kit in Fastify 5.
 *
 * ```ts
 * import fastify from 'fastify'
 * import { idempotencyRoutes, type IdempotentHandler } from 'samekey/server'
 * import { fastifyHandler, rawBodies } from 'samekey/server/fastify'
 *
 * export function appOf(createOrder: IdempotentHandler) {
 *   const keys = idempotencyRoutes({ keysUrl: '/idempotency-keys', operations: [createOrder] })
 *   const app = fastify()
 *   app.register(async (scope) => {
 *     rawBodies(scope)
 *     scope.post('/orders', fastifyHandler(createOrder))
 *     scope.all('/idempotency-keys/*', fastifyHandler(keys))
 *   })
 *   return app
 * }
 * ```
 */
import { Readable } from 'node:stream'
import { ConfigError } from '../../errors.ts'
import { ask, type Incoming, type Outgoing, type WebHandler } from './exchange.ts'
import { type Addressed, addressedUrl } from './url.ts'

export type { Incoming, Outgoing, WebHandler } from './exchange.ts'
export type { Addressed } from './url.ts'

/** What this adapter uses of a Fastify instance. */
export interface FastifyInstanceLike {
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    contentType: string,
    parser: (request: unknown, payload: Readable, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown
}

/** What this adapter uses of a Fastify request. */
export interface FastifyRequestLike extends Addressed {
  readonly raw: Incoming
  readonly body: unknown
}

/** What this adapter uses of a Fastify reply. */
export interface FastifyReplyLike {
  readonly raw: Outgoing
  callNotFound(): unknown
}

/**
 * Leaves bodies unparsed in this scope and in those below it; routes outside keep their parsers. Call it at the top of
 * the plugin that declares the operations, not on the app itself. Bodies are then limited by the operation's
 * `limits.requestBytes`, with its own 413, and not by `bodyLimit`.
 *
 * @example
 * ```ts
 * import fastify, { type FastifyPluginAsync } from 'fastify'
 * import type { IdempotentHandler } from 'samekey/server'
 * import { fastifyHandler, rawBodies } from 'samekey/server/fastify'
 *
 * export function appOf(createOrder: IdempotentHandler) {
 *   const app = fastify({ trustProxy: true })
 *   const orders: FastifyPluginAsync = async (scope) => {
 *     rawBodies(scope)
 *     scope.post('/orders', fastifyHandler(createOrder))
 *   }
 *   return app.register(orders, { prefix: '/v1' })
 * }
 * ```
 */
export function rawBodies(scope: FastifyInstanceLike): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
}

/**
 * Makes a web-standard handler one of Fastify's, for routes in a scope with {@link rawBodies}. Null, as `idempotencyRoutes`
 * answers for foreign paths, is Fastify's own "not found". The URL is built from `originalUrl`, `protocol` and `host`,
 * so prefixes and `trustProxy` work as everywhere in Fastify; so do hooks and the error handler.
 *
 * @throws ConfigError, to the error handler, when the body was parsed; and what the handler throws.
 * @example
 * ```ts
 * import type { FastifyInstance } from 'fastify'
 * import { cors, type IdempotentHandler } from 'samekey/server'
 * import { fastifyHandler } from 'samekey/server/fastify'
 *
 * const withCors = cors({ origins: ['https://shop.example'] })
 *
 * export function routes(scope: FastifyInstance, createOrder: IdempotentHandler): void {
 *   scope.route({ method: ['POST', 'OPTIONS'], url: '/orders', handler: fastifyHandler(withCors(createOrder)) })
 * }
 * ```
 */
export function fastifyHandler(
  handler: WebHandler,
): (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown> {
  return async (request, reply) => {
    const { raw: incoming, body } = request
    const urlOf = (url: string): string => addressedUrl(request, url)
    const kept = body instanceof Uint8Array || body instanceof Readable ? { body } : {}
    const response = await ask(handler, { incoming, outgoing: reply.raw, urlOf, ...kept, bodyIsGone })
    if (response !== null) return response
    reply.callNotFound()
    return reply
  }
}

function bodyIsGone(): ConfigError {
  return new ConfigError(
    'fastifyHandler',
    'the request body was parsed before this handler, and its bytes are gone: call rawBodies(scope) in the plugin that declares the route',
  )
}
