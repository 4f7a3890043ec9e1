/**
 * What can go wrong with one request, as data. A fault says what happens at the stages that a request goes through on
 * the server, and so it always says whether the business change was committed (B128):
 *
 * | fault | the client sees | effects |
 * |---|---|---|
 * | `refuseConnection` | network error, never delivered | 0 |
 * | `dropBeforeCommit` | network error | 0 |
 * | `commitThenDrop` | network error | as without the fault |
 * | `cutBody` | headers and half of the body | as without the fault |
 * | `hang('before')` | nothing, until it gives up | 0 |
 * | `hang('after')`, `hang('body')` | nothing, or half of the body, until it gives up | as without the fault |
 * | `delay` | the real answer, later | as without the fault |
 * | `hideHeaders` | the real answer without some headers | as without the fault |
 * | `status`, `redirect`, `captivePortal` | that answer | 0 |
 * | `inProgress`, `unavailable`, `expired` | that refusal | 0 |
 * | `voided` | 409 voided, or the replay where the key was executed before | 0 by this request |
 * | `storedFailure` | 500, and its replay from then on | 0 |
 * | `commitUnknown` | 503 that says so | 1 or 0, as scripted |
 * | `damaged` | network error, then 500 `idempotency_inconsistent` for good | 1 or 0, as scripted |
 * | `accepted` | 202 and a monitor | 1 when its end is `succeeded`, else 0 |
 *
 * "As without the fault": one for a new key, none for a replay.
 *
 * `workerDies` and `workerSleeps` happen to executions of accepted work (`faults.work`): another one takes it over.
 */
import { ConfigError } from '../errors.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'
import { CORS_EXPOSE_HEADERS, type MonitorStatus } from '../protocol/wire.ts'

/** What a request asks for: to execute, to tell about a key (and the monitor of a 202), to void a key, or anything else. */
export type RequestKind = 'submit' | 'lookup' | 'void' | 'other'

/** What a fault can happen to: a request, or an execution of accepted work by a worker. */
export type FaultKind = RequestKind | 'work'

/** An answer that the server did not give by itself. */
export interface ScriptedAnswer {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array<ArrayBuffer> | null
}

/** How accepted work goes. */
export interface AcceptedScript {
  /** So many looks at the monitor find it processing. */
  readonly processing: number
  /** What the looks after that find; the last one stays. */
  readonly ends: readonly MonitorStatus[]
  readonly retryAfterSeconds: number
}

/** What happens where; a stage that is left out goes as always. In the order in which a request passes them. */
export interface Stages {
  /** The connection is never made. */
  readonly refused?: true
  /** On its way, ms: the server has not looked at the key yet. */
  readonly transitMs?: number
  /** The request ends here, and nothing was asked of the key. */
  readonly lost?: 'drop' | 'hang'
  /** Somebody answers instead of the server. */
  readonly instead?: ScriptedAnswer
  /** The real refusal for a key that another request holds. */
  readonly busy?: true
  /** What has become of the key by the time that the request arrives. */
  readonly key?: 'voided' | 'expired'
  /** What executing comes to. */
  readonly execution?:
    | { readonly kind: 'accepted'; readonly script: AcceptedScript }
    | { readonly kind: 'storedFailure' }
  /** How the database fails. */
  readonly store?: 'unavailable' | 'committed' | 'rolledBack'
  /** The key row commits without its answer, with the business change or without it. */
  readonly damage?: 'committed' | 'rolledBack'
  /** Before the commit, ms: other requests with the key wait. */
  readonly commitMs?: number
  /** After the commit, before the answer, ms. */
  readonly answerMs?: number
  /** How the answer gets lost. */
  readonly answer?: 'drop' | 'hang' | 'cut' | 'stall'
  /** Names of headers that do not reach the client. */
  readonly hidden?: readonly string[]
  /** What becomes of the worker that took the work. */
  readonly worker?:
    | { readonly kind: 'dies'; readonly afterCommits: number }
    | { readonly kind: 'sleeps'; readonly ms: number }
}

/** Something that goes wrong with one request, made by the functions of this module. */
export interface Fault {
  /** For the log. */
  readonly name: string
  /** How many requests (or executions) in a row it happens to. */
  readonly times: number
  /** What it can happen to. */
  readonly kinds: readonly FaultKind[]
  readonly stages: Stages
}

const requests: readonly RequestKind[] = ['submit', 'lookup', 'void', 'other']
const everyKind: readonly FaultKind[] = [...requests, 'work']
const made = new WeakSet<object>()

function fault(name: string, stages: Stages, kinds: readonly FaultKind[] = requests, times = 1): Fault {
  const result: Fault = Object.freeze({ name, times, kinds, stages: Object.freeze(stages) })
  made.add(result)
  return result
}

