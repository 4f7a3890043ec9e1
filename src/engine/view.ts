/** What the app may see of an intent: a copy, without the machine's own bookkeeping. */
import type { ActionLine, Answer, HistoryLine, IntentRecord, KeyOrigin } from '../protocol/record.ts'
import { isHandedOver, isInDoubt } from '../protocol/record.ts'
import type { StateName } from '../protocol/states.ts'
import type { Loaded, SetAside } from './ledger.ts'

/** An intent as the app sees it. Times are epoch ms. */
export interface IntentView {
  /** The app's name for it. */
  readonly id: string
  /** The idempotency key (P13). */
  readonly key: string
  /** How it got its key: a fresh random one, one derived from its name, or one that the caller gave. */
  readonly keyOrigin: KeyOrigin
  /** Registered name of the operation, else method and path. */
  readonly operation: string
  /** Where it stands. */
  readonly state: StateName
  /** What it waits for or why it ended as it did, in a fixed word; null where the state says it all. */
  readonly detail: string | null
  /** Method of the request, in upper case. */
  readonly method: string
  /** Absolute address of the request. */
  readonly url: string
  /** True once an attempt was given to the network. */
  readonly handedOver: boolean
  /** True while an attempt may have taken effect and nothing has said whether. */
  readonly inDoubt: boolean
  /** Attempts made so far, over all restarts. */
  readonly attempts: number
  /** When it was submitted. */
  readonly createdAt: number
  /** When samekey will look at it again by itself, or null. */
  readonly dueAt: number | null
  /** No send after this time, or null (P36). */
  readonly sendBefore: number | null
  /** When it was settled, or null. */
  readonly settledAt: number | null
  /** When the outcome was taken note of, or null: then it is still in the inbox (P22). */
  readonly acknowledgedAt: number | null
  /** The lane it stands in, or null. */
  readonly lane: string | null
  /** Status and headers of the deciding answer, or null. */
  readonly answer: Pick<Answer, 'status' | 'headers' | 'replayed'> | null
  /** False once a newer intent took the id over (P6). */
  readonly current: boolean
  /** What happened, oldest first, without bodies and secrets (P51): at most the first 10 lines and the latest 30. */
  readonly history: readonly HistoryLine[]
  /** What people did, with their notes (P45). */
  readonly actions: readonly ActionLine[]
}

/** An intent whose record cannot be read; its id stays taken until a person settles it (P23). */
export interface SetAsideView {
  /** The app's name for it. */
  readonly id: string
  /** The idempotency key. */
  readonly key: string
  /** `newer`: a later version of samekey wrote it. */
  readonly reason: 'damaged' | 'newer'
}

/** A record as its view. */
export function viewOf({ row, record }: Loaded): IntentView {
  return {
    id: record.id,
    key: record.key,
    keyOrigin: record.keyOrigin,
    operation: record.operation,
    state: record.state.name,
    detail: detailOf(record),
    method: record.request.method,
    url: record.request.url,
    handedOver: isHandedOver(record),
    inDoubt: isInDoubt(record),
    attempts: record.attempts,
    createdAt: record.createdAt,
    dueAt: record.dueAt,
    sendBefore: record.sendBefore,
    settledAt: record.settledAt,
    acknowledgedAt: record.acknowledgedAt,
    lane: record.lane === null ? null : laneName(record.lane.lane),
    answer:
      record.answer === null
        ? null
        : { status: record.answer.status, headers: record.answer.headers, replayed: record.answer.replayed },
    current: row.current,
    history: record.history,
    actions: record.actions,
  }
}

/** An unreadable row as its view. */
export function setAsideViewOf({ row, reason }: SetAside): SetAsideView {
  return { id: row.id, key: row.key, reason }
}

/** What the intent waits for or why it ended as it did, in a fixed word; null where the state says it all. */
export function detailOf({ state }: IntentRecord): string | null {
  switch (state.name) {
    case 'waiting':
    case 'unknown':
    case 'cancelled':
      return state.because
    case 'blocked':
      return state.on
    case 'processing':
      return state.monitor.phase
    case 'cancelling':
      return state.purpose
    case 'succeeded':
      return state.by
    case 'abandoned':
      return state.freed ? 'freed' : 'may_still_happen'
    default:
      return null
  }
}

/** The stored name of a lane: unique over scopes and kinds. */
export function laneKey(scope: string, kind: 'named' | 'serial', name: string): string {
  return JSON.stringify([scope, kind, name])
}

/** The app's name of a stored lane. */
function laneName(lane: string): string {
  try {
    return (JSON.parse(lane) as [string, string, string])[2]
  } catch {
    // A damaged name is still a name: one record must not keep the others from being listed (P23).
    return lane
  }
}
