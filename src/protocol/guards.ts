/** The questions that rules ask, by name, so that the table stays data. Each answers from record, event and context alone. */
import type { IntentEvent } from './events.ts'
import type { Policy } from './policy.ts'
import { holdsLane, type IntentRecord } from './record.ts'
import { ageMs, clockGainMs, isWindowOpen, type Times } from './window.ts'

/** What a decision may depend on besides record and event. */
export interface Context {
  readonly times: Times
  readonly policy: Policy
  /** In [0, 1), for jitter. */
  readonly random: number
  /** False when the transport may repeat a request by itself: then no attempt's doubt can be cleared (P30). */
  readonly exact: boolean
  /** True when nothing stands before the record in its lane (P34). */
  readonly laneFree: boolean
  /** The platform's hint, for not spending attempts offline (P33). */
  readonly offline: boolean
}

export type Question = (record: IntentRecord, event: IntentEvent, context: Context) => boolean

/** True while an attempt may have been more than one request, so that what was heard of one does not clear it (P30, H16). */
export function mayHaveCopies({ state }: IntentRecord, event: IntentEvent): boolean {
  return state.name === 'sending' && (!state.attempt.exact || 'repeated' in event)
}

const purposeIs =
  (...purposes: readonly string[]): Question =>
  ({ state }) =>
    state.name === 'cancelling' && purposes.includes(state.purpose)

/** Name of a guard. */
export type GuardName =
  | 'inDoubt'
  | 'deduplicates'
  | 'windowOpen'
  | 'ageUnknown'
  | 'voids'
  | 'looksUp'
  | 'attemptsLeft'
  | 'asksLeft'
  | 'operationKnown'
  | 'laneFree'
  | 'sendBeforePassed'
  | 'knownDone'
  | 'proof'
  | 'canAsk'
  | 'unmarkedAgain'
  | 'resultKept'
  | 'pollErrorsLeft'
  | 'monitorYoung'
  | 'keyExpired'
  | 'afterTransit'
  | 'voidForRefusal'
  | 'voidForFound'
  | 'voidForAbsent'
  | 'voidForSendBefore'
  | 'voidToStop'
  | 'voidToGiveUp'
  | 'forced'
  | 'memoryOver'
  | 'stillNeeded'

/** Servers say the time in whole seconds. */
const wholeSecondMs = 1000

/**
 * Every guard by name. In `sending`, `inDoubt` asks about earlier attempts: the one in flight is what the event speaks
 * of, unless there may have been more copies of it (P30).
 */
export const guards: Readonly<Record<GuardName, Question>> = {
  inDoubt: (record, event) => record.doubt !== null || mayHaveCopies(record, event),
  deduplicates: (_record, _event, { policy }) => policy.deduplicates,
  windowOpen: (record, _event, { policy, times }) => isWindowOpen(record, policy, times),
  ageUnknown: (record, _event, { times }) => ageMs(record, times) === null,
  voids: (_record, _event, { policy }) => policy.voids,
  looksUp: (_record, _event, { policy }) => policy.looksUp,
  attemptsLeft: (record, _event, { policy }) => record.spent < policy.maxAttempts,
  asksLeft: (record, _event, { policy }) => record.asked < policy.maxPollErrors,
  operationKnown: (_record, _event, { policy }) => policy.operationKnown,
  laneFree: (_record, _event, { laneFree }) => laneFree,
  sendBeforePassed: (record, _event, { times }) => record.sendBefore !== null && times.now >= record.sendBefore,
  /** An earlier answer proved success, only its body is missing. A refusal that is kept for a void proves none. */
  knownDone: ({ answer }) => answer !== null && answer.body === 'cut_off' && answer.status < 300,
  proof: (_record, event) => event.type === 'refused' && event.proof,
  canAsk: (_record, event) => event.type === 'accepted' && event.monitorUrl !== null,
  /** This is the second cross-origin answer in which no marker can be read (P41). */
  unmarkedAgain: (record, event) => event.type === 'ambiguous' && event.unmarked && record.unmarked > 0,
  /** The server's date is read by the server's clock where that is known (P32, P39). */
  resultKept: ({ state }, _event, { times }) =>
    state.name === 'processing' &&
    (state.monitor.resultExpiresAt === null || (times.serverNow ?? times.now) < state.monitor.resultExpiresAt),
  pollErrorsLeft: ({ state }, _event, { policy }) =>
    state.name === 'processing' && state.monitor.errors < policy.maxPollErrors,
  monitorYoung: ({ state }, _event, { policy, times }) =>
    state.name === 'processing' && times.now - state.monitor.since < policy.monitorGraceMs,
  /**
   * The server said that it has no row of this key any more and takes no request of this age: nothing is at work there
   * (unfinished rows are never reaped, P57). Only what is heard after that is the last word (P43).
   */
  keyExpired: ({ state }) => state.name === 'unknown' && state.because === 'expired_in_doubt',
  /**
   * What is heard now was asked so late that no copy can still be under way (P43), if asking took no longer than an
   * attempt may. An earlier life of this device cannot have sent after the record was made (P11), and time that the
   * device's clock only jumped over did not pass (H53): where no server's clock says how much that was, nobody knows.
   */
  afterTransit: (record, _event, { policy, times }) => {
    const gainMs = clockGainMs(record, times)
    if (gainMs === null) return false
    const passedMs = times.now - (record.lastHandOverAt ?? record.createdAt) - gainMs
    return passedMs > policy.transitMs + policy.attemptTimeoutMs
  },
  voidForRefusal: purposeIs('refusal'),
  voidForFound: purposeIs('found'),
  voidForAbsent: purposeIs('absent'),
  voidForSendBefore: purposeIs('send_before'),
  voidToStop: purposeIs('cancel', 'send_before', 'skip'),
  /** The person gave up: where the void cannot be had, the intent counts as abandoned (P45). */
  voidToGiveUp: purposeIs('abandon', 'resolve'),
  forced: (_record, event) => event.type === 'abandonAsked' && event.force,
  /** Its time to be forgotten has come; a stray `due` must not free an id (P8). */
  memoryOver: ({ dueAt }, _event, { times }) => dueAt !== null && times.now >= dueAt,
  /**
   * Forgetting would let something happen that nobody asked for: a stopped lane would go on (P34), an abandoned id would
   * take a new key without force (P45), or the device's clock ran ahead of the server's (P8, H53).
   */
  stillNeeded: (record, _event, { times, policy }) =>
    holdsLane(record) ||
    (record.state.name === 'abandoned' && !record.state.freed) ||
    // Counted from the end, which does not move: a clock that is a little ahead for good must not keep it for good.
    (record.settledAt !== null &&
      times.serverNow !== null &&
      times.serverNow + wholeSecondMs < record.settledAt + policy.rememberMs),
}

export type GuardRef = GuardName | `!${GuardName}`

/** True when every named guard answers as asked. */
export function holds(refs: readonly GuardRef[], record: IntentRecord, event: IntentEvent, context: Context): boolean {
  return refs.every((ref) => {
    const negated = ref.startsWith('!')
    const name = (negated ? ref.slice(1) : ref) as GuardName
    return guards[name](record, event, context) !== negated
  })
}
