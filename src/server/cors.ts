/** The CORS lines of section 16: without them a page on another origin can neither send a key nor read the proof (P41). */
import { CORS_ALLOW_HEADERS, CORS_EXPOSE_HEADERS } from '../protocol/wire.ts'

/** What {@link cors} is told. */
export interface CorsOptions {
  /** Origins that may call: `https://shop.example`. `*` for any, which browsers accept only without credentials. */
  readonly origins: readonly string[]
  /** Whether cookies and HTTP authentication may come along. Default false. */
  readonly credentials?: boolean
  /** Methods. Default GET, POST, PUT, PATCH, DELETE. */
  readonly methods?: readonly string[]
  /** Request headers besides the protocol's. Default Accept, Authorization, Content-Type. */
  readonly headers?: readonly string[]
  /** Answer headers to show besides the protocol's. Default none. */
  readonly expose?: readonly string[]
  /** How long a browser may keep the preflight's answer, whole seconds. Default 600. */
  readonly maxAgeSeconds?: number
}

/** A web-standard handler. */
export type Handler = (request: Request) => Promise<Response> | Response

/**
 * Puts the CORS lines on a handler's answers, failures included, and answers preflights by itself.
 *
 * @throws TypeError for `*` with credentials: browsers refuse that.
 * @example
 * ```ts
 * import { cors } from 'samekey/server'
 *
 * const withCors = cors({ origins: ['https://shop.example'] })
 * export const handle = withCors(async () => new Response('hello'))
 * ```
 */
export function cors(options: CorsOptions): (handler: Handler) => Handler {
  const { origins, credentials = false, maxAgeSeconds = 600 } = options
  const { methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], headers = ['Accept', 'Authorization', 'Content-Type'] } =
    options
  if (credentials && origins.includes('*'))
    throw new TypeError('cors: name the origins; browsers refuse * with credentials.')
  const allowHeaders = [...CORS_ALLOW_HEADERS, ...headers].join(', ')
  const exposeHeaders = [...CORS_EXPOSE_HEADERS, ...(options.expose ?? [])].join(', ')

  function allow(request: Request, answer: Headers): boolean {
    // Also where the origin is refused: a cache must not give one origin's answer to another.
    answer.append('Vary', 'Origin')
    const origin = request.headers.get('origin')
    const allowed = origin !== null && (origins.includes('*') || origins.includes(origin))
    if (!allowed) return false
    answer.set('Access-Control-Allow-Origin', origins.includes('*') ? '*' : origin)
    if (credentials) answer.set('Access-Control-Allow-Credentials', 'true')
    return true
  }

  return (handler) => async (request) => {
    if (request.method === 'OPTIONS' && request.headers.has('access-control-request-method')) {
      const answer = new Headers()
      if (allow(request, answer)) {
        answer.set('Access-Control-Allow-Methods', methods.join(', '))
        answer.set('Access-Control-Allow-Headers', allowHeaders)
        answer.set('Access-Control-Max-Age', String(maxAgeSeconds))
      }
      return new Response(null, { status: 204, headers: answer })
    }
    const response = await handler(request)
    const answer = new Headers(response.headers)
    if (allow(request, answer)) answer.set('Access-Control-Expose-Headers', exposeHeaders)
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers: answer })
  }
}
