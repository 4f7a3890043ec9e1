/**
 * The shell around the pure machine: one event in, one transition, its effects performed one at a time and in order.
 * Between any two of them the process may die; what is on disk is enough to go on from (P17, P20).
 */
import { StoreFailure } from '../errors.ts'
import type { BlobChange, IntentStore, Platform, StoredRow } from '../ports.ts'
import { backoffMs } from '../protocol/backoff.ts'
import { type EffectName, exchanges } from '../protocol/effects.ts'
import type { IntentEvent } from '../protocol/events.ts'
import type { Context } from '../protocol/guards.ts'
import { holdsLane, type IntentRecord } from '../protocol/record.ts'
import { isOpen, isSettled } from '../protocol/states.ts'
import { type Step, transition } from '../protocol/transition.ts'
import { clockSteppedBack, isWindowOpen } from '../protocol/window.ts'
import type { Announcer } from './announcer.ts'
import type { Attempts, Prepared } from './attempts.ts'
import type { CredentialDesk } from './credentials.ts'
import { isSetAside, keyOf, type Ledger, type Loaded } from './ledger.ts'
import { naming } from './naming.ts'
import type { Resolved } from './options.ts'
import type { Origins } from './origins.ts'
import type { Policies } from './policies.ts'
import type { ServerTime } from './server-time.ts'

/** Answer bodies are kept up to this size (P51). */
const storedAnswerBytes = 64 * 1024

/** How long a store that fails is asked to keep a proof, beyond the lease. */
const keepProofMs = 600_000

/** While the platform says offline, a due intent is tried once in so many ms all the same: the hint may be wrong (P33). */
const offlineProbeMs = 30_000

export interface RunnerParts {
  readonly options: Resolved
  readonly store: IntentStore
  readonly platform: Platform
  readonly ledger: Ledger
  readonly announcer: Announcer
  readonly desk: CredentialDesk
  readonly policies: Policies
  readonly origins: Origins
  readonly serverTime: ServerTime
  readonly attempts: Attempts
  /** The client stops: nothing is tried for longer. */
  readonly stopSignal: AbortSignal
  /** Puts a row off in memory: nothing was learnt that would be worth a write. */
  readonly defer: (key: string, ms: number) => void
  /** True when the row was put off before and has waited. */
  readonly hasWaited: (key: string) => boolean
}

export interface Runner {
  /** Works on a row that is due: the next try, poll or void, or a dead holder's leftovers. */
  work(row: StoredRow): Promise<void>
  /** Takes an event through the table. Null when the record is gone. */
  step(loaded: Loaded, event: IntentEvent, body?: Uint8Array | null): Promise<Loaded | null>
  /** The same, and what became of the event. */
  tryStep(loaded: Loaded, event: IntentEvent): Promise<Stepped>
  /** Asks the server by key now, whatever the record's state; returns the record afterwards. */
  lookup(loaded: Loaded): Promise<Loaded | null>
}

/**
 * What became of an event: `outdated` when the record had moved on, so that it was judged and stored no more;
 * `unprepared` when it leads to an exchange that was not prepared: then nothing was done.
 */
export interface Stepped {
  readonly was: 'taken' | 'not_for_this_state' | 'outdated' | 'unprepared'
  /** The record afterwards; null when it is gone. */
  readonly loaded: Loaded | null
}

