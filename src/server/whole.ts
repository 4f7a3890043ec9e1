/** Checks of numbers in options, for workers, relays and calls alike. */
import { ConfigError } from '../errors.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'

/** @throws ConfigError for what is no whole number of at least 1. */
export function whole(option: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new ConfigError(option, `must be a whole number of at least 1, not ${value}`)
  }
}

/** @throws ConfigError for what is no time that a timer can wait, ms. */
export function wholeMs(option: string, value: number): number {
  whole(option, value)
  if (value > MAX_TIMER_MS) throw new ConfigError(option, `must be at most ${MAX_TIMER_MS} ms, not ${value}`)
  return value
}

/**
 * Checks how often, and how far apart, something is tried.
 *
 * @throws ConfigError
 */
export function wholeRetry<
  Policy extends { readonly baseMs: number; readonly capMs: number; readonly maxAttempts: number },
>(policy: Policy): Policy {
  const { baseMs, capMs, maxAttempts } = policy
  wholeMs('retry.baseMs', baseMs)
  wholeMs('retry.capMs', capMs)
  if (capMs < baseMs) throw new ConfigError('retry.capMs', `must be at least retry.baseMs (${baseMs})`)
  if (maxAttempts !== Number.POSITIVE_INFINITY) whole('retry.maxAttempts', maxAttempts)
  return policy
}
