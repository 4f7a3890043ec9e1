/** What a relay needs from a database: a port, types only, with its failure contract. */
import type { OutboxMessage } from './message.ts'
import type { OutboxRow } from './outbox-row.ts'

/** A message that a relay has just taken. */
export interface ClaimedMessage {
  /** The row's own number. */
  readonly number: string
  readonly message: OutboxMessage
  readonly claimed: OutboxRow
}

/** What a claim found. */
export interface Claims {
  readonly messages: readonly ClaimedMessage[]
  /** There may be more that is due, and this claim got something done. */
  readonly more: boolean
  /** When the next one is due, ms from now; null where none is known. */
  readonly nextInMs: number | null
}

/** What became of a change. `late`: somebody else has taken the message since, or a person has. */
export type Changed = { readonly kind: 'written'; readonly row: OutboxRow } | { readonly kind: 'late' }

/** Keeps messages, in the database of the business rows. */
export interface OutboxStore {
  /**
   * Takes messages that are due, the longest due first, without waiting for any that somebody has locked. Of an
   * aggregate, only the earliest that is neither delivered nor skipped.
   *
   * @throws whatever the database throws; what was taken unseen comes again when its lease is over.
   */
  claim(limit: number, leaseMs: number): Promise<Claims>

  /**
   * Locks the row of a claimed message, and saves what `change` makes of it. Where that is an end, the next one of its
   * aggregate becomes due in the same transaction.
   *
   * @param change null: not any more.
   * @throws whatever the database throws. Saying it again is harmless: what was written by this epoch stays.
   */
  change(claimed: ClaimedMessage, change: (row: OutboxRow, now: number) => OutboxRow | null): Promise<Changed>

  /** Calls `wake` soon after a message was written somewhere. A hint that may be missed. Returns what ends it. */
  onMessage(wake: () => void): () => void
}