/** True for what the functions of this module made: a misspelt fault must not count as none. */
function isFault(value: unknown): value is Fault {
  return typeof value === 'object' && value !== null && made.has(value)
}

/** Nothing goes wrong: for the place in a script where a request, or an execution, is to succeed. */
export function noFault(): Fault {
  return fault('noFault', {}, everyKind)
}

/** The connection is never made (`ECONNREFUSED`): surely nothing was delivered. Through MSW it is an ordinary network error. */
export function refuseConnection(): Fault {
  return fault('refuseConnection', { refused: true })
}

/** The request is lost, or the server dies before its commit: a network error, and nothing was executed (F3, F4). */
export function dropBeforeCommit(): Fault {
  return fault('dropBeforeCommit', { lost: 'drop' })
}

/** The server executes and commits; the answer is lost: a network error, and the effect is there (F5). */
export function commitThenDrop(): Fault {
  return fault('commitThenDrop', { answer: 'drop' })
}

/** The server executes and commits; status, headers and half of the body arrive, then the connection breaks. */
export function cutBody(): Fault {
  return fault('cutBody', { answer: 'cut' })
}

/**
 * Lets time pass on the mock's clock.
 *
 * @param ms at most 2 ** 31 - 1.
 * @param where `transit`: on the way to the server, which has not seen the key yet (a late copy). `before` the commit:
 * the key is held, and other requests with it wait and are told "in progress". `after` the commit: the answer is late.
 * Default `before`.
 * @throws ConfigError for a time that no timer can wait.
 */
export function delay(ms: number, where: 'transit' | 'before' | 'after' = 'before'): Fault {
  if (!(ms >= 0 && ms <= MAX_TIMER_MS))
    throw new ConfigError('delay', `must be from 0 to ${MAX_TIMER_MS} ms, not ${ms}`)
  const stage = { transit: 'transitMs', before: 'commitMs', after: 'answerMs' } as const
  return fault(`delay ${ms} ${where}`, { [stage[where]]: ms })
}

/**
 * No answer ever; ends only when the client gives up or the mock is closed (B129).
 *
 * @param where `before` anything is executed, `after` the commit, or in the middle of the answer's `body`. Default `before`.
 */
export function hang(where: 'before' | 'after' | 'body' = 'before'): Fault {
  if (where === 'before') return fault('hang before', { lost: 'hang' })
  return fault(`hang ${where}`, { answer: where === 'after' ? 'hang' : 'stall' })
}

/**
 * An answer without execution, as gateways give.
 *
 * @param body text or bytes as they are; any other value as JSON. Default: none.
 * @throws ConfigError for a status that fetch cannot show.
 * @example
 * ```ts
 * import { createMockServer, status } from 'samekey/msw'
 *
 * const mock = createMockServer()
 * mock.faults.next(status(503, { 'Retry-After': '2' }), status(429))
 * ```
 */
export function status(code: number, headers: Readonly<Record<string, string>> = {}, body?: unknown): Fault {
  return fault(`status ${code}`, { instead: scripted(code, headers, body) })
}

/** A redirect without execution. `server.fetch` does not follow it: that is the client's. */
export function redirect(code: 301 | 302 | 303 | 307 | 308, location: string): Fault {
  return fault(`redirect ${code}`, { instead: scripted(code, { Location: location }, undefined) })
}

/** A foreign page with status 200: somebody else's sign-in page instead of the server. Nothing is executed. */
export function captivePortal(): Fault {
  const page = '<!doctype html><title>Sign in</title><p>Welcome to the lounge. Sign in to use the network.'
  return fault('captivePortal', { instead: scripted(200, { 'Content-Type': 'text/html' }, page) })
}

/** A document that is none: half of a JSON text, with status 200. For look-ups, monitors and voids. */
export function malformedMonitor(): Fault {
  const instead = scripted(200, { 'Content-Type': 'application/json' }, '{"id":"1","status":"succ')
  return fault('malformedMonitor', { instead }, ['lookup', 'void'])
}

/**
 * 409 "in progress", as if another request held the key; nothing is executed. `delay(ms, 'before')` makes another
 * request really hold it.
 *
 * @param times how many requests in a row. Default 1.
 */
export function inProgress(times = 1): Fault {
  if (!Number.isSafeInteger(times) || times < 1)
    throw new ConfigError('inProgress', 'must be told how often: 1 or more')
  return fault('inProgress', { busy: true }, ['submit', 'void'], times)
}

/** Somebody voided the key before: refused as voided, now and from now on. Where it was executed before, it is replayed. */
export function voided(): Fault {
  return fault('voided', { key: 'voided' }, ['submit'])
}

/** The key is older than the retention and its row is gone: refused as expired, now and from now on. */
export function expired(): Fault {
  return fault('expired', { key: 'expired' }, ['submit', 'lookup', 'void'])
}

