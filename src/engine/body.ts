/** A request's body as bytes that can be stored, sent again unchanged, and fingerprinted (P9, P14). */
import { UnsupportedBodyError } from '../errors.ts'
import { type FingerprintBody, type FingerprintPart, isJsonMediaType } from '../protocol/fingerprint.ts'
import { sha256Hex } from '../protocol/sha256.ts'
import { joined } from './http.ts'

/**
 * Reads the body to its end, under a limit. A `Request` turns every kind of body into bytes at its construction: text,
 * forms with files (its boundary is fixed there), blobs, views. Streams are read whole (B14).
 *
 * @throws {@link UnsupportedBodyError} when the body is larger than `maxBytes`, breaks off, or was read before.
 */
export async function readBody(
  request: Request,
  maxBytes: number,
  intentId: string,
): Promise<Uint8Array<ArrayBuffer> | null> {
  if (request.bodyUsed)
    throw new UnsupportedBodyError(
      'The body of this Request was read before. Give a fresh Request, or url and options.',
      { intentId },
    )
  if (request.body === null) return null
  const reader = request.body.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return joined(chunks, length)
      length += value.length
      if (length > maxBytes) break
      chunks.push(value)
    }
  } catch (cause) {
    throw new UnsupportedBodyError('The body could not be read to its end, so it cannot be stored. Nothing was sent.', {
      intentId,
      cause,
    })
  }
  reader.cancel().catch(() => {})
  throw new UnsupportedBodyError(
    `The body has more than ${maxBytes} bytes, which is the limit for what is stored and sent again. Raise maxBodyBytes, or upload it first and send a reference.`,
    { intentId },
  )
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
