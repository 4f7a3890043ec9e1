/**
 * When to look at the store: at start, when something was submitted, when a row falls due, when the platform hints. One
 * pass at a time, however many triggers come (P21, B42, B43); after every pass something is armed to look again (P33).
 */
import type { IntentStore, Platform, StoredRow, Timer } from '../ports.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'
import { toleratedStepMs } from '../protocol/window.ts'
import type { Announcer } from './announcer.ts'
import { isSetAside, type Ledger, type Loaded } from './ledger.ts'
import type { Resolved } from './options.ts'

/** How often rows that somebody here waits for are read again, for stores that no channel reaches (P46). */
const watchMs = 1000
/** The longest sleep: hints get lost, clocks jump, and users switch without a word (P33). */
const longestSleepMs = 60_000
/** The wait after a look at the store or work on a row that failed; doubled with each that fails again. */
const afterFailureMs = 1000

export interface Schedule {
  /** Looks as soon as possible. */
  wake(): void
  /** Works on this row ahead of its time: now, or after `ms`. */
  start(row: StoredRow, ms?: number): void
  /** Reads one row of this scope and tells who waits for it, and the listeners: another context says that it changed (P46). */
  look(key: string): void
  /** Puts a row off, in memory. */
  defer(key: string, ms: number): void
  /** True when the row had been put off. */
  hasWaited(key: string): boolean
  /** Forgets what was put off: the platform says that things changed. Each gets its own small delay, so that not all start at once. */
  release(spreadMs: number): void
  /** Ends: no pass begins any more; resolves when the running ones are through. */
  stop(): Promise<void>
}

export interface ScheduleParts {
  readonly options: Resolved
  readonly store: IntentStore
  readonly platform: Platform
  readonly ledger: Ledger
  readonly announcer: Announcer
  readonly work: (row: StoredRow) => Promise<void>
  /** Recovery: called once for each scope before its first pass (P21), and again when the wall clock stepped back (P35). */
  readonly recover: (scope: string, isActive: (key: string) => boolean) => Promise<void>
  /** The same for everybody: called when the wall clock was set back (P35). */
  readonly recoverFromStep: (isActive: (key: string) => boolean) => Promise<void>
}

