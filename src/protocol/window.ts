/** Age and window (P35): whether the server may have forgotten the key. Pure arithmetic over times handed in. */
import type { Policy } from './policy.ts'
import { firstHandOver, type IntentRecord } from './record.ts'

/** The times that are known at one instant. */
export interface Times {
  /** Wall time of this device, epoch ms. */
  readonly now: number
  /** The server's time, epoch ms, carried on by a monotonic clock from a `Date` seen in this run; null when none was. */
  readonly serverNow: number | null
}

/**
 * Milliseconds since the first hand-over that is not cleared; 0 when there is none; null when it cannot be known: this
 * device's clock reads below the highest time that the record has seen, and no server date helps (P35, H40, H53).
 */
export function ageMs(record: IntentRecord, times: Times): number | null {
  const first = firstHandOver(record)
  if (first === null) return 0
  const byServer =
    first.serverAt === null || times.serverNow === null ? null : Math.max(0, times.serverNow - first.serverAt)
  // A clock that was set back tells too small an age, if any: alone it is none.
  if (byServer === null && clockSteppedBack(record, times)) return null
  // Two clocks that disagree: the larger age is the safe one.
  return Math.max(0, times.now - first.at, byServer ?? 0)
}

/**
 * True when this device's clock reads so far below the highest wall time that the record has seen that it was set back,
 * and not merely corrected.
 */
export function clockSteppedBack(record: IntentRecord, times: Times): boolean {
  return times.now < record.seenAt - toleratedStepMs
}

/** The highest wall time that there is, epoch ms: a record that has seen it is never dated by this device's clock again. */
export const undatable = 8.64e15

/** A clock may be corrected by so much, ms: within what a window leaves for the transit. */
export const toleratedStepMs = 1000

/**
 * By how many ms this device's clock has run ahead of the server's since the first hand-over: a jump, say (H53). Null where
 * the server's clock at either time is not known.
 */
export function clockGainMs(record: IntentRecord, { now, serverNow }: Times): number | null {
  const first = firstHandOver(record)
  if (first === null || first.serverAt === null || serverNow === null) return null
  return Math.max(0, now - first.at - (serverNow - first.serverAt))
}

/** Length of the window: the retention less the attempt's time limit and the transit; 0 when no retention is known. */
export function windowMs(policy: Pick<Policy, 'retentionMs' | 'attemptTimeoutMs' | 'transitMs'>): number {
  if (policy.retentionMs === null) return 0
  return Math.max(0, policy.retentionMs - policy.attemptTimeoutMs - policy.transitMs)
}

/** True when a send now is certain to find the key remembered, or nothing was ever handed over. */
export function isWindowOpen(record: IntentRecord, policy: Policy, times: Times): boolean {
  if (firstHandOver(record) === null) return true
  const age = ageMs(record, times)
  return age !== null && age < windowMs(policy)
}

/** Milliseconds until the window ends, less than 0 once it has; null when none has begun, or its age cannot be known. */
export function windowEndsInMs(record: IntentRecord, policy: Policy, times: Times): number | null {
  const age = firstHandOver(record) === null ? null : ageMs(record, times)
  return age === null ? null : windowMs(policy) - age
}

/** `Idempotency-Age`: whole seconds, rounded up (section 16). Null when the age is not known: then nothing is sent. */
export function ageSeconds(record: IntentRecord, times: Times): number | null {
  const age = ageMs(record, times)
  return age === null ? null : Math.ceil(age / 1000)
}
