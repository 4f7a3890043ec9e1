/** A client without its way of building requests: everything from a submitted `Request` to its end. */
import { ConfigError } from '../errors.ts'
import type { IntentStore, Platform } from '../ports.ts'
import type { EventName } from '../protocol/events.ts'
import { type IntentRecord, wasHeldBack, wasUnheard } from '../protocol/record.ts'
import type { StateName } from '../protocol/states.ts'
import { adviceOn } from './advice.ts'
import { createAnnouncer } from './announcer.ts'
import { answering } from './answered.ts'
import { appAsker } from './app-code.ts'
import { createAttempts } from './attempts.ts'
import type { IntentCall } from './call.ts'
import { createCredentialDesk } from './credentials.ts'
import { asIntentPromise, type IntentHandle, type IntentPromise } from './handle.ts'
import { createIntents, type Intents, type Lanes } from './intents.ts'
import { createLedger, isSetAside, type Loaded } from './ledger.ts'
import type { Observer } from './observer.ts'
import { checkOperation, type OperationOptions, type Resolved } from './options.ts'
import { createOrigins } from './origins.ts'
import { answerOrThrow, outcomeOf, stillOpen } from './outcome.ts'
import { createPolicies } from './policies.ts'
import { type RecoveryParts, recover, recoverFromStep } from './recovery.ts'
import { createRunner, type Runner } from './runner.ts'
import { createSchedule, type Schedule } from './schedule.ts'
import { serverTime } from './server-time.ts'
import { createSubmitter, type Given, type Submitted } from './submit.ts'
import { createTickets, type Ticket } from './tickets.ts'
import { createWaiting, type Ended, isEnd } from './waiting.ts'

/** How starts are spread when the network is back (P31). */
const onlineSpreadMs = 2000

/** Where intents are held back by something that has to change. */
const parked: readonly StateName[] = ['blocked', 'processing', 'cancelling']

/** Answers that nobody gets without credentials. */
const pastCredentials: ReadonlySet<string> = new Set<EventName>([
  'done',
  'doneIncomplete',
  'accepted',
  'inProgress',
  'conflict',
  'expired',
  'voided',
  'storedFailure',
  'refused',
])

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
  /**
   * Told of every warning, and of every stored change to the intents of whoever is signed in, those of other tabs
   * included where a channel reaches them. Returns the unsubscriber.
   */
  subscribe(listener: Observer): () => void
  /** Registers an operation that is known only now: what was parked for it goes on (P24). */
  register(name: string, operation: OperationOptions): void
  /** The intents of whoever is signed in: to list, await and settle (P45). */
  readonly intents: Intents
  /** Ordered lanes: to go on past a head that did not succeed (P34). */
  readonly lanes: Lanes
}

/** The engine of one client. */
export interface Engine extends ClientControl {
  readonly options: Resolved
  /** Submits a request. Scope and claim are fixed in this tick; a wrong call rejects. */
  submit(call: IntentCall, given: Given, ticket?: Ticket): IntentPromise
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
  const { name: client, observer, scope } = options
  const announcer = createAnnouncer({ client, observer, channel, scope })
  const ledger = createLedger(store, platform, options.leaseMs)
  const policies = createPolicies(options)
  const times = serverTime(clock)
  const askApp = appAsker(clock, stopping.signal)
  const desk = createCredentialDesk(options, announcer, askApp)
  const attempts = createAttempts({
    options,
    platform,
    policies,
    serverTime: times,
    announcer,
    askApp,
    stopSignal: stopping.signal,
  })
  // After an outage, whoever was put off follows, spread out (P31).
  const origins = createOrigins(options.pace, clock, platform.ids, () => schedule.release(options.pace.spreadMs))
  const runner: Runner = createRunner({
    options,
    store,
    platform,
    ledger,
    announcer,
    desk,
    policies,
    origins,
    serverTime: times,
    attempts,
    stopSignal: stopping.signal,
    defer: (key, ms) => schedule.defer(key, ms),
    hasWaited: (key) => schedule.hasWaited(key),
  })
  const recovery: RecoveryParts = { options, store, platform, ledger, announcer, runner }
  const schedule: Schedule = createSchedule({
    options,
    store,
    platform,
    ledger,
    announcer,
    work: (row) => runner.work(row),
    recover: (scope, isActive) => recover(scope, isActive, recovery),
    recoverFromStep: (isActive) => recoverFromStep(isActive, recovery),
  })
  const waiting = createWaiting(store, platform, ledger, announcer, () => schedule.wake())
  const submitter = createSubmitter({
    options,
    store,
    platform,
    ledger,
    announcer,
    policies,
    started: begin,
    stopSignal: stopping.signal,
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
    askApp,
    started: start,
    track,
    wake: () => schedule.wake(),
  })

  const takeTicket = createTickets({ scope: options.scope, now: () => clock.now(), monotonic: () => clock.monotonic() })

  /** Keys that this context saw held back for want of credentials. Others wait for `authChanged` or the slow poll. */
  const heldBack = new Set<string>()

  announcer.follow((note) => {
    if (note.type !== 'state') return
    if (note.to === 'blocked' && note.because !== 'due') heldBack.add(note.key)
    else heldBack.delete(note.key)
    // A new submit wakes what is blocked (P33): once its own attempt shows that credentials are good, not before, or
    // each submit would send everything for nothing.
    if (note.from === 'sending' && pastCredentials.has(note.because) && heldBack.size > 0)
      track(wakeHeldBack()).catch(() => {})
  })