export function createRunner(parts: RunnerParts): Runner {
  const { options, store, platform, ledger, announcer, desk, policies, origins, serverTime, attempts } = parts
  const { clock, ids, signals, transport } = platform

  /** The lane is asked about only where a rule does: an outcome must not hang on one more read of the store (P17). */
  async function contextOf(record: IntentRecord, event: IntentEvent): Promise<Context> {
    const asksLane = record.lane !== null && event.type === 'due'
    const head = asksLane ? await store.laneHead(options.name, record.lane.lane) : undefined
    return {
      times: timesOf(record),
      policy: policies.of(record),
      random: ids.random(),
      exact: !transport.repeats,
      laneFree: head === undefined || head.key === record.key || record.laneReleased,
      offline: !signals.online(),
    }
  }

  function timesOf({ request }: IntentRecord): Context['times'] {
    return { now: clock.now(), serverNow: serverTime.now(new URL(request.url).origin) }
  }

  async function step(loaded: Loaded, event: IntentEvent, body: Uint8Array | null = null): Promise<Loaded | null> {
    return (await advance(loaded, event, body)).loaded
  }

  async function advance(
    loaded: Loaded,
    event: IntentEvent,
    body: Uint8Array | null,
    prepared?: Prepared,
  ): Promise<Stepped> {
    const result = transition(loaded.record, event, await contextOf(loaded.record, event))
    if (result === null) return { was: 'not_for_this_state', loaded }
    const exchange = exchangeOf(result)
    if (exchange !== prepared?.effect && exchange !== undefined) return { was: 'unprepared', loaded }
    let current = loaded
    for (const effect of result.effects) {
      switch (effect) {
        case 'persist': {
          const { record, blobs } = withAnswerBody(loaded.record, result.record, body)
          const stored = await persist(loaded, record, blobs, {
            leased: exchange !== undefined,
            until: keptUntil(loaded, event),
          })
          if (stored === null) return { was: 'outdated', loaded: await adopt(loaded, event, body) }
          current = stored
          break
        }
        case 'announce':
          announce(loaded.record, current, event, body)
          break
        case 'send':
          return taken(prepared === undefined ? current : await send(current, prepared))
        case 'poll':
        case 'lookup':
        case 'void':
          return taken(prepared === undefined ? current : await inquire(current, effect, prepared))
        case 'remove':
          await store.remove(keyOf(loaded.row), { revision: loaded.row.revision })
          return taken(null)
      }
    }
    return taken(current)
  }

  function taken(loaded: Loaded | null): Stepped {
    return { was: 'taken', loaded }
  }

  /** Writes, and keeps trying for a while where there is something to be kept (P17). */
  async function persist(
    loaded: Loaded,
    record: IntentRecord,
    blobs: BlobChange,
    { leased, until }: { readonly leased: boolean; readonly until: number | null },
  ): Promise<Loaded | null> {
    const change = ledger.changeTo(record, leased)
    for (let tries = 1; ; tries++) {
      try {
        const row = await ledger.write(loaded, change, blobs)
        return row === null ? null : { row, record }
      } catch (error) {
        warnStore(record, error)
        if (!(error instanceof StoreFailure) || error.reason === 'closed') throw naming(error, factsOf(record))
        const landed = error.written === 'maybe' ? await ledger.landed(loaded, change) : null
        if (landed !== null) return { row: landed, record }
        if (parts.stopSignal.aborted || until === null || clock.now() >= until) throw naming(error, factsOf(record))
        await sleep(backoffMs({ baseMs: 200, capMs: 5000, minMs: 100 }, tries, ids.random()))
      }
    }
  }

  /** While the lease lasts; a proof beyond it, because whoever takes over may never hear it again (P42, P48). */
  function keptUntil({ row }: Loaded, event: IntentEvent): number | null {
    return isProof(event) ? (row.leaseUntil ?? clock.now()) + keepProofMs : row.leaseUntil
  }

  function sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void clock.timer(ms, resolve, true))
  }

  function warnStore(record: IntentRecord, error: unknown): void {
    announcer.warn({
      code: 'store_failed',
      message: 'The store could not keep a change.',
      intentId: record.id,
      key: record.key,
      error,
    })
  }

  function announce(before: IntentRecord, stored: Loaded, event: IntentEvent, body: Uint8Array | null): void {
    announcer.announce(before.state.name, stored, event.type, body)
    const { record } = stored
    const { name } = record.state
    const ends = name !== before.state.name && !isOpen(name)
    if (ends && record.lane?.kind === 'named' && holdsLane(record)) {
      const way = name === 'unknown' ? 'Settle it, or skip it' : 'Resume the lane, or skip the intent'
      announcer.warn({
        code: 'lane_stopped',
        message: `The lane stops behind ${record.id}, which is ${name}. ${way}.`,
        intentId: record.id,
        key: record.key,
      })
    }
  }

  /**
   * The record moved on under us: somebody took it over, or an own write was believed lost. A proof that we hold is
   * adopted all the same, if the record is still the same intent and less far on (P48, H39); anything else is dropped.
   */
  async function adopt(old: Loaded, event: IntentEvent, body: Uint8Array | null): Promise<Loaded | null> {
    for (;;) {
      const row = await store.byKey(keyOf(old.row))
      const found = row === undefined ? null : ledger.read(row)
      if (found === null || isSetAside(found)) return null
      const isSame = found.record.fingerprint.digest === old.record.fingerprint.digest
      const counts = isSame && isProof(event)
      const result = counts ? transition(found.record, event, await contextOf(found.record, event)) : null
      if (result === null) {
        announcer.relay(found)
        return found
      }
      // Not before: who waits here is told what the proof makes of it.
      const { record, blobs } = withAnswerBody(found.record, result.record, body)
      const stored = await persist(found, record, blobs, { leased: false, until: clock.now() + keepProofMs })
      if (stored === null) continue
      announce(found.record, stored, event, body)
      return stored
    }
  }

  /** The answer's bytes beside the record, within what may be kept (P51); request bytes go once settled (P52). */
  function withAnswerBody(
    before: IntentRecord,
    record: IntentRecord,
    body: Uint8Array | null,
  ): { record: IntentRecord; blobs: BlobChange } {
    const { answer } = record
    const purge: BlobChange = {
      ...(isSettled(record.state.name) && !isSettled(before.state.name) && { request: null }),
      ...(answer === null && before.answer?.body === 'stored' && { answer: null }),
    }
    if (answer === null || answer === before.answer || answer.body !== 'stored') return { record, blobs: purge }
    const keep = policies.operationOf(record.operation)?.storeAnswer !== false
    if (body !== null && keep && body.length <= storedAnswerBytes) return { record, blobs: { ...purge, answer: body } }
    const absence = body === null ? 'not_given' : keep ? 'too_large' : 'not_stored_by_choice'
    return { record: { ...record, answer: { ...answer, body: absence } }, blobs: { ...purge, answer: null } }
  }

  /** The last synchronous step: lease, scope, age and send-by once more, in the tick that calls fetch (P3, P35, P47). */
  function refusal(loaded: Loaded, prepared: Prepared, takesMs = options.attemptTimeoutMs): IntentEvent | null {
    const { record } = loaded
    const times = timesOf(record)
    const policy = policies.of(record)
    if (!prepared.leave.stillValid())
      return options.scope() === record.scope ? refused('auth_changed') : { type: 'scopeDiffers' }
    // An attempt that is aborted as it begins would be in doubt for nothing.
    if (parts.stopSignal.aborted) return refused('stopping')
    if (isOverslept(loaded, prepared, takesMs)) return refused('lease')
    // In doubt, the server's date may have told the age; else the mark itself must not be of a clock that was wrong.
    const isSafe = record.doubt === null ? !clockSteppedBack(record, times) : isWindowOpen(record, policy, times)
    if (!isSafe) return refused(record.doubt === null ? 'clock' : 'window')
    if (record.sendBefore !== null && times.now >= record.sendBefore) return refused('send_before')
    return null
  }

  /** Whoever slept since it prepared may have lost its lease, or will before the server has answered. */
  function isOverslept({ row }: Loaded, { preparedAt }: Prepared, takesMs = options.attemptTimeoutMs): boolean {
    const slept = clock.monotonic() - preparedAt > options.leaseMs - takesMs
    return slept || row.leaseUntil === null || clock.now() + takesMs > row.leaseUntil
  }

  function refused(detail: string): IntentEvent {
    return { type: 'notHandedOver', detail }
  }

  async function send(loaded: Loaded, prepared: Prepared): Promise<Loaded | null> {
    const { record } = loaded
    const no = refusal(loaded, prepared)
    if (no !== null) {
      prepared.pass.end()
      return step(loaded, no)
    }
    // Nothing may be awaited between the check above and the call of fetch inside.
    // For a redirect on the way; the attempt's own time limit is running already.
    const mayStill = (): boolean => refusal(loaded, prepared, 0) === null
    const { verdict, body } = await attempts.send(record, prepared, policies.of(record), timesOf(record), mayStill)
    // Refused with credentials that were renewed meanwhile: that says nothing about the new ones (P33).
    const isOld =
      verdict.type === 'needsCredentials' && !prepared.leave.stillValid() && options.scope() === record.scope
    return step(loaded, isOld ? { ...verdict, type: 'refusedWithoutEffect', retryAfterMs: null } : verdict, body)
  }

  async function inquire(loaded: Loaded, kind: 'poll' | 'lookup' | 'void', prepared: Prepared): Promise<Loaded | null> {
    const { record } = loaded
    if (isOverslept(loaded, prepared)) {
      prepared.pass.end()
      // If the lease is still ours, let it go: whoever looks next asks.
      return ledger.commit(loaded, record, false)
    }
    if (!prepared.leave.stillValid()) {
      prepared.pass.end()
      // The same person with other credentials: due again at once.
      if (options.scope() === record.scope) return ledger.commit(loaded, record, false)
      return step(loaded, { type: 'scopeDiffers' })
    }
    const mayStill = (): boolean => !isOverslept(loaded, prepared, 0) && prepared.leave.stillValid()
    const { event, body } = await attempts.inquire(record, kind, prepared, timesOf(record), mayStill)
    const after = await step(loaded, event, body)
    // An inquiry that changed nothing still holds its lease: let it go, so that the next try is not kept waiting.
    return after === loaded ? ledger.commit(loaded, record, false) : after
  }

  async function work(row: StoredRow): Promise<void> {
    const found = ledger.read(row)
    if (isSetAside(found) || !(await ledger.isFree(row))) return
    const { record } = found
    if (record.state.name === 'sending') {
      await step(found, { type: 'recovered' })
      return
    }
    // What is found due may be another exchange, or none, when it is prepared: the lane is free now, the age is known.
    while ((await tryDue(found)) === 'unprepared');
  }

  async function tryDue(found: Loaded): Promise<Stepped['was']> {
    const { record, row } = found
    const due: IntentEvent = { type: 'due' }
    if (!policies.of(record).operationKnown) {
      announcer.warnOnce(record.operation, {
        code: 'operation_unknown',
        message: `The operation ${record.operation} is not registered here, so its intents are parked. Add it to operations, or call register().`,
        intentId: record.id,
        key: record.key,
      })
    }
    const effect = exchangeOf(transition(record, due, await contextOf(record, due)))
    if (effect === undefined) return (await advance(found, due, null)).was
    const url = attempts.urlOf(record, effect === 'send' ? 'send' : effect === 'poll' ? 'poll' : 'lookup')
    if (!signals.online() && !parts.hasWaited(record.key)) {
      parts.defer(record.key, offlineProbeMs)
      return 'taken'
    }
    const pass = origins.enter(new URL(url).origin, { retry: record.attempts > 0, waited: parts.hasWaited(record.key) })
    if (typeof pass === 'number') {
      parts.defer(record.key, pass)
      return 'taken'
    }
    try {
      const leave = await desk.ask(record, url)
      if (!leave.granted) {
        // Not to be had in the moment of stopping says nothing about credentials: the next start asks again.
        if (!parts.stopSignal.aborted) await step(found, leave.event)
        return 'taken'
      }
      const body = effect === 'send' && record.request.hasBody ? await store.blob(keyOf(row), 'request') : undefined
      if (effect === 'send' && record.request.hasBody && body === undefined) {
        // Damage: sent without its body it would be another request under the same key (P23).
        announcer.warnOnce(record.key, {
          code: 'record_set_aside',
          message: `The request body of ${record.id} is missing in the store, so it is not sent. Resolve or abandon it.`,
          intentId: record.id,
          key: record.key,
        })
        return 'taken'
      }
      const prepared = { effect, leave, pass, body: body ?? null, preparedAt: clock.monotonic() }
      return (await advance(found, due, null, prepared)).was
    } finally {
      pass.end()
    }
  }

  async function lookup(loaded: Loaded): Promise<Loaded | null> {
    const url = attempts.urlOf(loaded.record, 'lookup')
    const leave = await desk.ask(loaded.record, url)
    if (!leave.granted || !leave.stillValid()) return loaded
    const pass = { end: () => {} }
    const prepared: Prepared = { effect: 'lookup', leave, pass, body: null, preparedAt: clock.monotonic() }
    const { event, body } = await attempts.inquire(
      loaded.record,
      'lookup',
      prepared,
      timesOf(loaded.record),
      leave.stillValid,
    )
    return step(loaded, event, body)
  }

  return { work, step, tryStep: (loaded, event) => advance(loaded, event, null), lookup }
}

function factsOf({ id, key }: IntentRecord): { intentId: string; key: string } {
  return { intentId: id, key }
}

function exchangeOf(result: Step | null): EffectName | undefined {
  return result?.effects.find((effect) => exchanges.has(effect))
}

/** An answer from behind the key: what it says stays true, whoever works on the record, and nothing else is adopted late (P48). */
function isProof(event: IntentEvent): boolean {
  if (event.type === 'refused') return event.proof
  return event.type === 'done' || event.type === 'doneIncomplete' || event.type === 'voided'
}