/** Executing fails for good: a 500 is stored, and every repetition is its replay (F18). Nothing else is committed. */
export function storedFailure(): Fault {
  return fault('storedFailure', { execution: { kind: 'storedFailure' } }, ['submit'])
}

/** The key store is down: 503 `idempotency_unavailable`, and nothing was executed. */
export function unavailable(): Fault {
  return fault('unavailable', { store: 'unavailable' }, ['submit', 'lookup', 'void'])
}

/**
 * The database is lost while committing: a 503 that says that nobody knows (P61, F20).
 *
 * @param truth what the row will tell the next request.
 */
export function commitUnknown(truth: 'committed' | 'rolledBack'): Fault {
  return fault(`commitUnknown ${truth}`, { store: truth }, ['submit', 'void'])
}

/**
 * The key row commits without its answer, which must never be (F21); the client's connection breaks. Whoever asks from
 * now on gets 500 `idempotency_inconsistent`, and only a person can help. Where the key is known already, its answer is
 * lost and nothing is damaged.
 *
 * @param truth whether the business change was committed with the row. Nobody can tell from the outside.
 * @example
 * ```ts
 * import { createMockServer, damaged } from 'samekey/msw'
 *
 * const mock = createMockServer()
 * mock.faults.next(damaged('committed'))
 * ```
 */
export function damaged(truth: 'committed' | 'rolledBack'): Fault {
  return fault(`damaged ${truth}`, { damage: truth, answer: 'drop' }, ['submit'])
}

/**
 * A worker that takes the work and is never heard of again (F9): when its lease is over, the work is taken over with the
 * next epoch. For `faults.work`.
 *
 * @param options.afterCommits so many transactions of its own it still commits, renewals of its lease included, and dies
 * at the one after. 1 in a handler that calls another service: the call is written down and made, and what came of it
 * never is (H14). Default 0: it does nothing at all.
 * @throws ConfigError for a number that is none.
 * @example
 * ```ts
 * import { createMockServer, workerDies } from 'samekey/msw'
 * import { accepted, finish, json } from 'samekey/server'
 * import { virtualClock } from 'samekey/testing'
 *
 * const clock = virtualClock()
 * const mock = createMockServer({
 *   clock,
 *   operations: {
 *     'orders.create': {
 *       path: '/orders',
 *       execute: () => accepted({ work: { item: 'tea' } }),
 *       work: (task, { createOrder }) => finish((transaction) => json(200, createOrder(transaction, task.work))),
 *     },
 *   },
 * })
 *
 * mock.faults.work.next(workerDies())
 * await mock.fetch('/orders', { method: 'POST', headers: { 'idempotency-key': 'k-1' } }) // 202
 * await clock.advance(30_000) // the dead worker's lease is over, and another one does it
 * console.log(mock.effects.total) // 1
 * ```
 */
export function workerDies(options: { readonly afterCommits?: number } = {}): Fault {
  const { afterCommits = 0 } = options
  if (!Number.isSafeInteger(afterCommits) || afterCommits < 0) {
    throw new ConfigError('workerDies', `afterCommits must be a whole number of at least 0, not ${afterCommits}`)
  }
  return fault(`workerDies after ${afterCommits} commits`, { worker: { kind: 'dies', afterCommits } }, ['work'])
}

/**
 * A worker that takes the work and sleeps before it does any of it, renewals included; then it wakes up and goes on
 * (F10). When it has slept past its lease, somebody else has the work, and it writes nothing any more. For `faults.work`.
 *
 * @param ms at most 2 ** 31 - 1.
 * @throws ConfigError for a time that no timer can wait.
 * @example
 * ```ts
 * import { createMockServer, workerSleeps } from 'samekey/msw'
 *
 * const mock = createMockServer()
 * mock.faults.work.next(workerSleeps(60_000)) // twice the lease
 * ```
 */
export function workerSleeps(ms: number): Fault {
  if (!(ms >= 0 && ms <= MAX_TIMER_MS)) {
    throw new ConfigError('workerSleeps', `must be from 0 to ${MAX_TIMER_MS} ms, not ${ms}`)
  }
  return fault(`workerSleeps ${ms}`, { worker: { kind: 'sleeps', ms } }, ['work'])
}

/** Headers that the server sends and the client cannot see, as without CORS (P41). Default: all that need exposing. */
export function hideHeaders(...names: readonly string[]): Fault {
  return fault('hideHeaders', { hidden: names.length === 0 ? CORS_EXPOSE_HEADERS : names })
}

