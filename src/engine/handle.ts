/** What a write returns: awaitable as a Response, with ky's shortcuts, the intent's name at once, and the typed end. */
import type { Outcome } from './outcome.ts'

/** Known once the intent is durable. */
export interface Stored {
  /** The intent's name. */
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
   * @example
   * ```ts
   * const outcome = await api.post('orders', { intent: `checkout:${cart.id}`, json: cart }).outcome()
   * if (outcome.state === 'unknown') showMessage('We do not know yet whether your order went through.')
   * ```
   */
  outcome(): Promise<Outcome>
}

/** fetch's promise with ky's shortcuts and the intent's handle. */
export interface IntentPromise extends Promise<Response>, IntentHandle {
  /** The answer's body as JSON, refusals included. @throws BodyNotStoredError when it was not kept (P22). */
  json<T = unknown>(): Promise<T>
  /** The answer's body as text. @throws BodyNotStoredError */
  text(): Promise<string>
  /** The answer's body as bytes. @throws BodyNotStoredError */
  arrayBuffer(): Promise<ArrayBuffer>
  /** The answer's body as a Blob. @throws BodyNotStoredError */
  blob(): Promise<Blob>
  /** The answer's body as a form. @throws BodyNotStoredError */
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
