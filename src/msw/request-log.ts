/** What the mock was asked, and what became of it: the first thing to look at when a test surprises. */
import { IDEMPOTENCY_AGE, IDEMPOTENCY_SCOPE, IDEMPOTENCY_SINCE } from '../protocol/wire.ts'
import type { AnswerData } from '../server/answer-for.ts'
import type { Fault, RequestKind } from './faults.ts'
import type { Target } from './targets.ts'

/** An answer as the server gave it, whether or not it reached the client. */
export interface LoggedAnswer {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** One request. */
export interface LoggedRequest {
  /** Epoch ms by the mock's clock, when it was sent. */
  readonly at: number
  readonly kind: RequestKind
  /** Null where the path is no operation's. */
  readonly operation: string | null
  readonly method: string
  readonly url: string
  /** From `Idempotency-Key`, or from the path of a look-up or void; null where there is none that can be read. */
  readonly key: string | null
  /** `Idempotency-Age`, whole seconds; null where it was not sent. */
  readonly age: number | null
  /** `Idempotency-Since`, as sent; null where it was not. */
  readonly since: string | null
  /** `Idempotency-Scope`; null where it was not sent. */
  readonly scopeTag: string | null
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The bytes of the wire. */
  readonly body: Uint8Array<ArrayBuffer>
  /** Name of the fault that happened to it; null for none. */
  readonly fault: string | null
  /**
   * What the server made of it: `executed`, `replayed`, `monitor processing` and the like, the `code` of a refusal, or
   * `status 401` where there is no other word. Null while nothing is decided, and where it never reached the server.
   */
  readonly decided: string | null
  /** Null where the server gave none. */
  readonly answer: LoggedAnswer | null
  /**
   * What the client has of it: `whole`, a `cut` body, nothing (`lost`, `refused`), or nothing because it `aborted`
   * first. Null while it waits.
   */
  readonly delivered: 'whole' | 'cut' | 'lost' | 'refused' | 'aborted' | null
}

/** The same, while it is being written. */
export type LogEntry = { -readonly [field in keyof LoggedRequest]: LoggedRequest[field] }

/** A request that has just been sent. */
export function newEntry(
  { method, url, headers }: Request,
  { kind, operation, key }: Target,
  fault: Fault | null,
  at: number,
): LogEntry {
  const age = headers.get(IDEMPOTENCY_AGE)
  return {
    at,
    kind,
    operation: operation?.name ?? null,
    method,
    url,
    key,
    age: age === null ? null : Number(age),
    since: headers.get(IDEMPOTENCY_SINCE),
    scopeTag: headers.get(IDEMPOTENCY_SCOPE),
    headers: headersOf([...headers]),
    body: new Uint8Array(),
    fault: fault?.name ?? null,
    decided: null,
    answer: null,
    delivered: null,
  }
}

/** Headers as one object, with lower-case names. */
export function headersOf(pairs: AnswerData['headers']): Readonly<Record<string, string>> {
  return Object.fromEntries(new Headers(pairs.map(([name, value]): [string, string] => [name, value])))
}