/** What may be said of {@link accepted} work. */
export interface AcceptedOptions {
  /** How many looks at the monitor find it still processing. Default 1. */
  readonly processing?: number
  /**
   * What the looks after that find, one after the other; the last one stays. `processing` leaves the end to
   * `server.complete` and `server.fail`. Default `succeeded`.
   */
  readonly ends?: MonitorStatus | readonly MonitorStatus[]
  /** Pace that the server asks for, whole seconds. Default 2. */
  readonly retryAfterSeconds?: number
}

/**
 * 202: the server accepts, and works later. The business change is made when a look at the monitor finds it succeeded.
 *
 * @example
 * ```ts
 * import { accepted, createMockServer } from 'samekey/msw'
 *
 * const mock = createMockServer()
 * mock.faults.next(accepted({ processing: 2, ends: ['failed_retryable', 'succeeded'] }))
 * ```
 */
export function accepted(options: AcceptedOptions = {}): Fault {
  const { processing = 1, retryAfterSeconds = 2 } = options
  const ends = [options.ends ?? 'succeeded'].flat()
  if (!(processing >= 0) || ends.length === 0) {
    throw new ConfigError('accepted', 'must be told how often it is processing (0 or more) and how it ends')
  }
  const script = { processing, ends, retryAfterSeconds }
  return fault(`accepted, ${ends.join(', ')}`, { execution: { kind: 'accepted', script } }, ['submit'])
}

/** A fault that is never used up. */
export function always(one: Fault): Fault {
  return fault(`always ${checked(one).name}`, one.stages, one.kinds, Number.POSITIVE_INFINITY)
}

/**
 * Several faults of one and the same request.
 *
 * @throws ConfigError for what cannot happen to one request: two things at one stage, or one after the request has ended.
 * @example
 * ```ts
 * import { accepted, commitThenDrop, createMockServer, together } from 'samekey/msw'
 *
 * const mock = createMockServer()
 * mock.faults.next(together(accepted(), commitThenDrop()))
 * ```
 */
export function together(...faults: readonly Fault[]): Fault {
  const name = faults.map((one) => checked(one).name).join(' + ')
  const stages: Record<string, unknown> = {}
  for (const one of faults) {
    if (one.times !== 1) throw new ConfigError('together', `${one.name} happens to more than one request`)
    for (const [stage, what] of Object.entries(one.stages)) {
      if (stage in stages) throw new ConfigError('together', `${name}: two things at one stage of one request`)
      stages[stage] = what
    }
  }
  const merged = stages as Stages
  const beyond = stagesAfterTheEnd(merged)
  if (beyond.length > 0) throw new ConfigError('together', `${name}: the request has ended before that`)
  const kinds = everyKind.filter((kind) => faults.every((one) => one.kinds.includes(kind)))
  if (kinds.length === 0) throw new ConfigError('together', `${name}: no request can have all of these`)
  return fault(name, merged, kinds)
}

/** @throws ConfigError for what this module has not made. */
export function checked(one: Fault): Fault {
  if (isFault(one)) return one
  throw new ConfigError('faults', `${JSON.stringify(one)} is not a fault; call the function: commitThenDrop()`)
}

const onTheServer = ['busy', 'key', 'execution', 'store', 'damage', 'commitMs'] as const
const onTheWayBack = ['answerMs', 'answer', 'hidden'] as const

/** Stages that a request does not reach. */
function stagesAfterTheEnd(stages: Stages): string[] {
  const { refused, lost, instead, busy, key, store } = stages
  const reached: (keyof Stages)[] = []
  if (refused) reached.push('transitMs', 'lost', 'instead', ...onTheServer, ...onTheWayBack)
  if (lost) reached.push('instead', ...onTheServer, ...onTheWayBack)
  if (instead) reached.push(...onTheServer)
  if (busy) reached.push('key', 'execution', 'store', 'damage', 'commitMs')
  if (key) reached.push('execution', 'store', 'damage')
  if (store === 'unavailable') reached.push('execution', 'damage', 'commitMs')
  return reached.filter((stage) => stages[stage] !== undefined)
}

function scripted(code: number, headers: Readonly<Record<string, string>>, body: unknown): ScriptedAnswer {
  if (!Number.isInteger(code) || code < 200 || code > 599) {
    throw new ConfigError('status', `must be from 200 to 599, not ${code}`)
  }
  const pairs = Object.entries(headers)
  if (body === undefined || body === null) return { status: code, headers: pairs, body: null }
  if (typeof body === 'string') return { status: code, headers: pairs, body: new TextEncoder().encode(body) }
  if (body instanceof Uint8Array) return { status: code, headers: pairs, body: new Uint8Array(body) }
  const typed = pairs.some(([name]) => name.toLowerCase() === 'content-type')
  if (!typed) pairs.push(['Content-Type', 'application/json'])
  return { status: code, headers: pairs, body: new TextEncoder().encode(JSON.stringify(body)) }
}