  const unsubscribe = [
    signals.onWake((why) => {
      if (why === 'visible') return schedule.wake()
      origins.forgive()
      schedule.release(onlineSpreadMs)
      wakeOpen(['waiting'], wasUnheard, onlineSpreadMs)
    }),
    channel.onMessage(({ client, key }) => {
      if (client === options.name) schedule.look(key)
    }),
  ]

  let starting: Promise<void> | null = null
  let stopped: Promise<void> | null = null
  let closed = false

  function start(): Promise<void> {
    return stopped === null ? begin() : Promise.reject(wasStopped())
  }

  function wasStopped(intentId?: string): ConfigError {
    return new ConfigError('stop', 'this client was stopped; create a new one', { intentId })
  }

  /** Also for what was called before the stop and goes on: a submit on its way into the store is stored. */
  function begin(): Promise<void> {
    starting ??= (async () => {
      for (const warning of adviceOn(options)) announcer.warnOnce(warning.message, warning)
      if (!store.durable) {
        announcer.warn({
          code: 'store_not_durable',
          message: `Intents are kept in ${store.kind}: they are gone with this process or page.`,
        })
      }
      try {
        // The first read shows whether the store can be used at all (B33).
        await store.nextDueAt(options.name, options.scope() ?? '')
      } finally {
        // If not now, then later: somebody keeps looking (P33).
        schedule.wake()
      }
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

  function submit(call: IntentCall, given: Given, claimed?: Ticket): IntentPromise {
    const ticket = claimed ?? takeTicket(call.intent)
    const submitted: Promise<Submitted> =
      stopped === null ? track(submitter.submit(call, given, ticket)) : Promise.reject(wasStopped(call.intent))
    const waitMs = call.waitMs ?? options.waitMs
    const signal = call.signal

    const end = (): Promise<Ended> => track(ended())

    async function ended(): Promise<Ended> {
      const startedAt = clock.monotonic()
      const { loaded } = await waiting.within(submitted, call.intent, { waitMs, signal })
      return waiting.end(loaded, { waitMs: Math.max(0, waitMs - (clock.monotonic() - startedAt)), signal })
    }

    /** Delivered to a caller that awaits: taken note of (P22). It is not worth making the caller wait for. */
    function delivered(loaded: Loaded): void {
      if (!closed && isEnd(loaded.record)) track(acknowledge(loaded)).catch(() => {})
    }

    async function answer(): Promise<Response> {
      const { loaded, body } = await end()
      void ticket.wasTaken.then(() => delivered(loaded))
      if (!isEnd(loaded.record)) throw stillOpen(loaded.record)
      const { id, key, state } = loaded.record
      return answering(answerOrThrow(loaded.record, body), { id, key, state: state.name })
    }

    const handle: IntentHandle = {
      id: call.intent,
      stored: submitted.then(({ stored }) => stored),
      async outcome() {
        const { loaded, body } = await end()
        delivered(loaded)
        return outcomeOf(loaded.record, body)
      },
    }
    ticket.used(handle, submitted)
    // A layer above awaits every answer; it says itself whether its own caller does.
    return asIntentPromise(answer(), handle, claimed === undefined ? ticket.take : undefined)
  }

  async function wakeHeldBack(): Promise<void> {
    const scope = options.scope()
    if (scope === null) return
    for (const key of heldBack) {
      const row = await store.byKey({ client: options.name, scope, key })
      if (row?.state === 'blocked') schedule.start(row)
    }
  }

  /** Starts what is in one of these states and `wants` it, ahead of its time. A store that fails now is looked at later anyway. */
  function wakeOpen(states: readonly StateName[], wants: (record: IntentRecord) => boolean, spreadMs = 0): void {
    if (stopped === null) track(startOpen(states, wants, spreadMs)).catch(() => {})
  }

  async function startOpen(
    states: readonly StateName[],
    wants: (record: IntentRecord) => boolean,
    spreadMs: number,
  ): Promise<void> {
    const scope = options.scope()
    if (scope === null) return
    let afterSeq = 0
    for (;;) {
      const rows = await store.list(options.name, { scope, states, afterSeq, limit: 100 })
      for (const row of rows) {
        afterSeq = row.seq
        const found = ledger.read(row)
        if (!isSetAside(found) && wants(found.record)) schedule.start(row, platform.ids.random() * spreadMs)
      }
      if (rows.length < 100) return
    }
  }

  async function stop({ graceMs = 5000 }: { readonly graceMs?: number } = {}): Promise<void> {
    for (const end of unsubscribe) end()
    const timer = clock.timer(graceMs, () => stopping.abort(new DOMException('The client stops.', 'AbortError')), true)
    await schedule.stop()
    waiting.stop()
    // What ends may begin its last step: taking note of an outcome that was delivered, say.
    while (background.size > 0) await Promise.allSettled(background)
    closed = true
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
      wakeOpen(parked, wasHeldBack)
    },
    subscribe: (listener) => announcer.subscribe(listener),
    register(name, operation) {
      checkOperation(name, operation)
      const isNew = !options.operations.has(name)
      options.operations.set(name, operation)
      if (isNew) wakeOpen(parked, (record) => record.operation === name)
    },
    intents,
    lanes,
  }
}

/** What an engine offers to the app, without its inner doors. */
export function controlOf(engine: Engine): ClientControl {
  return {
    get ready() {
      return engine.ready
    },
    start: () => engine.start(),
    stop: (options) => engine.stop(options),
    [Symbol.asyncDispose]: () => engine.stop(),
    authChanged: () => engine.authChanged(),
    subscribe: (listener) => engine.subscribe(listener),
    register: (name, operation) => engine.register(name, operation),
    intents: engine.intents,
    lanes: engine.lanes,
  }
}
