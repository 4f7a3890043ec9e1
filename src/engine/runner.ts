/**
 * The shell around the pure machine: one event in, one transition, its effects performed one at a time and in order.
 * Between any two of them the process may die; what is on disk is enough to go on from (P17, P20).
 */
import { StoreFailure } from '../errors.ts'
import type { BlobChange, IntentStore, Platform, StoredRow } from '../ports.ts'
import { backoffMs } from '../protocol/backoff.ts'
import { exchanges } from '../protocol/effects.ts'
import type { IntentEvent } from '../protocol/events.ts'
import type { Context } from '../protocol/guards.ts'
import type { IntentRecord } from '../protocol/record.ts'
import { isSettled } from '../protocol/states.ts'
import { transition } from '../protocol/transition.ts'
import { isWindowOpen } from '../protocol/window.ts'
import type { Announcer } from './announcer.ts'
import type { Attempts, Prepared } from './attempts.ts'
import type { CredentialDesk } from './credentials.ts'
import { isSetAside, keyOf, type Ledger, type Loaded } from './ledger.ts'
import type { Resolved } from './options.ts'
import type { Origins } from './origins.ts'
import type { Policies } from './policies.ts'
import type { ServerTime } from './server-time.ts'

/** Answer bodies are kept up to this size (P51). */
export const storedAnswerBytes = 64 * 1024

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
  /** Asks the server by key now, whatever the record's state; returns the record afterwards. */
  lookup(loaded: Loaded): Promise<Loaded | null>
  /** What would happen: used to tell a person in advance. */
  context(record: IntentRecord): Promise<Context>
}

