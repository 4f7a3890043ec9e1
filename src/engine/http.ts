/**
 * One request on the wire, read to its end under one time limit that covers everything (P26, H43), as data for the
 * pure classification. Redirects are followed here, and only where the same bytes go to the same origin (section 6).
 */
import type { Clock, Transport } from '../ports.ts'
import type { AnsweredExchange, Exchange } from '../protocol/verdict.ts'
import type { ServerTime } from './server-time.ts'

/** What an exchange needs. */
export interface HttpContext {
  readonly clock: Clock
  readonly transport: Transport
  readonly serverTime: ServerTime
  readonly timeoutMs: number
  readonly maxBodyBytes: number
  readonly pageOrigin: string | null
  /** True when an answer is from behind the key: only then is a 303 the operation's own (H51). */
  readonly isProof: (header: (name: string) => string | null) => boolean
}

/** A request that can be made more than once, for redirects: the bytes are the record's, never a stream. */
export interface HttpRequest {
  readonly url: string
  readonly init: RequestInit & { readonly method: string }
  /** Stops the exchange from outside. */
  readonly signal?: AbortSignal
  /** Asked in the tick in which a redirect is followed: what forbids a send forbids the next one too (P3, P35, P36, P47). */
  readonly mayFollow: () => boolean
}

const maxRedirects = 5

/** Errors that say that a connection was never made, where the transport can be believed (section 6, row 1). */
const neverConnected: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Makes one exchange. Never rejects: whatever happens is an {@link Exchange}. */
export async function exchange(request: HttpRequest, context: HttpContext): Promise<Exchange> {
  const abort = new AbortController()
  const limit = deadline(context.clock, context.timeoutMs, abort)
  const stop = (): void => abort.abort(request.signal?.reason)
  if (request.signal?.aborted === true) stop()
  request.signal?.addEventListener('abort', stop, { once: true })
  try {
    return await hops(request, context, abort.signal, limit.reached)
  } finally {
    limit.cancel()
    request.signal?.removeEventListener('abort', stop)
  }
}

/** Ends by itself: a fetch that ignores its signal must not hold an attempt for ever (H43). */
function deadline(clock: Clock, ms: number, abort: AbortController): { reached: Promise<never>; cancel: () => void } {
  let fail: (error: Error) => void = () => {}
  const reached = new Promise<never>((_resolve, reject) => {
    fail = reject
  })
  reached.catch(() => {})
  const timer = clock.timer(
    ms,
    () => {
      const error = new DOMException('The time limit of the attempt was reached.', 'TimeoutError')
      abort.abort(error)
      fail(error)
    },
    true,
  )
  abort.signal.addEventListener('abort', () => fail(abort.signal.reason as Error), { once: true })
  return { reached, cancel: () => timer.cancel() }
}

async function hops(
  request: HttpRequest,
  context: HttpContext,
  signal: AbortSignal,
  limit: Promise<never>,
): Promise<Exchange> {
  let { url, init } = request
  /** The same bytes went out more than once, and an earlier answer may have come after the commit (H16). */
  let repeated = false
  /** A 303 with proof was followed: it was done, whatever becomes of its page (section 6). */
  let done: AnsweredExchange | null = null
  for (let hop = 0; ; hop++) {
    let response: Response
    let proves = false
    try {
      const made = new Request(url, { ...init, redirect: 'manual', signal })
      // Asked before: what can be believed of a failure is decided by what it went through.
      proves = hop === 0 && provesNonDelivery(context.transport)
      const sent = context.transport.fetch(made)
      sent.catch(() => {})
      response = await Promise.race([sent, limit])
    } catch (error) {
      if (done !== null) return done
      const detail = describe(error)
      return { kind: 'failed', neverDelivered: proves && neverConnected.has(codeOf(error)), detail }
    }
    const isProof = context.isProof((name) => response.headers.get(name))
    context.serverTime.note(new URL(url).origin, response.headers.get('date'), isProof)
    const next = hop < maxRedirects && request.mayFollow() ? redirectTarget(response, url) : null
    if (next !== null && (response.status === 307 || response.status === 308)) {
      discard(response)
      url = next
      repeated = true
      continue
    }
    if (next !== null && response.status === 303 && isProof) {
      discard(response)
      done ??= withoutPage(response, url, context)
      const { body: _body, ...rest } = init
      init = { ...rest, method: 'GET', headers: withoutBody(init.headers) }
      url = next
      continue
    }
    const heard = await read(response, url, context, limit)
    if (done === null) return { ...heard, repeated }
    return heard.status >= 200 && heard.status < 300 ? { ...heard, seeOtherProof: true } : done
  }
}

