/** Exchanges with a server as the engine hands them to classification. */
import type { Dialect } from '../../src/protocol/dialects/dialect.ts'
import type { Verdict } from '../../src/protocol/events.ts'
import { makeProblem, PROBLEM_MEDIA_TYPE, type ProblemCode } from '../../src/protocol/problem.ts'
import { type AnsweredExchange, type ClassifyContext, classify, type Exchange } from '../../src/protocol/verdict.ts'
import { NOW } from './machine.ts'

export type Headers = Readonly<Record<string, string>>

export function answered(
  status: number,
  headers: Headers = {},
  body = '',
  change: Partial<AnsweredExchange> = {},
): AnsweredExchange {
  return {
    kind: 'answered',
    status,
    headers: Object.entries(headers),
    url: 'https://api.example.com/orders',
    body: new TextEncoder().encode(body),
    bodyState: 'complete',
    redirected: false,
    opaque: false,
    crossOrigin: false,
    seeOtherProof: false,
    repeated: false,
    ...change,
  }
}

export function json(status: number, body: unknown, headers: Headers = {}, change: Partial<AnsweredExchange> = {}) {
  return answered(status, { 'content-type': 'application/json', ...headers }, JSON.stringify(body), change)
}

/** One of section 16's refusals. */
export function refusal(code: ProblemCode, headers: Headers = {}): AnsweredExchange {
  const problem = makeProblem(code)
  return json(problem.status, problem, { 'content-type': PROBLEM_MEDIA_TYPE, ...headers })
}

export const failed = (neverDelivered = false): Exchange => ({ kind: 'failed', neverDelivered, detail: 'TypeError' })

/** Section 16's proof. */
export const PROOF: Headers = { 'idempotency-expires': 'Wed, 20 Jan 2027 00:00:00 GMT' }
export const REPLAYED: Headers = { ...PROOF, 'idempotent-replayed': 'true' }

export const PORTAL = answered(200, { 'content-type': 'text/html' }, '<h1>Log in to this network</h1>')

export function judge(exchange: Exchange, dialect: Dialect, change: Partial<ClassifyContext> = {}): Verdict {
  return classify(exchange, {
    dialect,
    accept: 'application/json',
    appAccepts: null,
    now: NOW,
    monitorUrl: null,
    ...change,
  })
}
