import type { Clock } from '../../ports.ts'

/** Both clocks of this process. */
export type Clocks = Pick<Clock, 'now' | 'monotonic'>

/** A moment, by both clocks. */
export interface Moment {
  readonly wall: number
  readonly monotonic: number
}

/** This moment. */
export function moment(clock: Clocks): Moment {
  return { wall: clock.now(), monotonic: clock.monotonic() }
}

/**
 * How long ago it was, ms: the longer of two readings. A monotonic clock stands still while a machine sleeps, a wall
 * clock can be set back; neither alone shows that a lease is over (P35, P63).
 */
export function elapsedMs(clock: Clocks, since: Moment): number {
  return Math.max(clock.now() - since.wall, clock.monotonic() - since.monotonic)
}
