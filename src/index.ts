/** `samekey`: ky on top of the durable fetch. Prefix, json, searchParams, hooks and shortcuts are ky's; retries are ours. */
import ky, { HTTPError, type KyInstance, type Options as KyOptions, type ResponsePromise } from 'ky'
import { v7 } from 'uuid'
import { answeredIntent } from './engine/answered.ts'
import type { ClientControl } from './engine/engine.ts'
import type { IntentHandle } from './engine/handle.ts'
import { unstorable } from './engine/json-body.ts'
import type { IntentCall } from './engine/submit.ts'
import type { Ticket } from './engine/tickets.ts'
import { ConfigError, KeyConflictError, UnsupportedBodyError } from './errors.ts'
import { type FetchOptions, fetchOver, type SafeFetch } from './fetch.ts'
import { setUp } from './setup.ts'

export { HTTPError } from 'ky'
export * from './fetch.ts'

/** ky's options that samekey decides itself. */
type Decided = 'fetch' | 'retry' | 'timeout' | 'totalTimeout' | 'method' | 'baseUrl' | 'prefix'

/** Options of {@link createClient}. */
export interface ClientOptions extends FetchOptions {
  /** Further options for every request: headers, hooks, searchParams ... Hooks run once, at submit; what must be fresh per attempt goes through `auth`. */
  readonly ky?: Omit<KyOptions, Decided>
}

/** Options of one write. */
export type WriteOptions = IntentCall & Omit<KyOptions, Decided | 'signal'>

/** Options of one read, which passes through. */
export type ReadOptions = Omit<KyOptions, 'fetch' | 'method' | 'baseUrl' | 'prefix'>

/** A write under way: ky's response promise, and the intent's handle. */
export type Write<T = unknown> = ResponsePromise<T> & IntentHandle

/** ky's methods over safe writes. */
export interface Client extends ClientControl {
  get<T = unknown>(url: string | URL, options?: ReadOptions): ResponsePromise<T>
  head(url: string | URL, options?: ReadOptions): ResponsePromise
  /** @throws (rejects) HTTPError for a refusal, with `intentId` and `key` on it; or a typed error where there is no answer. */
  post<T = unknown>(url: string | URL, options: WriteOptions): Write<T>
  put<T = unknown>(url: string | URL, options: WriteOptions): Write<T>
  patch<T = unknown>(url: string | URL, options: WriteOptions): Write<T>
  delete<T = unknown>(url: string | URL, options: WriteOptions): Write<T>
  /** The durable fetch underneath: for SDKs, or `ky.extend({ fetch: client.fetch, retry: 0, timeout: false })`. */
  readonly fetch: SafeFetch
}

/**
 * A client whose writes happen once.
 *
 * @throws ConfigError for a wrong option: its message names it and the remedy.
 * @example
 * ```ts
 * import { createClient } from 'samekey'
 * import { samekey } from 'samekey/dialects'
 *
 * const api = createClient({ baseUrl: 'https://api.example.com', dialect: samekey, scope: () => session.userId })
 * const order = await api.post('orders', { intent: `checkout:${cart.id}`, json: cart }).json<Order>()
 * ```
 */
