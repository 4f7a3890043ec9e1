/**
 * When an origin may be sent to (P31): a budget for retries, a pause that the server asked for, and one probe first
 * after an outage. Held in memory only: it saves traffic and decides nothing about truth. Pure: state in, state out.
 */

/** What is known of one origin. */
export interface OriginPace {
  /** Retries that may be made at once; refilled by time and by success. */
  readonly tokens: number
  /** Epoch-free ms (monotonic) at which `tokens` was computed. */
  readonly tokensAt: number
  /** Failures in a row, over all intents. */
  readonly failures: number
  /** Monotonic ms of the last of them. */
  readonly failedAt: number
  /** True while one probe tests whether the outage is over. */
  readonly probing: boolean
  /** Monotonic ms before which nothing is sent, as the server asked. */
  readonly pausedUntil: number
  /** Monotonic ms until which starts are spread out after an outage. */
  readonly spreadUntil: number
}

/** The knobs. All durations in ms. */
export interface PacePolicy {
  /** Most retries in a burst. */
  readonly budget: number
  /** One retry more per so many ms. */
  readonly refillMs: number
  /** Failures in a row that count as an outage. */
  readonly outageAfter: number
  /** What has to wait for a probe asks again after this time at most. */
  readonly outageWaitMs: number
  /** After an outage, starts are spread over this time. */
  readonly spreadMs: number
}

/** How an attempt went, as far as the origin's health is concerned. */
export type Health = 'well' | 'failed' | 'throttled'

/** A fresh origin, trusted until it fails. */
export function freshPace(policy: PacePolicy, now: number): OriginPace {
  return {
    tokens: policy.budget,
    tokensAt: now,
    failures: 0,
    failedAt: Number.NEGATIVE_INFINITY,
    probing: false,
    pausedUntil: 0,
    spreadUntil: 0,
  }
}

/** Either the attempt may start (`waitMs` 0), or it should ask again after `waitMs`. */
export interface Admission {
  readonly pace: OriginPace
  readonly waitMs: number
}

/**
 * Asks to start an attempt. First attempts are not counted against the budget, but wait out pauses and outages like
 * all others; during an outage one probe at a time goes, and whoever comes first when it is time for one is it. Who has
 * `waited` already is not spread out again.
 */
export function admit(
  pace: OriginPace,
  policy: PacePolicy,
  { retry, waited }: { readonly retry: boolean; readonly waited: boolean },
  now: number,
  random: number,
): Admission {
  const tokens = Math.min(policy.budget, pace.tokens + (now - pace.tokensAt) / policy.refillMs)
  const refilled = { ...pace, tokens, tokensAt: now }
  if (now < pace.pausedUntil) return { pace: refilled, waitMs: pace.pausedUntil - now + random * policy.spreadMs }
  if (isOut(pace, policy)) {
    const everyMs = probeEveryMs(pace, policy, retry || waited)
    const early = Math.max(pace.failedAt + everyMs - now, 0)
    if (!pace.probing && early === 0) return { pace: { ...refilled, probing: true }, waitMs: 0 }
    return { pace: refilled, waitMs: Math.max(early, 1) + random * 2 * everyMs }
  }
  if (retry && !waited && now < pace.spreadUntil)
    return { pace: refilled, waitMs: Math.max(1, random * policy.spreadMs) }
  if (retry && tokens < 1) return { pace: refilled, waitMs: Math.ceil((1 - tokens) * policy.refillMs) }
  return { pace: retry ? { ...refilled, tokens: tokens - 1 } : refilled, waitMs: 0 }
}

/** The longer it lasts, the less often it is tested by what can wait; somebody who just asked is told soon. */
function probeEveryMs({ failures }: OriginPace, policy: PacePolicy, canWait: boolean): number {
  const doublings = canWait ? Math.min(failures - policy.outageAfter, 20) : 0
  return Math.min(policy.refillMs * 2 ** doublings, policy.outageWaitMs / 3)
}

/** True while the origin is taken to be out of order. */
export function isOut(pace: OriginPace, policy: PacePolicy): boolean {
  return pace.failures >= policy.outageAfter
}

/** Something changed, so that the next probe need not wait for its time. */
export function forgiven(pace: OriginPace): OriginPace {
  return { ...pace, failedAt: Number.NEGATIVE_INFINITY }
}

/** Learns from an attempt's end. `pauseMs` is the server's own word, null when it gave none. */
export function report(
  pace: OriginPace,
  policy: PacePolicy,
  health: Health,
  pauseMs: number | null,
  now: number,
): OriginPace {
  // Who asks for less gets less from all intents, a pause even where it named none, and no burst of retries (B68).
  const pauseFor = pauseMs ?? (health === 'throttled' ? policy.refillMs : 0)
  const pausedUntil = Math.max(pace.pausedUntil, now + pauseFor)
  if (health === 'failed') return { ...pace, failures: pace.failures + 1, failedAt: now, probing: false, pausedUntil }
  const spreadUntil = isOut(pace, policy) ? now + policy.spreadMs : pace.spreadUntil
  const alive = { ...pace, failures: 0, probing: false, pausedUntil, spreadUntil }
  if (health === 'throttled') return { ...alive, tokens: 0, tokensAt: now }
  return { ...alive, tokens: Math.min(policy.budget, pace.tokens + 1) }
}
