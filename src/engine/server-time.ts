import type { Clock } from '../ports.ts'
import { parseHttpDate } from '../protocol/http-date.ts'

/** The servers' own time, as far as this run has seen it: a `Date` header, carried on by the monotonic clock (P35). */
export interface ServerTime {
  /** Learns from an answer. */
  note(origin: string, date: string | null): void
  /** Epoch ms on that origin's clock now, or null when this run saw none of its dates. */
  now(origin: string): number | null
}

export function serverTime(clock: Clock): ServerTime {
  const offsets = new Map<string, number>()
  return {
    note(origin, date) {
      const at = date === null ? null : parseHttpDate(date)
      if (at !== null) offsets.set(origin, at - clock.monotonic())
    },
    now(origin) {
      const offset = offsets.get(origin)
      return offset === undefined ? null : offset + clock.monotonic()
    },
  }
}
