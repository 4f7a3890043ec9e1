/**
 * The states of an intent. A state carries what it owns and nothing else, so that no field is only sometimes meant.
 * Facts that outlive a state (doubt, attempts, answer) stand on the record.
 */

/** One request on the wire for a record (PROTOCOL.md section 1). */
export interface Attempt {
  /** 1 for the first. */
  readonly number: number
  /** Epoch ms at which it was marked as handed over. */
  readonly at: number
  /** The same instant on the server's clock, epoch ms, where the client had seen one in this run. */
  readonly serverAt: number | null
  /** False where the transport may have repeated the request by itself: then nothing clears its doubt (P30). */
  readonly exact: boolean
}

/** Where a server says how its work goes, and how often to look (P37, P39). */
export interface Monitor {
  /** Absolute address. */
  readonly url: string
  /** Epoch ms since which the intent is processing. */
  readonly since: number
  /** Epoch ms until which the server keeps the result, or null when it does not say. */
  readonly resultExpiresAt: number | null
  /** Consecutive polls that failed. A good one sets it to 0. */
  readonly errors: number
  /** What the last good poll said: `retrying` means that it failed and the server tries again by itself (P38). */
  readonly phase: 'running' | 'retrying'
}

/** What a blocked intent waits for. */
export type BlockedOn = 'credentials' | 'scope' | 'operation' | 'lane' | 'attempts'

/** Why an intent waits for its next try. */
export type WaitingBecause =
  | 'never_delivered'
  | 'refused_for_now'
  | 'ambiguous'
  | 'in_progress'
  | 'accepted_unmonitored'
  | 'answer_incomplete'
  | 'refused_without_proof'
  | 'recovered'
  | 'not_handed_over'
  | 'monitor_lost'
  | 'server_asks_again'
  | 'clock_stepped_back'
  | 'retried_by_person'

/** Why nobody can say whether it happened, or whether it may be sent again. */
export type UnknownBecause =
  | 'server_does_not_deduplicate'
  | 'window_over'
  | 'age_unknown'
  | 'attempts_spent'
  | 'send_before_passed'
  | 'conflict_in_doubt'
  | 'expired_in_doubt'
  | 'stored_failure'
  | 'server_unknown'
  | 'monitor_lost'
  | 'result_expired'
  | 'other_payload'
  | 'void_not_offered'
  | 'void_window_over'
  | 'markers_unreadable'

/** What a void is for; it decides what "voided" then means (P43-P45). */
export type VoidPurpose =
  | 'cancel'
  | 'send_before'
  | 'skip'
  | 'resolve'
  | 'abandon'
  /** A refusal came without proof: voided means rejected with that answer. */
  | 'refusal'
  /** A person's or the app's reconcile found nothing. */
  | 'absent'
  /** Reconcile found the effect under another identity: the key is voided besides. */
  | 'found'

/** Who or what cancelled. */
export type CancelledBecause = 'by_app' | 'voided' | 'send_before_passed' | 'reconciled_absent'

/** All states by name, each with what it owns. */
export type State =
  | { readonly name: 'queued' }
  | { readonly name: 'sending'; readonly attempt: Attempt }
  | { readonly name: 'waiting'; readonly because: WaitingBecause }
  | { readonly name: 'processing'; readonly monitor: Monitor }
  | { readonly name: 'blocked'; readonly on: BlockedOn }
  | { readonly name: 'cancelling'; readonly purpose: VoidPurpose }
  | { readonly name: 'unknown'; readonly because: UnknownBecause }
  | { readonly name: 'succeeded'; readonly by: 'answer' | 'reconcile' | 'person' }
  | { readonly name: 'rejected' }
  | { readonly name: 'conflicted' }
  | { readonly name: 'cancelled'; readonly because: CancelledBecause }
  | { readonly name: 'abandoned'; readonly mayStillHappen: true; readonly freed: boolean }

/** Name of a state. */
export type StateName = State['name']

/** Every state name, in the order in which an intent may meet them. */
export const stateNames: readonly StateName[] = [
  'queued',
  'sending',
  'waiting',
  'processing',
  'blocked',
  'cancelling',
  'unknown',
  'succeeded',
  'rejected',
  'conflicted',
  'cancelled',
  'abandoned',
]

/** What each state means to whoever looks at the intent: for the README and the command line. */
export const stateMeanings: Readonly<Record<StateName, string>> = {
  queued: 'Written down; nothing was handed to the network yet.',
  sending: 'One attempt is under way. If its holder dies now, the intent is in doubt.',
  waiting: 'The next try has its time: after a failure, an answer that proved nothing, or a wait the server asked for.',
  processing: 'The server accepted the work; its monitor is asked until it ends.',
  blocked:
    'Something has to change first: credentials, the signed-in account, a registered operation, the lane, or more attempts.',
  cancelling: 'The server is asked to void the key, so that the intent surely never happens.',
  unknown:
    'It may or may not have happened, and sending again is not safe. Kept, with its request, until somebody settles it.',
  succeeded: 'It happened, once. The answer is kept where it could be.',
  rejected: 'The server refused it, and no attempt took effect. The refusal is kept.',
  conflicted: 'The server knows this key with another request. For good.',
  cancelled: 'It did not happen and never will.',
  abandoned: 'Somebody gave it up although it may still happen.',
}

/** How far on a state is (P48): states only move to an equal or higher rank; only a person moves unknown back. */
export const rank: Readonly<Record<StateName, number>> = {
  queued: 0,
  sending: 0,
  waiting: 0,
  processing: 0,
  blocked: 0,
  cancelling: 0,
  unknown: 1,
  abandoned: 2,
  cancelled: 3,
  rejected: 3,
  conflicted: 3,
  succeeded: 4,
}

/** The states in which work goes on by itself or may go on. */
export type OpenStateName = 'queued' | 'sending' | 'waiting' | 'processing' | 'blocked' | 'cancelling'

/** True while the intent may still be worked on by itself. */
export function isOpen(name: StateName): name is OpenStateName {
  return rank[name] === 0
}

/** True once the intent has its final word: no longer open and not unknown. */
export function isSettled(name: StateName): boolean {
  return rank[name] > 1
}
