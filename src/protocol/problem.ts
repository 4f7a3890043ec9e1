import { isJsonMediaType } from './media-type.ts'

/** The refusals of the wire profile (section 16). */
export type ProblemCode =
  | 'idempotency_key_missing'
  | 'idempotency_key_invalid'
  | 'idempotency_scope_mismatch'
  | 'idempotency_conflict'
  | 'idempotency_in_progress'
  | 'idempotency_expired'
  | 'idempotency_voided'
  | 'idempotency_inconsistent'
  | 'idempotency_unavailable'

/** What is the same in every problem of one code. */
export interface ProblemKind {
  /** HTTP status. */
  readonly status: number
  /** For people; the same in every occurrence (RFC 9457, 3.1.3). */
  readonly title: string
  /** URI that tells the problem from every other. A name, not an address: there is nothing to fetch. */
  readonly type: string
}

/** A problem document (RFC 9457) of the wire profile. */
export interface Problem extends ProblemKind {
  readonly code: string
  /** What happened this time, for people. */
  readonly detail?: string
  readonly [extension: string]: unknown
}

/** What could be read of somebody's problem document; members that are no text are left out. */
export interface ReadProblem {
  readonly code?: string
  readonly type?: string
  readonly title?: string
}

/** Media type of problem documents. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/**
 * Code to status, title and type (section 16). Each has a type of its own, and the code too: some servers and gateways
 * use one type for all, and consumers that know only one of the two members still tell them apart.
 */
export const PROBLEMS: Readonly<Record<ProblemCode, ProblemKind>> = {
  idempotency_key_missing: kind(400, 'key-missing', 'This operation needs an Idempotency-Key.'),
  idempotency_key_invalid: kind(400, 'key-invalid', 'The Idempotency-Key is not acceptable.'),
  idempotency_scope_mismatch: kind(403, 'scope-mismatch', 'The request belongs to another account.'),
  idempotency_conflict: kind(409, 'conflict', 'The key was used for a different request.'),
  idempotency_in_progress: kind(409, 'in-progress', 'The first request with this key is still running.'),
  idempotency_expired: kind(409, 'expired', 'The key is older than the server remembers; nothing was executed.'),
  idempotency_voided: kind(409, 'voided', 'The key was voided; the request is not executed.'),
  idempotency_inconsistent: kind(500, 'inconsistent', 'The key is known, but its answer is not; an operator is told.'),
  idempotency_unavailable: kind(503, 'unavailable', 'The key store is not available; nothing was executed.'),
}

function kind(status: number, name: string, title: string): ProblemKind {
  return { status, title, type: `urn:samekey:problem:idempotency-${name}` }
}

/**
 * Makes a problem document.
 *
 * @param detail what happened this time; must hold no secrets. Default: none.
 * @param extra further members; they cannot replace the standard ones. Default: none.
 */
export function makeProblem(
  code: ProblemCode,
  detail?: string,
  extra: Readonly<Record<string, unknown>> = {},
): Problem {
  const { type, title, status } = PROBLEMS[code]
  return { ...extra, type, title, status, code, ...(detail === undefined ? {} : { detail }) }
}

/**
 * Reads code, type and title from any server's JSON error body: `application/problem+json`, or another JSON type. Never
 * throws.
 *
 * @param contentType value of the `Content-Type` header; null where there is none.
 * @returns null if it is no JSON object or has none of the three as text.
 */
export function readProblem(contentType: string | null, text: string): ReadProblem | null {
  if (!isJsonMediaType(contentType)) return null
  const members = entriesOf(text).filter(([name, value]) => READ_MEMBERS.has(name) && typeof value === 'string')
  return members.length === 0 ? null : Object.fromEntries(members)
}

const READ_MEMBERS: ReadonlySet<string> = new Set(['code', 'type', 'title'])

/** Lenient on purpose: a strange number elsewhere in an error body must not hide its code. */
function entriesOf(text: string): [string, unknown][] {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? Object.entries(value) : []
  } catch {
    return []
  }
}
