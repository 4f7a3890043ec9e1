/** One delivery: hands a claimed message over, and writes down how it went. */
import { backoffMs } from '../../protocol/backoff.ts'
import { errorText } from '../error-text.ts'
import { CommitUnknownError, StoreUnavailableError } from '../errors.ts'
import { elapsedMs, type Moment } from '../tasks/moment.ts'
import { withinLimit } from '../tasks/time-limit.ts'
import { checkDelivered } from './deliver.ts'
import type { RelayEvent } from './events.ts'
import type { RelaySettings } from './options.ts'
import { delivered, failed, type OutboxRow, released } from './outbox-row.ts'
import type { Changed, ClaimedMessage, OutboxStore } from './store.ts'

/** A claimed message, and the moment just before it was claimed. */
export interface Delivery {
  readonly claimed: ClaimedMessage
  readonly since: Moment
}

/** Pace of trying to write down how a delivery went. */
const AGAIN = { baseMs: 200, capMs: 10_000, minMs: 50 }

/** What a try came to. */
type End =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly park: boolean }
  /** It was stopped, or never begun. */
  | { readonly kind: 'released' }

/**
 * Never rejects.
 *
 * @param over aborted when a stop does not wait any longer.
 */
export async function runDelivery(
  settings: RelaySettings,
  store: OutboxStore,
  delivery: Delivery,
  over: AbortSignal,
): Promise<'well' | 'trouble'> {
  const end = await tryIt(settings, delivery, over)
  return writeDown(settings, store, delivery, end, over)
}

/** Gives back what nobody has begun. Never rejects. */
export function giveBack(settings: RelaySettings, store: OutboxStore, delivery: Delivery): Promise<'well' | 'trouble'> {
  return writeDown(settings, store, delivery, { kind: 'released' }, AbortSignal.abort())
}

async function tryIt(
  { deliver, leaseMs, clock, retry }: RelaySettings,
  { claimed: { message, claimed }, since }: Delivery,
  over: AbortSignal,
): Promise<End> {
  // Whoever had it died each time before saying so: it may be the message that kills them.
  if (claimed.attempts > retry.maxAttempts) {
    return { kind: 'failed', error: new Error('No try came to an end.'), park: true }
  }
  const timeoutMs = leaseMs * 0.8 - elapsedMs(clock, since)
  // This process was frozen since the claim: somebody else may have it by now.
  if (timeoutMs <= 0 || over.aborted) return { kind: 'released' }
  const { attempts: attempt, epoch } = claimed
  const tried = await withinLimit(
    { clock, timeoutMs, signal: over },
    async (signal) => checkDelivered(await deliver(message, { signal, attempt, epoch })),
    () => {},
  )
  switch (tried.kind) {
    case 'ended':
      if (tried.value === null) return { kind: 'delivered' }
      return { kind: 'failed', error: new Error(tried.value.reason), park: true }
    case 'threw':
      return { kind: 'failed', error: tried.error, park: false }
    case 'timeUp':
      return { kind: 'failed', error: new Error('It took longer than four fifths of leaseMs.'), park: false }
    case 'lost':
      return { kind: 'released' }
  }
}

/**
 * Says it again and again while the database is away: whatever was delivered and is not marked is delivered twice.
 * Gives up where the database refuses what is said, or a stop does not wait any longer: then the lease ends, and some
 * relay takes the message again.
 */
async function writeDown(
  settings: RelaySettings,
  store: OutboxStore,
  { claimed }: Delivery,
  end: End,
  over: AbortSignal,
): Promise<'well' | 'trouble'> {
  const { report, random } = settings
  const { id, topic, aggregate } = claimed.message
  const attempt = claimed.claimed.attempts
  const tell = (kind: RelayEvent['kind'], detail: string, error?: unknown): void =>
    report({ kind, message: { id, topic, aggregate }, attempt, detail, error })

  for (let failures = 1; ; failures += 1) {
    const last = over.aborted
    try {
      const changed = await store.change(claimed, (row, now) => nextOf(settings, claimed, end, row, now))
      tellEnd(tell, changed, end)
      return 'well'
    } catch (error) {
      const passing = error instanceof StoreUnavailableError || error instanceof CommitUnknownError
      const what =
        end.kind === 'delivered' ? 'It was delivered, and that could not be written down' : 'Not written down'
      if (last || !passing) {
        tell('relayTrouble', `${what}: it comes again when its lease is over. ${errorText(error)}`, error)
        return 'trouble'
      }
      // Once: an outage need not fill the log.
      if (failures === 1) tell('relayTrouble', `${what} yet. ${errorText(error)}`, error)
    }
    await pause(settings, backoffMs(AGAIN, failures, random()), over)
  }
}

function nextOf(
  { retry, random }: RelaySettings,
  { claimed: { epoch } }: ClaimedMessage,
  end: End,
  row: OutboxRow,
  now: number,
): OutboxRow | null {
  switch (end.kind) {
    case 'delivered':
      return delivered(row, epoch, now)
    case 'released':
      return released(row, epoch, now)
    case 'failed':
      return failed(row, epoch, {
        now,
        random: random(),
        policy: retry,
        error: errorText(end.error),
        park: end.park,
      })
  }
}

function tellEnd(
  tell: (kind: RelayEvent['kind'], detail: string, error?: unknown) => void,
  changed: Changed,
  end: End,
): void {
  if (changed.kind === 'late') {
    if (end.kind === 'delivered') tell('deliveryLate', 'Somebody else had taken it by then: it is delivered twice.')
    return
  }
  if (end.kind !== 'failed') return
  const why = errorText(end.error)
  if (changed.row.state === 'parked')
    tell('messageParked', `It waits for a person, with its aggregate: ${why}`, end.error)
  else tell('deliveryFailed', `It comes again: ${why}`, end.error)
}

function pause({ clock }: RelaySettings, ms: number, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      timer.cancel()
      over.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.timer(ms, end, true)
    over.addEventListener('abort', end, { once: true })
    if (over.aborted) end()
  })
}
