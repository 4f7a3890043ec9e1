/**
 * Virtual time with two faces: true time, which servers and networks live in, and a device's, whose wall clock may be
 * wrong and which stands still while the device sleeps. Nothing happens until `advance` or `sleep` says so.
 */
import type { Clock, Timer } from '../../src/ports.ts'

export interface Timeline {
  /** True time. Never jumps. */
  readonly server: Clock
  /** The device's time: its wall clock may be set, and its timers stand still while it sleeps. */
  readonly device: Clock
  /** Lets true time pass. */
  advance(ms: number): Promise<void>
  /** Lets true time pass while the device stands still; its wall clock has gone on when it wakes. */
  sleep(ms: number): Promise<void>
  /** Sets the device's wall clock, either way. */
  jump(ms: number): void
}

interface Waiting {
  /** True elapsed ms. */
  at: number
  readonly onDevice: boolean
  readonly run: () => void
}

const startAt = Date.UTC(2026, 11, 1, 12)
const maxTimerMs = 2 ** 31 - 1

/** Everything that follows from what just happened: it is made of microtasks alone. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** @param skewMs by how much the device's wall clock is ahead of the server's from the start. */
export function timeline(skewMs: number): Timeline {
  const waiting: Waiting[] = []
  let elapsedMs = 0
  let sleptMs = 0
  let offsetMs = skewMs
  /** Elapsed ms at which a sleeping device wakes. */
  let wakesAt = 0

  const server: Clock = {
    now: () => startAt + elapsedMs,
    monotonic: () => elapsedMs,
    timer: (ms, run) => wait(elapsedMs + bounded(ms), false, run),
  }
  const device: Clock = {
    now: () => startAt + elapsedMs + offsetMs,
    monotonic: () => elapsedMs - sleptMs,
    timer: (ms, run) => wait(Math.max(elapsedMs, wakesAt) + bounded(ms), true, run),
  }

  function wait(at: number, onDevice: boolean, run: () => void): Timer {
    const entry = { at, onDevice, run }
    waiting.push(entry)
    return {
      cancel() {
        const index = waiting.indexOf(entry)
        if (index >= 0) waiting.splice(index, 1)
      },
    }
  }

  /** The earliest; of equal ones, the one that was set first. */
  function takeDue(untilMs: number): Waiting | undefined {
    let found = -1
    for (let index = 0; index < waiting.length; index++) {
      const at = waiting[index]?.at ?? 0
      if (at <= untilMs && (found < 0 || at < (waiting[found]?.at ?? 0))) found = index
    }
    return found < 0 ? undefined : waiting.splice(found, 1)[0]
  }

  async function advance(ms: number): Promise<void> {
    const untilMs = elapsedMs + ms
    await settle()
    for (let next = takeDue(untilMs); next !== undefined; next = takeDue(untilMs)) {
      elapsedMs = Math.max(elapsedMs, next.at)
      next.run()
      await settle()
    }
    elapsedMs = untilMs
  }

  return {
    server,
    device,
    advance,
    async sleep(ms) {
      // What is under way comes to its end before the device stands still.
      await settle()
      wakesAt = elapsedMs + ms
      for (const entry of waiting) if (entry.onDevice) entry.at += ms
      sleptMs += ms
      await advance(ms)
    },
    jump(ms) {
      offsetMs += ms
    },
  }
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), maxTimerMs)
}
