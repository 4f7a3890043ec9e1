import { parseItem } from 'structured-headers'
import { v5, validate, version } from 'uuid'

/** What a server demands of keys (P12), on top of what every key must be; see {@link checkKey}. */
export interface KeyRules {
  /** Fewest characters. Default: 1. */
  readonly minLength?: number
  /** Most characters. Default, and upper limit: 255. */
  readonly maxLength?: number
  /** Regular expression that the whole key must match; anchored here. Default: none. */
  readonly pattern?: string
  /** The key must be a UUID of this version (RFC 9562). Default: any text. */
  readonly uuidVersion?: 4 | 7
}

/** A key that came over the wire, or why there is none. `multiple`: more than one value, so nothing says which. */
export type KeyHeader =
  | { readonly ok: true; readonly key: string }
  | { readonly ok: false; readonly reason: 'missing' | 'malformed' | 'multiple' }

/** Most characters of any key. */
export const MAX_KEY_LENGTH = 255

/** Printable ASCII without space, double quote, comma and backslash. */
const KEY_CHARACTERS = /^[!#-+\--[\]-~]*$/

/**
 * Checks a key before it is stored or sent (P12). Every key is 1 to 255 characters of printable ASCII without space,
 * double quote, comma and backslash: so the raw token and the quoted string of RFC 9651 are the same characters, two
 * joined header values are never one key, and characters are bytes. `.` and `..` are refused, because a URL would drop
 * them as path segments (lookup and void).
 *
 * @returns null if the key is fine, else a sentence that says what is wrong and what would be right. It never holds
 * the key: a bad one may be a secret or a body.
 * @throws SyntaxError if `rules.pattern` is no regular expression.
 */
export function checkKey(key: string, rules: KeyRules): string | null {
  const minLength = Math.max(rules.minLength ?? 1, 1)
  const maxLength = Math.min(rules.maxLength ?? MAX_KEY_LENGTH, MAX_KEY_LENGTH)
  if (key.length < minLength || key.length > maxLength) {
    return `The key has ${key.length} characters; it must have ${minLength} to ${maxLength}.`
  }
  if (!KEY_CHARACTERS.test(key)) {
    return 'The key has a character that cannot be sent safely; use printable ASCII without space, ", comma and \\.'
  }
  if (key === '.' || key === '..') return 'The key is a path segment that URLs drop; use at least one other character.'
  if (rules.uuidVersion !== undefined && !(validate(key) && version(key) === rules.uuidVersion)) {
    return `The key is not a UUID of version ${rules.uuidVersion}, which this server demands.`
  }
  if (rules.pattern !== undefined && !new RegExp(`^(?:${rules.pattern})$`).test(key)) {
    return `The key does not match the server's pattern ${rules.pattern}.`
  }
  return null
}

/**
 * Reads an `Idempotency-Key` header: the raw token, or a quoted structured-field string (RFC 9651) without parameters,
 * which is the same key. An empty header counts as missing. Two values, joined by a comma as HTTP libraries do, are
 * refused even when they are equal: some browsers add a key of their own, and a guess could name another's intent.
 *
 * @param value null where there is no such header.
 */
export function readKeyHeader(value: string | null): KeyHeader {
  const text = value?.trim() ?? ''
  if (text === '') return { ok: false, reason: 'missing' }
  // A comma inside a quoted string separates nothing.
  if (text.replace(/"[^"]*"/g, '').includes(',')) return { ok: false, reason: 'multiple' }
  const key = text.startsWith('"') ? unquoted(text) : text
  return key === null || checkKey(key, {}) !== null ? { ok: false, reason: 'malformed' } : { ok: true, key }
}

function unquoted(text: string): string | null {
  try {
    const [value, parameters] = parseItem(text)
    return typeof value === 'string' && parameters.size === 0 ? value : null
  } catch {
    return null
  }
}

/** What a derived key is made of (P11). */
export interface DerivedKeyParts {
  /** Serialised origin of the target, such as `https://api.example.com`, without a slash at its end. */
  readonly origin: string
  readonly scope: string
  readonly operation: string
  readonly intentId: string
}

/** Namespace of derived keys. Never to be changed: keys must come out the same after any update (P11). */
const NAMESPACE = '9380b7fd-99fa-4d80-8731-e2ee5a82ef29'

/**
 * A key that can be made again after local storage is lost (P11): UUIDv5 over the JSON array of origin, scope,
 * operation and intent id. JSON keeps the four apart (`['a', 'bc']` is not `['ab', 'c']`), and its escapes keep lone
 * surrogates apart. Not of the payload (P16).
 */
export function derivedKey({ origin, scope, operation, intentId }: DerivedKeyParts): string {
  return v5(JSON.stringify([origin, scope, operation, intentId]), NAMESPACE)
}
