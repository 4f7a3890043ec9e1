/** The changes that rules make to a record besides its state, by name, so that the table stays data. */
import { backoffMs } from './backoff.ts'
import type { IntentEvent } from './events.ts'
import { type Context, mayHaveCopies } from './guards.ts'
import { type Doubt, firstHandOver, type IntentRecord } from './record.ts'
import type { Times } from './window.ts'

export type Change = (record: IntentRecord, event: IntentEvent, context: Context) => Partial<IntentRecord>

function told(event: IntentEvent): number | null {
  return 'retryAfterMs' in event ? event.retryAfterMs : null
}

/**
 * Never earlier than the server said; a little later, so that those it told the same do not come at once (P31, P32).
 * Whole milliseconds, as databases keep times.
 */
function pace(ownMs: number, event: IntentEvent, { random, policy }: Context): number {
  const toldMs = told(event)
  return toldMs === null ? ownMs : Math.ceil(Math.max(ownMs, toldMs + random * policy.backoff.baseMs))
}

/** A server that is at work on it knows best when to look again: its pace is kept, and our own waits do not grow (P39). */
function askPace(record: IntentRecord, event: IntentEvent, context: Context): number {
  const { policy, random } = context
  const isPolled = event.type === 'stillProcessing' || (event.type === 'accepted' && event.monitorUrl !== null)
  if (isPolled && event.retryAfterMs !== null) return pace(policy.ask.minMs, event, context)
  return pace(backoffMs(policy.ask, record.asked + 1, random), event, context)
}

/** Name of an update. */
export type UpdateName =
  | 'beginAttempt'
  | 'takeBackAttempt'
  | 'spareAttempt'
  | 'spareAttemptOffline'
  | 'handedOver'
  | 'keepDoubt'
  | 'keepDoubtOfCopies'
  | 'assumeDoubt'
  | 'backoff'
  | 'ask'
  | 'resetAsked'
  | 'slowPoll'
  | 'dueNow'
  | 'keepWait'
  | 'dueSoon'
  | 'notDue'
  | 'renewAttempts'
  | 'keepAnswer'
  | 'dropAnswer'
  | 'countUnmarked'
  | 'releaseLane'
  | 'releaseLaneIfSkipped'
  | 'settle'
  | 'acknowledge'
  | 'rememberLonger'
  | 'forgetSeenTime'

/**
 * The first hand-over on the server's clock, where its own answer brought the first date: carried back by the attempt's
 * duration, and never again after that. A clock that jumped meanwhile makes the age larger, or smaller by less than an
 * attempt's time limit, which the window leaves room for (P35).
 */
function dated(first: Doubt | null, { doubt }: IntentRecord, { now, serverNow }: Times): Doubt | null {
  if (first === null || doubt !== null || first.serverAt !== null || serverNow === null) return first
  return { ...first, serverAt: serverNow - Math.max(0, now - first.at) }
}

/** Every update by name. Each sees the record as the updates before it left it, still in its old state. */
export const updates: Readonly<Record<UpdateName, Change>> = {
  /** One more attempt. A record that is not in doubt starts afresh, whatever clock values it has seen (P35, H53). */
  beginAttempt: ({ attempts, spent, doubt, seenAt }, _event, { times }) => ({
    attempts: attempts + 1,
    spent: spent + 1,
    lastHandOverAt: times.now,
    seenAt: doubt === null ? times.now : seenAt,
  }),
  /** The attempt never was one: nothing was given to the network. */
  takeBackAttempt: ({ attempts, spent }) => ({ attempts: attempts - 1, spent: spent - 1 }),
  /** The attempt was one, but is not counted against the limit. */
  spareAttempt: (record) => ({ spent: record.spent - 1 }),
  /** Waiting offline spends no attempts (P33). */
  spareAttemptOffline: (record, _event, { offline }) => (offline ? { spent: record.spent - 1 } : {}),
  handedOver: ({ state, handedOver }) => ({ handedOver: handedOver || state.name === 'sending' }),
  /** Doubt counts from the earliest attempt that is not cleared (P19). */
  keepDoubt: (record, _event, { times }) => ({ doubt: dated(firstHandOver(record), record, times) }),
  /** A refused copy clears nothing where there may have been another (P30). */
  keepDoubtOfCopies: (record, event) => (mayHaveCopies(record, event) ? { doubt: firstHandOver(record) } : {}),
  /** The server knows the key although nothing is in doubt here: some other life of this intent sent it (P11). */
  assumeDoubt: (record) => ({ doubt: firstHandOver(record) ?? { at: record.createdAt, serverAt: null } }),
  /** Tries that were spared because the platform says offline count for the pace all the same: no loop (P31, P33). */
  backoff: ({ attempts, spent }, event, context) => {
    const { policy, random, times, offline } = context
    return { dueAt: times.now + pace(backoffMs(policy.backoff, offline ? attempts : spent, random), event, context) }
  },
  /** In-progress answers and polls wait at a pace of their own, and spend no attempts. */
  ask: (record, event, context) => ({
    asked: record.asked + 1,
    dueAt: context.times.now + askPace(record, event, context),
  }),
  resetAsked: () => ({ asked: 0 }),
  slowPoll: (_record, _event, { times, policy }) => ({ dueAt: times.now + policy.slowPollMs }),
  dueNow: (_record, _event, { times }) => ({ dueAt: times.now }),
  /** What was left to wait by the wrong clock is still to be waited by the right one (P32, P35). */
  keepWait: ({ dueAt, seenAt }, _event, { times }) => ({
    dueAt: dueAt === null ? null : times.now + Math.max(0, dueAt - seenAt),
  }),
  /** A due time of a wrong clock may be years away. Said twice, it changes nothing: no loop (P35, P39). */
  dueSoon: ({ dueAt }, _event, { times, policy }) => ({
    dueAt: dueAt === null ? null : Math.min(dueAt, times.now + policy.slowPollMs),
  }),
  notDue: () => ({ dueAt: null }),
  renewAttempts: () => ({ spent: 0, asked: 0, unmarked: 0 }),
  keepAnswer: (_record, event) => ('answer' in event && event.answer !== null ? { answer: event.answer } : {}),
  dropAnswer: () => ({ answer: null }),
  countUnmarked: (record, event) =>
    event.type === 'ambiguous' && event.unmarked ? { unmarked: record.unmarked + 1 } : {},
  releaseLane: () => ({ laneReleased: true }),
  /** A skip has done its work once the void has an end, whichever (P34). */
  releaseLaneIfSkipped: ({ state, laneReleased }) => ({
    laneReleased: laneReleased || (state.name === 'cancelling' && state.purpose === 'skip'),
  }),
  settle: (_record, _event, { times }) => ({ settledAt: times.now, dueAt: null, doubt: null, acknowledgedAt: null }),
  acknowledge: (record, _event, { times, policy }) => ({
    acknowledgedAt: times.now,
    dueAt: (record.settledAt ?? times.now) + policy.rememberMs,
  }),
  rememberLonger: (_record, _event, { times, policy }) => ({ dueAt: times.now + policy.rememberMs }),
  /** A clock value of a run whose clock was wrong is worth nothing: the record starts afresh (P35). */
  forgetSeenTime: (_record, _event, { times }) => ({ seenAt: times.now }),
}
