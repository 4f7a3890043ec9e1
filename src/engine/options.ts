/**
 * The options of a client, and their check: every wrong one is a `ConfigError` that names it and the remedy, before
 * anything is stored or sent.
 */
import { ConfigError } from '../errors.ts'
import type { IntentStore } from '../ports.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'
import { CREDENTIAL_HEADERS } from '../protocol/business-headers.ts'
import type { Dialect } from '../protocol/dialects/dialect.ts'
import { type FingerprintRules, fingerprint } from '../protocol/fingerprint.ts'
import type { PacePolicy } from '../protocol/pacing.ts'
import type { Observer } from './observer.ts'
import type { IntentView } from './view.ts'

/** What `auth` gives for one attempt. Stored nowhere (P51). */
export interface Credentials {
  /** Whose credentials these are: nothing is sent unless it is the record's scope (P3). */
  readonly scope: string
  /** Credential headers only, such as `authorization` (P9); other names are refused, see `credentialHeaders`. */
  readonly headers: Readonly<Record<string, string>>
}

/** What an operation's `reconcile` found under the business identity (P43). */
export type Reconciliation =
  /** It happened. `byKey` says that it was found under this very key, so that nothing more can come of it. */
  | { readonly found: true; readonly byKey?: boolean; readonly response?: Response }
  /** It is surely not there now. That alone proves nothing: a void follows where the server offers it. */
  | { readonly found: false }
  /** The question could not be answered. */
  | { readonly found: 'undecided' }

/** What kind of intent, and what holds for it. Names equal the server's. */
export interface OperationOptions {
  /** Which requests belong to it when the call does not say `operation`. Such a write without a name is a `ConfigError` (P2). */
  readonly match?: (request: { readonly method: string; readonly url: URL }) => boolean
  /** Default is the client's. */
  readonly dialect?: Dialect
  /** How long this operation's keys are remembered, in ms. Default is the dialect's. */
  readonly retentionMs?: number
  /** True when a 2xx answer is this operation's own success; false when it is not (a captive portal). Default is the dialect's marker, else the media type. */
  readonly accept?: (response: Response) => boolean | Promise<boolean>
  /** Asks the server by business identity, when a person or the app calls `check` (P43). */
  readonly reconcile?: (intent: IntentView) => Promise<Reconciliation>
  /** What decides the business result (P15). Default is the whole body. */
  readonly fingerprint?: FingerprintRules
  /** False keeps answer bodies out of the store (P51). Default is true, up to 64 KiB. */
  readonly storeAnswer?: boolean
  /** Name of the lane that its intents stand in (P34). Default is none. */
  readonly lane?: string
  /** What to do with a new intent whose content equals that of one in doubt or unknown (P10). Default is 'report'. */
  readonly duplicate?: 'report' | 'refuse'
}

/** Pace and limits of retries (P31). */
export interface RetryOptions {
  /** Attempts before samekey gives up by itself: then unknown, or blocked when surely nothing happened (P29). Default is 1000, which the window ends first as a rule. */
  readonly attempts?: number
  /** Upper end of the first wait, in ms. Default is 500. */
  readonly baseMs?: number
  /** Upper end of any wait of ours, in ms; the server's `Retry-After` is always obeyed. Default is 120000 (2 minutes). */
  readonly capMs?: number
  /** Most requests of this client on the wire at once. Default is 6. */
  readonly concurrency?: number
  /** Retries per origin that may be made in a burst; one more comes back per second and per success. Default is 20. */
  readonly budget?: number
}

