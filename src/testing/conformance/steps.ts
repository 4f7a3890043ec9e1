/** The shape of a case: data, so that it can be read without knowing who runs it, and run against anything. */
import type { BenchAbility } from './bench.ts'
import type { ShopCaller, ShopOperation, ShopOrder } from './shop.ts'

/** Who asks, and with what. */
interface Asked {
  /** Default: `acme.ann`. Null: nobody says who. */
  readonly by?: ShopCaller | null
  /** `Idempotency-Age`; a text goes as it is. */
  readonly age?: number | string
  /** `Idempotency-Since`, in ms from the shop's now; a text goes as it is. */
  readonly since?: number | string
  /** `Idempotency-Scope`. */
  readonly tag?: string
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A request to execute. */
export interface Submission extends Asked {
  readonly kind: 'submit'
  /** Default: `orders.create`. */
  readonly operation?: ShopOperation
  /** `Idempotency-Key` as it goes over the wire. Null: no such header. Default: `k-1`. */
  readonly key?: string | null
  /** Written as JSON. A text and bytes go as they are. Null: no body. */
  readonly order: ShopOrder | string | Uint8Array | null
  /** Of the body. Default: `application/json`. */
  readonly type?: string
  /** Default: none. */
  readonly query?: string
}

/** A question about a key. */
export interface Question extends Asked {
  readonly kind: 'lookup' | 'void'
  /** Default: `orders.create`. */
  readonly operation?: ShopOperation
  /** Default: `k-1`. */
  readonly key?: string
}

/** Any other request. */
export interface OtherRequest extends Asked {
  readonly kind: 'other'
  readonly method: string
  readonly path: string
}

/** One request. */
export type Ask = Submission | Question | OtherRequest

/**
 * Where an answer comes from. `key`: a first answer, a monitor, the end of a void; it carries the proof. `replay`: the
 * proof and the marker. `elsewhere`: neither, for nothing was proven about the key. `either`: a first answer or its replay.
 */
export type Source = 'key' | 'replay' | 'elsewhere' | 'either'

/** What an answer has to be. */
export interface Expected {
  readonly status: number
  readonly from: Source
  /** It is a problem document with this code. */
  readonly code?: string
  /** The whole header; null: there is none; a list: these are among its members. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | null>>
  /** The JSON body, or as much of it as is said here. A member that is undefined here must not be there. */
  readonly json?: unknown
  readonly text?: string
  readonly bytes?: readonly number[]
  /** Nowhere in the body. */
  readonly without?: string
  /** Same status, body and headers as the answer of this name. */
  readonly sameAs?: string
  /** The document shows the answer of this name. */
  readonly shows?: string
  /** The document has the digest of the request of this name. */
  readonly digestOf?: string
  /** How long the key is promised to be remembered, ms from now. */
  readonly expiresInMs?: number
  /** How long a document says that the result is kept, ms from now. */
  readonly resultExpiresInMs?: number
}

/** One way in which requests at the same time may end. */
export interface JointEnd {
  /** In the order of the requests. */
  readonly gets: readonly Expected[]
  /** Effects in all, from the start of the case. */
  readonly effects: number
}

/** One step of a case. */
export type Step =
  /** `times`: one after the other. `name`: for later steps. */
  | { readonly send: Ask; readonly gets: Expected; readonly times?: number; readonly name?: string }
  /** Sends and does not wait. */
  | { readonly begin: string; readonly send: Ask }
  /** Waits for what was begun. */
  | { readonly end: string; readonly gets: Expected }
  /** So many at once: one of them executes, the others get its answer, or are told to ask again and then get it. */
  | { readonly crowd: number; readonly send: Ask; readonly gets: Expected }
  /** All at once: it has to end in one of these ways. */
  | { readonly atOnce: readonly Ask[]; readonly ends: readonly JointEnd[] }
  | { readonly passMs: number }
  | { readonly revoke: ShopCaller }
  | { readonly grant: ShopCaller }
  /** `next`: the next execution will stop; `reached`: it has; `release`: it goes on. */
  | { readonly hold: 'next' | 'reached' | 'release' }
  | { readonly work: 'done' | 'dies' | 'sleeps' | 'wakes' }
  /** Leaves a row without an answer under the key of this request. */
  | { readonly damage: Submission }
  | { readonly effects: number }

/** One promise of the protocol, tried out. */
export interface ConformanceCase {
  /** Numbers of the protocol first. */
  readonly title: string
  readonly steps: readonly Step[]
  /** Business effects in the end; those of its joint end, where that is what decides. */
  readonly effects: number | 'as they end'
}

/** What a bench has to be able to do for this case. */
export function needsOf({ steps }: ConformanceCase): readonly BenchAbility[] {
  return [...new Set(steps.flatMap(needs))]
}

function needs(step: Step): readonly BenchAbility[] {
  if ('passMs' in step) return ['passMs']
  if ('revoke' in step || 'grant' in step) return ['revoke']
  if ('hold' in step) return ['hold']
  if ('work' in step) return ['work']
  if ('damage' in step) return ['damage']
  if ('gets' in step && (step.gets.expiresInMs ?? step.gets.resultExpiresInMs) !== undefined) return ['passMs']
  return []
}
