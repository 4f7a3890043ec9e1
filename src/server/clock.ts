import type { Clock } from '../ports.ts'

/** The system's clock and timers. A waiting request must not be forgotten, so these timers keep a process alive. */
export const systemClock: Pick<Clock, 'now' | 'timer'> = {
  now: () => Date.now(),
  timer(ms, run) {
    const handle = setTimeout(run, ms)
    return { cancel: () => clearTimeout(handle) }
  },
}