/** Everything about a client except how it builds requests. */
export interface EngineOptions {
  /** Separates this client's records from others' on the same store (P4). Default is the origin of `baseUrl`, else the page's. */
  readonly name?: string
  /** How this server de-duplicates, or `none` (P1). Required: it is declared, never assumed. */
  readonly dialect: Dialect
  /** Whose intent it is; read at once, when submitted (P3). Null or undefined: nobody is signed in, nothing is submitted. */
  readonly scope?: () => string | null | undefined
  /** Credentials, asked for at every attempt (P3, P51). */
  readonly auth?: () => Credentials | Promise<Credentials>
  /** Said instead of `scope` and `auth` when there are no users. */
  readonly anonymous?: true
  /** Origins that credentials go to (P4). Default is the origin of `baseUrl`, else the page's. */
  readonly credentialOrigins?: readonly string[]
  /** Further header names that count as credentials in what `auth` returns. Default is none beyond the usual ones. */
  readonly credentialHeaders?: readonly string[]
  /** Where intents are kept. Default in a browser is IndexedDB; elsewhere one has to be named. */
  readonly store?: IntentStore
  /** What is known of each kind of intent, by name. */
  readonly operations?: Readonly<Record<string, OperationOptions>>
  /** Base address for look-up and void by key (section 16), absolute or relative to `baseUrl`. Default is none: no look-up, no void. */
  readonly keysUrl?: string
  /** Tag of the account for `Idempotency-Scope`, by the same rule as the server's (section 16). Default is none. */
  readonly scopeTag?: (scope: string) => string
  /** Pace and limits of retries (P31). Default: see each. */
  readonly retry?: RetryOptions
  /** Time limit of one attempt, its answer's body included, in ms (P26). Default is 30000 (30 seconds). */
  readonly attemptTimeoutMs?: number
  /** Longest time between computing a request's age and the server's look at the key, in ms: sleep, queues and proxies included. Default is 300000 (5 minutes). */
  readonly transitMs?: number
  /** How long a caller waits for the outcome before `StillOpenError`, in ms (P36). Default is 30000 (30 seconds). */
  readonly waitMs?: number
  /** How long settled intents stay remembered, in ms (P8). Default, and least: the larger of 7 days and the retention. */
  readonly rememberMs?: number
  /** Most bytes of a request's body, and of an answer's that is read. Default is 10485760 (10 MiB). */
  readonly maxBodyBytes?: number
  /** Other origins whose monitors may be polled, without credentials, cookies and key (P40). Default is none. */
  readonly monitorOrigins?: readonly string[]
  /** Makes keys and lease tokens instead of the platform's secure random source; every key is checked (P12). */
  readonly mintKey?: () => string
  /** Told of everything that happens, for logs and metrics. Its exceptions change nothing (P28). */
  readonly observer?: Observer
  /** A `fetch` of the app's own. Default is the platform's. See `transport`. */
  readonly fetch?: (request: Request, init?: RequestInit) => Promise<Response>
  /** What is known of `fetch`: whether a connection error proves that nothing was delivered, and whether it repeats requests by itself (P30). Default is the cautious answer for an own `fetch`: no proof, no repeats. */
  readonly transport?: { readonly provesNonDelivery?: boolean; readonly repeats?: boolean }
  /** Starts by itself and resumes what was left open. Default is true. */
  readonly autoStart?: boolean
}

/** The options, checked and filled in. */
export interface Resolved {
  readonly name: string
  readonly dialect: Dialect
  readonly scope: () => string | null
  readonly auth: (() => Credentials | Promise<Credentials>) | null
  readonly credentialOrigins: ReadonlySet<string>
  readonly credentialHeaders: ReadonlySet<string>
  readonly operations: Map<string, OperationOptions>
  readonly keysUrl: string | null
  readonly scopeTag: ((scope: string) => string) | null
  readonly retry: Required<RetryOptions>
  readonly pace: PacePolicy
  readonly attemptTimeoutMs: number
  readonly leaseMs: number
  readonly transitMs: number
  readonly waitMs: number
  readonly rememberMs: number
  readonly maxBodyBytes: number
  readonly monitorOrigins: ReadonlySet<string>
  readonly observer: Observer | null
}

/** The scope of clients that say `anonymous`. */
const anonymousScope = 'anonymous'

const day = 24 * 3600 * 1000

/**
 * Checks the options.
 *
 * @param defaultOrigin origin of `baseUrl`, else the page's, else null.
 * @throws {@link ConfigError} for the first wrong one.
 */