export function createSchedule({
  options,
  store,
  platform,
  ledger,
  announcer,
  work,
  recover,
  recoverFromStep,
}: ScheduleParts): Schedule {
  const { clock, ids } = platform
  const active = new Map<string, Promise<void>>()
  const deferred = new Map<string, number>()
  const waited = new Set<string>()
  /** To be worked on ahead of their time, until work on them began. */
  const asked = new Map<string, StoredRow>()
  /** Asked for while work on them was under way. */
  const askedMeanwhile = new Set<string>()
  /** Due by the last look, the longest due at the end; they wait for a place. */
  let backlog: StoredRow[] = []
  /** Revision at which work on a row ended. */
  const fruitless = new Map<string, number>()
  /** How often in a row work on a row failed. */
  const failed = new Map<string, number>()
  const recovered = new Set<string>()
  /** Keys of which another context said that they changed, until they are looked at. */
  const looking = new Set<string>()
  let timer: Timer | null = null
  /** Monotonic ms at which `timer` runs. */
  let armedUntil = 0
  let passing: Promise<void> | null = null
  let again = false
  /** By the last look. */
  let nextDueAt: number | null = null
  let failures = 0
  let lookedAt = Number.NEGATIVE_INFINITY
  let clockOffset = clock.now() - clock.monotonic()
  /** The clock was set back, and what that means for the records is not written down yet. */
  let isSetBack = false
  let stopped = false

  function wake(): void {
    if (stopped) return
    if (passing !== null) {
      again = true
      return
    }
    timer?.cancel()
    passing = pass()
      .catch((error: unknown) => {
        announcer.warn({ code: 'store_failed', message: 'The store could not be read; it is tried again.', error })
        return Math.min(afterFailureMs * 2 ** failures++, longestSleepMs)
      })
      .then((sleepMs) => {
        passing = null
        if (again) {
          again = false
          wake()
        } else arm(sleepMs)
      })
  }

  function arm(ms: number): void {
    timer?.cancel()
    if (stopped) return
    const waiting = announcer.watched().size > 0
    const sleepMs = Math.min(Math.max(ms, 1), MAX_TIMER_MS)
    armedUntil = clock.monotonic() + sleepMs
    timer = clock.timer(sleepMs, wake, waiting)
  }

  /** One look at the store; resolves with the ms until the next. */
  async function pass(): Promise<number> {
    const scope = options.scope()
    if (scope === null) return longestSleepMs
    if (clockSteppedBack()) isSetBack = true
    if (isSetBack) {
      await recoverFromStep((key) => active.has(key))
      recovered.clear()
      isSetBack = false
    }
    if (!recovered.has(scope)) {
      await recover(scope, (key) => active.has(key))
      recovered.add(scope)
    }
    await lookAtWatched(scope)
    const now = clock.now()
    for (const [key, until] of deferred) if (until <= clock.monotonic()) ended(key)
    startAsked()
    // What was put off stands first and is read again each time: read as much beyond it.
    const limit = active.size + 2 * deferred.size + options.retry.concurrency
    backlog = [...(await store.due(options.name, scope, now, limit))].reverse()
    const dueKeys = new Set(backlog.map(({ key }) => key))
    for (const key of fruitless.keys()) if (!dueKeys.has(key)) fruitless.delete(key)
    startBacklog()
    nextDueAt = await store.nextDueAt(options.name, scope, now)
    failures = 0
    return sleepUntil(nextDueAt, now)
  }

  /** By so much that times on disk may lie far ahead now. Small corrections are within what a window leaves for transit. */
  function clockSteppedBack(): boolean {
    const offset = clock.now() - clock.monotonic()
    const stepped = offset < clockOffset - toleratedStepMs
    clockOffset = stepped ? offset : Math.max(offset, clockOffset)
    return stepped
  }

  function ended(key: string): void {
    deferred.delete(key)
    waited.add(key)
    fruitless.delete(key)
  }

  /** What is due already is being worked on or was put off: the end of that wakes us. */
  function sleepUntil(dueAt: number | null, now: number): number {
    let sleepMs = longestSleepMs
    for (const until of deferred.values()) sleepMs = Math.min(sleepMs, until - clock.monotonic())
    // A look reads what was put off too: the more that is, the less often.
    sleepMs = Math.max(sleepMs, 5 * deferred.size)
    if (announcer.watched().size > 0) sleepMs = Math.min(sleepMs, watchEveryMs())
    return dueAt === null ? sleepMs : Math.min(sleepMs, dueAt - now)
  }

  /** What other contexts did to the rows that somebody here waits for: once in a while, however often we are woken. */
  async function lookAtWatched(scope: string): Promise<void> {
    if (clock.monotonic() - lookedAt < watchEveryMs()) return
    lookedAt = clock.monotonic()
    for (const key of announcer.watched().keys()) if (!active.has(key)) await lookAt(scope, key)
  }

  /** The more rows are waited for, the less often all of them are read. */
  function watchEveryMs(): number {
    return Math.max(watchMs, 10 * announcer.watched().size)
  }

  async function lookAt(scope: string, key: string): Promise<void> {
    const found = await read(scope, key)
    if (found !== null) announcer.relay(found)
  }

  async function lookElsewhere(scope: string, key: string): Promise<void> {
    // In a later tick, in which all that was said in this one has been heard.
    await Promise.resolve()
    looking.delete(key)
    const found = await read(scope, key)
    if (found !== null) announcer.elsewhere(found)
  }

  async function read(scope: string, key: string): Promise<Loaded | null> {
    const row = await store.byKey({ client: options.name, scope, key })
    const found = row === undefined ? null : ledger.read(row)
    return found === null || isSetAside(found) ? null : found
  }

  /** Ahead of what a pass would pick, but never more at once than is allowed (B68). */
  function startAsked(): void {
    for (const row of asked.values()) {
      if (stopped || active.size >= options.retry.concurrency) return
      if (!active.has(placeOf(row)) && !deferred.has(row.key)) run(row)
    }
  }

  /** True when it began some. */
  function startBacklog(): boolean {
    const before = active.size
    while (!stopped && active.size < options.retry.concurrency) {
      const row = backlog.pop()
      if (row === undefined) break
      if (active.has(placeOf(row)) || deferred.has(row.key)) continue
      // Worked on before, and nothing came of it: a record that cannot be read, say. It must not be a busy loop.
      if (fruitless.get(row.key) === row.revision) defer(row.key, longestSleepMs)
      else run(row)
    }
    return active.size > before
  }

  /** One thing at a time for each intent, except that a void does not wait for the attempt that it shall forestall (P44). */
  function placeOf({ key, state }: StoredRow): string {
    return state === 'cancelling' ? `${key} void` : key
  }

  function run(row: StoredRow): void {
    const running = work(row)
      .then(
        () => {
          fruitless.set(row.key, row.revision)
          failed.delete(row.key)
        },
        (error: unknown) => {
          // The store failed, or a bug: either way nothing was decided, and the row is looked at again.
          announcer.warn({
            code: 'store_failed',
            message: 'Working on an intent failed; it is tried again.',
            intentId: row.id,
            key: row.key,
            error,
          })
          const failures = failed.get(row.key) ?? 0
          failed.set(row.key, failures + 1)
          defer(row.key, Math.min(afterFailureMs * 2 ** failures, longestSleepMs))
        },
      )
      .then(() => {
        active.delete(placeOf(row))
        const wasPutOff = deferred.has(row.key)
        if (!wasPutOff) {
          waited.delete(row.key)
          asked.delete(row.key)
        }
        if (askedMeanwhile.delete(row.key)) void startAgain(row).catch(() => {})
        startAsked()
        // Where nothing was done, nothing new is due: the next of those that are has its place.
        if (!wasPutOff) wake()
        else if (!startBacklog() && passing === null) arm(sleepUntil(nextDueAt, clock.now()))
      })
    active.set(placeOf(row), running)
  }

  function start(row: StoredRow, ms = 0): void {
    if (stopped) return
    if (active.has(placeOf(row))) {
      // What is under way now began before this was asked for: it is looked at again when it ends.
      askedMeanwhile.add(row.key)
      return
    }
    asked.set(row.key, row)
    deferred.delete(row.key)
    if (ms === 0) startAsked()
    else {
      defer(row.key, ms)
      wake()
    }
  }

  /** As it stands now, if it is held back by what may have changed meanwhile (P33). */
  async function startAgain({ client, scope, key }: StoredRow): Promise<void> {
    const row = await store.byKey({ client, scope, key })
    if (stopped || row?.state !== 'blocked' || row.dueAt === null || active.has(placeOf(row))) return
    start(row)
  }

  function defer(key: string, ms: number): void {
    deferred.set(key, clock.monotonic() + ms)
  }

  return {
    wake,
    start,
    look(key) {
      // Should its holder die, somebody has to look when the lease is over that it may have taken now (P49).
      if (timer !== null && passing === null && armedUntil > clock.monotonic() + options.leaseMs) arm(options.leaseMs)
      const scope = options.scope()
      if (scope === null || stopped || !announcer.isHeard(key)) return
      const isKnown = looking.has(key)
      looking.add(key)
      // Many changes in a moment are one look; what cannot be read now is read with the others, a little later.
      if (!isKnown) lookElsewhere(scope, key).catch(() => {})
    },
    defer,
    hasWaited: (key) => waited.has(key),
    release(spreadMs) {
      for (const key of deferred.keys()) defer(key, ids.random() * spreadMs)
      wake()
    },
    async stop() {
      stopped = true
      timer?.cancel()
      await passing
      await Promise.all(active.values())
    },
  }
}
