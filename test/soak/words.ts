/** What processes of the soak say to each other. */
import type { HistoryLine } from '../../src/protocol/record.ts'

/** What becomes of an order. `later`: accepted, and done by a worker. `refused`: for good, by whoever does it. */
export const orderKinds = ['order', 'refused', 'later', 'later refused'] as const
export type OrderKind = (typeof orderKinds)[number]

/** What is to be ordered, once. */
export interface Order {
  /** The intent's name. */
  readonly intent: string
  readonly kind: OrderKind
  /** How long the server, or the worker, takes over it, ms. */
  readonly dwellMs: number
}

/** What a worker gets of an accepted one. */
export interface Work extends Order {
  readonly orderId: string
}

/** What a client process is started with. */
export interface ClientJob {
  readonly name: string
  readonly account: string
  readonly baseUrl: string
  readonly storeFile: string
}

/** What it is told later. */
export type ClientWord =
  /** `times`: so many callers in the same tick. */
  { readonly submit: Order; readonly times: number } | { readonly cancel: string } | { readonly finish: true }

/** What it tells: each is on its way before anything else happens in that process. */
export type ClientReport =
  | { readonly type: 'stored'; readonly intent: string; readonly key: string }
  /** One caller was told an end; an answer has a status, and a body unless that could not be kept. */
  | {
      readonly type: 'ended'
      readonly intent: string
      readonly key: string
      readonly state: string
      readonly status: number | null
      readonly body: string | null
    }
  /** A call that threw. */
  | { readonly type: 'failed'; readonly intent: string; readonly doing: string; readonly error: string }

/** What a store file holds of one intent. */
export interface StoredIntent {
  readonly account: string
  readonly intent: string
  readonly key: string
  readonly current: boolean
  readonly state: string
  /** Why it is unknown, or was cancelled; null where the state says it all. */
  readonly because: string | null
  readonly inDoubt: boolean
  readonly attempts: number
  readonly status: number | null
  readonly body: string | null
  readonly history: readonly HistoryLine[]
}

export const KEYS_PATH = '/keys'
export const CLIENT_NAME = 'soak'
