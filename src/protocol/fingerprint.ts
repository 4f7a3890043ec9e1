import { businessHeaders } from './business-headers.ts'
import { applyBodyRules, type BodyRules } from './fingerprint-body.ts'
import { canonicalJson, type JsonValue, parseJson } from './json.ts'
import { parsePointer } from './json-pointer.ts'
import { canonicalMediaType } from './media-type.ts'
import { sha256Hex } from './sha256.ts'

export { isJsonMediaType } from './media-type.ts'

/** What an operation says about its fingerprint (P15). Everything is optional; the default compares all of the request. */
export interface FingerprintRules {
  /**
   * What to leave out: JSON pointers into the body (`/meta/clientTime`; the pointer of an array element makes that
   * element count as null, so that its neighbours keep their places), `header:x-name`, or `query:name`.
   */
  readonly omit?: readonly string[]
  /**
   * JSON pointer to the value that an absent member counts as. A missing parent is not invented: give it a default of
   * its own (`{ '/meta': {}, '/meta/source': 'web' }`). A member that is also omitted is omitted.
   */
  readonly defaults?: Readonly<Record<string, JsonValue>>
  /** The app's name for this set of rules; part of the digest. Default: none. */
  readonly version?: string
}

/** One part of a multipart body: the boundary is no part of it (P14). */
export interface FingerprintPart {
  readonly name: string
  readonly fileName: string | null
  readonly type: string
  /** SHA-256 of the content, in lower-case hexadecimal. */
  readonly digest: string
}

/** The body as the fingerprint sees it (P14). `json` is for bodies whose type {@link isJsonMediaType} accepts. */
export type FingerprintBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly text: string }
  | { readonly kind: 'bytes'; readonly contentType: string; readonly bytes: Uint8Array }
  | { readonly kind: 'parts'; readonly parts: readonly FingerprintPart[] }

/** What a fingerprint is taken of. */
export interface FingerprintInput {
  readonly method: string
  /** Absolute URL. Fragment and user information do not count; the order and spelling of the query do. */
  readonly url: string
  readonly operation: string
  /** All headers; those that do not decide the business result are left out here (P15). */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: FingerprintBody
}

/** A fingerprint with what it takes to compare it later under the rules of its own time (P16). Plain JSON. */
export interface Fingerprint {
  /** Version of the algorithm: {@link FINGERPRINT_VERSION} when it was taken. */
  readonly version: string
  /** SHA-256 in lower-case hexadecimal. */
  readonly digest: string
  readonly rules: FingerprintRules
}

/** Version of the algorithm. Any change of what is hashed, the list of ignored headers included, needs a new one. */
export const FINGERPRINT_VERSION = '1'

/** A stored fingerprint was taken by an algorithm that this release does not have: neither equal nor different. */
export class FingerprintVersionError extends Error {
  override readonly name: string = 'FingerprintVersionError'
  readonly reason: 'unknown-version' = 'unknown-version'
  /** The version that was found. */
  readonly version: string

  constructor(version: string) {
    super(
      `The stored fingerprint has version ${JSON.stringify(version)}, and this release can only compare version ` +
        `${FINGERPRINT_VERSION}. Use the release that stored it, or let a person settle the intent.`,
    )
    this.version = version
  }
}

/**
 * SHA-256 over the canonical form of what decides the business result (P14, P15): method in upper case, origin, path,
 * query, operation, business headers, body. For checking, never for naming (P16).
 *
 * @param rules default: nothing omitted, no defaults.
 * @throws JsonRefusedError for a JSON body that cannot be held faithfully (P14).
 * @throws TypeError for a URL that is not absolute, and for a rule that names nothing.
 */
export function fingerprint(input: FingerprintInput, rules: FingerprintRules = {}): Fingerprint {
  const own = copyRules(rules)
  const url = new URL(input.url)
  const content = canonicalJson([
    own.version ?? null,
    input.method.toUpperCase(),
    url.origin,
    url.pathname,
    queryParts(url.search, omitted(own, 'query:')),
    input.operation,
    businessHeaders(input.headers, omitted(own, 'header:')),
    bodyContent(input, own),
  ])
  // The first line keeps digests of other things, and of other versions, apart.
  return {
    version: FINGERPRINT_VERSION,
    digest: sha256Hex(`samekey fingerprint ${FINGERPRINT_VERSION}\n${content}`),
    rules: own,
  }
}

/**
 * Whether a request has the fingerprint that was stored: taken again under the stored version and rules, whatever the
 * rules are today (P16).
 *
 * @throws FingerprintVersionError where the stored version is unknown. Not `false`: that would call an old, faithful
 * retry a conflict, and a conflict is for good.
 * @throws what {@link fingerprint} throws.
 */
export function sameFingerprint(stored: Fingerprint, input: FingerprintInput): boolean {
  if (stored.version !== FINGERPRINT_VERSION) throw new FingerprintVersionError(stored.version)
  return fingerprint(input, stored.rules).digest === stored.digest
}

/** A copy that later changes to the caller's object cannot reach (P9), and that is known to be plain JSON. */
function copyRules(rules: FingerprintRules): FingerprintRules {
  for (const rule of rules.omit ?? []) {
    if (!/^(?:header|query):./.test(rule) && parsePointer(rule) === null) throw ruleError(rule)
  }
  for (const rule of Object.keys(rules.defaults ?? {})) if (parsePointer(rule) === null) throw ruleError(rule)
  return parseJson(canonicalJson(rules)) as FingerprintRules
}

function ruleError(rule: string): TypeError {
  const wanted = 'a JSON pointer such as /meta/clientTime, header:x-name or query:name (a default: a pointer)'
  return new TypeError(`The fingerprint rule ${JSON.stringify(rule)} names nothing. Write ${wanted}.`)
}

function omitted(rules: FingerprintRules, prefix: 'header:' | 'query:'): ReadonlySet<string> {
  const names = (rules.omit ?? []).filter((rule) => rule.startsWith(prefix)).map((rule) => rule.slice(prefix.length))
  return new Set(prefix === 'header:' ? names.map((name) => name.toLowerCase()) : names)
}

/**
 * The query, piece by piece, as written. Order and spelling are kept: servers differ in what repeated or reordered
 * parameters mean, and a retry sends the same bytes anyway.
 */
function queryParts(search: string, omit: ReadonlySet<string>): string[] {
  const parts = search === '' ? [] : search.slice(1).split('&')
  return parts.filter((part) => ![...new URLSearchParams(`&${part}`).keys()].some((name) => omit.has(name)))
}

function bodyContent(input: FingerprintInput, rules: BodyRules): JsonValue {
  const { body } = input
  switch (body.kind) {
    case 'none':
      return ['none']
    case 'json':
      return ['json', jsonType(input.headers), applyBodyRules(parseJson(body.text), rules) as JsonValue]
    case 'bytes':
      return ['bytes', canonicalMediaType(body.contentType), sha256Hex(body.bytes)]
    case 'parts':
      return ['parts', body.parts.map((part) => [part.name, part.fileName, canonicalMediaType(part.type), part.digest])]
  }
}

/** A vendor's JSON type can carry the API version (P15); JSON is UTF-8 whatever a charset parameter says (RFC 8259). */
function jsonType(headers: FingerprintInput['headers']): string {
  const found = headers.find(([name]) => name.toLowerCase() === 'content-type')
  return canonicalMediaType(found?.[1] ?? 'application/json', ['charset'])
}
