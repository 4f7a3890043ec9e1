/** Pacing per origin (P31): the pure rules of protocol/pacing.ts over this client's origins and clock. */
import type { Clock, Ids } from '../ports.ts'
import {
  admit,
  forgiven,
  freshPace,
  type Health,
  isOut,
  type OriginPace,
  type PacePolicy,
  report,
} from '../protocol/pacing.ts'

/** Permission for one exchange; its end must be reported. */
export interface Pass {
  /** Reports how it went. Without a health, nothing was sent after all. */
  end(health?: Health, pauseMs?: number | null): void
}

export interface Origins {
  /** A pass, or how many ms to wait before asking again. */
  enter(origin: string, wish: { readonly retry: boolean; readonly waited: boolean }): Pass | number
  /** The platform says that the network is back: whoever comes next may probe. */
  forgive(): void
}

/** @param back called when an outage is over: whoever was put off need not wait any longer. */
export function createOrigins(policy: PacePolicy, clock: Clock, ids: Ids, back: () => void): Origins {
  const paces = new Map<string, OriginPace>()
  const paceOf = (origin: string): OriginPace => paces.get(origin) ?? freshPace(policy, clock.monotonic())

  return {
    enter(origin, wish) {
      const found = paceOf(origin)
      const { pace, waitMs } = admit(found, policy, wish, clock.monotonic(), ids.random())
      paces.set(origin, pace)
      if (waitMs !== 0) return waitMs
      const isProbe = pace.probing && !found.probing
      let ended = false
      return {
        end(health, pauseMs = null) {
          if (ended) return
          ended = true
          const before = paceOf(origin)
          const after = health === undefined ? before : report(before, policy, health, pauseMs, clock.monotonic())
          // Others may have been under way when the outage began: only the probe's own end is the probe's.
          paces.set(origin, { ...after, probing: before.probing && !isProbe && isOut(after, policy) })
          if (isOut(before, policy) && !isOut(after, policy)) back()
        },
      }
    },
    forgive() {
      for (const [origin, pace] of paces) paces.set(origin, forgiven(pace))
    },
  }
}
