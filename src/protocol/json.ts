import canonicalize from 'canonicalize'
import { compareNumber, parse } from 'lossless-json'
import { pointerStep } from './json-pointer.ts'

/** What a JSON text can hold. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [name: string]: JsonValue }

/** Why a JSON text was refused. `too-deep`: more than {@link MAX_JSON_DEPTH} containers inside each other. */
export type JsonRefusal = 'syntax' | 'duplicate-member' | 'inexact-number' | 'lone-surrogate' | 'too-deep'

/**
 * How many objects and arrays may stand inside each other. A fixed number, so that a text is not fine in one engine
 * and a stack overflow in another.
 */
export const MAX_JSON_DEPTH = 512

const SENTENCES: Readonly<Record<JsonRefusal, string>> = {
  syntax: 'This is not JSON.',
  'duplicate-member': 'A member name occurs twice in one object: readers differ in which value they take.',
  'inexact-number': 'A number has more digits or a larger exponent than a double can hold: send it as a string.',
  'lone-surrogate': 'A string holds half of a surrogate pair: it cannot be sent as UTF-8.',
  'too-deep': `Objects and arrays are nested more than ${MAX_JSON_DEPTH} levels deep.`,
}

/**
 * A JSON text or value that has no faithful canonical form (P14). The message is for people and holds nothing of the
 * text: bodies carry secrets (P51).
 */
export class JsonRefusedError extends Error {
  override readonly name: string = 'JsonRefusedError'
  readonly reason: JsonRefusal
  /** JSON pointer (RFC 6901) to the member or element, `''` for the document itself; null where it is not known. */
  readonly path: string | null

  constructor(reason: JsonRefusal, path: string | null = null) {
    super(SENTENCES[reason])
    this.reason = reason
    this.path = path
  }
}

/**
 * Parses JSON and refuses what would be read differently elsewhere, or changed by reading (P14; I-JSON, RFC 7493):
 * duplicate members, equal ones too; numbers whose written decimal value does not come back from a double (`1.0` and
 * `1e2` do, `9007199254740993` does not); lone surrogates. `-0` is read as 0. A member called `__proto__` is an
 * ordinary member of its object.
 *
 * @throws JsonRefusedError
 */
export function parseJson(text: string): unknown {
  refuseTooDeep(text)
  const value = parseLossless(text)
  if (value === undefined) throw new JsonRefusedError('syntax')
  refuseUnfaithful(value, '')
  refuseDuplicates(text, 0, '')
  return value
}

/**
 * The canonical form of RFC 8785 (JCS): members sorted by UTF-16 code unit, no white space, numbers as ECMAScript
 * spells them. As in `JSON.stringify`, undefined members are left out and `toJSON` is called.
 *
 * @throws JsonRefusedError for what JSON cannot say: NaN and infinities, lone surrogates, bigint, cycles, undefined.
 */
export function canonicalJson(value: unknown): string {
  const { text, refusal } = canonicalized(value)
  if (text === undefined) throw new JsonRefusedError(refusal)
  return text
}

function canonicalized(value: unknown): { text: string | undefined; refusal: JsonRefusal } {
  try {
    return { text: canonicalize(value), refusal: 'syntax' }
  } catch (error) {
    // Not kept as cause: a `toJSON` of the app may put values into its message.
    return { text: undefined, refusal: refusalOf(String(error)) }
  }
}

function refusalOf(message: string): JsonRefusal {
  if (message.includes('surrogate')) return 'lone-surrogate'
  return /NaN|Infinity/.test(message) ? 'inexact-number' : 'syntax'
}

/** Stands in for a number that lost something, until the walk over the value can say where it is. */
const INEXACT: unique symbol = Symbol('inexact number')

/** @returns undefined where the text is not JSON: the library's errors quote it, so neither message nor cause is kept. */
function parseLossless(text: string): unknown {
  try {
    // The library reports only duplicates of another value; `refuseDuplicates` finds all of them, and where they are.
    return parse(text, null, { parseNumber: exactNumber, onDuplicateKey: ignore })
  } catch {
    return undefined
  }
}

function exactNumber(text: string): number | typeof INEXACT {
  const value = Number(text)
  if (!Number.isFinite(value) || compareNumber(text, String(value)) !== 0) return INEXACT
  return value === 0 ? 0 : value
}

function ignore(): void {}

/** Comes before the parser, which recurses: a deep text must not end in a stack overflow. */
function refuseTooDeep(text: string): void {
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === '{' || char === '[') depth += 1
    else if (char === '}' || char === ']') depth -= 1
    if (depth > MAX_JSON_DEPTH) throw new JsonRefusedError('too-deep')
  }
}

function refuseUnfaithful(value: unknown, path: string): void {
  if (value === INEXACT) throw new JsonRefusedError('inexact-number', path)
  if (typeof value === 'string') refuseLoneSurrogate(value, path)
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    refuseLoneSurrogate(name, path)
    refuseUnfaithful(member, `${path}/${pointerStep(name)}`)
  }
}

function refuseLoneSurrogate(text: string, path: string): void {
  // With the `u` flag a proper pair is one code point above this class, so only halves match.
  if (/\p{Surrogate}/u.test(text)) throw new JsonRefusedError('lone-surrogate', path)
}

/**
 * Walks over one value of a text that is known to be JSON, looking at member names only; recursion is bounded by
 * {@link MAX_JSON_DEPTH}.
 *
 * @returns the index behind the value and the white space that follows it.
 */
function refuseDuplicates(text: string, from: number, path: string): number {
  let at = skip(BLANK, text, from)
  const opener = text[at]
  if (opener === '"') return skip(BLANK, text, endOfString(text, at))
  if (opener !== '{' && opener !== '[') return skip(BLANK, text, skip(SCALAR, text, at))
  const names = new Set<string>()
  at = skip(BLANK, text, at + 1)
  for (let index = 0; text[at] !== '}' && text[at] !== ']'; index += 1) {
    if (text[at] === ',') at = skip(BLANK, text, at + 1)
    let step: string | number = index
    if (opener === '{') {
      const end = endOfString(text, at)
      // Compared decoded: `"a"` and `"\u0061"` are one name.
      step = String(JSON.parse(text.slice(at, end)))
      if (names.has(step)) throw new JsonRefusedError('duplicate-member', `${path}/${pointerStep(step)}`)
      names.add(step)
      at = skip(BLANK, text, end) + 1
    }
    at = refuseDuplicates(text, at, `${path}/${pointerStep(step)}`)
  }
  return skip(BLANK, text, at + 1)
}

const BLANK = /[ \t\n\r]*/y
const SCALAR = /[\w.+-]*/y

function skip(what: RegExp, text: string, from: number): number {
  what.lastIndex = from
  what.test(text)
  return what.lastIndex
}

/** The index behind the closing quote of the JSON string that starts at `start`; behind the text if it never closes. */
export function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}
