/** What an operation is told, checked once when it is made: a wrong option must not wait for the first request. */
import { ConfigError } from '../errors.ts'
import { type FingerprintRules, fingerprint } from '../protocol/fingerprint.ts'
import { checkKey, type KeyRules } from '../protocol/key.ts'
import type { StoredAnswer } from './decide.ts'
import { type Report, reportToConsole, safely } from './report.ts'
import type { RequestBody } from './request-body.ts'
import type { ExecuteResult } from './results.ts'
import type { ServerStore } from './store.ts'

/** Whose request it is, by authentication and never by the request's own fields (P53). */
export interface Scope {
  /** The customer, shop or account that keys belong to. A fixed text where there is only one. Never empty. */
  readonly tenant: string
  /** Who may share keys: a user, or the business subject that several callers act for. */
  readonly principal: string
  /** What `Idempotency-Scope` is compared with: the client computes it by the same rule. Default: none. */
  readonly tag?: string
}

/** What authorisation is asked about. */
export interface AuthorizeContext {
  /** As it came; its body may have been read. */
  readonly request: Request
  /** What `scope` gave for it. */
  readonly scope: Scope
  /** Name of the operation. */
  readonly operation: string
  /** The idempotency key. */
  readonly key: string
  /** `submit` before the key is touched, `replay` before a stored answer is given out again. */
  readonly purpose: 'submit' | 'replay' | 'lookup' | 'void'
  /** Null for look-ups and voids. */
  readonly body: RequestBody | null
  /** The stored answer that is about to be shown; null before the key was looked at. */
  readonly answer: StoredAnswer | null
}

/** What `execute` gets. */
export interface ExecuteContext<Transaction> {
  /** The transaction that the business change belongs into; over when `execute` ends. */
  readonly transaction: Transaction
  /** A fresh request whose body can be read. */
  readonly request: Request
  /** The body, already read and parsed. */
  readonly body: RequestBody
  /** The idempotency key. A stable operation id to send on, where another service is told later (P65). */
  readonly key: string
  /** What `scope` gave for the request. */
  readonly scope: Scope
  /** Name of the operation. */
  readonly operation: string
}

/** What {@link IdempotentOptions.reread} gets. */
export interface RereadContext {
  /** As `byReference` was given it. */
  readonly reference: string
  /** As it was kept, without its body. */
  readonly answer: StoredAnswer
  /** Who asks now; `authorize` has just allowed it. */
  readonly request: Request
  readonly scope: Scope
  readonly operation: string
  readonly key: string
}

/** What {@link IdempotentOptions.onVoid} gets. */
export interface VoidContext<Transaction> {
  /** The transaction in which the work is voided. */
  readonly transaction: Transaction
  /** The work, as `accepted` was given it. */
  readonly work: unknown
  /** Who asks for it. */
  readonly request: Request
  readonly scope: Scope
  readonly operation: string
  readonly key: string
}

/** Limits of one operation (P60). */
export interface Limits {
  /** What keys must look like. Default: 1 to 255 characters of printable ASCII. */
  readonly key?: KeyRules
  /** Longest request body, bytes; longer is refused with 413. Default 2 MiB. */
  readonly requestBytes?: number
  /**
   * Most values in a JSON request, members and elements of every depth; more is refused with 413. They cost far more
   * time than their bytes. Default 50000.
   */
  readonly jsonValues?: number
  /** Longest answer body that is stored, bytes; a longer one is sent once and not kept. Default 1 MiB. */
  readonly answerBytes?: number
  /**
   * How long a request waits for a running one with the same key before it is told "in progress", ms. Default 2000.
   * `Infinity` waits as long as it takes; then `execute` must use no other connection of the pool than its own
   * transaction's, or those who wait may hold the last ones that it needs.
   */
  readonly waitMs?: number
  /** The same for a void, ms. Default 10000. */
  readonly voidWaitMs?: number
}

/** What {@link idempotent} is told. */
export interface IdempotentOptions<Transaction> {
  /** Where keys are kept: in the database of the business rows, or the promise cannot be kept (P54). */
  readonly store: ServerStore<Transaction>
  /** Name of the kind of intent, `orders.create`: keys are bound to it, and clients use the same name. */
  readonly operation: string
  /** Authenticates; a Response (401) ends the request. Called for every request, replays included (P55). */
  readonly scope: (request: Request) => Scope | Response | Promise<Scope | Response>
  /**
   * Authorises; false (403) or a Response ends the request. Called before the key is touched, and again with the
   * stored answer before that is shown (P55). Default: whoever is authenticated may.
   */
  readonly authorize?: (context: AuthorizeContext) => boolean | Response | Promise<boolean | Response>
  /** What of the request decides the result (P15). Default: all of it. */
  readonly fingerprint?: FingerprintRules
  /**
   * How long a key is remembered, ms (P57). Default 24 hours. Clients must not be told more than this. Rows are reaped
   * by the rule of their own time: before making it longer, raise `graceMs` by the difference and let as much time pass
   * as the new retention is long. Making it shorter needs no care.
   */
  readonly retentionMs?: number
  /** The longest time between a client's computing an age and the look at the key: queues, proxies, sleep; ms. Default 5 minutes. */
  readonly transitMs?: number
  /** How much longer a row lives, ms; more than the transit. Default 1 hour. */
  readonly graceMs?: number
  /** Sizes and waits (P60). Default: see each. */
  readonly limits?: Limits
  /**
   * Reads the body of an answer that was kept `byReference`, as it is today and for whoever asks today (P60). Null:
   * there is none any more, and the answer says `Idempotency-Body: omitted`. Default: answers cannot be kept so.
   */
  readonly reread?: (context: RereadContext) => Uint8Array | string | null | Promise<Uint8Array | string | null>
  /**
   * Takes back what `execute` wrote when it accepted work, in the transaction that voids the work (P58). Called only
   * while nothing of the work can have taken effect: no step of it was committed and no call written down. So it is for
   * work that workers of ours do; of other work, nothing here tells how far it is. Default: accepted work cannot be
   * voided, and who asks is told that it is processing.
   */
  readonly onVoid?: (context: VoidContext<Transaction>) => void | Promise<void>
  /** Where `idempotencyRoutes` is mounted, absolute or a path: the monitor of a 202 lies there. Default: none. */
  readonly keysUrl?: string
  /** The origin that clients address, for the fingerprint. Default: that of the request; set it where a proxy changes it. */
  readonly publicOrigin?: string
  /** Default: one line on the console. */
  readonly report?: Report
  /**
   * Does it, once, in the transaction. Writes local rows only: a call to another service cannot be rolled back (P54,
   * P65). What it throws rolls back and is not remembered.
   */
  readonly execute: (context: ExecuteContext<Transaction>) => ExecuteResult | Promise<ExecuteResult>
}

