/**
 * The server kit in Express 5.
 *
 * ```ts
 * import express from 'express'
 * import { idempotencyRoutes, type IdempotentHandler } from 'samekey/server'
 * import { expressHandler } from 'samekey/server/express'
 *
 * export function appOf(createOrder: IdempotentHandler) {
 *   const app = express()
 *   app.post('/orders', expressHandler(createOrder)) // before express.json()
 *   app.use(expressHandler(idempotencyRoutes({ keysUrl: '/idempotency-keys', operations: [createOrder] })))
 *   app.use(express.json())
 *   return app
 * }
 * ```
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ConfigError } from '../../errors.ts'
import { ask, type WebHandler } from './exchange.ts'
import { send } from './send.ts'
import { type Addressed, addressedUrl } from './url.ts'

export type { WebHandler } from './exchange.ts'
export type { Addressed } from './url.ts'

/** What this adapter uses of an Express request. */
export interface ExpressRequestLike extends IncomingMessage, Addressed {}

/**
 * Makes a web-standard handler one of Express's. A handler that answers null, as `idempotencyRoutes` does for foreign
 * paths, gives way to the next one. The URL is built from `req.originalUrl`, `req.protocol` and `req.host`, so mounted
 * routers and `trust proxy` work as everywhere in Express. In Express 4, whose `req.host` has no port, give `idempotent`
 * a `publicOrigin`.
 *
 * The body must not have been parsed: fingerprint and digest are over its bytes. Mount this before `express.json()`, or
 * let that keep the bytes as `req.rawBody`.
 *
 * @throws ConfigError, to `next`, when the body was read before and `req.rawBody` does not hold its bytes; what the
 *   handler throws goes to `next` as well.
 * @example
 * ```ts
 * import express from 'express'
 * import type { IdempotentHandler } from 'samekey/server'
 * import { expressHandler } from 'samekey/server/express'
 *
 * export function behindAParser(createOrder: IdempotentHandler) {
 *   const app = express()
 *   app.use(express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) }))
 *   app.post('/orders', expressHandler(createOrder))
 *   return app
 * }
 * ```
 */
export function expressHandler(
  handler: WebHandler,
): (req: ExpressRequestLike, res: ServerResponse, next: (error?: unknown) => void) => void {
  return (req, res, next) => {
    const { rawBody } = req as { rawBody?: unknown }
    const kept = rawBody instanceof Uint8Array ? { body: rawBody } : {}
    const urlOf = (url: string): string => addressedUrl(req, url)
    ask(handler, { incoming: req, outgoing: res, urlOf, ...kept, bodyIsGone })
      .then((response) => (response === null ? next() : send(response, res)))
      .catch(next)
  }
}

function bodyIsGone(): ConfigError {
  return new ConfigError(
    'expressHandler',
    'the request body was parsed before this handler, and its bytes are gone: mount the handler before the body ' +
      'parser, or let the parser keep them, express.json({ verify: (req, _res, bytes) => { req.rawBody = bytes } })',
  )
}
