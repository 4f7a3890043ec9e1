/**
 * The persisted intent: who, which key, which bytes, what happened so far. Everything here is plain data, so that it
 * can be stored as text and read by a later version (P23).
 */
import type { Fingerprint } from './fingerprint.ts'
import { type Attempt, isSettled, type State } from './states.ts'

/** Version of the format below. */
export const recordFormat = 1

/** A header as stored: lower-case name and value. */
export type HeaderPair = readonly [name: string, value: string]

/** The request as fixed at submit (P9). Its body's bytes are a blob beside the record. */
export interface StoredRequest {
  readonly method: string
  /** Absolute address. */
  readonly url: string
  /** Business headers and content type; never credentials, never the key. */
  readonly headers: readonly HeaderPair[]
  /** Whether there is a body; an empty one counts as one. */
  readonly hasBody: boolean
  /** SHA-256 of the body's bytes, lower-case hex. */
  readonly bodyDigest: string
  /** fetch's modes, as the caller gave them (H62). */
  readonly credentials: 'omit' | 'same-origin' | 'include'
  readonly mode: 'cors' | 'same-origin' | 'no-cors'
  readonly referrerPolicy: string
}

/** Why an answer's body is not there. */
export type BodyAbsence = 'cut_off' | 'too_large' | 'not_stored_by_choice' | 'omitted_by_server' | 'not_given'

/** The answer that decided, without `Set-Cookie`. Its body's bytes are a blob beside the record. */
export interface Answer {
  readonly status: number
  readonly headers: readonly HeaderPair[]
  /** Final address it came from. */
  readonly url: string
  /** `stored`: the blob has it. `empty`: there was none. Otherwise why it is missing (P22, P51). */
  readonly body: 'stored' | 'empty' | BodyAbsence
  /** True when the server said that it was stored from an earlier attempt. */
  readonly replayed: boolean
}

/** The earliest hand-over that may have taken effect (P19). From here window, age and `Idempotency-Since` count. */
export interface Doubt {
  /** Epoch ms on this device. */
  readonly at: number
  /** Epoch ms on the server's clock, where known. Never refreshed. */
  readonly serverAt: number | null
}

/** One line of history: what happened, without bodies and secrets (P51). */
export interface HistoryLine {
  /** Epoch ms. */
  readonly at: number
  /** Name of the event. */
  readonly event: string
  /** Number of the attempt, where it was one. */
  readonly attempt?: number
  /** HTTP status, where there was one. */
  readonly status?: number
  /** A short reason in fixed words or an error's class and code; never text from a body. */
  readonly detail?: string
}

/** What a person did, kept for good (P45). */
export interface ActionLine {
  /** Epoch ms. */
  readonly at: number
  readonly action: 'check' | 'retry' | 'cancel' | 'resolve' | 'abandon' | 'skip' | 'resume'
  readonly note?: string
}

/** How the intent got its key. */
export type KeyOrigin = 'minted' | 'derived' | 'given'

/** A lane that the intent stands in (P34). */
export interface LanePlace {
  /** Stored name, unique within the client. */
  readonly lane: string
  /** `named`: goes on only after success. `serial`: goes on once settled. */
  readonly kind: 'named' | 'serial'
}

/** The persisted intent. */
export interface IntentRecord {
  readonly client: string
  readonly scope: string
  readonly id: string
  readonly key: string
  readonly keyOrigin: KeyOrigin
  /** Registered name, or `METHOD /path` for an operation that the app did not register. */
  readonly operation: string
  /** True when the app had registered `operation` at submit: without it, the record is parked on resume (P24). */
  readonly registered: boolean
  readonly fingerprint: Fingerprint
  readonly request: StoredRequest
  readonly lane: LanePlace | null
  /** Epoch ms. */
  readonly createdAt: number
  /** Epoch ms from which the key may have been in use elsewhere (P11), or null when this is its first life. */
  readonly since: number | null
  /** Epoch ms after which no further send is made (P36), or null. */
  readonly sendBefore: number | null

