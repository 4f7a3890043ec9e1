/**
 * Everything that can happen to a record. An event says what was learnt; what follows from it is the table's business
 * (transitions.ts). Times and chance come with the context, never from here.
 */
import type { Answer } from './record.ts'
import type { UnknownBecause } from './states.ts'

/** Facts that an answer from the network may bring along. */
interface Heard {
  /** HTTP status, for the history. */
  readonly status?: number
  /** A fixed word or an error's class and code, for the history (P51). */
  readonly detail?: string
  /** The attempt was more than one request, and this is the answer to the last: it says nothing of the others (H16, P30). */
  readonly repeated?: true
}

/** The server's own word on when to come back, in ms from now; null when it gave none (P32). */
interface Paced {
  readonly retryAfterMs: number | null
}

/** What one attempt proved (PROTOCOL.md section 6). Look-ups, voids and finished monitors speak the same language. */
export type Verdict =
  | ({ readonly type: 'neverDelivered' } & Heard)
  | ({ readonly type: 'refusedWithoutEffect' } & Heard & Paced)
  | ({ readonly type: 'needsCredentials' } & Heard)
  | ({ readonly type: 'scopeMismatch' } & Heard)
  | ({ readonly type: 'inProgress' } & Heard & Paced)
  | ({
      readonly type: 'accepted'
      readonly monitorUrl: string | null
      readonly resultExpiresAt: number | null
    } & Heard &
      Paced)
  | ({ readonly type: 'done'; readonly answer: Answer } & Heard)
  | ({ readonly type: 'doneIncomplete'; readonly answer: Answer } & Heard)
  | ({ readonly type: 'conflict'; readonly answer: Answer | null } & Heard)
  | ({ readonly type: 'expired'; readonly answer: Answer | null } & Heard)
  | ({ readonly type: 'voided' } & Heard)
  | ({ readonly type: 'storedFailure'; readonly answer: Answer | null } & Heard)
  | ({ readonly type: 'refused'; readonly answer: Answer; readonly proof: boolean } & Heard)
  | ({ readonly type: 'ambiguous'; readonly unmarked: boolean } & Heard & Paced)

/** What a monitor, a look-up by key or a void said that is no verdict on the intent itself (P38, P44). */
export type Inquiry =
  | ({
      readonly type: 'stillProcessing'
      readonly phase: 'running' | 'retrying'
      readonly monitorUrl: string | null
      readonly resultExpiresAt: number | null
    } & Heard &
      Paced)
  | ({ readonly type: 'clientMayRetry' } & Heard & Paced)
  | ({ readonly type: 'serverUnknown' } & Heard)
  | ({ readonly type: 'otherPayload' } & Heard)
  /** 404 or 410 of a monitor: proves nothing. */
  | ({ readonly type: 'monitorMissing' } & Heard)
  /** The inquiry itself failed; says nothing about the operation. */
  | ({ readonly type: 'inquiryFailed' } & Heard & Paced)
  /** The inquiry was refused for want of credentials; says nothing about the operation. */
  | ({ readonly type: 'inquiryUnauthorized' } & Heard)
  /** The server does not know how to void. */
  | ({ readonly type: 'voidNotOffered' } & Heard)

/** What the app's `reconcile` or a look-up found under the business identity (P43). */
export type Reconciled =
  | { readonly type: 'foundElsewhere'; readonly answer: Answer | null }
  | { readonly type: 'absent' }

/** What happens on this device. */
export type Local =
  | { readonly type: 'due' }
  /** Credentials could not be had for this attempt (P3). */
  | { readonly type: 'credentialsMissing'; readonly detail?: string }
  /** Today's identity is not the record's (P3). */
  | { readonly type: 'scopeDiffers' }
  /** The last synchronous check said no: nothing was given to the network (P35). */
  | { readonly type: 'notHandedOver'; readonly detail: string }
  /** Found as sending, and its holder is gone (P20). */
  | { readonly type: 'recovered' }
  /**
   * The clock was set back, below what the record has seen or while it rested: its due time means nothing any more, and
   * what is in doubt is never dated by this device again (P35).
   */
  | { readonly type: 'clockSteppedBack' }