/** All of it, defaults filled in. */
export interface Settings<Transaction> {
  readonly store: ServerStore<Transaction>
  readonly operation: string
  readonly scope: IdempotentOptions<Transaction>['scope']
  readonly authorize: NonNullable<IdempotentOptions<Transaction>['authorize']>
  readonly fingerprint: FingerprintRules
  readonly retentionMs: number
  readonly transitMs: number
  readonly graceMs: number
  readonly limits: Required<Limits>
  readonly reread: IdempotentOptions<Transaction>['reread'] | null
  readonly onVoid: IdempotentOptions<Transaction>['onVoid'] | null
  readonly keysUrl: string | null
  readonly publicOrigin: string | null
  readonly report: Report
  readonly execute: IdempotentOptions<Transaction>['execute']
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** 100 years: dates after that have no place in an HTTP header before long. */
const LONGEST_MS = 100 * 365 * 24 * HOUR_MS

/** @throws ConfigError naming the option. */
export function settingsOf<Transaction>(options: IdempotentOptions<Transaction>): Settings<Transaction> {
  const { operation, retentionMs = 24 * HOUR_MS, transitMs = 5 * MINUTE_MS, graceMs = HOUR_MS, limits = {} } = options
  // As with keys, so with operations: both are path segments of `keysUrl`.
  if (operation === '' || operation === '.' || operation === '..' || operation.includes('\0')) {
    throw new ConfigError('operation', 'give the operation a name, such as orders.create')
  }
  wholeMs('retentionMs', retentionMs)
  wholeMs('transitMs', transitMs)
  wholeMs('graceMs', graceMs)
  if (retentionMs <= transitMs) {
    throw new ConfigError('retentionMs', `must be more than transitMs (${transitMs}), or every retry is too old (P57)`)
  }
  if (graceMs <= transitMs) {
    throw new ConfigError(
      'graceMs',
      `must be more than transitMs (${transitMs}), or a late request outlives its row (P57)`,
    )
  }
  const {
    key = {},
    requestBytes = 2 ** 21,
    jsonValues = 50_000,
    answerBytes = 2 ** 20,
    waitMs = 2000,
    voidWaitMs = 10_000,
  } = limits
  for (const [name, value] of Object.entries({ requestBytes, jsonValues, answerBytes, waitMs, voidWaitMs })) {
    if (!(value >= 0)) throw new ConfigError(`limits.${name}`, `must be a number of at least 0, not ${value}`)
  }
  checked('limits.key', () => checkKey('k', key))
  const rules = options.fingerprint ?? {}
  if (options.fingerprint !== undefined) {
    checked('fingerprint', () =>
      fingerprint(
        { method: 'POST', url: 'http://check.invalid/', operation, headers: [], body: { kind: 'none' } },
        rules,
      ),
    )
  }
  const { publicOrigin = null } = options
  return {
    store: options.store,
    operation,
    scope: options.scope,
    authorize: options.authorize ?? (() => true),
    fingerprint: rules,
    retentionMs,
    transitMs,
    graceMs,
    limits: { key, requestBytes, jsonValues, answerBytes, waitMs, voidWaitMs },
    reread: options.reread ?? null,
    onVoid: options.onVoid ?? null,
    keysUrl: options.keysUrl?.replace(/\/+$/, '') ?? null,
    publicOrigin: publicOrigin === null ? null : checked('publicOrigin', () => new URL(publicOrigin).origin),
    report: safely(options.report ?? reportToConsole),
    execute: options.execute,
  }
}

function wholeMs(option: string, value: number): void {
  if (!Number.isSafeInteger(value) || value <= 0 || value > LONGEST_MS) {
    throw new ConfigError(option, `must be whole milliseconds from 1 to ${LONGEST_MS}, not ${value}`)
  }
}

function checked<T>(option: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw new ConfigError(option, error instanceof Error ? error.message : String(error), { cause: error })
  }
}
