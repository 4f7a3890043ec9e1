/** What a call may say of its intent, and its check in the tick of the call (P9). */
import { ConfigError } from '../errors.ts'
import { isText } from './options.ts'

/** A key that the call brings along (P5, P11). Times are epoch ms or a `Date`. */
export type KeyChoice =
  /** The caller's own key. `since`: when it may have been sent first; 'new' is the caller's word that it never was. */
  | { readonly value: string; readonly since: number | Date | 'new' }
  /** A key that comes out the same for the same name, so that it outlives local storage. */
  | { readonly derived: true; readonly since: number | Date | 'new' }

/** What a call may say of its intent. */
export interface IntentCall {
  /** The app's stable name for what should happen once: 1 to 512 characters. */
  readonly intent: string
  /** A key of the caller's own, or a derived one (P5, P11). Default is a fresh random one. */
  readonly key?: KeyChoice
  /** Registered name of the operation. Default is the one whose `match` says yes. */
  readonly operation?: string
  /** Lane to stand in (P34). Default is the operation's; PUT, PATCH and DELETE to one target are serial by themselves. */
  readonly lane?: string
  /** After rejected or cancelled: the same content once more, with a new key (P7). Changes nothing otherwise. Default is false. */
  readonly again?: boolean
  /** No send after this time, epoch ms or a `Date` (P36). Default is none. */
  readonly sendBefore?: number | Date
  /** Ends the waiting, never the intent (P36). */
  readonly signal?: AbortSignal
  /** How long to wait for the outcome, in ms, before `StillOpenError` (P36). Default is the client's. */
  readonly waitMs?: number
}

const longestId = 512

/**
 * The call, checked, with a copy of everything that the caller could change later (P9). Times become epoch ms.
 *
 * @throws ConfigError for a wrong one: nothing was stored or sent.
 */
export function fixedCall<Call extends IntentCall>(call: Call): Call {
  const { intent, key, operation, lane, again, sendBefore, waitMs } = call
  if (!isText(intent) || intent === '' || intent.length > longestId) {
    throw new ConfigError(
      'intent',
      `give a stable name of 1 to ${longestId} characters for what should happen once, e.g. "checkout:cart-42", or newIntent() for a one-off that you hold`,
    )
  }
  const facts = { intentId: intent }
  if (operation !== undefined && typeof operation !== 'string')
    throw new ConfigError('operation', 'must be the name of a registered operation', facts)
  if (lane !== undefined && (!isText(lane) || lane === ''))
    throw new ConfigError('lane', 'must be a name that is not empty; leave it out for no lane', facts)
  if (again !== undefined && typeof again !== 'boolean') throw new ConfigError('again', 'must be true or false', facts)
  if (waitMs !== undefined && !(typeof waitMs === 'number' && waitMs >= 0))
    throw new ConfigError('waitMs', `must be a number of milliseconds of at least 0; it is ${String(waitMs)}`, facts)
  return {
    ...call,
    ...(key === undefined ? {} : { key: fixedKey(key, intent) }),
    ...(sendBefore === undefined ? {} : { sendBefore: timeOf(sendBefore, 'sendBefore', intent) }),
  }
}

function fixedKey(key: KeyChoice, intentId: string): KeyChoice {
  const given: Partial<Record<'value' | 'derived' | 'since', unknown>> = typeof key === 'object' ? { ...key } : {}
  const isValue = typeof given.value === 'string' && given.derived === undefined
  const isDerived = given.derived === true && given.value === undefined
  if (!isValue && !isDerived) {
    throw new ConfigError(
      'key',
      'give { value, since } for a key of your own, or { derived: true, since } for one that outlives local storage',
      { intentId },
    )
  }
  const since =
    given.since === 'new'
      ? 'new'
      : timeOf(given.since, 'key.since', intentId, `, or 'new' when no earlier life can have sent it (P11)`)
  return isValue ? { value: String(given.value), since } : { derived: true, since }
}

/** The key that the call brings along, or null. */
export function givenKeyOf({ key }: IntentCall): string | null {
  return key !== undefined && 'value' in key ? key.value : null
}

/** The furthest time from 1970 that a `Date` can hold, ms. */
const furthestMs = 8.64e15

function timeOf(time: unknown, option: string, intentId: string, otherwise = ''): number {
  const ms = time instanceof Date ? time.getTime() : time
  if (typeof ms === 'number' && Math.abs(ms) <= furthestMs) return ms
  throw new ConfigError(option, `must be a time: epoch milliseconds or a Date${otherwise}`, { intentId })
}
