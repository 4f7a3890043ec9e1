/** Time that tests own: nothing happens until a test says so, and no test sleeps. */

import type { Clock, Timer } from '../ports.ts'

/** A {@link Clock} that stands still until it is moved. */
export interface VirtualClock extends Clock {
  /**
   * Lets `ms` milliseconds pass: runs what becomes due, in order of time (equal times in the order in which they were
   * set), and after each lets everything that follows from it settle before time goes on. `advance(0)` only settles.
   *
   * @param ms how far, at least 0
   * @throws whatever a timer's callback throws; time then stands where it was thrown
   */
  advance(ms: number): Promise<void>
  /**
   * Moves wall time alone, either way: a corrected or manipulated clock, or a device that slept (timers and `monotonic()`
   * stand still, as they may during sleep). Runs nothing.
   *
   * @param ms how far; negative goes back
   */
  jump(ms: number): void
  /** How many timers are waiting. */
  pending(): number
}

/** Options of {@link virtualClock}. */
export interface VirtualClockOptions {
  /** Wall time at the start, in epoch ms. Default: 1 December 2026, 12:00 UTC. */
  readonly startAt?: number
  /** What `advance` awaits so that everything under way settles. Default: {@link settled}. */
  readonly settle?: () => Promise<void>
}

/**
 * A clock for tests.
 *
 * @param start wall time at the start in epoch ms, or options
 * @example
 * ```ts
 * import { virtualClock } from 'samekey/testing'
 *
 * const clock = virtualClock()
 * clock.timer(1000, () => console.log('one second later'))
 * await clock.advance(1000)
 * ```
 */
export function virtualClock(start: number | VirtualClockOptions = {}): VirtualClock {
  const { startAt = Date.UTC(2026, 11, 1, 12), settle = settled } =
    typeof start === 'number' ? { startAt: start } : start
  const waiting = new Set<Waiting>()
  let elapsedMs = 0
  let wallAt = startAt

  function moveTo(targetMs: number): void {
    wallAt += targetMs - elapsedMs
    elapsedMs = targetMs
  }

  return {
    now: () => wallAt,
    monotonic: () => elapsedMs,

    timer(ms, run): Timer {
      // As the port says: never longer than a platform's timer can be.
      const entry: Waiting = { at: elapsedMs + Math.min(Math.max(ms, 0), maxTimerMs), run }
      waiting.add(entry)
      return { cancel: () => waiting.delete(entry) }
    },

    async advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`advance(${ms}): time does not go back; jump() moves wall time`)
      const targetMs = elapsedMs + ms
      await settle()
      for (let next = earliest(waiting, targetMs); next !== undefined; next = earliest(waiting, targetMs)) {
        waiting.delete(next)
        if (next.at > elapsedMs) moveTo(next.at)
        next.run()
        await settle()
      }
      if (targetMs > elapsedMs) moveTo(targetMs)
    },

    jump(ms) {
      wallAt += ms
    },

    pending: () => waiting.size,
  }
}

/**
 * Resolves once nothing more happens by itself: microtasks, macrotasks (fake-indexeddb and the stores use them), file
 * access and WebCrypto are done. Uses no timer. It cannot know about sockets and other processes: wait for those first.
 *
 * In Node the platform says whether macrotasks are left; elsewhere a fixed number of turns has to do.
 */
export async function settled(): Promise<void> {
  let quiet = 0
  for (let turns = 0; quiet < quietTurns && turns < mostTurns; turns += 1) {
    await cryptoDone()
    await turn()
    quiet = isBusy() ? 0 : quiet + 1
  }
}

interface Waiting {
  readonly at: number
  readonly run: () => void
}

const maxTimerMs = 2 ** 31 - 1
/** So many turns in a row without anything left to do count as settled. */
const quietTurns = 5
/** Something that goes on for ever must not hang the test here, but fail it in its assertions. */
const mostTurns = 100_000

// Taken once, so that a test framework's fake timers do not stop the virtual ones.
const immediate: ((run: () => void) => unknown) | undefined = globalThis.setImmediate
const activeResources: (() => string[]) | undefined = globalThis.process?.getActiveResourcesInfo?.bind(
  globalThis.process,
)

/** One macrotask. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    if (immediate !== undefined) {
      immediate(resolve)
      return
    }
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(null)
  })
}

/** WebCrypto works on other threads and shows nowhere; its jobs start in order, so ours is the last to end. */
async function cryptoDone(): Promise<void> {
  await globalThis.crypto?.subtle?.digest('SHA-256', new Uint8Array(1))
}

function isBusy(): boolean {
  return activeResources?.().some((name) => name === 'Immediate' || name.startsWith('FSReq')) ?? false
}

function earliest(waiting: ReadonlySet<Waiting>, untilMs: number): Waiting | undefined {
  let found: Waiting | undefined
  for (const entry of waiting) {
    if (entry.at <= untilMs && (found === undefined || entry.at < found.at)) found = entry
  }
  return found
}
