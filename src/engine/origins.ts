/** Pacing per origin (P31): the pure rules of protocol/pacing.ts over this client's origins and clock. */
import type { Clock, Ids } from '../ports.ts'
import { admit, freshPace, type Health, type OriginPace, type PacePolicy, report } from '../protocol/pacing.ts'

/** Permission for one exchange; its end must be reported. */
export interface Pass {
  /** Reports how it went. Without a health, nothing was sent after all. */
  end(health?: Health, pauseMs?: number | null): void
}

export interface Origins {
  /** A pass, or how many ms to wait before asking again. */
  enter(origin: string, wish: { readonly retry: boolean; readonly waited: boolean }): Pass | number
}

/** How long to wait when a probe is under way: it is asked again then, or sooner when the probe comes back. */
const probeWaitMs = 1000

export function createOrigins(policy: PacePolicy, clock: Clock, ids: Ids): Origins {
  const paces = new Map<string, OriginPace>()
  const paceOf = (origin: string): OriginPace => paces.get(origin) ?? freshPace(policy, clock.monotonic())

  return {
    enter(origin, wish) {
      const { pace, waitMs } = admit(paceOf(origin), policy, wish, clock.monotonic(), ids.random())
      paces.set(origin, pace)
      if (waitMs !== 0) return waitMs ?? probeWaitMs
      let ended = false
      return {
        end(health, pauseMs = null) {
          if (ended) return
          ended = true
          const now = paceOf(origin)
          paces.set(
            origin,
            health === undefined ? { ...now, probing: false } : report(now, policy, health, pauseMs, clock.monotonic()),
          )
        },
      }
    },
  }
}
