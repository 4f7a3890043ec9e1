/** Reads a request's body once, under a limit, and says what it is. */
import type { FingerprintBody } from '../protocol/fingerprint.ts'
import { isJsonMediaType } from '../protocol/fingerprint.ts'
import { endOfString, JsonRefusedError, parseJson } from '../protocol/json.ts'
import { sha256Hex } from '../protocol/sha256.ts'
import { type AnswerData, otherProblem, problemAnswer } from './answer-for.ts'
import { EntryError } from './errors.ts'
import { utf8OrNull } from './text.ts'

/** The body as `execute` and `authorize` get it. `bytes` are those of the wire. */
export type RequestBody =
  | { readonly kind: 'none'; readonly bytes: Uint8Array<ArrayBuffer> }
  /** Parsed strictly: duplicate members and numbers that a double cannot hold were refused (P14). */
  | { readonly kind: 'json'; readonly bytes: Uint8Array<ArrayBuffer>; readonly value: unknown }
  | { readonly kind: 'form'; readonly bytes: Uint8Array<ArrayBuffer>; readonly form: FormData }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array<ArrayBuffer>; readonly contentType: string }

/** A body that was read, also as the fingerprint sees it; or the refusal. */
export type BodyReading =
  | { readonly ok: true; readonly body: RequestBody; readonly print: FingerprintBody }
  | { readonly ok: false; readonly answer: AnswerData }

/**
 * Reads the body of a request to its end.
 *
 * @param limits more is refused with 413, before it was all read where possible.
 * @throws EntryError where somebody else has read it already: an empty body in its place would be executed as one.
 */
export async function readBody(
  request: Request,
  { requestBytes: maxBytes, jsonValues: maxValues }: { readonly requestBytes: number; readonly jsonValues: number },
): Promise<BodyReading> {
  if (request.bodyUsed) {
    throw new EntryError('Reading the body', new Error('It was read before: mount the handler before any body parser.'))
  }
  let bytes: Uint8Array<ArrayBuffer> | null
  try {
    bytes = await readUpTo(request, maxBytes)
  } catch {
    // The sender is gone, most likely; if it is still there, it learns that nothing happened.
    return bodyRefused('The body broke off.')
  }
  if (bytes !== null && brokeOff(request, bytes.length)) return bodyRefused('The body broke off.')
  if (bytes === null) {
    const detail = `The request body may have at most ${maxBytes} bytes.`
    return refused(413, 'request-too-large', 'The request is too large.', detail)
  }
  const contentType = request.headers.get('content-type')
  if (bytes.length === 0) return { ok: true, body: { kind: 'none', bytes }, print: { kind: 'none' } }
  if (isJsonMediaType(contentType)) return readJson(bytes, maxValues)
  if (contentType !== null && /^\s*multipart\/form-data\s*;/i.test(contentType)) return readForm(bytes, contentType)
  const type = contentType ?? ''
  return {
    ok: true,
    body: { kind: 'bytes', bytes, contentType: type },
    print: { kind: 'bytes', contentType: type, bytes },
  }
}

/** Some HTTP servers end the stream of a body that broke off as if it were whole: half an order is not an order. */
function brokeOff({ headers, signal }: Request, length: number): boolean {
  const announced = headers.get('content-length')
  const decoded = headers.has('content-encoding') || headers.has('transfer-encoding')
  return signal.aborted || (announced !== null && !decoded && length < Number(announced))
}

function readJson(bytes: Uint8Array<ArrayBuffer>, maxValues: number): BodyReading {
  const text = utf8OrNull(bytes)
  if (text === null) return bodyRefused('The body is called JSON and is not UTF-8.')
  if (valuesIn(text) > maxValues) {
    return refused(
      413,
      'request-too-large',
      'The request is too large.',
      `It may have at most ${maxValues} JSON values.`,
    )
  }
  try {
    return { ok: true, body: { kind: 'json', bytes, value: parseJson(text) }, print: { kind: 'json', text } }
  } catch (error) {
    if (!(error instanceof JsonRefusedError)) throw error
    return bodyRefused(error.path === null ? error.message : `${error.message} At ${JSON.stringify(error.path)}.`)
  }
}

/**
 * About how many values a JSON text has: its commas and brackets outside of texts. Strict reading and the canonical form
 * cost by the value and not by the byte, and a million of them would hold up everybody else for seconds.
 */
function valuesIn(text: string): number {
  let values = 1
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]
    // By hand: a regular expression for texts tries each quote anew, and takes hours for a text that never closes.
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === ',' || char === '[' || char === '{') values += 1
  }
  return values
}

/** By parts, not by boundary: a client that builds its form anew gets another boundary (P14). */
async function readForm(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<BodyReading> {
  let form: FormData
  try {
    form = await new Response(bytes, { headers: { 'content-type': contentType } }).formData()
  } catch {
    return bodyRefused('The body is called multipart/form-data and cannot be read as that.')
  }
  const parts = await Promise.all(
    [...form].map(async ([name, value]) =>
      typeof value === 'string'
        ? { name, fileName: null, type: '', digest: sha256Hex(value) }
        : {
            name,
            fileName: value.name,
            type: value.type,
            digest: sha256Hex(new Uint8Array(await value.arrayBuffer())),
          },
    ),
  )
  return { ok: true, body: { kind: 'form', bytes, form }, print: { kind: 'parts', parts } }
}

function bodyRefused(detail: string): BodyReading {
  return refused(400, 'body-refused', 'The request body cannot be read without doubt.', detail)
}

function refused(status: number, name: string, title: string, detail: string): BodyReading {
  return { ok: false, answer: problemAnswer(otherProblem(status, name, title, detail)) }
}

/** @returns null when there is more. */
async function readUpTo(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | null> {
  // Only a hint: it may be missing or wrong, so the bytes are counted all the same.
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) return null
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = request.body.getReader()
  for (let step = await reader.read(); !step.done; step = await reader.read()) {
    length += step.value.length
    if (length > maxBytes) {
      await reader.cancel()
      return null
    }
    chunks.push(step.value)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}
