/**
 * What holds for one record's operation: resolved from dialect, operation and client options, and handed to the
 * machine as data. Nothing here is stored: a record is always judged by today's policy and its own history.
 */
import type { BackoffPolicy } from './backoff.ts'

/** See each field; all times in milliseconds. */
export interface Policy {
  /** The server de-duplicates by this key for this method (P1). */
  readonly deduplicates: boolean
  /** How long the server promises to remember a key; null when unknown, and then none is assumed (P35). */
  readonly retentionMs: number | null
  /** Time limit of one attempt, its body included (P26). */
  readonly attemptTimeoutMs: number
  /** Longest time between computing a request's age and the server's look at the key. */
  readonly transitMs: number
  /** The server voids keys, and the client knows where (P44). */
  readonly voids: boolean
  /** The server answers look-ups by key, and the client knows where (P43). */
  readonly looksUp: boolean
  /** The operation is one that the app has registered, or one that needs no registration (P24). */
  readonly operationKnown: boolean
  /** Attempts before giving up by itself (P29). */
  readonly maxAttempts: number
  /** Pace of retries (P31). */
  readonly backoff: BackoffPolicy
  /** Pace of asking again while the server says "in progress", and of polling (P39). */
  readonly ask: BackoffPolicy
  /** Consecutive failed polls that are borne (P39). */
  readonly maxPollErrors: number
  /** How long a monitor may be missing right after the 202 (B88). */
  readonly monitorGraceMs: number
  /** How often something blocked is looked at again without being woken (P33). */
  readonly slowPollMs: number
  /** How long a settled intent stays remembered (P8). */
  readonly rememberMs: number
}
