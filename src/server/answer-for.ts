/**
 * A decision as an answer on the wire (section 16), as plain data: the server and the mock give the same bytes. Pure.
 */
import { formatHttpDate } from '../protocol/http-date.ts'
import { makeProblem, PROBLEM_MEDIA_TYPE, type ProblemCode } from '../protocol/problem.ts'
import {
  IDEMPOTENCY_BODY,
  IDEMPOTENCY_EXPIRES,
  IDEMPOTENT_REPLAYED,
  type MonitorDocument,
  type MonitorResponse,
  type MonitorStatus,
  RETRY_AFTER,
} from '../protocol/wire.ts'
import type { KeyRow, LookupDecision, StoredAnswer, SubmitDecision, VoidDecision } from './decide.ts'
import { toBase64, utf8OrNull } from './text.ts'

/** An answer, ready for any server. */
export interface AnswerData {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Null where there is no body at all. */
  readonly body: Uint8Array<ArrayBuffer> | null
}

/** Every decision that ends a request. */
export type FinalDecision = Exclude<
  SubmitDecision | LookupDecision | VoidDecision,
  { kind: 'claim' | 'execute' | 'voidWork' }
>

/** Seconds after which a client may ask again for a key that is in progress, or a store that was away. */
export const RETRY_AFTER_SECONDS = 1

/**
 * The answer to a decision.
 *
 * @param id what monitor documents call the intent: its key.
 */
export function answerFor(decision: FinalDecision, id: string): AnswerData {
  switch (decision.kind) {
    case 'answer':
      return storedAnswer(decision.answer, decision.expiresAt, decision.replayed)
    case 'monitor':
    case 'void':
      return monitorAnswer(decision.row, id)
    case 'keyMissing':
      return problemAnswer(makeProblem('idempotency_key_missing', decision.detail))
    case 'keyInvalid':
      return problemAnswer(makeProblem('idempotency_key_invalid', decision.detail))
    case 'scopeMismatch':
      return problemAnswer(makeProblem('idempotency_scope_mismatch', decision.detail))
    case 'inconsistent':
      return problemAnswer(makeProblem('idempotency_inconsistent', decision.detail))
    case 'inProgress':
      return problemAnswer(makeProblem('idempotency_in_progress'), RETRY_AFTER_SECONDS)
    case 'conflict':
    case 'voided':
    case 'expired':
      return problemAnswer(makeProblem(BARE[decision.kind]))
    case 'absent':
      return problemAnswer(
        otherProblem(404, 'absent', 'There is no such key now. This proves nothing about its request.'),
      )
  }
}

const BARE: Readonly<Record<'conflict' | 'voided' | 'expired', ProblemCode>> = {
  conflict: 'idempotency_conflict',
  voided: 'idempotency_voided',
  expired: 'idempotency_expired',
}

/**
 * A stored answer as it goes out: with the proof (P56), and as a replay with the marker and, where the body was not
 * kept, with the word for that (P60). A first answer and its replays differ in nothing else.
 */
export function storedAnswer(answer: StoredAnswer, expiresAt: number, replayed: boolean): AnswerData {
  const headers: [string, string][] = answer.headers.map(([name, value]) => [name, value])
  headers.push([IDEMPOTENCY_EXPIRES, formatHttpDate(expiresAt)])
  if (replayed) headers.push([IDEMPOTENT_REPLAYED, 'true'])
  // A reference is for the server alone: where nobody read under it, there is no body.
  if (answer.body.kind !== 'bytes') {
    headers.push([IDEMPOTENCY_BODY, 'omitted'])
    return { status: answer.status, headers, body: null }
  }
  return { status: answer.status, headers, body: contentOf(answer) }
}

/** An answer that is not from behind the key: no proof, no marker. */
export function plainAnswer(answer: StoredAnswer): AnswerData {
  return { status: answer.status, headers: answer.headers, body: contentOf(answer) }
}

/** Some statuses forbid even an empty body, so nothing is always null. */
function contentOf({ body }: StoredAnswer): Uint8Array<ArrayBuffer> | null {
  return body.kind === 'bytes' && body.bytes.length > 0 ? new Uint8Array(body.bytes) : null
}

