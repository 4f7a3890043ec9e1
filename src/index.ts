/** `samekey`: ky on top of the durable fetch. Prefix, json, searchParams, hooks and shortcuts are ky's; retries are ours. */
import ky, { HTTPError, type KyInstance, type Options as KyOptions, type ResponsePromise } from 'ky'
import { answeredIntent } from './engine/answered.ts'
import { isStreamed, refuseStringified, takeStream } from './engine/body.ts'
import { fixedCall, type IntentCall } from './engine/call.ts'
import { type ClientControl, controlOf } from './engine/engine.ts'
import { type IntentHandle, TakenPromise } from './engine/handle.ts'
import { unstorable } from './engine/json-body.ts'
import type { Ticket } from './engine/tickets.ts'
import { ConfigError, KeyConflictError, UnsupportedBodyError } from './errors.ts'
import { type FetchOptions, fetchOver, type SafeFetch } from './fetch.ts'
import { freshId, setUp } from './setup.ts'

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
  /** A read: passes through ky untouched and unstored (P2). `auth` is not asked; nothing is retried unless `retry` says so. */
  get<T = unknown>(url: string | URL, options?: ReadOptions): ResponsePromise<T>
  /** A read without a body; see {@link Client.get}. */
  head(url: string | URL, options?: ReadOptions): ResponsePromise
  /**
   * Submits an intent, or joins the one of that name (P6). Never throws at the call: everything is a rejection.
   *
   * @throws HTTPError for a refusal by the server, with `intentId` and `key` on it.
   * @throws ConfigError, IntentMismatchError, PossibleDuplicateError, UnsupportedBodyError, StoreWriteError,
   * RecordSetAsideError, SubmitTooLateError when it could not be submitted: see each for what is stored.
   * @throws KeyConflictError, OutcomeUnknownError, CancelledError, AbandonedError for an end without an answer of its own.
   * @throws StillOpenError when `waitMs` is over, AbortError when `signal` aborts: the intent goes on (P36).
   */
  post<T = unknown>(url: string | URL, options: WriteOptions): Write<T>
  /** Like {@link Client.post}. Writes to one address by PUT, PATCH and DELETE go one after another (P34). */
  put<T = unknown>(url: string | URL, options: WriteOptions): Write<T>
  /** Like {@link Client.put}. */
  patch<T = unknown>(url: string | URL, options: WriteOptions): Write<T>
  /** Like {@link Client.put}. */
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
  refuseDecided(options.ky ?? {}, 'ky.')
  const engine = setUp(options, options.baseUrl)
  const fetch = fetchOver(engine, options)
  const instance = ky.create({
    ...options.ky,
    ...(options.baseUrl === undefined ? {} : { prefix: String(options.baseUrl) }),
    fetch,
    retry: 0,
    timeout: false,
    hooks: {
      ...options.ky?.hooks,
      beforeError: [...(options.ky?.hooks?.beforeError ?? []), ({ error }) => named(error)],
    },
  })

  function write<T>(method: 'post' | 'put' | 'patch' | 'delete', url: string | URL, call: WriteOptions): Write<T> {
    const intent = call?.intent
    const ticket = engine.ticket(intent)
    let promise: ResponsePromise<T>
    try {
      promise = begin(instance, method, url, call ?? {}, ticket)
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
      id: intent ?? '',
      stored: ticket.handle.then((inner) => inner.stored),
      outcome: () => ticket.handle.then((inner) => inner.outcome()),
    }
    handle.stored.catch(() => {})
    return Object.assign(new TakenPromise(promise, ticket.take), takenShortcuts(promise, ticket.take), handle)
  }

  const methods = {
    get: <T>(url: string | URL, read?: ReadOptions) => instance.get<T>(absolute(url), read),
    head: (url: string | URL, read?: ReadOptions) => instance.head(absolute(url), read),
    post: <T>(url: string | URL, call: WriteOptions) => write<T>('post', url, call),
    put: <T>(url: string | URL, call: WriteOptions) => write<T>('put', url, call),
    patch: <T>(url: string | URL, call: WriteOptions) => write<T>('patch', url, call),
    delete: <T>(url: string | URL, call: WriteOptions) => write<T>('delete', url, call),
    fetch,
  }
  return Object.defineProperties(methods, Object.getOwnPropertyDescriptors(controlOf(engine))) as unknown as Client
}

