/** The longest delay that `setTimeout` keeps, in ms (24.8 days); with more than that it fires at once. */
export const MAX_TIMER_MS: number = 2 ** 31 - 1

/** The pace of retries (P31). All in ms. */
export interface BackoffPolicy {
  /** Upper end of the first wait; doubled with each attempt. */
  readonly baseMs: number
  /** Upper end of any wait. Bounds only our own pace, never what a server asks for (P32). */
  readonly capMs: number
  /** Lower end of any wait. Wins over a smaller cap. */
  readonly minMs: number
}

/**
 * Full-jitter exponential back-off (P31): a wait spread evenly between `minMs` and `baseMs * 2 ** (attempt - 1)`, at
 * most `capMs`. Whatever the arguments, the answer is a whole number from 0 to {@link MAX_TIMER_MS}, so that no
 * overflow turns a long wait into a hot loop.
 *
 * @param attempt attempts made so far: 1 after the first. Less counts as 1.
 * @param random from 0 to 1; the caller's, so that time and chance stay arguments.
 * @returns ms.
 */
export function backoffMs(policy: BackoffPolicy, attempt: number, random: number): number {
  const minMs = within(policy.minMs, 0, MAX_TIMER_MS, 0)
  const capMs = within(policy.capMs, minMs, MAX_TIMER_MS, MAX_TIMER_MS)
  const baseMs = within(policy.baseMs, 0, MAX_TIMER_MS, MAX_TIMER_MS)
  // 2 ** 31 exceeds any cap already; a bounded exponent keeps infinity out.
  const doublings = within(attempt, 1, 32, 32) - 1
  const highMs = within(baseMs * 2 ** doublings, minMs, capMs, capMs)
  return Math.round(minMs + (highMs - minMs) * within(random, 0, 1, 1))
}

/** `otherwise` for NaN: the slow end, because a wait that is too long only costs time. */
function within(value: number, low: number, high: number, otherwise: number): number {
  return Number.isNaN(value) ? otherwise : Math.min(Math.max(value, low), high)
}
