/** A client without its way of building requests: everything from a submitted `Request` to its end. */
import { ConfigError } from '../errors.ts'
import type { IntentStore, Platform } from '../ports.ts'
import { createAnnouncer } from './announcer.ts'
import { answering } from './answered.ts'
import { createAttempts } from './attempts.ts'
import { createCredentialDesk } from './credentials.ts'
import { asIntentPromise, type IntentHandle, type IntentPromise } from './handle.ts'
import { createIntents, type Intents, type Lanes } from './intents.ts'
import { createLedger, isSetAside } from './ledger.ts'
import type { Observer } from './observer.ts'
import { checkOperation, type OperationOptions, type Resolved } from './options.ts'
import { createOrigins } from './origins.ts'
import { answerOrThrow, outcomeOf, stillOpen } from './outcome.ts'
import { createPolicies } from './policies.ts'
import { recover } from './recovery.ts'
import { createRunner, type Runner } from './runner.ts'
import { createSchedule, type Schedule } from './schedule.ts'
import { serverTime } from './server-time.ts'
import { createSubmitter, type IntentCall, type Submitted } from './submit.ts'
import { createTickets, type Ticket } from './tickets.ts'
import { createWaiting, type Ended, isEnd } from './waiting.ts'

/** How starts are spread when the network is back (P31). */
const onlineSpreadMs = 2000

/** What every kind of client offers besides sending. */
export interface ClientControl {
  /** Resolves once the store was read and what an earlier run left behind is under way. Rejects when the store cannot be used. */
  readonly ready: Promise<void>
  /** Starts, if `autoStart` is off; again and again is harmless (P21). */
  start(): Promise<void>
  /**
   * Stops cleanly: begins nothing more, gives attempts under way `graceMs` (default 5000, 5 seconds) to end, aborts the
   * rest (they are in doubt and go on with the next start), and closes what was opened. Nothing is lost.
   */
  stop(options?: { readonly graceMs?: number }): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
  /** Say it when somebody signed in or out, or a token changed: wakes what is blocked, and voids what `auth` gave (P3). */
  authChanged(): void
  /** Told of every stored change of state and every warning. Returns the unsubscriber. */
  subscribe(listener: Observer): () => void
  /** Registers an operation that is known only now: what was parked for it goes on (P24). */
  register(name: string, operation: OperationOptions): void
  readonly intents: Intents
  readonly lanes: Lanes
}

/** The engine of one client. */
export interface Engine extends ClientControl {
  readonly options: Resolved
  /** Submits a request. Scope and claim are fixed in this tick; a wrong call rejects. */
  submit(call: IntentCall, request: Request, headerKey: string | null, ticket?: Ticket): IntentPromise
  /** Claims a name now, for a submit that comes some ticks later. */
  ticket(intent: string): Ticket
}

export interface EngineParts {
  readonly options: Resolved
  readonly store: IntentStore
  readonly platform: Platform
  readonly autoStart: boolean
  /** True when the engine opened the store itself and closes it. */
  readonly ownsStore: boolean
}