export function resolveOptions(options: EngineOptions, defaultOrigin: string | null): Resolved {
  checkKinds(options, '', {
    function: ['scope', 'auth', 'scopeTag', 'mintKey', 'observer', 'fetch', 'intentOf'],
    object: ['store', 'operations', 'retry', 'transport'],
    string: ['name', 'keysUrl'],
    boolean: ['anonymous', 'autoStart'],
    array: ['credentialOrigins', 'credentialHeaders', 'monitorOrigins'],
  })
  const dialect = checkedDialect(options.dialect, 'dialect')
  const name = options.name ?? defaultOrigin
  if (name === null) {
    throw new ConfigError(
      'name',
      'there is no baseUrl and no page to take a name from; name the client, e.g. name: "payments"',
    )
  }
  if (name === '' || !isText(name)) throw new ConfigError('name', 'must be a text that is not empty, e.g. "payments"')
  const operations = new Map(Object.entries(options.operations ?? {}))
  for (const [operationName, operation] of operations) checkOperation(operationName, operation)
  const { scope, auth } = identity(options, defaultOrigin)
  const attemptTimeoutMs = timerDuration(options.attemptTimeoutMs, 'attemptTimeoutMs', 30_000)
  const retentions = [...operations.values()].map((o) => o.retentionMs ?? o.dialect?.retentionMs ?? 0)
  const longest = Math.max(7 * day, dialect.retentionMs ?? 0, ...retentions)
  const rememberMs = duration(options.rememberMs, 'rememberMs', longest, 0)
  if (rememberMs < longest) {
    throw new ConfigError(
      'rememberMs',
      `must be at least ${longest} ms (the larger of 7 days and the retention): a shorter memory could mint a second key for the same intent`,
    )
  }
  const retry = {
    attempts: count(options.retry?.attempts, 'retry.attempts', 1000),
    baseMs: duration(options.retry?.baseMs, 'retry.baseMs', 500, 1),
    capMs: duration(options.retry?.capMs, 'retry.capMs', 120_000, 1),
    concurrency: count(options.retry?.concurrency, 'retry.concurrency', 6),
    budget: count(options.retry?.budget, 'retry.budget', 20),
  }
  return {
    name,
    dialect,
    scope,
    auth,
    credentialOrigins: new Set(
      (options.credentialOrigins ?? (defaultOrigin === null ? [] : [defaultOrigin])).map((o) =>
        originOf(o, 'credentialOrigins'),
      ),
    ),
    credentialHeaders: new Set([...CREDENTIAL_HEADERS, ...(options.credentialHeaders ?? []).map(credentialHeader)]),
    operations,
    keysUrl: options.keysUrl ?? null,
    scopeTag: options.scopeTag ?? null,
    retry,
    pace: {
      budget: retry.budget,
      refillMs: 1000,
      outageAfter: 3,
      outageWaitMs: Math.min(retry.capMs, 30_000),
      spreadMs: 2000,
    },
    attemptTimeoutMs,
    leaseMs: attemptTimeoutMs + Math.max(5000, attemptTimeoutMs / 2),
    transitMs: duration(options.transitMs, 'transitMs', 300_000, 0),
    waitMs: duration(options.waitMs, 'waitMs', 30_000, 0),
    rememberMs,
    maxBodyBytes: count(options.maxBodyBytes, 'maxBodyBytes', 10 * 1024 * 1024),
    monitorOrigins: new Set((options.monitorOrigins ?? []).map((o) => originOf(o, 'monitorOrigins'))),
    observer: options.observer ?? null,
  }
}

function identity(options: EngineOptions, defaultOrigin: string | null): Pick<Resolved, 'scope' | 'auth'> {
  if (options.anonymous === true) {
    if (options.scope !== undefined || options.auth !== undefined) {
      throw new ConfigError('anonymous', 'stands instead of scope and auth; leave it out, or leave them out')
    }
    return { scope: () => anonymousScope, auth: null }
  }
  const { scope, auth } = options
  if (scope === undefined) {
    throw new ConfigError('scope', 'say whose intents these are, e.g. scope: () => session.userId, or anonymous: true')
  }
  if (auth !== undefined && options.credentialOrigins === undefined && defaultOrigin === null) {
    throw new ConfigError('credentialOrigins', 'there is no baseUrl and no page; say which origins get credentials')
  }
  return { scope: () => knownScope(scope), auth: auth ?? null }
}

/** Nobody, where the app's own code fails or gives no text: that is never taken for somebody (P3, P28). */
function knownScope(scope: () => unknown): string | null {
  try {
    const who = scope()
    return isText(who) && who !== '' ? who : null
  } catch {
    return null
  }
}

function checkedDialect(dialect: Dialect | undefined | null, option: string): Dialect {
  const isWhole =
    typeof dialect?.name === 'string' &&
    typeof dialect.deduplicates === 'boolean' &&
    [dialect.methods, dialect.monitorHeaders].every(Array.isArray) &&
    [dialect.keyRules, dialect.codes, dialect.statuses].every((part) => typeof part === 'object' && part !== null)
  if (!isWhole) {
    throw new ConfigError(
      option,
      'say how this server de-duplicates: one of samekey/dialects (or a copy with changes), or none if it does not',
    )
  }
  if (dialect.retentionMs !== null) duration(dialect.retentionMs, `${option}.retentionMs`, 0, 1)
  const { pattern } = dialect.keyRules
  try {
    if (pattern !== undefined) new RegExp(pattern)
  } catch (cause) {
    throw new ConfigError(`${option}.keyRules.pattern`, 'is no regular expression', { cause })
  }
  return dialect
}