/** What a person or the app asks for (P45). */
export type Asked =
  | { readonly type: 'cancelAsked'; readonly note?: string }
  | { readonly type: 'checkAsked'; readonly note?: string }
  | { readonly type: 'retryAsked'; readonly note?: string }
  | { readonly type: 'abandonAsked'; readonly note?: string; readonly force: boolean }
  | { readonly type: 'resolvedSucceeded'; readonly note?: string }
  | { readonly type: 'resolvedNotHappened'; readonly note?: string }
  | { readonly type: 'skipAsked'; readonly note?: string }
  | { readonly type: 'laneResumed'; readonly note?: string }
  | { readonly type: 'acknowledged' }

/** An event, by `type`. */
export type IntentEvent = Verdict | Inquiry | Reconciled | Local | Asked

/** Name of an event. */
export type EventName = IntentEvent['type']

/** Every event name, for the matrix and for tests that walk it. */
export const eventNames: readonly EventName[] = [
  'due',
  'credentialsMissing',
  'scopeDiffers',
  'notHandedOver',
  'recovered',
  'clockSteppedBack',
  'neverDelivered',
  'refusedWithoutEffect',
  'needsCredentials',
  'scopeMismatch',
  'inProgress',
  'accepted',
  'done',
  'doneIncomplete',
  'conflict',
  'expired',
  'voided',
  'storedFailure',
  'refused',
  'ambiguous',
  'stillProcessing',
  'clientMayRetry',
  'serverUnknown',
  'otherPayload',
  'monitorMissing',
  'inquiryFailed',
  'inquiryUnauthorized',
  'voidNotOffered',
  'foundElsewhere',
  'absent',
  'cancelAsked',
  'checkAsked',
  'retryAsked',
  'abandonAsked',
  'resolvedSucceeded',
  'resolvedNotHappened',
  'skipAsked',
  'laneResumed',
  'acknowledged',
]

/** What each verdict rests on, as people read it: for the README. */
export const verdictMeanings: Readonly<Record<Verdict['type'], string>> = {
  neverDelivered: 'the connection was never made, for certain',
  refusedWithoutEffect: '425, 429, or an answer that says that nothing was executed',
  needsCredentials: '401',
  scopeMismatch: '403: the request belongs to another account',
  inProgress: '409: the first request with this key still runs',
  accepted: '202',
  done: '2xx with proof',
  doneIncomplete: '2xx with proof, body cut off',
  conflict: 'the server knows this key with another request',
  expired: 'the server no longer remembers keys of this age',
  voided: 'the key was voided',
  storedFailure: 'a stored 5xx, which would be replayed for ever',
  refused: 'another 4xx',
  ambiguous: 'network error, time limit, 408, 5xx, or a 2xx that anybody may have sent',
}

/** Why unknown, as people read it. */
export const unknownReasons: Readonly<Record<UnknownBecause, string>> = {
  server_does_not_deduplicate: 'an attempt may have taken effect, and this server does not de-duplicate',
  window_over: 'an attempt may have taken effect, and the server may have forgotten the key since',
  age_unknown: "an attempt may have taken effect, and this device's clock no longer tells how long ago",
  attempts_spent: 'an attempt may have taken effect, and all attempts are used up',
  send_before_passed: 'an attempt may have taken effect, and the time set by sendBefore is over',
  conflict_in_doubt: 'the server knows this key with another request, and an earlier attempt may have taken effect',
  expired_in_doubt: 'the server has forgotten the key, and an earlier attempt may have taken effect',
  stored_failure: 'the server stored a failure for this key and will repeat it',
  server_unknown: 'the server itself does not know the outcome',
  monitor_lost: 'the server lost track of the accepted work',
  result_expired: 'the server no longer keeps the result of the accepted work',
  other_payload: 'the server knows this key with another payload',
  void_not_offered: 'the key could not be voided: the server does not offer it',
  void_window_over: 'the key could not be voided in time',
  markers_unreadable: 'answers arrive, but this page may not read the headers that prove them (CORS)',
}
