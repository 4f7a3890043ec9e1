import { parseHttpDate } from './http-date.ts'

/** The longest wait that is read from an answer, 10 years in ms: what is longer counts as this, and stays a number. */
export const MAX_RETRY_AFTER_MS = 315_576_000_000

/** Whole seconds that a server names, as a wait in ms: never so long that a time is made of it that no store keeps. */
export function waitOf(seconds: number): number {
  return Math.min(seconds * 1000, MAX_RETRY_AFTER_MS)
}

/**
 * How long a server asks us to wait (P32; RFC 9110, 10.2.3): whole seconds, or an HTTP date, and nothing else. Signs,
 * fractions, exponents, lists and words are junk, and junk means normal back-off.
 *
 * @param value the `Retry-After` header; null where there is none.
 * @param nowMs epoch ms, used where the answer has no readable date of its own.
 * @param serverDate the answer's own `Date` header: a date is read against it, so that a wrong clock here does not
 * change the wait.
 * @returns ms from now, 0 for a date in the past, at most {@link MAX_RETRY_AFTER_MS}; null for junk and for nothing.
 */
export function retryAfterMs(value: string | null, nowMs: number, serverDate: string | null): number | null {
  if (value === null) return null
  const text = value.trim()
  if (/^\d+$/.test(text)) return waitOf(Number(text))
  const reference = parseHttpDate(serverDate?.trim() ?? '', nowMs) ?? nowMs
  const date = parseHttpDate(text, reference)
  if (date === null || !Number.isFinite(reference)) return null
  return Math.min(Math.max(date - reference, 0), MAX_RETRY_AFTER_MS)
}
