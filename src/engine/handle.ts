/** What a write returns: awaitable as a Response, with ky's shortcuts, the intent's name at once, and the typed end. */
import type { Outcome } from './outcome.ts'

/** Known once the intent is durable. */
export interface Stored {
  readonly id: string
  /** The idempotency key (P13). */
  readonly key: string
  /** Intents with the same content that are in doubt or unknown (P10): a hint that this may be a second order. */
  readonly possibleDuplicates: readonly { readonly intentId: string; readonly key: string }[]
}

/** A write under way. */
export interface IntentHandle {
  /** The intent's name, at once. */
  readonly id: string
  /** Resolves once the intent is stored durably; from then on it goes on by itself. Rejects when it could not be stored. */
  readonly stored: Promise<Stored>
  /**
   * Waits like the promise itself, but tells every state of the protocol by value, open ones included.
   *
   * @throws only what `stored` rejects with, and an `AbortError`.
   */
  outcome(): Promise<Outcome>
}

/** fetch's promise with ky's shortcuts and the intent's handle. */
export interface IntentPromise extends Promise<Response>, IntentHandle {
  json<T = unknown>(): Promise<T>
  text(): Promise<string>
  arrayBuffer(): Promise<ArrayBuffer>
  blob(): Promise<Blob>
  formData(): Promise<FormData>
}

/** Attaches the handle to a promise. Nobody has to await it: its rejection is always handled (H63). */
export function asIntentPromise(response: Promise<Response>, handle: IntentHandle): IntentPromise {
  response.catch(() => {})
  handle.stored.catch(() => {})
  return Object.assign(response, {
    id: handle.id,
    stored: handle.stored,
    outcome: () => handle.outcome(),
    json: async <T>() => (await (await response).json()) as T,
    text: async () => (await response).text(),
    arrayBuffer: async () => (await response).arrayBuffer(),
    blob: async () => (await response).blob(),
    formData: async () => (await response).formData(),
  })
}