/** True for a status that forbids a body. */
export function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}

function monitorAnswer(row: KeyRow, id: string): AnswerData {
  const document = monitorDocument(row, id)
  const headers: [string, string][] = [
    ['Content-Type', 'application/json'],
    // The same URL answers differently a moment later.
    ['Cache-Control', 'no-store'],
    [IDEMPOTENCY_EXPIRES, formatHttpDate(row.expiresAt)],
  ]
  if (document.retryAfter !== undefined) headers.push([RETRY_AFTER, String(document.retryAfter)])
  return { status: 200, headers, body: new TextEncoder().encode(JSON.stringify(document)) }
}

/** What a monitor, a look-up and a void tell about a key (section 16). */
export function monitorDocument(row: KeyRow, id: string): MonitorDocument {
  const { task } = row
  const shown = row.state === 'voided' ? null : task === null ? row.answer : task.result
  const error = row.state === 'voided' ? null : (task?.error ?? null)
  const retryAfter = row.state === 'voided' ? null : (task?.retryAfterSeconds ?? null)
  return {
    id,
    status: statusOf(row),
    ...(shown !== null && { response: monitorResponse(shown, row.expiresAt) }),
    ...(error !== null && { error }),
    ...(row.requestDigest !== null && { requestDigest: row.requestDigest }),
    ...(retryAfter !== null && { retryAfter }),
    resultExpiresAt: new Date(task?.resultExpiresAt ?? row.expiresAt).toISOString(),
  }
}

function statusOf({ state, task, answer }: KeyRow): MonitorStatus {
  if (state === 'voided') return 'voided'
  if (task !== null) return task.status
  if (answer === null) return 'unknown'
  // A stored server error is where the client stops and a person looks (P44, F18).
  return answer.status < 400 ? 'succeeded' : answer.status < 500 ? 'failed' : 'unknown'
}

/** The answer inside a document is what a replay would be, proof and markers included. */
function monitorResponse(answer: StoredAnswer, expiresAt: number): MonitorResponse {
  const { status, headers, body } = storedAnswer(answer, expiresAt, true)
  const bytes = body ?? new Uint8Array()
  const text = utf8OrNull(bytes)
  return {
    status,
    headers: merged(headers),
    body: text ?? toBase64(bytes),
    bodyEncoding: text === null ? 'base64' : 'utf8',
  }
}

/** A document has one text per name; several values of one name are joined, as HTTP libraries do. */
function merged(headers: AnswerData['headers']): Record<string, string> {
  const byName = new Map<string, [name: string, value: string]>()
  for (const [name, value] of headers) {
    const earlier = byName.get(name.toLowerCase())
    byName.set(name.toLowerCase(), earlier ? [earlier[0], `${earlier[1]}, ${value}`] : [name, value])
  }
  return Object.fromEntries(byName.values())
}

/** A problem document as an answer. */
export function problemAnswer(
  problem: { readonly status: number; readonly [member: string]: unknown },
  retryAfterSeconds?: number,
): AnswerData {
  const headers: [string, string][] = [['Content-Type', PROBLEM_MEDIA_TYPE]]
  // A 404 is cacheable by default, and any of these may be another answer a moment later.
  headers.push(['Cache-Control', 'no-store'])
  if (retryAfterSeconds !== undefined) headers.push([RETRY_AFTER, String(retryAfterSeconds)])
  return { status: problem.status, headers, body: new TextEncoder().encode(JSON.stringify(problem)) }
}

/**
 * A problem outside of section 16's table: refusals that come before the key, and what the table has no word for. The
 * client judges them by their status.
 *
 * @param name kebab-case; type and code are made of it, so both tell it from every other.
 */
export function otherProblem(
  status: number,
  name: string,
  title: string,
  detail?: string,
): { readonly status: number; readonly code: string; readonly type: string; readonly title: string } {
  const code = name.replaceAll('-', '_')
  return { type: `urn:samekey:problem:${name}`, title, status, code, ...(detail !== undefined && { detail }) }
}
