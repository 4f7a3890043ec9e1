import type { Clock } from '../ports.ts'
import { parseHttpDate } from '../protocol/http-date.ts'

/** The servers' own time, as far as this run has seen it: a `Date` header, carried on by the monotonic clock (P35). */
export interface ServerTime {
  /**
   * Learns from an answer. One that proves to be from behind the key is believed; any other only where it makes ages
   * larger: a gateway's date may be an old one out of a cache.
   */
  note(origin: string, date: string | null, isProof: boolean): void
  /** Epoch ms on that origin's clock now, or null when this run saw none of its dates. */
  now(origin: string): number | null
}

export function serverTime(clock: Clock): ServerTime {
  const offsets = new Map<string, number>()
  return {
    note(origin, date, isProof) {
      const at = date === null ? null : parseHttpDate(date)
      if (at === null) return
      const offset = at - clock.monotonic()
      const known = offsets.get(origin)
      if (isProof || known === undefined || offset > known) offsets.set(origin, offset)
    },
    now(origin) {
      const offset = offsets.get(origin)
      return offset === undefined ? null : offset + clock.monotonic()
    },
  }
}
