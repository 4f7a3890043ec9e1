/** What submitting an id again means (P6-P8): join, the stored outcome, a new intent, or a typed refusal. Pure. */
import { type FingerprintInput, FingerprintVersionError, sameFingerprint } from './fingerprint.ts'
import { holdsLane, type IntentRecord } from './record.ts'
import type { StateName } from './states.ts'

/** What to do with a submit, given the current record of its id. */
export type SubmitDecision =
  /** The id is free. */
  | 'create'
  /** The id is free for a new key: the current record stays under its own key (P7). */
  | 'supersede'
  /** The same intent: share its one request and its one outcome (P6, P8). */
  | 'join'
  /** The id is taken by an intent with another content (P7). */
  | 'mismatch'
  /** The id is taken by an intent with another key that the caller gave (P5). */
  | 'other_key'

/** What the caller asks for besides the request. */
export interface SubmitWish {
  /** "Try the declined card once more": a new key for the same content, after rejected or cancelled (P7). */
  readonly again: boolean
  /** The key that the caller brings along, or null. */
  readonly key: string | null
}

const mendable: ReadonlySet<StateName> = new Set<StateName>(['rejected', 'cancelled'])

/** Decides from the current record of the id, if any. */
export function decideSubmit(
  current: IntentRecord | undefined,
  input: FingerprintInput,
  wish: SubmitWish,
): SubmitDecision {
  if (current === undefined) return 'create'
  const { state, keyOrigin } = current
  const freed = state.name === 'abandoned' && state.freed
  const same = isSame(current, input)
  // A derived key comes out the same for the same name, so its name is never freed: a new try takes a new one (P8).
  const mayTakeNewKey = keyOrigin !== 'derived' && (freed || mendable.has(state.name))
  if (mayTakeNewKey && (!same || wish.again || freed) && wish.key !== current.key) return 'supersede'
  if (!same) return 'mismatch'
  return wish.key !== null && wish.key !== current.key ? 'other_key' : 'join'
}

/**
 * A fingerprint by rules of another version of samekey cannot be compared: taken as different, never as the same (P16).
 * The name of an operation that was not registered comes from method and path, which are compared anyway: a release that
 * registers it does not make another intent of it.
 */
function isSame({ fingerprint, operation, registered }: IntentRecord, input: FingerprintInput): boolean {
  try {
    return sameFingerprint(fingerprint, registered ? input : { ...input, operation })
  } catch (error) {
    if (error instanceof FingerprintVersionError) return false
    throw error
  }
}

/** True when the app may forget the record: settled, nothing may still happen (P8), and no stopped lane would go on (P34). */
export function isForgettable(record: IntentRecord): boolean {
  const { state, keyOrigin } = record
  if (keyOrigin === 'derived' || holdsLane(record)) return false
  if (state.name === 'abandoned') return state.freed
  return (
    state.name === 'succeeded' || state.name === 'rejected' || state.name === 'conflicted' || state.name === 'cancelled'
  )
}