export function createRunner(parts: RunnerParts): Runner {
  const { options, store, platform, ledger, announcer, desk, policies, origins, serverTime, attempts } = parts
  const { clock, ids, signals, transport } = platform

  async function contextOf(record: IntentRecord): Promise<Context> {
    const head = record.lane === null ? undefined : await store.laneHead(options.name, record.lane.lane)
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

  async function step(
    loaded: Loaded,
    event: IntentEvent,
    body: Uint8Array | null = null,
    prepared?: Prepared,
  ): Promise<Loaded | null> {
    const result = transition(loaded.record, event, await contextOf(loaded.record))
    if (result === null) return loaded
    const leased = result.effects.some((effect) => exchanges.has(effect))
    let current = loaded
    for (const effect of result.effects) {
      switch (effect) {
        case 'persist': {
          const { record, blobs } = withAnswerBody(loaded.record, result.record, body)
          const stored = await persist(loaded, record, leased, blobs)
          if (stored === null) return adopt(loaded, event, body)
          current = stored
          break
        }
        case 'announce':
          announce(loaded.record, current, event, body)
          break
        case 'send':
          return prepared === undefined ? current : send(current, prepared)
        case 'poll':
        case 'lookup':
        case 'void':
          return prepared === undefined ? current : inquire(current, effect, prepared)
        case 'remove':
          await store.remove(keyOf(loaded.row), { revision: loaded.row.revision })
          return null
      }
    }
    return current
  }

  /** Writes, and keeps trying while the lease lasts when there is an outcome to be kept (P17). */
  async function persist(
    loaded: Loaded,
    record: IntentRecord,
    leased: boolean,
    blobs: BlobChange,
  ): Promise<Loaded | null> {
    for (let tries = 1; ; tries++) {
      try {
        return await ledger.commit(loaded, record, leased, blobs)
      } catch (error) {
        warnStore(record, error)
        const until = loaded.row.leaseUntil
        if (!(error instanceof StoreFailure) || error.reason === 'closed' || until === null || clock.now() >= until)
          throw error
        await sleep(backoffMs({ baseMs: 200, capMs: 5000, minMs: 100 }, tries, ids.random()))
      }
    }
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
    if (
      record.lane?.kind === 'named' &&
      isSettled(record.state.name) &&
      record.state.name !== 'succeeded' &&
      !record.laneReleased
    ) {
      announcer.warn({
        code: 'lane_stopped',
        message: `The lane stops behind ${record.id}: it ended ${record.state.name}. Resume the lane, or skip the intent.`,
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
      announcer.relay(found)
      if (!isLateProof(event) || found.record.fingerprint.digest !== old.record.fingerprint.digest) return found
      const result = transition(found.record, event, await contextOf(found.record))
      if (result === null) return found
      const { record, blobs } = withAnswerBody(found.record, result.record, body)
      const stored = await ledger.commit(found, record, false, blobs)
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
    const purge: BlobChange = isSettled(record.state.name) && !isSettled(before.state.name) ? { request: null } : {}
    const { answer } = record
    if (answer === null || answer === before.answer || answer.body !== 'stored') return { record, blobs: purge }
    const keep = policies.operationOf(record.operation)?.storeAnswer !== false
    if (body !== null && keep && body.length <= storedAnswerBytes) return { record, blobs: { ...purge, answer: body } }
    const absence = body === null ? 'not_given' : keep ? 'too_large' : 'not_stored_by_choice'
    return { record: { ...record, answer: { ...answer, body: absence } }, blobs: { ...purge, answer: null } }
  }

  /** The last synchronous step: lease, scope, age and send-by once more, in the tick that calls fetch (P3, P35, P47). */
  function refusal(loaded: Loaded, { leave, preparedAt }: Prepared): IntentEvent | null {
    const { record, row } = loaded
    const times = timesOf(record)
    const policy = policies.of(record)
    if (!leave.stillValid()) return { type: 'scopeDiffers' }
    const slept = clock.monotonic() - preparedAt > options.leaseMs - options.attemptTimeoutMs
    if (slept || row.leaseUntil === null || times.now + options.attemptTimeoutMs > row.leaseUntil)
      return refused('lease')
    if (times.now < record.seenAt) return refused('clock')
    if (record.doubt !== null && !isWindowOpen(record, policy, times)) return refused('window')
    if (record.sendBefore !== null && times.now >= record.sendBefore) return refused('send_before')
    return null
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
    const { verdict, body } = await attempts.send(record, prepared, policies.of(record), timesOf(record))
    return step(loaded, verdict, body)
  }

  async function inquire(loaded: Loaded, kind: 'poll' | 'lookup' | 'void', prepared: Prepared): Promise<Loaded | null> {
    const { record } = loaded
    if (!prepared.leave.stillValid()) {
      prepared.pass.end()
      return step(loaded, { type: 'scopeDiffers' })
    }
    const { event, body } = await attempts.inquire(record, kind, prepared, policies.of(record), timesOf(record))
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
    const preview = transition(record, { type: 'due' }, await contextOf(record))
    const effect = preview?.effects.find((name) => exchanges.has(name))
    if (effect === undefined) {
      await step(found, { type: 'due' })
      return
    }
    const url = attempts.urlOf(record, effect === 'send' ? 'send' : effect === 'poll' ? 'poll' : 'lookup')
    if (!signals.online() && !parts.hasWaited(record.key)) {
      parts.defer(record.key, offlineProbeMs)
      return
    }
    const pass = origins.enter(new URL(url).origin, { retry: record.attempts > 0, waited: parts.hasWaited(record.key) })
    if (typeof pass === 'number') {
      parts.defer(record.key, pass)
      return
    }
    try {
      const leave = await desk.ask(record, url)
      if (!leave.granted) {
        await step(found, leave.event)
        return
      }
      const body = effect === 'send' && record.request.hasBody ? await store.blob(keyOf(row), 'request') : undefined
      if (effect === 'send' && record.request.hasBody && body === undefined)
        throw new Error('The stored request body is missing.')
      await step(found, { type: 'due' }, null, { leave, pass, body: body ?? null, preparedAt: clock.monotonic() })
    } finally {
      pass.end()
    }
  }

  async function lookup(loaded: Loaded): Promise<Loaded | null> {
    const url = attempts.urlOf(loaded.record, 'lookup')
    const leave = await desk.ask(loaded.record, url)
    if (!leave.granted) return loaded
    const pass = { end: () => {} }
    const prepared: Prepared = { leave, pass, body: null, preparedAt: clock.monotonic() }
    const { event, body } = await attempts.inquire(
      loaded.record,
      'lookup',
      prepared,
      policies.of(loaded.record),
      timesOf(loaded.record),
    )
    return step(loaded, event, body)
  }

  return { work, step, lookup, context: contextOf }
}

/** What may be adopted from an attempt whose lease was lost: answers from behind the key, nothing else (P48). */
function isLateProof(event: IntentEvent): boolean {
  return event.type === 'done' || event.type === 'voided' || (event.type === 'refused' && event.proof)
}