  readonly state: State
  /** Epoch ms at which the protocol wants attention, or null. */
  readonly dueAt: number | null
  /** Attempts spent, over all restarts. */
  readonly attempts: number
  /** Attempts that count against the limit: a person's retry sets it to 0. */
  readonly spent: number
  /** In-progress answers and the like in a row, which wait at a pace of their own. */
  readonly asked: number
  /** True once an attempt was given to the network. A record that is `sending` counts besides. */
  readonly handedOver: boolean
  /** Null while no attempt may have taken effect unheard. A record that is `sending` counts besides. */
  readonly doubt: Doubt | null
  /** Epoch ms of the last hand-over, or null. */
  readonly lastHandOverAt: number | null
  /** Cross-origin 2xx answers without a readable marker (P41). */
  readonly unmarked: number
  /** Highest wall time seen by this record (P35). */
  readonly seenAt: number
  /** The deciding answer, or an incomplete or unproven one that may yet decide. */
  readonly answer: Answer | null
  /** Epoch ms, or null while not settled. */
  readonly settledAt: number | null
  /** Epoch ms at which a caller or the app took note of the outcome (P22), or null. */
  readonly acknowledgedAt: number | null
  /** True once a stopped lane was told to go on past this record (P34). */
  readonly laneReleased: boolean
  readonly history: readonly HistoryLine[]
  readonly actions: readonly ActionLine[]
}

/** What a record knows before anything happened to it. */
export const untouched: Pick<
  IntentRecord,
  | 'attempts'
  | 'spent'
  | 'asked'
  | 'handedOver'
  | 'doubt'
  | 'lastHandOverAt'
  | 'unmarked'
  | 'answer'
  | 'settledAt'
  | 'acknowledgedAt'
  | 'laneReleased'
  | 'history'
  | 'actions'
> = {
  attempts: 0,
  spent: 0,
  asked: 0,
  handedOver: false,
  doubt: null,
  lastHandOverAt: null,
  unmarked: 0,
  answer: null,
  settledAt: null,
  acknowledgedAt: null,
  laneReleased: false,
  history: [],
  actions: [],
}

/** Lines of history that are kept; the first and the latest matter, the middle goes. */
export const historyLimit = 40

/** True when at least one attempt was given to the network (P19). */
export function isHandedOver(record: IntentRecord): boolean {
  return record.handedOver || record.state.name === 'sending'
}

/** True when some attempt may have taken effect and nothing has said whether (P19). */
export function isInDoubt(record: IntentRecord): boolean {
  return !isSettled(record.state.name) && (record.doubt !== null || record.state.name === 'sending')
}

/** The earliest hand-over not cleared: window and age count from it. The attempt in flight counts. */
export function firstHandOver(record: IntentRecord): Doubt | null {
  if (record.doubt !== null) return record.doubt
  return record.state.name === 'sending' ? doubtOf(record.state.attempt) : null
}

/** The doubt that an attempt leaves behind. */
export function doubtOf(attempt: Attempt): Doubt {
  return { at: attempt.at, serverAt: attempt.serverAt }
}

/** True when nobody answered the last try: a network that came back is reason enough for the next (P31). */
export function wasUnheard({ state, history }: Pick<IntentRecord, 'state' | 'history'>): boolean {
  const last = history.at(-1)
  const unheard = last?.event === 'neverDelivered' || last?.event === 'ambiguous'
  return state.name === 'waiting' && unheard && last.status === undefined
}

/** True when it could not go on for want of credentials: new ones are reason enough to try (P33). */
export function wasHeldBack({ state, history }: Pick<IntentRecord, 'state' | 'history'>): boolean {
  if (state.name === 'blocked') return state.on === 'credentials' || state.on === 'scope'
  return heldBack.has(history.at(-1)?.event ?? '')
}

const heldBack: ReadonlySet<string> = new Set(['credentialsMissing', 'scopeDiffers', 'inquiryUnauthorized'])

/** True while records behind this one in its lane wait for it (P34). */
export function holdsLane(record: IntentRecord): boolean {
  if (record.lane === null || record.laneReleased) return false
  if (!isSettled(record.state.name)) return true
  return record.lane.kind === 'named' && record.state.name !== 'succeeded'
}

/** `record` with one more line of history, bounded by {@link historyLimit}. */
export function withHistory(record: IntentRecord, line: HistoryLine): IntentRecord {
  const history = [...record.history, line]
  if (history.length > historyLimit) history.splice(historyLimit / 4, history.length - historyLimit)
  return { ...record, history }
}
