/**
 * A message's row and what may become of it: pure, time and chance are arguments. A store locks the row, one of these
 * says what it is next, the store saves it. Null means: not any more; somebody else has it, and nothing may be written.
 */
import { backoffMs } from '../../protocol/backoff.ts'

/** What a person did to a message, and why. */
export interface OutboxNote {
  /** Epoch ms. */
  readonly at: number
  readonly action: 'retry' | 'skip'
  /** In the person's words. */
  readonly note: string
}

/** The part of a row that changes. */
export interface OutboxRow {
  /** `delivering` after the end of its lease counts as waiting: whoever had it is gone, or late. */
  readonly state: 'waiting' | 'delivering' | 'parked' | 'delivered' | 'skipped'
  /**
   * Epoch ms from which a relay may take it; while one has it, the end of its lease. Null while it waits: it is behind
   * another one of its aggregate.
   */
  readonly dueAt: number | null
  /** Grows with every takeover, so that whoever had it before marks nothing. */
  readonly epoch: number
  /** Deliveries begun since it was written, or since a person last said "again". */
  readonly attempts: number
  /** What last went wrong. */
  readonly error: string | null
  readonly notes: readonly OutboxNote[]
  /** Epoch ms; null while it is neither delivered nor skipped. */
  readonly settledAt: number | null
}

/** How often a message is tried, and how far apart. */
export interface DeliveryPolicy {
  /** Upper end of the wait after the first failure, ms; doubled with each one. */
  readonly baseMs: number
  /** Upper end of any wait, ms. */
  readonly capMs: number
  /** Deliveries before it is parked. `Infinity`: never by itself. */
  readonly maxAttempts: number
}

/** Takes it for `leaseMs`, with a new epoch: an earlier holder is out from here on (F12). */
export function claimed(row: OutboxRow, now: number, leaseMs: number): OutboxRow | null {
  if (row.state !== 'waiting' && row.state !== 'delivering') return null
  if (row.dueAt === null || row.dueAt > now) return null
  return { ...row, state: 'delivering', dueAt: now + leaseMs, epoch: row.epoch + 1, attempts: row.attempts + 1 }
}

/** A lease that is over keeps its holder as long as nobody took the message: the epoch alone decides. */
function isHeld(row: OutboxRow, epoch: number): boolean {
  return row.state === 'delivering' && row.epoch === epoch
}

/** The mark. */
export function delivered(row: OutboxRow, epoch: number, now: number): OutboxRow | null {
  return isHeld(row, epoch) ? { ...row, state: 'delivered', dueAt: null, error: null, settledAt: now } : null
}

/**
 * It failed, as far as we know: it comes again after full-jitter back-off, or is parked when it was tried often enough
 * or `deliver` says that trying is of no use. Never lost.
 */
export function failed(
  row: OutboxRow,
  epoch: number,
  how: {
    readonly now: number
    /** From 0 to 1. */
    readonly random: number
    readonly policy: DeliveryPolicy
    readonly error: string
    /** Whatever the policy says. */
    readonly park: boolean
  },
): OutboxRow | null {
  if (!isHeld(row, epoch)) return null
  const { now, random, policy, error, park } = how
  if (park || row.attempts >= policy.maxAttempts) return { ...row, state: 'parked', dueAt: null, error }
  const waitMs = backoffMs({ ...policy, minMs: 0 }, row.attempts, random)
  return { ...row, state: 'waiting', dueAt: now + waitMs, error }
}

/** Gives it back at a stop: the next relay need not wait for the lease, and a stop is no fault of the message. */
export function released(row: OutboxRow, epoch: number, now: number): OutboxRow | null {
  return isHeld(row, epoch) ? { ...row, state: 'waiting', dueAt: now, attempts: row.attempts - 1 } : null
}

/** Why a person's word changed nothing. */
export type NotNow =
  /** A relay has it at this moment: its try ends soon, or its lease does. */
  | 'delivering'
  /** It is delivered or skipped. */
  | 'settled'

/** A person says "again": at once, with all its tries before it. The new epoch fences out whoever was late with it. */
export function retriedByHand(row: OutboxRow, now: number, note: string): OutboxRow | NotNow {
  return byHand(row, now, { ...row, state: 'waiting', dueAt: now, attempts: 0 }, { at: now, action: 'retry', note })
}

/** A person says "never": it is not tried any more, and those behind it go on. */
export function skippedByHand(row: OutboxRow, now: number, note: string): OutboxRow | NotNow {
  return byHand(row, now, { ...row, state: 'skipped', dueAt: null, settledAt: now }, { at: now, action: 'skip', note })
}

function byHand(row: OutboxRow, now: number, next: OutboxRow, note: OutboxNote): OutboxRow | NotNow {
  if (row.settledAt !== null) return 'settled'
  // Two would deliver it at once, or it would arrive after those behind it.
  if (row.state === 'delivering' && row.dueAt !== null && row.dueAt > now) return 'delivering'
  return { ...next, epoch: row.epoch + 1, notes: [...row.notes, note] }
}
