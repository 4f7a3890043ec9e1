/** The app's part of a relay: how one message is handed over. */
import type { OutboxMessage } from './message.ts'

/** What `deliver` gets beside the message. */
export interface DeliverContext {
  /**
   * Aborted when the time for this try is over (four fifths of `leaseMs`), or when a stop has waited long enough. Hand
   * it to whatever you wait for: what `deliver` does after it counts for nothing, and another try may be under way.
   */
  readonly signal: AbortSignal
  /** Which try it is, from 1; begins anew when a person says "again". */
  readonly attempt: number
  /** Grows with every try by any relay: a receiver can refuse what comes with an older one. */
  readonly epoch: number
}

/** Made by {@link park}. */
export interface Park {
  readonly outcome: 'park'
  readonly reason: string
}

/**
 * Hands one message over. Resolved with nothing: it is delivered. Thrown: it is tried again. `park(...)`: trying is of
 * no use. May be called twice for one message (F12).
 *
 * Nothing else may come out of it: a `Response` with status 500 is not thrown by `fetch`, and would count as delivered.
 */
export type Deliver = (
  message: OutboxMessage,
  context: DeliverContext,
  // biome-ignore lint/suspicious/noConfusingVoidType: what a function gives that returns nothing.
) => Promise<Park | void>

/**
 * What `deliver` returns for a message that no try will ever deliver ("the receiver does not know this topic"): it is
 * parked for a person at once, and its aggregate waits. Not for a receiver that is away: throw then.
 *
 * @param reason for the person; kept with the message, so nothing secret.
 */
export function park(reason: string): Park {
  return { outcome: 'park', reason }
}

/** @throws TypeError for what a `deliver` without types may come to. */
export function checkDelivered(end: unknown): Park | null {
  if (end === undefined || end === null) return null
  if (typeof end === 'object' && 'outcome' in end && end.outcome === 'park') return end as Park
  throw new TypeError('deliver must resolve with nothing, or park(...): check the answer and throw if it is none.')
}
