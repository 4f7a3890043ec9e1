/** `samekey/fetch`: the durable fetch, without ky. What is not named passes straight through. */
import { alreadyRead, type BodySource, isStreamed, refuseStringified, takeStream } from './engine/body.ts'
import type { IntentCall } from './engine/call.ts'
import { type ClientControl, controlOf, type Engine } from './engine/engine.ts'
import type { IntentHandle, IntentPromise } from './engine/handle.ts'
import { asIntentPromise } from './engine/handle.ts'
import type { EngineOptions } from './engine/options.ts'
import { matchingOperation } from './engine/policies.ts'
import type { Ticket } from './engine/tickets.ts'
import { ConfigError } from './errors.ts'
import { readKeyHeader } from './protocol/key.ts'
import { SAMEKEY_INTENT } from './protocol/wire.ts'
import { absoluteBase, setUp } from './setup.ts'

export type { IntentCall, KeyChoice } from './engine/call.ts'
export type { ClientControl } from './engine/engine.ts'
export type { IntentHandle, IntentPromise, Stored } from './engine/handle.ts'
export type { IntentFilter, IntentList, Intents, Lanes, Resolution } from './engine/intents.ts'
export type { Note, Observer, StateNote, WarningNote } from './engine/observer.ts'
export type { Credentials, EngineOptions, OperationOptions, Reconciliation, RetryOptions } from './engine/options.ts'
export type { Outcome } from './engine/outcome.ts'
export type { IntentView, SetAsideView } from './engine/view.ts'
export * from './errors.ts'
export type {
  BlobChange,
  BlobName,
  InsertResult,
  IntentStore,
  NewRow,
  RowChange,
  RowFilter,
  RowKey,
  StoredRow,
} from './ports.ts'
export type { Dialect } from './protocol/dialects/dialect.ts'
export type { FingerprintRules } from './protocol/fingerprint.ts'
export type { KeyRules } from './protocol/key.ts'
export type { ActionLine, Answer, HistoryLine, KeyOrigin } from './protocol/record.ts'
export type { StateName } from './protocol/states.ts'

/** What may be said of one named request. `headers['samekey-intent']` names it too, for SDKs that only pass headers on. */
export type IntentInit = { readonly [option in Exclude<keyof IntentCall, 'signal'>]?: IntentCall[option] }

/** fetch, which takes the intent's options besides its own. */
export interface SafeFetch extends ClientControl {
  /**
   * Submits an intent, or joins the one of that name (P6). Resolves with every final answer of the server, refusals
   * included; everything that goes wrong is a rejection.
   *
   * @throws ConfigError, IntentMismatchError, PossibleDuplicateError, UnsupportedBodyError, StoreWriteError,
   * RecordSetAsideError, SubmitTooLateError when it could not be submitted: see each for what is stored.
   * @throws OutcomeUnknownError, CancelledError, AbandonedError for an end without an answer; KeyConflictError for a
   * conflict whose answer was not kept.
   * @throws StillOpenError when `waitMs` is over, AbortError when `signal` aborts: the intent goes on (P36).
   */
  (input: string | URL | Request, init: RequestInit & IntentInit & { readonly intent: string }): IntentPromise
  /**
   * Named by the `samekey-intent` header, by `intentOf` or by its own key header, it is an intent as above; else it
   * passes through untouched and unstored (P2).
   */
  (input: string | URL | Request, init?: RequestInit & IntentInit): Promise<Response>
}

/** Options of {@link createFetch}. */
export interface FetchOptions extends EngineOptions {
  /** Relative addresses hang under it, whether or not it ends in a slash; `/path` means its origin. Default is the page's address; elsewhere none. */
  readonly baseUrl?: string | URL
  /** Names the intent of a request that does not name itself; undefined lets it pass (P2). Asked for writes only. */
  readonly intentOf?: (request: Request) => string | undefined
}