export function createClient(options: ClientOptions): Client {
  for (const decided of ['fetch', 'retry', 'timeout', 'totalTimeout', 'baseUrl', 'prefix'] as const) {
    if (options.ky !== undefined && decided in options.ky) {
      throw new ConfigError(
        `ky.${decided}`,
        'samekey decides this: a second retry loop would send what the first one does not know of (see retry, attemptTimeoutMs, baseUrl, fetch)',
      )
    }
  }
  const engine = setUp(options, options.baseUrl)
  const fetch = fetchOver(engine, options)
  const instance = ky.create({
    ...options.ky,
    ...(options.baseUrl === undefined ? {} : { prefix: prefixOf(options.baseUrl) }),
    fetch: fetch as typeof globalThis.fetch,
    retry: 0,
    timeout: false,
    hooks: {
      ...options.ky?.hooks,
      beforeError: [...(options.ky?.hooks?.beforeError ?? []), ({ error }) => named(error)],
    },
  })

  function write<T>(method: 'post' | 'put' | 'patch' | 'delete', url: string | URL, call: WriteOptions): Write<T> {
    const { intent } = call
    const ticket = engine.ticket(intent)
    let promise: ResponsePromise<T>
    try {
      checkJson(call, intent)
      promise = begin(instance, method, url, call, ticket)
    } catch (error) {
      promise = Object.assign(Promise.reject(error), shortcuts(error)) as unknown as ResponsePromise<T>
    }
    promise.then(
      () =>
        ticket.unused(
          new ConfigError('ky.hooks', 'a hook answered the request itself, so nothing was stored or sent', {
            intentId: intent,
          }),
        ),
      (error: unknown) => ticket.unused(error),
    )
    const handle: IntentHandle = {
      id: intent,
      stored: ticket.handle.then((inner) => inner.stored),
      outcome: () => ticket.handle.then((inner) => inner.outcome()),
    }
    handle.stored.catch(() => {})
    return Object.assign(promise, handle)
  }

  const methods = {
    get: <T>(url: string | URL, read?: ReadOptions) => instance.get<T>(url, read),
    head: (url: string | URL, read?: ReadOptions) => instance.head(url, read),
    post: <T>(url: string | URL, call: WriteOptions) => write<T>('post', url, call),
    put: <T>(url: string | URL, call: WriteOptions) => write<T>('put', url, call),
    patch: <T>(url: string | URL, call: WriteOptions) => write<T>('patch', url, call),
    delete: <T>(url: string | URL, call: WriteOptions) => write<T>('delete', url, call),
    fetch,
  }
  const control: ClientControl = engine
  return Object.defineProperties(methods, Object.getOwnPropertyDescriptors(control)) as unknown as Client
}

/** A name for an intent that has no stable one: mint it where the user decides, and hold it until the outcome is known. */
export function newIntent(): string {
  return `once:${v7()}`
}

function begin<T>(
  instance: KyInstance,
  method: 'post' | 'put' | 'patch' | 'delete',
  url: string | URL,
  call: WriteOptions,
  ticket: Ticket,
): ResponsePromise<T> {
  if (typeof call.intent !== 'string') {
    throw new ConfigError(
      'intent',
      'a write needs a name for what should happen once, e.g. "checkout:cart-42", or newIntent() for a one-off that you hold',
    )
  }
  // ky hands every option it does not know to fetch; a function passes its merging untouched.
  const options = { ...call, retry: 0, timeout: false as const, samekeyTicket: () => ticket }
  return instance[method]<T>(url, options)
}

function checkJson(call: WriteOptions, intentId: string): void {
  if (call.json === undefined || call.stringifyJson !== undefined) return
  const bad = unstorable(call.json)
  if (bad === null) return
  throw new UnsupportedBodyError(
    `json: ${bad.path} is ${bad.what}, which JSON would drop or change silently. Nothing was stored or sent.`,
    { intentId },
  )
}

/** ky's base: a relative path hangs under it, with or without a slash. */
function prefixOf(baseUrl: string | URL): string {
  return String(baseUrl)
}

/** Errors of ky name the intent (P13); a conflict is a typed error of ours. */
function named(error: Error): Error {
  if (!(error instanceof HTTPError)) return error
  const intent = answeredIntent(error.response)
  if (intent === undefined) return error
  const facts = { intentId: intent.id, key: intent.key }
  if (intent.state !== 'conflicted') return Object.assign(error, facts)
  return new KeyConflictError(
    `The server knows the key of "${intent.id}" with another request. Submit what is meant under a new intent id.`,
    { ...facts, cause: error },
  )
}

function shortcuts(error: unknown): Record<string, () => Promise<never>> {
  const fail = (): Promise<never> => Promise.reject(error)
  return { json: fail, text: fail, arrayBuffer: fail, blob: fail, formData: fail, bytes: fail }
}
