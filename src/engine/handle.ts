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

/** A promise that says when somebody asks for what it gives. Nobody has to: its rejection is always handled (H63). */
export class TakenPromise<T> extends Promise<T> {
  readonly #take: () => void

  /** What comes of `then` is an ordinary promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  constructor(source: Promise<T>, take: () => void) {
    super((resolve, reject) => {
      source.then(resolve, reject)
    })
    this.#take = take
    super.then(undefined, () => {})
  }

  // biome-ignore lint/suspicious/noThenProperty: this is a promise
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#take()
    return super.then(onFulfilled, onRejected)
  }
}

/**
 * Attaches the handle to a promise.
 *
 * @param take told when somebody takes the answer. Default: nobody wants to know.
 */
export function asIntentPromise(answer: Promise<Response>, handle: IntentHandle, take = (): void => {}): IntentPromise {
  handle.stored.catch(() => {})
  const response = new TakenPromise(answer, take)
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
