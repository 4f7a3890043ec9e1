/**
 * One request of Node's through a web-standard handler. How Node's streams become a web request is srvx's knowledge, not
 * ours (docs/decisions/0016); here stands what the protocol needs beyond that.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { addAbortSignal, Readable } from 'node:stream'
import { NodeRequest } from 'srvx/node'
import type { ConfigError } from '../../errors.ts'

/** A request as Node has it. */
export type Incoming = IncomingMessage | Http2ServerRequest

/** An answer as Node has it. */
export type Outgoing = ServerResponse | Http2ServerResponse

/** A web-standard handler; null says that the request is not its business, as `idempotencyRoutes` does. */
export type WebHandler = (request: Request) => Response | null | Promise<Response | null>

/** One request, and what a framework knows of it. */
export interface Exchange {
  readonly incoming: Incoming
  readonly outgoing: Outgoing
  /** As the client addressed it, given what Node alone would say. Default: that. */
  readonly urlOf?: (url: string) => string
  /** The body: its bytes, where somebody kept them, or a stream of them. Default: what comes in. */
  readonly body?: Uint8Array | Readable
  /** What to raise when the handler wants a body that somebody else has read. */
  readonly bodyIsGone: () => ConfigError
}

/**
 * Asks the handler.
 *
 * @returns null when it is not the handler's business.
 * @throws ConfigError when the body was read before the handler; and what the handler throws.
 */
export async function ask(handler: WebHandler, exchange: Exchange): Promise<Response | null> {
  const { incoming, outgoing, urlOf = (url) => url } = exchange
  // Web requests cannot have these methods, and it is scanners that send them: no failure to tell an operator about.
  if (/^(CONNECT|TRACE|TRACK)$/i.test(incoming.method ?? '')) return null
  const heard = new NodeRequest({ req: incoming, res: outgoing })
  const { method, signal } = heard
  const headers = new Headers(heard.headers)
  // It speaks of what came over the wire, which is not this body any more.
  if (exchange.body !== undefined && exchange.body !== incoming) headers.delete('content-length')
  let isGone = false
  const body = bodyOf(heard, exchange, () => {
    isGone = true
  })
  // A Request of the platform's own: srvx's stand-in cannot be given to `new Request(request)`.
  const init: RequestInit & { duplex: 'half' } = { method, headers, signal, body, duplex: 'half' }
  const response = await handler(new Request(urlOf(heard.url), init))
  // Only now: many handlers, such as look-ups, never want the body. Whoever reads it takes the failure for a lost client.
  if (isGone) throw exchange.bodyIsGone()
  return response
}

function bodyOf(
  heard: Request,
  { incoming, outgoing, body = incoming }: Exchange,
  onGone: () => void,
): BodyInit | null {
  if (heard.method === 'GET' || heard.method === 'HEAD' || isEmpty(incoming)) return null
  if (body instanceof Uint8Array) return new Uint8Array(body)
  return onDemand(outgoing, () => {
    if (body.readableDidRead) {
      // Once something else has answered, a time limit for one, it is Node that threw the body away.
      if (!outgoing.headersSent) onGone()
      throw new TypeError('The request body was read before.')
    }
    const stream = body === incoming ? heard.body : inPlace(body, heard.signal)
    if (stream === null) throw new TypeError('The request has no body.')
    return stream
  })
}

/** What a framework gives in place of what comes in: when that breaks off, this must neither end nor wait for ever. */
function inPlace(body: Readable, signal: AbortSignal): ReadableStream<Uint8Array> {
  if (body.destroyed) throw new TypeError('The request body broke off.')
  return Readable.toWeb(addAbortSignal(signal, body)) as ReadableStream<Uint8Array>
}

function isEmpty({ httpVersionMajor, headers }: Incoming): boolean {
  return (
    httpVersionMajor === 1 && headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
  )
}

/**
 * Touches the body when it is asked for, and never cancels it. An untouched body is there for the next handler. A
 * cancelled one leaves its connection deaf: the client could neither be told 413 for sure nor send its next request.
 */
function onDemand(outgoing: Outgoing, open: () => ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (reader === undefined) {
          reader = open().getReader()
          outgoing.once('finish', drain.bind(null, reader))
        }
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
    },
    { highWaterMark: 0 },
  )
}

/** As Node does with a body that nobody read; its `requestTimeout` ends those who never stop. */
function drain(reader: ReadableStreamDefaultReader<Uint8Array>): void {
  const next = (): Promise<void> => reader.read().then(({ done }) => (done ? undefined : next()))
  next().catch(() => {}) // The client is gone: it has, or will get, its answer another way.
}
