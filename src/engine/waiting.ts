/** Waiting for an intent's end, in this context or another, for a time (P36, P46), and taking note of it (P22). */
import { StillOpenError } from '../errors.ts'
import type { Clock, IntentStore, Platform, RowKey, Timer } from '../ports.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'
import type { IntentRecord } from '../protocol/record.ts'
import { isSettled } from '../protocol/states.ts'
import type { Announcer } from './announcer.ts'
import { isSetAside, keyOf, type Ledger, type Loaded } from './ledger.ts'
import { stillOpen } from './outcome.ts'

/** How long an aborted submit may take to say what became of it, ms. */
const abortGraceMs = 1000

/** How an intent stands when the waiting is over. */
export interface Ended {
  readonly loaded: Loaded
  /** The answer's bytes, from this context or the store; null when they are nowhere. */
  readonly body: Uint8Array | null
}

export interface WaitOptions {
  readonly waitMs: number
  readonly signal: AbortSignal | undefined
}

export interface Waiting {
  /**
   * Resolves when the intent is settled or unknown, or when `waitMs` is over: look at the record's state.
   * Rejects with an `AbortError` that carries intent id and key when `signal` aborts: only the waiting ends.
   */
  end(loaded: Loaded, options: WaitOptions): Promise<Ended>
  /**
   * The same for a submit that is not stored yet: a hanging body or store must not hold its caller for longer. Settles
   * as `submitted` does; else with a `StillOpenError` or an `AbortError`, and the submit goes on (P18, P36).
   */
  within<T>(submitted: Promise<T>, intentId: string, options: WaitOptions): Promise<T>
  /** The client stops: all waiting ends, now and from now on, with what is known by then. */
  stop(): void
}

/** True when there is nothing to wait for any more by itself. */
export function isEnd({ state }: IntentRecord): boolean {
  return state.name === 'unknown' || isSettled(state.name)
}

export function createWaiting(
  store: IntentStore,
  platform: Platform,
  ledger: Ledger,
  announcer: Announcer,
  wake: () => void,
): Waiting {
  async function read(key: RowKey): Promise<Loaded | null> {
    const row = await store.byKey(key)
    const found = row === undefined ? null : ledger.read(row)
    return found === null || isSetAside(found) ? null : found
  }

  const open = new Set<() => void>()
  let stopped = false

  return {
    stop() {
      stopped = true
      for (const finish of [...open]) finish()
    },

    async within(submitted, intentId, { waitMs, signal }) {
      let fail: (error: Error) => void = () => {}
      const ended = new Promise<never>((_resolve, reject) => {
        fail = reject
      })
      ended.catch(() => {})
      const graces: Timer[] = []
      // The submit hears of the abort too, and knows better what is stored; it is given a moment to say so.
      const onAbort = (): void => {
        graces.push(platform.clock.timer(abortGraceMs, () => fail(abortError({ id: intentId }, signal?.reason)), true))
      }
      const timer = longTimer(platform.clock, waitMs, () => fail(notStoredYet(intentId)))
      if (signal?.aborted === true) onAbort()
      signal?.addEventListener('abort', onAbort, { once: true })
      try {
        return await Promise.race([submitted, ended])
      } finally {
        timer.cancel()
        for (const grace of graces) grace.cancel()
        signal?.removeEventListener('abort', onAbort)
      }
    },

    async end(start, { waitMs, signal }) {
      const key = keyOf(start.row)
      let latest = start
      let live: Uint8Array | null = null
      await new Promise<void>((resolve, reject) => {
        let done = false
        const finish = (error?: Error): void => {
          if (done) return
          done = true
          open.delete(stop)
          unwatch()
          timer.cancel()
          signal?.removeEventListener('abort', onAbort)
          if (error === undefined) resolve()
          else reject(error)
        }
        const onAbort = (): void => finish(abortError(latest.record, signal?.reason))
        const stop = (): void => finish()
        open.add(stop)
        // The timer comes before the watch: a watcher may be called at once.
        const timer = longTimer(platform.clock, waitMs, () => finish())
        const unwatch = announcer.watch(start.record.key, (loaded, body) => {
          if (loaded.row.revision >= latest.row.revision) latest = loaded
          if (body !== null && isEnd(loaded.record)) live = body
          if (isEnd(latest.record)) finish()
        })
        if (signal?.aborted === true) return onAbort()
        signal?.addEventListener('abort', onAbort, { once: true })
        // It may have ended between the caller's look and the watch.
        read(key).then(
          (found) => {
            if (found !== null && found.row.revision >= latest.row.revision) latest = found
            if (stopped || isEnd(latest.record)) finish()
            else wake()
          },
          () => (stopped ? finish() : wake()),
        )
      })
      const isStored = latest.record.answer?.body === 'stored'
      // The outcome is known: that its body cannot be read now must not hide it (P22).
      const stored = live === null && isStored ? await store.blob(key, 'answer').catch(() => undefined) : undefined
      return { loaded: latest, body: live ?? stored ?? null }
    },
  }
}

/** Waits for longer than one timer can, for ever too (B62). */
function longTimer(clock: Clock, ms: number, run: () => void): Timer {
  const part = Math.min(ms, MAX_TIMER_MS)
  const next = (): void => {
    if (ms > part) timer = longTimer(clock, ms - part, run)
    else run()
  }
  let timer = clock.timer(part, next, true)
  return { cancel: () => timer.cancel() }
}

/** What an abort may know of: the name, the key that was or would have been, the record. */
type Nameable = { readonly id: string } | { readonly id: string; readonly key: string | undefined } | IntentRecord

/** An `AbortError` as fetch gives it, with what is known (P13, P36). */
export function abortError(record: Nameable, reason: unknown): Error {
  const key = 'key' in record ? record.key : undefined
  const error = new DOMException(`The waiting was aborted. ${whatIsKnown(record)}`, 'AbortError')
  return Object.assign(error, { intentId: record.id, key, cause: reason })
}

function whatIsKnown(record: Nameable): string {
  if ('state' in record) return stillOpen(record).message
  if ('key' in record) return `"${record.id}" was not stored, and nothing was sent.`
  return `"${record.id}" may be stored yet; submit the same id again to join it.`
}

/** The waiting ended before the intent was stored (P18, P36). */
function notStoredYet(intentId: string): StillOpenError {
  return new StillOpenError(
    { state: 'queued', detail: 'not_stored', inDoubt: false },
    `"${intentId}" is not known to be stored yet: its body or the store takes too long. It may be stored, and may then be sent; submit the same id again to join it.`,
    { intentId },
  )
}
