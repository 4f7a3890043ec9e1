/** The questions that rules ask, by name, so that the table stays data. Each answers from record, event and context alone. */
import type { IntentEvent } from './events.ts'
import type { Policy } from './policy.ts'
import type { IntentRecord } from './record.ts'
import { ageMs, isWindowOpen, type Times } from './window.ts'

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

type Question = (record: IntentRecord, event: IntentEvent, context: Context) => boolean

const purposeIs =
  (...purposes: readonly string[]): Question =>
  ({ state }) =>
    state.name === 'cancelling' && purposes.includes(state.purpose)

/** Every guard by name. In `sending`, `inDoubt` asks about earlier attempts: the one in flight is what the event speaks of. */
export const guards = {
  inDoubt: (record) => record.doubt !== null,
  deduplicates: (_record, _event, { policy }) => policy.deduplicates,
  windowOpen: (record, _event, { policy, times }) => isWindowOpen(record, policy, times),
  ageUnknown: (record, _event, { times }) => ageMs(record, times) === null,
  voids: (_record, _event, { policy }) => policy.voids,
  looksUp: (_record, _event, { policy }) => policy.looksUp,
  attemptsLeft: (record, _event, { policy }) => record.spent < policy.maxAttempts,
  asksLeft: (record, _event, { policy }) => record.asked < policy.maxAttempts,
  operationKnown: (_record, _event, { policy }) => policy.operationKnown,
  laneFree: (_record, _event, { laneFree }) => laneFree,
  sendBeforePassed: (record, _event, { times }) => record.sendBefore !== null && times.now >= record.sendBefore,
  /** An earlier answer proved success, only its body is missing. */
  knownDone: (record) => record.answer?.body === 'cut_off',
  proof: (_record, event) => event.type === 'refused' && event.proof,
  canAsk: (_record, event) => event.type === 'accepted' && event.monitorUrl !== null,
  /** This is the second cross-origin answer in which no marker can be read (P41). */
  unmarkedAgain: (record, event) => event.type === 'ambiguous' && event.unmarked && record.unmarked > 0,
  resultKept: ({ state }, _event, { times }) =>
    state.name === 'processing' &&
    (state.monitor.resultExpiresAt === null || times.now < state.monitor.resultExpiresAt),
  pollErrorsLeft: ({ state }, _event, { policy }) =>
    state.name === 'processing' && state.monitor.errors < policy.maxPollErrors,
  monitorYoung: ({ state }, _event, { policy, times }) =>
    state.name === 'processing' && times.now - state.monitor.since < policy.monitorGraceMs,
  /** The void was sent so late that no copy can still be under way (P43). */
  afterTransit: (record, _event, { policy, times }) =>
    record.lastHandOverAt === null || times.now - record.lastHandOverAt > policy.transitMs + policy.attemptTimeoutMs,
  voidForRefusal: purposeIs('refusal'),
  voidForFound: purposeIs('found'),
  voidForAbsent: purposeIs('absent'),
  voidForSendBefore: purposeIs('send_before'),
  /** The person gave up: where the void cannot be had, the intent counts as abandoned (P45). */
  voidToGiveUp: purposeIs('abandon', 'resolve'),
  forced: (_record, event) => event.type === 'abandonAsked' && event.force,
} as const satisfies Record<string, Question>

/** Name of a guard; `!` in front asks for its opposite. */
export type GuardName = keyof typeof guards
export type GuardRef = GuardName | `!${GuardName}`

/** True when every named guard answers as asked. */
export function holds(refs: readonly GuardRef[], record: IntentRecord, event: IntentEvent, context: Context): boolean {
  return refs.every((ref) => {
    const negated = ref.startsWith('!')
    const name = (negated ? ref.slice(1) : ref) as GuardName
    return guards[name](record, event, context) !== negated
  })
}
