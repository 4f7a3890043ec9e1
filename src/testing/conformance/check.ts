/** Compares an answer with what it has to be, in two pictures of the same shape, so that a failure shows all of it. */
import { parseHttpDate } from '../../protocol/http-date.ts'
import { PROBLEM_MEDIA_TYPE } from '../../protocol/problem.ts'
import { sha256Hex } from '../../protocol/sha256.ts'
import { IDEMPOTENCY_EXPIRES, IDEMPOTENT_REPLAYED } from '../../protocol/wire.ts'
import type { Expected, Source } from './steps.ts'

/** An answer that was read to its end, with the request that it belongs to. */
export interface Seen {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  /** The request's body. */
  readonly sent: Uint8Array
}

/** What an answer is, and what it should be: to be compared by content. */
export interface Comparison {
  readonly got: Picture
  readonly wanted: Picture
}

type Picture = Record<string, unknown>

/** Headers that the shop or the protocol set, so that a replay has to repeat them. Others belong to servers. */
const LISTED = ['content-type', 'location', 'etag', 'x-shop', 'retry-after', IDEMPOTENCY_EXPIRES] as const

/**
 * @param named earlier answers.
 * @param now epoch ms by the shop's clock.
 */
export function compare(seen: Seen, expected: Expected, named: ReadonlyMap<string, Seen>, now: number): Comparison {
  const earlier = (name: string): Seen => {
    const found = named.get(name)
    if (found === undefined) throw new Error(`no step before this one has the name ${name}`)
    return found
  }
  const body = bodyOf(seen)
  const source = sourceOf(seen.headers)
  const from = expected.from === 'either' && (source === 'key' || source === 'replay') ? 'either' : source
  const got: Picture = { status: seen.status, from }
  const wanted: Picture = { status: expected.status, from: expected.from }

  if (expected.code !== undefined) {
    const { code, type, title } = objectOf(body.json())
    got.problem = [mediaTypeOf(seen.headers), code, typeof type, typeof title]
    wanted.problem = [PROBLEM_MEDIA_TYPE, expected.code, 'string', 'string']
  }
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    const found = seen.headers.get(name)
    got[`header ${name}`] = Array.isArray(value)
      ? value.filter((one) => members(found).includes(one.toLowerCase()))
      : found
    wanted[`header ${name}`] = value
  }
  if (expected.json !== undefined) {
    got.json = picked(body.json(), expected.json)
    wanted.json = expected.json
  }
  if (expected.text !== undefined) {
    got.text = body.text
    wanted.text = expected.text
  }
  if (expected.bytes !== undefined) {
    got.bytes = [...seen.bytes]
    wanted.bytes = [...expected.bytes]
  }
  if (expected.without !== undefined) {
    got.says = body.text.includes(expected.without) ? expected.without : 'nothing of it'
    wanted.says = 'nothing of it'
  }
  if (expected.sameAs !== undefined) {
    const other = earlier(expected.sameAs)
    // A session cookie that is given out again would sign somebody else in (P55).
    Object.assign(got, sameness(seen), { cookies: seen.headers.getSetCookie() })
    Object.assign(wanted, sameness(other), { cookies: [] })
  }
  if (expected.shows !== undefined) {
    const { headers, ...response } = objectOf(objectOf(body.json()).response)
    got.response = { ...response, headers: lowered(objectOf(headers)) }
    wanted.response = shownAs(earlier(expected.shows))
  }
  if (expected.digestOf !== undefined) {
    got.digest = objectOf(body.json()).requestDigest
    wanted.digest = sha256Hex(earlier(expected.digestOf).sent)
  }
  if (expected.expiresInMs !== undefined) {
    got.expiresAt = parseHttpDate(seen.headers.get(IDEMPOTENCY_EXPIRES) ?? '')
    wanted.expiresAt = Math.floor((now + expected.expiresInMs) / 1000) * 1000
  }
  if (expected.resultExpiresInMs !== undefined) {
    got.resultExpiresAt = objectOf(body.json()).resultExpiresAt
    wanted.resultExpiresAt = new Date(now + expected.resultExpiresInMs).toISOString()
  }
  return { got, wanted }
}

/** Code and type of a problem document; null for any other answer. */
export function problemOf(seen: Seen): { readonly code: unknown; readonly type: unknown } | null {
  if (mediaTypeOf(seen.headers) !== PROBLEM_MEDIA_TYPE) return null
  const { code, type } = objectOf(bodyOf(seen).json())
  return { code, type }
}

/** P56: the proof is on what comes from behind the key, and on nothing else; the marker on what is sent again. */
function sourceOf(headers: Headers): Source | string {
  const proof = headers.get(IDEMPOTENCY_EXPIRES)
  const marker = headers.get(IDEMPOTENT_REPLAYED)
  if (proof !== null && parseHttpDate(proof) === null) return `a proof that is no date: ${proof}`
  if (marker !== null && marker !== 'true') return `a marker that is none: ${marker}`
  if (marker === null) return proof === null ? 'elsewhere' : 'key'
  return proof === null ? 'a marker without a proof' : 'replay'
}

function sameness({ status, headers, bytes }: Seen): Picture {
  return {
    status,
    headers: Object.fromEntries(LISTED.map((name) => [name, headers.get(name)])),
    body: printable(bytes),
  }
}

/** How a document shows an answer: as its replay. */
function shownAs({ status, headers, bytes }: Seen): Picture {
  const listed = LISTED.flatMap((name) => {
    const value = headers.get(name)
    return value === null ? [] : [[name.toLowerCase(), value] as const]
  })
  return {
    status,
    ...encoded(bytes),
    headers: Object.fromEntries([...listed, [IDEMPOTENT_REPLAYED.toLowerCase(), 'true']]),
  }
}

function encoded(bytes: Uint8Array): { body: string; bodyEncoding: string } {
  try {
    return { body: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), bodyEncoding: 'utf8' }
  } catch {
    return { body: btoa(String.fromCharCode(...bytes)), bodyEncoding: 'base64' }
  }
}

/** Long bodies would drown what is wrong with them. */
function printable(bytes: Uint8Array): unknown {
  return bytes.length > 2000 ? { length: bytes.length, sha256: sha256Hex(bytes) } : encoded(bytes)
}

function bodyOf({ bytes }: Seen): { readonly text: string; json(): unknown } {
  const text = new TextDecoder().decode(bytes)
  return {
    text,
    json() {
      try {
        return JSON.parse(text) as unknown
      } catch {
        return `no JSON: ${text.slice(0, 200)}`
      }
    },
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
}

function mediaTypeOf(headers: Headers): string | undefined {
  return headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
}

function members(value: string | null): readonly string[] {
  return (value ?? '').split(',').map((member) => member.trim().toLowerCase())
}

/** As much of `value` as `shape` speaks about. */
function picked(value: unknown, shape: unknown): unknown {
  if (typeof shape !== 'object' || shape === null || Array.isArray(shape)) return value
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const found = value as Readonly<Record<string, unknown>>
  return Object.fromEntries(Object.entries(shape).map(([name, inner]) => [name, picked(found[name], inner)]))
}

function lowered(found: Readonly<Record<string, unknown>>): Picture {
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [name.toLowerCase(), value]))
}