/**
 * A name for an intent that has no stable one (P2). Mint it where the user decides, and hold it until the outcome is known:
 * whoever mints another one for the same thing makes a second intent.
 *
 * @throws ConfigError when there is no secure source of randomness (P12).
 * @example
 * ```ts
 * import { newIntent } from 'samekey'
 *
 * const intent = newIntent()
 * sessionStorage.setItem('feedback', intent)
 * await api.post('feedback', { intent, json: { text: 'thank you' } })
 * ```
 */
export function newIntent(): string {
  return `once:${freshId()}`
}

/** ky's options that samekey decides itself, for callers that no type stops. */
const decided = [
  'fetch',
  'retry',
  'timeout',
  'totalTimeout',
  'method',
  'baseUrl',
  'prefix',
] as const satisfies Decided[]

function refuseDecided(options: object, at: string, facts: { readonly intentId?: string } = {}): void {
  const found = decided.find((name) => name in options)
  if (found === undefined) return
  throw new ConfigError(
    `${at}${found}`,
    'samekey decides this: a second retry loop would send what the first one does not know of (see retry, attemptTimeoutMs, baseUrl, fetch)',
    facts,
  )
}

function begin<T>(
  instance: KyInstance,
  method: 'post' | 'put' | 'patch' | 'delete',
  url: string | URL,
  given: WriteOptions,
  ticket: Ticket,
): ResponsePromise<T> {
  // Everything that ky does not copy by itself in this tick (P9).
  const { body, ...call } = fixedCall(given)
  const { intent } = call
  refuseDecided(call, '', { intentId: intent })
  checkJson(call)
  refuseStringified(body, intent)
  const source = isStreamed(body) ? takeStream(body, intent) : null
  const options = {
    ...call,
    ...(body === undefined || source !== null ? {} : { body }),
    // ky hands every option that it does not know to fetch; a function passes its merging untouched.
    samekeyTicket: () => ticket,
    ...(source !== null && { samekeyBody: () => source }),
  }
  return instance[method]<T>(absolute(url), options)
}

/** ky puts its prefix before every text; what is absolute already stays as it is. */
function absolute(url: string | URL): string | URL {
  return typeof url === 'string' && /^https?:/i.test(url) ? (URL.parse(url) ?? url) : url
}

function checkJson({
  intent: intentId,
  json,
  stringifyJson,
}: Pick<WriteOptions, 'intent' | 'json' | 'stringifyJson'>): void {
  if (json === undefined || stringifyJson !== undefined) return
  const bad = unstorable(json)
  if (bad === null) return
  throw new UnsupportedBodyError(
    `json: ${bad.path} is ${bad.what}, which JSON would drop or change silently. Nothing was stored or sent.`,
    { intentId },
  )
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

/** ky's shortcuts, which take the answer too. */
function takenShortcuts<T>(promise: ResponsePromise<T>, take: () => void): Omit<ResponsePromise<T>, keyof Promise<T>> {
  const theirs = promise as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>
  const taking =
    (name: string) =>
    (...args: unknown[]) => {
      take()
      return theirs[name]?.(...args)
    }
  return Object.fromEntries(
    shortcutNames.filter((name) => name in promise).map((name) => [name, taking(name)]),
  ) as never
}

const shortcutNames = ['json', 'text', 'arrayBuffer', 'blob', 'formData', 'bytes'] as const

function shortcuts(error: unknown): Record<string, () => Promise<never>> {
  const fail = (): Promise<never> => Promise.reject(error)
  return Object.fromEntries(shortcutNames.map((name) => [name, fail]))
}
