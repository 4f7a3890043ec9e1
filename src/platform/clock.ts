import type { Clock } from '../ports.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'

/** The platform's time. Globals are wrapped at each call and never captured, so that tests can replace them. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(ms, run, hold = false) {
    // A longer one would overflow and fire at once (B62).
    const id = setTimeout(run, Math.min(ms, MAX_TIMER_MS)) as unknown as { unref?: () => void }
    // In Node, a timer that nobody waits for must not keep the process alive.
    if (!hold) id.unref?.()
    return { cancel: () => clearTimeout(id as unknown as number) }
  },
}