/** How a layer above, which reaches fetch some ticks later, hands over what it claimed at once. */
interface ClaimedInit {
  readonly samekeyTicket?: () => Ticket
  /** A streamed body, which that layer could not put into a Request. */
  readonly samekeyBody?: () => BodySource
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
 * const response = await safeFetch('/orders', {
 *   method: 'POST',
 *   headers: { 'content-type': 'application/json' },
 *   body: JSON.stringify(cart),
 *   intent: `checkout:${cart.id}`,
 * })
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
    init: (RequestInit & IntentInit & ClaimedInit) | null = {},
  ): Promise<Response> {
    // fetch takes null for "no options".
    const given = init ?? {}
    try {
      return begin(input, given)
    } catch (error) {
      return refused(given.intent ?? '', error)
    }
  }

  function begin(input: string | URL | Request, init: RequestInit & IntentInit & ClaimedInit): Promise<Response> {
    const { intent, key, operation, lane, again, sendBefore, waitMs, samekeyTicket, samekeyBody, ...requestInit } = init
    const { body } = requestInit
    const target = resolved(input)
    const request = requestOf(target, isStreamed(body) ? { ...requestInit, body: null } : requestInit, intent)
    const headerName = request.headers.get(SAMEKEY_INTENT)
    request.headers.delete(SAMEKEY_INTENT)
    const pass = (): Promise<Response> => {
      const passed = isStreamed(body) ? new Request(target, { duplex: 'half', ...requestInit } as RequestInit) : request
      return (options.fetch ?? globalThis.fetch)(passed, extrasOf(requestInit))
    }
    if (readOnly.has(request.method)) return pass()
    const matching = matchingOperation(engine.options, request)
    const headerKey = keyOf(request, operation ?? matching ?? '')
    const name = intent ?? headerName ?? nameFor(request) ?? givenKey(key) ?? headerKey
    if (name === null || name === undefined) {
      const said = Object.entries({ operation, key, lane, again, sendBefore, waitMs }).find(
        ([, value]) => value !== undefined,
      )
      if (matching === null && said === undefined) return pass()
      throw new ConfigError(
        'intent',
        `a write ${matching === null ? `with the option ${said?.[0]}` : `of the operation "${matching}"`} needs a name: give intent, the samekey-intent header, intentOf, or newIntent() for a one-off`,
      )
    }
    refuseStringified(body, name)
    const source = samekeyBody?.() ?? (isStreamed(body) ? takeStream(body, name) : request)
    const signal = init.signal ?? (input instanceof Request ? input.signal : undefined)
    const call: IntentCall = {
      intent: name,
      ...(key !== undefined && { key }),
      ...(operation !== undefined && { operation }),
      ...(lane !== undefined && { lane }),
      ...(again !== undefined && { again }),
      ...(sendBefore !== undefined && { sendBefore }),
      ...(waitMs !== undefined && { waitMs }),
      ...(signal && { signal }),
    }
    return engine.submit(call, { request, source, headerKey }, samekeyTicket?.())
  }

  /** The key in the request's own key header (P5): one value, raw or quoted; null without one. */
  function keyOf(request: Request, operation: string): string | null {
    const { keyHeader } = engine.options.operations.get(operation)?.dialect ?? engine.options.dialect
    if (keyHeader === null) return null
    const found = readKeyHeader(request.headers.get(keyHeader))
    if (found.ok) return found.key
    if (found.reason === 'missing') return null
    throw new ConfigError(
      `headers.${keyHeader.toLowerCase()}`,
      found.reason === 'multiple'
        ? 'holds more than one key, and nothing says which is meant; give one'
        : 'holds no key that can be sent safely; give 1 to 255 characters of printable ASCII without space, ", comma and \\',
    )
  }

  function nameFor(request: Request): string | undefined {
    try {
      return options.intentOf?.(request.clone())
    } catch (cause) {
      throw new ConfigError(
        'intentOf',
        'threw, so it is not known whether this is an intent; nothing was stored or sent',
        { cause },
      )
    }
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

  return Object.defineProperties(safeFetch, Object.getOwnPropertyDescriptors(controlOf(engine))) as SafeFetch
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

/** The request as fetch makes it. For what is named, a request that cannot be made is a wrong call of ours. */
function requestOf(target: URL | Request, init: RequestInit, intent: string | undefined): Request {
  try {
    return new Request(target, init)
  } catch (cause) {
    const name = intent ?? headersOf(target, init)?.get(SAMEKEY_INTENT)
    // What passes through fails as fetch does.
    if (name === undefined || name === null) throw cause
    if (target instanceof Request && target.bodyUsed) throw alreadyRead(name, cause)
    throw new ConfigError('init', 'fetch takes no such request; the cause says why', { intentId: name, cause })
  }
}

function headersOf(target: URL | Request, { headers }: RequestInit): Headers | null {
  try {
    return new Headers(headers ?? (target instanceof Request ? target.headers : {}))
  } catch {
    return null
  }
}

function givenKey(key: IntentInit['key']): string | undefined {
  return typeof key === 'object' && key !== null && 'value' in key ? key.value : undefined
}

/** A wrong call rejects, and is a handle all the same. */
function refused(id: string, error: unknown): IntentPromise {
  const failure = Promise.reject(error)
  const handle: IntentHandle = { id, stored: failure, outcome: () => failure }
  return asIntentPromise(failure, handle)
}