export function createEngine({ options, store, platform, autoStart, ownsStore }: EngineParts): Engine {
  const { clock, signals, liveness } = platform
  const seat = `${store.location} ${options.name}`
  if (platform.liveClients.has(seat)) {
    throw new ConfigError(
      'name',
      `a client named "${options.name}" lives in this context on this store already; share it, or give this one another name (P4)`,
    )
  }
  platform.liveClients.add(seat)

  const channel = platform.channel(store.location)
  const stopping = new AbortController()
  const background = new Set<Promise<unknown>>()
  const announcer = createAnnouncer(options.name, options.observer, channel)
  const ledger = createLedger(store, platform, options.leaseMs)
  const policies = createPolicies(options)
  const times = serverTime(clock)
  const desk = createCredentialDesk(options, announcer)
  const attempts = createAttempts({
    options,
    platform,
    policies,
    serverTime: times,
    announcer,
    stopSignal: stopping.signal,
  })
  const runner: Runner = createRunner({
    options,
    store,
    platform,
    ledger,
    announcer,
    desk,
    policies,
    origins: createOrigins(options.pace, clock, platform.ids),
    serverTime: times,
    attempts,
    defer: (key, ms) => schedule.defer(key, ms),
    hasWaited: (key) => schedule.hasWaited(key),
  })
  const schedule: Schedule = createSchedule({
    options,
    store,
    platform,
    ledger,
    announcer,
    work: (row) => runner.work(row),
    recover: (scope) => recover(scope, { options, store, platform, ledger, announcer, runner }),
  })
  const waiting = createWaiting(store, platform, ledger, announcer, () => schedule.wake())
  const submitter = createSubmitter({
    options,
    store,
    platform,
    ledger,
    announcer,
    policies,
    started: start,
    work: (row) => schedule.start(row),
  })
  const { intents, lanes, acknowledge } = createIntents({
    options,
    store,
    platform,
    ledger,
    announcer,
    policies,
    runner,
    waiting,
    started: start,
    wake: () => schedule.wake(),
  })

  const takeTicket = createTickets({ scope: options.scope, now: () => clock.now(), monotonic: () => clock.monotonic() })

  /** Keys that this context saw blocked: a new submit wakes them (P33). Others wait for `authChanged` or the slow poll. */
  const blocked = new Set<string>()

  const unsubscribe = [
    announcer.subscribe((note) => {
      if (note.type !== 'state') return
      if (note.to === 'blocked') blocked.add(note.key)
      else blocked.delete(note.key)
    }),
    signals.onWake((why) => (why === 'online' ? schedule.release(onlineSpreadMs) : schedule.wake())),
    channel.onMessage(({ client, key }) => {
      if (client === options.name && announcer.watched().has(key)) schedule.wake()
    }),
  ]

  let starting: Promise<void> | null = null
  let stopped: Promise<void> | null = null

  function start(): Promise<void> {
    if (stopped !== null) return Promise.reject(new ConfigError('stop', 'this client was stopped; create a new one'))
    starting ??= (async () => {
      if (!store.durable) {
        announcer.warn({
          code: 'store_not_durable',
          message: `Intents are kept in ${store.kind}: they are gone with this process or page.`,
        })
      }
      // The first read shows whether the store can be used at all (B33).
      await store.nextDueAt(options.name, options.scope() ?? '')
      schedule.wake()
    })()
    const attempt = starting
    attempt.catch(() => {
      // A store that failed once may work later: the next call tries again.
      if (starting === attempt) starting = null
    })
    return attempt
  }

  function track<T>(promise: Promise<T>): Promise<T> {
    const tracked = promise.catch(() => {}).finally(() => background.delete(tracked))
    background.add(tracked)
    return promise
  }

  function submit(
    call: IntentCall,
    request: Request,
    headerKey: string | null,
    ticket: Ticket = takeTicket(call.intent),
  ): IntentPromise {
    const submitted: Promise<Submitted> =
      stopped === null
        ? track(submitter.submit(call, request, headerKey, ticket))
        : Promise.reject(
            new ConfigError('stop', 'this client was stopped; create a new one', { intentId: call.intent }),
          )
    const waitMs = call.waitMs ?? options.waitMs
    const signal = call.signal

    async function end(): Promise<Ended> {
      const { loaded } = await submitted
      const ended = await waiting.end(loaded, { waitMs, signal })
      // Delivered to a caller that awaits: taken note of (P22). It is not worth making the caller wait for.
      if (isEnd(ended.loaded.record)) track(acknowledge(ended.loaded)).catch(() => {})
      return ended
    }

    async function answer(): Promise<Response> {
      const { loaded, body } = await end()
      if (!isEnd(loaded.record)) throw stillOpen(loaded.record)
      const { id, key, state } = loaded.record
      return answering(answerOrThrow(loaded.record, body), { id, key, state: state.name })
    }

    const handle: IntentHandle = {
      id: call.intent,
      stored: submitted.then(({ stored }) => stored),
      async outcome() {
        const { loaded, body } = await end()
        return outcomeOf(loaded.record, body)
      },
    }
    ticket.used(handle, submitted)
    if (blocked.size > 0) track(submitted.then(wakeSeenBlocked)).catch(() => {})
    return asIntentPromise(answer(), handle)
  }

  async function wakeSeenBlocked(): Promise<void> {
    const scope = options.scope()
    if (scope === null) return
    for (const key of blocked) {
      const row = await store.byKey({ client: options.name, scope, key })
      // Without a time it waits for a person or its lane, which a submit does not change.
      if (row?.state === 'blocked' && row.dueAt !== null) schedule.start(row)
    }
  }

  async function wakeBlocked(): Promise<void> {
    const scope = options.scope()
    if (scope === null) return
    let afterSeq = 0
    for (;;) {
      const rows = await store.list(options.name, { scope, open: true, afterSeq, limit: 100 })
      for (const row of rows) {
        afterSeq = row.seq
        const found = ledger.read(row)
        const waits = row.state === 'blocked' || row.state === 'processing' || row.state === 'cancelling'
        if (waits && !isSetAside(found)) schedule.start(row)
      }
      if (rows.length < 100) return
    }
  }

  async function stop({ graceMs = 5000 }: { readonly graceMs?: number } = {}): Promise<void> {
    for (const end of unsubscribe) end()
    const timer = clock.timer(graceMs, () => stopping.abort(new DOMException('The client stops.', 'AbortError')), true)
    await schedule.stop()
    await Promise.allSettled(background)
    timer.cancel()
    channel.close()
    liveness.close()
    if (ownsStore) await store.close()
    platform.liveClients.delete(seat)
  }

  if (autoStart)
    track(start()).catch((error: unknown) =>
      announcer.warn({
        code: 'store_failed',
        message: 'The store cannot be used; nothing is resumed, and submits fail.',
        error,
      }),
    )

  return {
    options,
    get ready() {
      return start()
    },
    start,
    stop(stopOptions) {
      stopped ??= stop(stopOptions)
      return stopped
    },
    [Symbol.asyncDispose]() {
      return this.stop()
    },
    submit,
    ticket: takeTicket,
    authChanged() {
      desk.changed()
      schedule.wake()
      track(wakeBlocked()).catch(() => {})
    },
    subscribe: (listener) => announcer.subscribe(listener),
    register(name, operation) {
      checkOperation(name, operation)
      options.operations.set(name, operation)
      track(wakeBlocked()).catch(() => {})
    },
    intents,
    lanes,
  }
}
