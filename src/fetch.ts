/** `samekey/fetch`: the durable fetch, without ky. What is not named passes straight through. */
import type { ClientControl, Engine } from './engine/engine.ts'
import type { IntentHandle, IntentPromise } from './engine/handle.ts'
import { asIntentPromise } from './engine/handle.ts'
import type { EngineOptions } from './engine/options.ts'
import { type IntentCall, matchingOperation } from './engine/submit.ts'
import type { Ticket } from './engine/tickets.ts'
import { ConfigError } from './errors.ts'
import { SAMEKEY_INTENT } from './protocol/wire.ts'
import { absoluteBase, setUp } from './setup.ts'

export type { ClientControl } from './engine/engine.ts'
export type { IntentHandle, IntentPromise, Stored } from './engine/handle.ts'
export type { IntentFilter, IntentList, Intents, Lanes, Resolution } from './engine/intents.ts'
export type { Note, Observer, StateNote, WarningNote } from './engine/observer.ts'
export type { Credentials, EngineOptions, OperationOptions, Reconciliation, RetryOptions } from './engine/options.ts'
export type { Outcome } from './engine/outcome.ts'
export type { IntentCall, KeyChoice } from './engine/submit.ts'
export type { IntentView, SetAsideView } from './engine/view.ts'
export * from './errors.ts'
export type { Dialect } from './protocol/dialects/dialect.ts'

/** What may be said of one named request. `headers['samekey-intent']` names it too, for SDKs that only pass headers on. */
export type IntentInit = { readonly [option in Exclude<keyof IntentCall, 'signal'>]?: IntentCall[option] }

/** fetch, which takes the intent's options besides its own. */
export interface SafeFetch extends ClientControl {
  (input: string | URL | Request, init: RequestInit & IntentInit & { readonly intent: string }): IntentPromise
  (input: string | URL | Request, init?: RequestInit & IntentInit): Promise<Response>
}

/** Options of {@link createFetch}. */
export interface FetchOptions extends EngineOptions {
  /** Relative addresses are resolved against it. Default is the page's address; elsewhere none. */
  readonly baseUrl?: string | URL
  /** Names the intent of a request that does not name itself; undefined lets it pass (P2). Asked for writes only. */
  readonly intentOf?: (request: Request) => string | undefined
}

/** How a layer above, which reaches fetch some ticks later, hands over what it claimed at once. */
interface TicketInit {
  readonly samekeyTicket?: () => Ticket
}

const readOnly: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/**
 * A drop-in `fetch` that makes named writes safe to retry, and leaves all else alone (P2).
 *
 * @throws ConfigError for a wrong option: its message names it and the remedy.
 * @example
 * ```ts
 * import { samekey } from 'samekey/dialects'
 * import { createFetch } from 'samekey/fetch'
 *
 * const safeFetch = createFetch({ dialect: samekey, scope: () => session.userId })
 * const response = await safeFetch('/orders', { method: 'POST', body: JSON.stringify(cart), intent: `checkout:${cart.id}` })
 * ```
 */
export function createFetch(options: FetchOptions): SafeFetch {
  return fetchOver(setUp(options, options.baseUrl), options)
}

/** The fetch of an engine. Control and calls are one object, so that `safeFetch.stop()` reads as it should. */
export function fetchOver(engine: Engine, options: Pick<FetchOptions, 'baseUrl' | 'intentOf' | 'fetch'>): SafeFetch {
  const base = absoluteBase(options.baseUrl)

  function safeFetch(
    input: string | URL | Request,
    init: RequestInit & IntentInit & TicketInit = {},
  ): Promise<Response> {
    try {
      return begin(input, init)
    } catch (error) {
      return refused(init.intent ?? '', error)
    }
  }

  function begin(input: string | URL | Request, init: RequestInit & IntentInit & TicketInit): Promise<Response> {
    const { intent, key, operation, lane, again, sendBefore, waitMs, samekeyTicket, ...requestInit } = init
    const request = new Request(resolved(input), withDuplex(requestInit))
    const headerName = request.headers.get(SAMEKEY_INTENT)
    request.headers.delete(SAMEKEY_INTENT)
    const pass = (): Promise<Response> => (options.fetch ?? globalThis.fetch)(request, extrasOf(requestInit))
    if (readOnly.has(request.method)) return pass()
    const matching = matchingOperation(engine.options, request)
    const keyHeader = (engine.options.operations.get(operation ?? matching ?? '')?.dialect ?? engine.options.dialect)
      .keyHeader
    const headerKey = keyHeader === null ? null : unquoted(request.headers.get(keyHeader))
    const givenKey = key !== undefined && 'value' in key ? key.value : headerKey
    const name = intent ?? headerName ?? options.intentOf?.(request.clone()) ?? givenKey
    if (name === null || name === undefined) {
      if (matching === null && operation === undefined) return pass()
      throw new ConfigError(
        'intent',
        `a write of the operation "${operation ?? matching}" needs a name: give intent, the samekey-intent header, intentOf, or newIntent() for a one-off`,
      )
    }
    const signal = init.signal ?? (input instanceof Request ? input.signal : undefined)
    const call: IntentCall = {
      intent: name,
      ...(key && { key }),
      ...(operation !== undefined && { operation }),
      ...(lane !== undefined && { lane }),
      ...(again !== undefined && { again }),
      ...(sendBefore !== undefined && { sendBefore }),
      ...(waitMs !== undefined && { waitMs }),
      ...(signal && { signal }),
    }
    return engine.submit(call, request, headerKey, samekeyTicket?.())
  }

  function resolved(input: string | URL | Request): URL | Request {
    if (input instanceof Request) return input
    const url = URL.parse(String(input), base ?? undefined)
    if (url === null)
      throw new ConfigError(
        'input',
        `${JSON.stringify(String(input))} is not an absolute address; give one, or a baseUrl`,
      )
    return url
  }

  const control: ClientControl = engine
  return Object.defineProperties(safeFetch, Object.getOwnPropertyDescriptors(control)) as SafeFetch
}

/** Options that a Request does not carry, such as Node's `dispatcher`: what passes through keeps them. */
function extrasOf(init: RequestInit): RequestInit {
  return Object.fromEntries(Object.entries(init).filter(([name]) => !requestOptions.has(name)))
}

const requestOptions: ReadonlySet<string> = new Set(
  'method headers body mode credentials cache redirect referrer referrerPolicy integrity keepalive signal window duplex'.split(
    ' ',
  ),
)

/** Streams may be sent only with this word, and it says nothing about other bodies. */
function withDuplex(init: RequestInit): RequestInit {
  const { body } = init
  const streams = typeof body === 'object' && body !== null && Symbol.asyncIterator in body
  return streams || body instanceof ReadableStream ? ({ duplex: 'half', ...init } as RequestInit) : init
}

/** A wrong call rejects, and is a handle all the same. */
function refused(id: string, error: unknown): IntentPromise {
  const failure = Promise.reject(error)
  const handle: IntentHandle = { id, stored: failure, outcome: () => failure }
  return asIntentPromise(failure, handle)
}

/** A quoted structured-field string is the same key as the raw token (section 16). */
function unquoted(value: string | null): string | null {
  const text = value?.trim() ?? ''
  if (text === '') return null
  return text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text
}
