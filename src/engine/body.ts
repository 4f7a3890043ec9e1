/** A request's body as bytes that can be stored, sent again unchanged, and fingerprinted (P9, P14). */
import { UnsupportedBodyError } from '../errors.ts'
import { type FingerprintBody, type FingerprintPart, isJsonMediaType } from '../protocol/fingerprint.ts'
import { sha256Hex } from '../protocol/sha256.ts'
import { joined } from './http.ts'

/** What bytes are read from: the request, or the stream that the caller gave for its body. */
export type BodySource = Request | AsyncIterable<unknown>

/**
 * True for bodies that a `Request` is not given: Firefox would send the text "[object ReadableStream]", Safari refuses
 * them, and only Node takes async iterables (B14). They are read here.
 */
export function isStreamed(body: unknown): body is ReadableStream<unknown> | AsyncIterable<unknown> {
  return body instanceof ReadableStream || (typeof body === 'object' && body !== null && Symbol.asyncIterator in body)
}

/**
 * Takes a streamed body over in the tick of the call, as fetch does: nobody else can read from it any more.
 *
 * @throws {@link UnsupportedBodyError} when somebody reads or has read from it.
 */
export function takeStream(body: ReadableStream<unknown> | AsyncIterable<unknown>, intentId: string): BodySource {
  if (!(body instanceof ReadableStream)) return body
  try {
    // A Response takes every stream, and refuses one that was read from.
    const { body: taken } = new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>)
    return chunksOf((taken ?? body).getReader())
  } catch (cause) {
    throw alreadyRead(intentId, cause)
  }
}

/** The body was read before, by the caller or by another layer (B12). */
export function alreadyRead(intentId: string, cause?: unknown): UnsupportedBodyError {
  return new UnsupportedBodyError(
    'The body was read before, so it cannot be stored and sent. Give a fresh Request or stream, or url and options. Nothing was stored or sent.',
    { intentId, cause },
  )
}

/**
 * fetch turns what it does not know into text, so that a plain object becomes "[object Object]".
 *
 * @throws {@link UnsupportedBodyError} for such a body.
 */
export function refuseStringified(body: unknown, intentId: string): void {
  if (typeof body !== 'object' || body === null || isStreamed(body)) return
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return
  // The type that only text is given; a Blob's own type is always in lower case.
  const type = new Response(body as BodyInit).headers.get('content-type')
  if (type !== 'text/plain;charset=UTF-8') return
  throw new UnsupportedBodyError(
    `The body is ${describeObject(body)}, which fetch would send as the text ${JSON.stringify(Object.prototype.toString.call(body))}. Give JSON.stringify(...) of it with a content type, or a form, bytes or text. Nothing was stored or sent.`,
    { intentId },
  )
}

function describeObject(body: object): string {
  const name: unknown = body.constructor?.name
  return Array.isArray(body) ? 'an array' : typeof name === 'string' && name !== 'Object' ? `a ${name}` : 'an object'
}

/**
 * Reads the body to its end, under a limit. A `Request` turns every kind of body into bytes at its construction: text,
 * forms with files (its boundary is fixed there), blobs, views. Streams are read whole (B14).
 *
 * @throws {@link UnsupportedBodyError} when the body is larger than `maxBytes`, breaks off, or was read before.
 */
export async function readBody(
  source: BodySource,
  maxBytes: number,
  intentId: string,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const request = source instanceof Request ? source : null
  if (request?.bodyUsed === true) throw alreadyRead(intentId)
  if (request?.body === null) return null
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    const content = request === null ? (source as AsyncIterable<unknown>) : contentOf(request)
    for await (const chunk of endable(content, signal)) {
      if (!ArrayBuffer.isView(chunk)) throw new TypeError(`A chunk is no Uint8Array but ${typeof chunk}.`)
      length += chunk.byteLength
      if (length > maxBytes) break
      // A copy: some producers fill the same buffer again for the next chunk.
      chunks.push(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength).slice())
    }
  } catch (cause) {
    throw new UnsupportedBodyError(
      'The body could not be read to its end as bytes, so it cannot be stored. Streams give chunks of Uint8Array. Nothing was stored or sent.',
      { intentId, cause },
    )
  }
  if (length > maxBytes) {
    throw new UnsupportedBodyError(
      `The body has more than ${maxBytes} bytes, which is the limit for what is stored and sent again. Raise maxBodyBytes, or upload it first and send a reference. Nothing was stored or sent.`,
      { intentId },
    )
  }
  // Where a request does not show its body, one without bytes and without a type is none.
  if (length === 0 && request?.body === undefined && request?.headers.has('content-type') === false) return null
  return joined(chunks, length)
}

/** The chunks until `signal` aborts: a body that never ends must not hold its name for ever, nor a client that stops. */
async function* endable(content: AsyncIterable<unknown>, signal: AbortSignal): AsyncGenerator<unknown> {
  let end: () => void = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    end = () => reject(signal.reason as Error)
  })
  aborted.catch(() => {})
  if (signal.aborted) end()
  signal.addEventListener('abort', end, { once: true })
  const chunks = content[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await Promise.race([chunks.next(), aborted])
      if (next.done === true) return
      yield next.value
    }
  } finally {
    signal.removeEventListener('abort', end)
    // Not awaited: a producer that hangs would hang here too.
    chunks.return?.()?.catch(() => {})
  }
}

/** Firefox does not show the body of a request as a stream. */
async function* contentOf(request: Request): AsyncGenerator<unknown> {
  if (request.body === undefined) yield new Uint8Array(await request.arrayBuffer())
  else if (request.body !== null) yield* chunksOf(request.body.getReader())
}

/** The chunks of a stream, which is let go when nobody wants the rest. */
async function* chunksOf(reader: ReadableStreamDefaultReader<unknown>): AsyncGenerator<unknown> {
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** The body as the fingerprint sees it: JSON by meaning, forms by parts, all else by bytes (P14). */
export async function fingerprintBody(
  contentType: string | null,
  bytes: Uint8Array<ArrayBuffer> | null,
  intentId: string,
): Promise<FingerprintBody> {
  if (bytes === null) return { kind: 'none' }
  if (isJsonMediaType(contentType)) return { kind: 'json', text: decoded(bytes, intentId) }
  if (contentType !== null && /^multipart\/form-data/i.test(contentType)) {
    const parts = await partsOf(contentType, bytes)
    if (parts !== null) return { kind: 'parts', parts }
  }
  return { kind: 'bytes', contentType: contentType ?? '', bytes }
}

function decoded(bytes: Uint8Array, intentId: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new UnsupportedBodyError(
      'The body is said to be JSON but is not UTF-8. Encode it as UTF-8, or give another content type.',
      { intentId, cause },
    )
  }
}

async function partsOf(contentType: string, bytes: Uint8Array<ArrayBuffer>): Promise<FingerprintPart[] | null> {
  let form: FormData
  try {
    form = await new Response(bytes, { headers: { 'content-type': contentType } }).formData()
  } catch {
    // Not a form after all: compared by bytes, which can only make a false mismatch, never a false match.
    return null
  }
  const parts: FingerprintPart[] = []
  for (const [name, value] of form) {
    if (typeof value === 'string') parts.push({ name, fileName: null, type: '', digest: sha256Hex(value) })
    else
      parts.push({
        name,
        fileName: value.name,
        type: value.type,
        digest: sha256Hex(new Uint8Array(await value.arrayBuffer())),
      })
  }
  return parts
}