/** Checks one operation's options. */
export function checkOperation(name: string, operation: OperationOptions): void {
  const at = `operations.${name}`
  checkKinds({ [at]: operation }, '', { object: [at] })
  checkKinds(operation, `${at}.`, {
    function: ['match', 'accept', 'reconcile'],
    object: ['dialect', 'fingerprint'],
    string: ['lane'],
    boolean: ['storeAnswer'],
  })
  if (operation.duplicate !== undefined && operation.duplicate !== 'report' && operation.duplicate !== 'refuse')
    throw new ConfigError(`${at}.duplicate`, "must be 'report' or 'refuse'")
  if (operation.lane === '') throw new ConfigError(`${at}.lane`, 'must not be empty; leave it out for no lane')
  if (name === '' || !isText(name) || /^[A-Z]+ /.test(name))
    throw new ConfigError(at, 'name the operation like the server does, e.g. "orders.create"')
  if (operation.dialect !== undefined) checkedDialect(operation.dialect, `${at}.dialect`)
  if (operation.retentionMs !== undefined) duration(operation.retentionMs, `${at}.retentionMs`, 0, 1)
  if (operation.fingerprint === undefined) return
  try {
    const body = { kind: 'json', text: '{}' } as const
    fingerprint(
      { method: 'POST', url: 'https://example.com/', operation: name, headers: [], body },
      operation.fingerprint,
    )
  } catch (cause) {
    throw new ConfigError(
      `${at}.fingerprint`,
      'omit takes JSON pointers like "/meta/clientTime", "header:x-name" or "query:name"; defaults take JSON pointers',
      { cause },
    )
  }
}

type Kind = 'function' | 'object' | 'string' | 'boolean' | 'array'

/** Refuses options of another kind than they must be, before one of them is used. */
function checkKinds(options: object, at: string, kinds: { readonly [kind in Kind]?: readonly string[] }): void {
  for (const [kind, names] of Object.entries(kinds)) {
    for (const name of names) {
      const value: unknown = Reflect.get(options, name)
      if (value === undefined || (value !== null && kindOf(value) === kind)) continue
      throw new ConfigError(`${at}${name}`, `must be ${kind === 'array' || kind === 'object' ? 'an' : 'a'} ${kind}`)
    }
  }
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value
}

/** True for text that every encoding can carry and every store gives back as it was. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && !/[\0\p{Surrogate}]/u.test(value)
}

function credentialHeader(name: string): string {
  const lower = typeof name === 'string' ? name.toLowerCase() : ''
  const decided = /^(?:content-|idempotency-|samekey-)/.test(lower)
  if (!/^[!#$%&'*+.^_`|~\da-z-]+$/.test(lower) || decided) {
    throw new ConfigError(
      'credentialHeaders',
      `must be names of headers that say who asks, not what is asked; one is ${JSON.stringify(name)}`,
    )
  }
  return lower
}

/** A duration in ms, checked. */
function duration(value: number | undefined, option: string, otherwise: number, least: number): number {
  if (value === undefined) return otherwise
  if (!Number.isFinite(value) || value < least) {
    throw new ConfigError(option, `must be a number of milliseconds of at least ${least}; it is ${String(value)}`)
  }
  return value
}

/** A duration that one timer has to wait. */
function timerDuration(value: number | undefined, option: string, otherwise: number): number {
  const ms = duration(value, option, otherwise, 1)
  if (ms > MAX_TIMER_MS)
    throw new ConfigError(option, `must be at most ${MAX_TIMER_MS} ms, which is what a timer can wait`)
  return ms
}

function count(value: number | undefined, option: string, otherwise: number): number {
  if (value === undefined) return otherwise
  if (!Number.isSafeInteger(value) || value < 1)
    throw new ConfigError(option, `must be a whole number of at least 1; it is ${String(value)}`)
  return value
}

function originOf(text: string, option: string): string {
  const url = URL.parse(text)
  if (url === null || url.origin === 'null')
    throw new ConfigError(option, `must be origins like "https://api.example.com"; one is ${JSON.stringify(text)}`)
  return url.origin
}