/** What a 303 with proof says where its page cannot be had: success whose body is missing. No word of the page denies it (P27). */
function withoutPage(response: Response, url: string, context: HttpContext): AnsweredExchange {
  return {
    ...headOf(response, url, context),
    status: 200,
    body: new Uint8Array(),
    bodyState: 'cut_off',
    seeOtherProof: true,
    repeated: false,
  }
}

/** Headers that speak of the body go with it. */
function withoutBody(headers: HeadersInit | undefined): Headers {
  const kept = new Headers(headers)
  for (const name of ['content-type', 'content-encoding', 'content-language', 'content-location']) kept.delete(name)
  return kept
}

/** The same-origin address of a readable redirect, or null. */
function redirectTarget(response: Response, from: string): string | null {
  if (response.type === 'opaqueredirect' || response.status < 300 || response.status > 399) return null
  const location = response.headers.get('location')
  const target = location === null ? null : URL.parse(location, from)
  const { origin, protocol } = new URL(from)
  // A blob: address has the origin of whoever made it, and is no place on a server.
  return target?.origin === origin && target.protocol === protocol ? target.href : null
}

async function read(
  response: Response,
  url: string,
  context: HttpContext,
  limit: Promise<never>,
): Promise<AnsweredExchange> {
  const { body, bodyState } = await readBody(response, context.maxBodyBytes, limit)
  return { ...headOf(response, url, context), body, bodyState, seeOtherProof: false, repeated: false }
}

/** All of an answer that is there before its body. */
function headOf(
  response: Response,
  url: string,
  context: HttpContext,
): Omit<AnsweredExchange, 'body' | 'bodyState' | 'seeOtherProof' | 'repeated'> {
  return {
    kind: 'answered',
    status: response.status,
    headers: [...response.headers].map(([name, value]) => [name.toLowerCase(), value] as const),
    url: response.url === '' ? url : response.url,
    // What we followed ourselves stayed on the origin with the same bytes; this is a fetch that followed by itself.
    redirected: response.redirected,
    opaque: response.type === 'opaqueredirect' || response.type === 'opaque' || response.type === 'error',
    crossOrigin: context.pageOrigin !== null && new URL(url).origin !== context.pageOrigin,
  }
}

/** Reads up to the limit; what breaks in the middle is cut off, not an error: the status was heard (section 6). */
async function readBody(
  response: Response,
  maxBytes: number,
  limit: Promise<never>,
): Promise<Pick<AnsweredExchange, 'body' | 'bodyState'>> {
  if (response.body === null) return { body: new Uint8Array(), bodyState: 'complete' }
  const reader = response.body.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), limit])
      if (done) return { body: joined(chunks, length), bodyState: 'complete' }
      length += value.length
      if (length > maxBytes) {
        reader.cancel().catch(() => {})
        return { body: new Uint8Array(), bodyState: 'too_large' }
      }
      chunks.push(value)
    }
  } catch {
    reader.cancel().catch(() => {})
    return { body: new Uint8Array(), bodyState: 'cut_off' }
  }
}

/** The chunks as one array. */
export function joined(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    all.set(chunk, at)
    at += chunk.length
  }
  return all
}

function discard(response: Response): void {
  response.body?.cancel().catch(() => {})
}

function provesNonDelivery(transport: Transport): boolean {
  return transport.provesNonDelivery && !transport.repeats
}

function codeOf(error: unknown): string {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string') return at.code
  }
  return ''
}

/** An error's class and code: no message, which may hold an address with secrets in it (P51). */
function describe(error: unknown): string {
  const name = error instanceof Error || error instanceof DOMException ? error.name : 'unknown'
  const code = codeOf(error)
  return code === '' ? name : `${name}:${code}`
}
