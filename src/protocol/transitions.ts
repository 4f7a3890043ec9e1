/**
 * THE TABLE: state x event -> rules, tried in order. It is data: the README's diagram and table, the test matrix and
 * the engine are all made from it. A missing cell means that the event changes nothing there (and a person who asked
 * for it is told so). In every rule `persist` comes before every other effect (P17).
 */
import type { EffectName } from './effects.ts'
import type { EventName } from './events.ts'
import type { GuardRef } from './guards.ts'
import type { State, StateName, UnknownBecause, WaitingBecause } from './states.ts'
import type { UpdateName } from './updates.ts'

/** The state a rule leads to: whole, where it owns nothing dynamic; by name, where the machine builds what it owns. */
export type Next =
  | 'same'
  | Exclude<State, { name: 'sending' | 'processing' }>
  | { readonly name: 'sending' }
  | { readonly name: 'processing' }

/** One row of the table. */
export interface Rule {
  /** All must hold; none means always. */
  readonly when: readonly GuardRef[]
  readonly next: Next
  /** Changes to the record, in order, made before the state changes. */
  readonly set: readonly UpdateName[]
  /** Effects, in order. */
  readonly effects: readonly EffectName[]
  /** The promises that this row keeps. */
  readonly rule: string
}

/** What each state does with each event. */
export type Table = { readonly [state in StateName]: { readonly [event in EventName]?: readonly Rule[] } }

const tell: readonly EffectName[] = ['persist', 'announce']

function to(
  next: Next,
  rule: string,
  when: readonly GuardRef[] = [],
  set: readonly UpdateName[] = [],
  effects = tell,
): Rule {
  return { when, next, set, effects, rule }
}

/** Gives up honestly. Where an earlier answer proved success and only its body is missing, that is the outcome. */
function unknown(
  because: UnknownBecause,
  rule: string,
  when: readonly GuardRef[] = [],
  set: readonly UpdateName[] = [],
): Rule[] {
  return [
    succeeded('P26, section 6: succeeded without body', [...when, 'knownDone'], set),
    to({ name: 'unknown', because }, rule, when, [...set, 'keepDoubt', 'handedOver', 'notDue']),
  ]
}

function succeeded(rule: string, when: readonly GuardRef[] = [], set: readonly UpdateName[] = []): Rule {
  return to({ name: 'succeeded', by: 'answer' }, rule, when, [...set, 'handedOver', 'settle'])
}

/** A hand-over that may have taken effect, and what follows where nothing better is known. */
function doubted(because: WaitingBecause, set: readonly UpdateName[], pace: 'backoff' | 'ask' = 'backoff'): Rule[] {
  return [
    to(
      { name: 'waiting', because },
      'P5, P19: same key again inside the window',
      ['deduplicates', 'windowOpen', 'attemptsLeft'],
      ['keepDoubt', 'handedOver', ...set, pace],
    ),
    ...noLongerSafe(set),
    ...unknown('attempts_spent', 'P29', [], set),
  ]
}

/** Why the same key may not be sent again, where one of these is the reason. */
function noLongerSafe(set: readonly UpdateName[]): Rule[] {
  return [
    ...unknown('server_does_not_deduplicate', 'P1, F24', ['!deduplicates'], set),
    to(
      { name: 'waiting', because: 'clock_stepped_back' },
      'P35: a server date may yet tell the age',
      ['ageUnknown', 'looksUp', 'asksLeft'],
      ['keepDoubt', 'handedOver', ...set, 'backoff'],
    ),
    ...unknown('age_unknown', 'P35', ['ageUnknown'], set),
    ...unknown('window_over', 'P35, F13', ['!windowOpen'], set),
  ]
}

/** An attempt that surely had no effect; of its copies, if there may have been some, that is not known. */
function cleared(because: WaitingBecause, set: readonly UpdateName[]): Rule[] {
  return [
    to(
      { name: 'waiting', because },
      'P19, P30, section 6: retry',
      ['attemptsLeft'],
      [...set, 'keepDoubtOfCopies', 'backoff'],
    ),
    ...unknown('attempts_spent', 'P29: in doubt', ['inDoubt'], set),
    to({ name: 'blocked', on: 'attempts' }, 'P29: not in doubt', [], [...set, 'notDue']),
  ]
}

/** The moment to try: everything that may forbid it is asked here, and once more in the tick of hand-over (P35). */
const due: readonly Rule[] = [
  to({ name: 'blocked', on: 'operation' }, 'P24', ['!operationKnown'], ['slowPoll']),
  to({ name: 'cancelled', because: 'send_before_passed' }, 'P36', ['sendBeforePassed', '!inDoubt'], ['settle']),
  to(
    { name: 'cancelling', purpose: 'send_before' },
    'P36, P44',
    ['sendBeforePassed', '!knownDone', 'voids', 'windowOpen'],
    ['dueNow', 'resetAsked'],
  ),
  ...unknown('send_before_passed', 'P36', ['sendBeforePassed']),
  ...unknown('server_does_not_deduplicate', 'P1', ['inDoubt', '!deduplicates']),
  to(
    'same',
    'P35: a server date may yet tell the age',
    ['inDoubt', 'ageUnknown', 'looksUp', 'asksLeft'],
    ['ask'],
    ['persist', 'lookup'],
  ),
  ...unknown('age_unknown', 'P35, H40', ['inDoubt', 'ageUnknown']),
  ...unknown('window_over', 'P35, F13', ['inDoubt', '!windowOpen']),
  to({ name: 'blocked', on: 'lane' }, 'P34', ['!laneFree'], ['notDue']),
  ...unknown('attempts_spent', 'P29: in doubt', ['!attemptsLeft', 'inDoubt']),
  to({ name: 'blocked', on: 'attempts' }, 'P29: not in doubt', ['!attemptsLeft'], ['notDue']),
  // Due at once: whoever finds it without a holder takes it up (P20).
  to({ name: 'sending' }, 'P17', [], ['beginAttempt', 'dueNow'], ['persist', 'announce', 'send']),
]

/** An answer from behind the key decides wherever it comes from: a look-up, a monitor, a void, a late attempt (P42, P48). */
const proofs: Table['unknown'] = {
  done: [succeeded('P42, P48', [], ['keepAnswer'])],
  doneIncomplete: [succeeded('P42, P48: succeeded without body', [], ['keepAnswer'])],
  refused: [to({ name: 'rejected' }, 'P42, P48', ['proof'], ['keepAnswer', 'settle'])],
  voided: [to({ name: 'cancelled', because: 'voided' }, 'P44', [], ['settle'])],
}

/** The server is at work on it, as an inquiry found out. */
const foundProcessing: Table['unknown'] = {
  stillProcessing: [to({ name: 'processing' }, 'P38', [], ['assumeDoubt', 'resetAsked', 'ask'])],
}

/** What the app or a person found under the business identity (P43). */
const found: Table['unknown'] = {
  foundElsewhere: [
    to(
      { name: 'cancelling', purpose: 'found' },
      'P43: the key is voided besides',
      ['voids', 'windowOpen', 'inDoubt'],
      ['keepAnswer', 'dueNow', 'resetAsked'],
    ),
    to({ name: 'succeeded', by: 'reconcile' }, 'P43', [], ['keepAnswer', 'settle']),
  ],
}

/**
 * What was not found. Only for an intent whose outcome is unknown: while it is still tried by itself, not being there is
 * no news, and a look must not cancel what the app wants (P43).
 */
const absent: Table['unknown'] = {
  absent: [
    to(
      { name: 'cancelled', because: 'reconciled_absent' },
      'P43, H57: nothing is there, at work or under way any more',
      ['inDoubt', 'keyExpired', 'afterTransit'],
      ['settle'],
    ),
    to(
      { name: 'cancelling', purpose: 'absent' },
      'P43: absent alone proves nothing',
      ['inDoubt', '!knownDone', 'voids', 'windowOpen'],
      ['dueNow', 'resetAsked'],
    ),
  ],
}

/** An earlier answer proved success: nothing that a person wants instead can still be had. */
const tooLate: readonly Rule[] = [succeeded('P27, P42: an earlier answer proved success', ['knownDone'])]

/** What a person may say of an intent whose outcome is not known (P45). */
const person: Table['unknown'] = {
  checkAsked: [to('same', 'P45: recorded; what it finds comes as events of its own', [], [], ['persist'])],
  resolvedSucceeded: [to({ name: 'succeeded', by: 'person' }, 'P45', [], ['settle'])],
  resolvedNotHappened: [
    ...tooLate,
    to({ name: 'cancelled', because: 'by_app' }, 'P45', ['!inDoubt'], ['settle']),
    to(
      { name: 'cancelling', purpose: 'resolve' },
      'P45, H31: voids first',
      ['voids', 'windowOpen'],
      ['dueNow', 'resetAsked'],
    ),
    to({ name: 'abandoned', mayStillHappen: true, freed: false }, 'P45: counts as abandoned', [], ['settle']),
  ],
  abandonAsked: [
    ...tooLate,
    to({ name: 'cancelled', because: 'by_app' }, 'P45: nothing can have happened', ['!inDoubt'], ['settle']),
    to(
      { name: 'cancelling', purpose: 'abandon' },
      'P45: voids first',
      ['voids', 'windowOpen'],
      ['dueNow', 'resetAsked'],
    ),
    to({ name: 'abandoned', mayStillHappen: true, freed: true }, 'P45, H30: forced', ['forced'], ['settle']),
    to({ name: 'abandoned', mayStillHappen: true, freed: false }, 'P45', [], ['settle']),
  ],
  cancelAsked: [
    ...tooLate,
    to({ name: 'cancelled', because: 'by_app' }, 'P19', ['!inDoubt'], ['settle']),
    to({ name: 'cancelling', purpose: 'cancel' }, 'P44', ['voids', 'windowOpen'], ['dueNow', 'resetAsked']),
  ],
  skipAsked: [
    ...tooLate,
    to({ name: 'cancelled', because: 'by_app' }, 'P34', ['!inDoubt'], ['releaseLane', 'settle']),
    to({ name: 'cancelling', purpose: 'skip' }, 'P34: voids first', ['voids', 'windowOpen'], ['dueNow', 'resetAsked']),
    to('same', 'P34: order is no longer promised', [], ['releaseLane']),
  ],
}

/** Waiting for the next try, in whichever way. */
const resting: Table['unknown'] = {
  due,
  credentialsMissing: [to({ name: 'blocked', on: 'credentials' }, 'P3, F14', [], ['slowPoll'])],
  scopeDiffers: [to({ name: 'blocked', on: 'scope' }, 'P3, F15', [], ['slowPoll'])],
  clockSteppedBack: [
    to('same', 'P35: not in doubt starts afresh', ['!inDoubt'], ['keepWait', 'forgetSeenTime'], ['persist']),
    to('same', 'P35: in doubt is judged soon', [], ['dueSoon'], ['persist']),
  ],
  retryAsked: [to({ name: 'waiting', because: 'retried_by_person' }, 'P29, P45', [], ['renewAttempts', 'dueNow'])],
  ...proofs,
  doneIncomplete: [
    to(
      { name: 'waiting', because: 'answer_incomplete' },
      'P48, section 6: late, and the replay may yet bring the body',
      ['deduplicates', 'windowOpen', 'attemptsLeft'],
      ['keepAnswer', 'assumeDoubt', 'backoff'],
    ),
    succeeded('P42, P48: succeeded without body', [], ['keepAnswer']),
  ],
  ...foundProcessing,
  ...found,
  ...person,
  serverUnknown: unknown('server_unknown', 'P38', ['inDoubt']),
  otherPayload: unknown('other_payload', 'section 16, H37', ['inDoubt']),
  expired: unknown('expired_in_doubt', 'section 6', ['inDoubt']),
  storedFailure: unknown('stored_failure', 'F18', ['inDoubt']),
}

/** Settled: only further proof moves it (P48); the inbox and memory are tended (P8, P22). */
const settled: Table['unknown'] = {
  acknowledged: [to('same', 'P22', [], ['acknowledge'])],
  due: [
    to(
      'same',
      'P8, P34, P45: forgetting it would not be harmless',
      ['memoryOver', 'stillNeeded'],
      ['rememberLonger'],
      ['persist'],
    ),
    to('same', 'P8: no longer remembered', ['memoryOver'], [], ['remove']),
  ],
  laneResumed: [to('same', 'P34', [], ['releaseLane'])],
  skipAsked: [to('same', 'P34', [], ['releaseLane'])],
}

/** An answer proves more than the outcome so far: states only move forward (P48). */
const surpassed: Table['unknown'] = {
  done: [succeeded('P48: a late answer from behind the key', [], ['keepAnswer'])],
  doneIncomplete: [succeeded('P48: a late answer from behind the key, without body', [], ['keepAnswer'])],
}

export const transitions: Table = {
  queued: resting,
  waiting: resting,
  blocked: resting,

  sending: {
    notHandedOver: [
      to(
        { name: 'waiting', because: 'not_handed_over' },
        'P35: nothing was given to the network',
        [],
        ['takeBackAttempt', 'dueNow'],
      ),
    ],
    scopeDiffers: [to({ name: 'blocked', on: 'scope' }, 'P3, H6', [], ['takeBackAttempt', 'slowPoll'])],
    recovered: [
      to({ name: 'blocked', on: 'operation' }, 'P24', ['!operationKnown'], ['keepDoubt', 'handedOver', 'slowPoll']),
      ...doubted('recovered', []),
    ],
    neverDelivered: cleared('never_delivered', ['spareAttemptOffline']),
    refusedWithoutEffect: cleared('refused_for_now', ['handedOver']),
    needsCredentials: [
      to(
        { name: 'blocked', on: 'credentials' },
        'F14',
        [],
        ['handedOver', 'keepDoubtOfCopies', 'spareAttempt', 'slowPoll'],
      ),
    ],
    scopeMismatch: [
      to(
        { name: 'blocked', on: 'scope' },
        'section 6, H5',
        [],
        ['handedOver', 'keepDoubtOfCopies', 'spareAttempt', 'slowPoll'],
      ),
    ],
    inProgress: [
      to(
        { name: 'waiting', because: 'in_progress' },
        'section 6: at its own pace, bounded by the window',
        ['deduplicates', 'windowOpen'],
        ['keepDoubt', 'handedOver', 'spareAttempt', 'ask'],
      ),
      ...noLongerSafe(['spareAttempt']),
    ],
    accepted: [
      to({ name: 'processing' }, 'P37', ['canAsk'], ['keepDoubt', 'handedOver', 'resetAsked', 'ask']),
      ...doubted('accepted_unmonitored', ['spareAttempt'], 'ask'),
    ],
    done: [succeeded('section 6', [], ['keepAnswer'])],
    doneIncomplete: [
      to(
        { name: 'waiting', because: 'answer_incomplete' },
        'section 6: ask again for the replay',
        ['deduplicates', 'windowOpen', 'attemptsLeft'],
        ['keepAnswer', 'keepDoubt', 'handedOver', 'backoff'],
      ),
      succeeded('section 6, H58: succeeded without body', [], ['keepAnswer']),
    ],
    conflict: [
      ...unknown('conflict_in_doubt', 'section 6, H22', ['inDoubt']),
      to({ name: 'conflicted' }, 'F8', [], ['keepAnswer', 'handedOver', 'settle']),
    ],
    expired: [
      ...unknown('expired_in_doubt', 'section 6', ['inDoubt']),
      to({ name: 'rejected' }, 'section 6: not executed', [], ['keepAnswer', 'handedOver', 'settle']),
    ],
    voided: [to({ name: 'cancelled', because: 'voided' }, 'section 6', [], ['handedOver', 'settle'])],
    storedFailure: unknown('stored_failure', 'F18, B75: no loop'),
    refused: [
      to({ name: 'rejected' }, 'section 6: with proof', ['proof'], ['keepAnswer', 'handedOver', 'settle']),
      to({ name: 'rejected' }, 'section 6: not in doubt', ['!inDoubt'], ['keepAnswer', 'handedOver', 'settle']),
      to(
        { name: 'cancelling', purpose: 'refusal' },
        'section 6, H61: void, then rejected',
        ['!knownDone', 'voids', 'windowOpen'],
        ['keepAnswer', 'keepDoubt', 'handedOver', 'dueNow', 'resetAsked'],
      ),
      ...doubted('refused_without_proof', []),
    ],
    ambiguous: [
      ...unknown('markers_unreadable', 'P41, H59: never a silent loop', ['unmarkedAgain'], ['countUnmarked']),
      ...doubted('ambiguous', ['countUnmarked', 'spareAttemptOffline']),
    ],
    // A person may act while the attempt is under way: its doubt stands, and its late answer still counts (P48).
    cancelAsked: [
      ...tooLate,
      to(
        { name: 'cancelling', purpose: 'cancel' },
        'P44, H35',
        ['voids', 'windowOpen'],
        ['keepDoubt', 'handedOver', 'dueNow', 'resetAsked'],
      ),
    ],
    skipAsked: [
      ...tooLate,
      to(
        { name: 'cancelling', purpose: 'skip' },
        'P34',
        ['voids', 'windowOpen'],
        ['keepDoubt', 'handedOver', 'dueNow', 'resetAsked'],
      ),
    ],
  },

  processing: {
    due: [
      to('same', 'P24: how its server speaks is not known', ['!operationKnown'], ['slowPoll'], ['persist']),
      to('same', 'P37', ['resultKept'], [], ['persist', 'poll']),
      to(
        { name: 'waiting', because: 'monitor_lost' },
        'P38: replay the request',
        ['deduplicates', 'windowOpen', 'attemptsLeft'],
        ['backoff'],
      ),
      ...unknown('result_expired', 'P39'),
    ],
    credentialsMissing: [to('same', 'P38: a failed poll is not a failed operation', [], ['slowPoll'], ['persist'])],
    scopeDiffers: [to('same', 'P3', [], ['slowPoll'], ['persist'])],
    clockSteppedBack: [to('same', 'P35', [], ['dueSoon'], ['persist'])],
    stillProcessing: [to({ name: 'processing' }, 'P38', [], ['ask'])],
    accepted: [to({ name: 'processing' }, 'P38', [], ['ask'])],
    inProgress: [to('same', 'P38', [], ['ask'], ['persist'])],
    serverUnknown: unknown('server_unknown', 'P38'),
    otherPayload: unknown('other_payload', 'section 16, H37'),
    expired: unknown('expired_in_doubt', 'section 6'),
    storedFailure: unknown('stored_failure', 'F18'),
    clientMayRetry: [
      to(
        { name: 'waiting', because: 'server_asks_again' },
        'P38',
        ['deduplicates', 'windowOpen', 'attemptsLeft'],
        ['backoff'],
      ),
      ...unknown('attempts_spent', 'P38', ['!attemptsLeft']),
      ...unknown('window_over', 'P38'),
    ],
    monitorMissing: [
      to({ name: 'processing' }, 'B88: borne right after the 202', ['monitorYoung'], ['ask'], ['persist']),
      to(
        { name: 'waiting', because: 'monitor_lost' },
        'P38: replay the request',
        ['deduplicates', 'windowOpen', 'attemptsLeft'],
        ['backoff'],
      ),
      ...unknown('monitor_lost', 'P38'),
    ],
    inquiryFailed: [
      to({ name: 'processing' }, 'P39, B89', ['pollErrorsLeft'], ['ask'], ['persist']),
      to(
        { name: 'waiting', because: 'monitor_lost' },
        'P39: replay the request',
        ['deduplicates', 'windowOpen', 'attemptsLeft'],
        ['backoff'],
      ),
      ...unknown('monitor_lost', 'P39'),
    ],
    inquiryUnauthorized: [to('same', 'P38', [], ['slowPoll'], ['persist'])],
    retryAsked: [to('same', 'P45: asks at once', [], ['dueNow', 'resetAsked'])],
    ...proofs,
    doneIncomplete: [to('same', 'P48: late, and the monitor may yet bring the body', [], ['keepAnswer'])],
    ...found,
    ...person,
    checkAsked: [to('same', 'P45: asks at once', [], ['dueNow', 'resetAsked'], ['persist'])],
  },

  cancelling: {
    due: [
      to('same', 'P24: how its server speaks is not known', ['!operationKnown'], ['slowPoll'], ['persist']),
      ...endOfVoid(['!windowOpen'], 'void_window_over'),
      to('same', 'P44: repeated until answered', [], ['ask'], ['persist', 'void']),
    ],
    credentialsMissing: [to('same', 'P44', [], ['slowPoll'], ['persist'])],
    scopeDiffers: [to('same', 'P44', [], ['slowPoll'], ['persist'])],
    clockSteppedBack: [to('same', 'P35', [], ['dueSoon'], ['persist'])],
    voided: [
      to({ name: 'rejected' }, 'section 6: voided means rejected with this answer', ['voidForRefusal'], ['settle']),
      to({ name: 'succeeded', by: 'reconcile' }, 'P43', ['voidForFound'], ['settle']),
      to({ name: 'cancelled', because: 'reconciled_absent' }, 'P43', ['voidForAbsent'], ['settle']),
      to({ name: 'cancelled', because: 'send_before_passed' }, 'P36', ['voidForSendBefore'], ['settle']),
      to({ name: 'cancelled', because: 'voided' }, 'P44', [], ['releaseLaneIfSkipped', 'settle']),
    ],
    done: [
      to(
        { name: 'succeeded', by: 'answer' },
        'P44: the stored answer decides',
        [],
        ['keepAnswer', 'releaseLaneIfSkipped', 'settle'],
      ),
    ],
    doneIncomplete: [
      to(
        { name: 'succeeded', by: 'answer' },
        'P48: the answer of the attempt that was under way',
        [],
        ['keepAnswer', 'releaseLaneIfSkipped', 'settle'],
      ),
    ],
    refused: [
      to({ name: 'succeeded', by: 'reconcile' }, 'P43: it was found', ['proof', 'voidForFound'], ['settle']),
      to(
        { name: 'rejected' },
        'P44: the stored answer decides',
        ['proof'],
        ['keepAnswer', 'releaseLaneIfSkipped', 'settle'],
      ),
    ],
    stillProcessing: [
      to({ name: 'succeeded', by: 'reconcile' }, 'P43: it was found', ['voidForFound'], ['settle']),
      to({ name: 'processing' }, 'P44, H33', [], ['dropAnswer', 'resetAsked', 'ask', 'releaseLaneIfSkipped']),
    ],
    accepted: [
      to({ name: 'succeeded', by: 'reconcile' }, 'P43: it was found', ['voidForFound'], ['settle']),
      to({ name: 'processing' }, 'P44, H33', ['canAsk'], ['dropAnswer', 'resetAsked', 'ask', 'releaseLaneIfSkipped']),
    ],
    foundElsewhere: [to({ name: 'cancelling', purpose: 'found' }, 'P43', [], ['keepAnswer', 'dueNow'])],
    inProgress: [to('same', 'P44: ask again', [], ['ask'], ['persist'])],
    inquiryFailed: [to('same', 'P44: repeated until answered', [], ['ask'], ['persist'])],
    inquiryUnauthorized: [to('same', 'P44', [], ['slowPoll'], ['persist'])],
    storedFailure: endOfVoid([], 'stored_failure'),
    serverUnknown: endOfVoid([], 'server_unknown'),
    otherPayload: endOfVoid([], 'other_payload'),
    voidNotOffered: endOfVoid([], 'void_not_offered'),
    expired: endOfVoid([], 'expired_in_doubt'),
    checkAsked: [to('same', 'P44: asks at once', [], ['dueNow', 'resetAsked'], ['persist'])],
    retryAsked: [to('same', 'P44: asks at once', [], ['dueNow', 'resetAsked'])],
    cancelAsked: [to('same', 'P44: asks at once', [], ['dueNow'])],
    skipAsked: [
      to({ name: 'cancelling', purpose: 'skip' }, 'P34: it is being voided', ['voidToStop'], ['dueNow']),
      to('same', 'P34: order is no longer promised', [], ['releaseLane']),
    ],
    resolvedSucceeded: [to({ name: 'succeeded', by: 'person' }, 'P45', [], ['settle'])],
    resolvedNotHappened: [
      to({ name: 'succeeded', by: 'reconcile' }, 'P43: it was found', ['voidForFound'], ['settle']),
      to(
        { name: 'cancelling', purpose: 'resolve' },
        'P45, H31: it is being voided',
        ['windowOpen'],
        ['dropAnswer', 'dueNow'],
      ),
      to({ name: 'abandoned', mayStillHappen: true, freed: false }, 'P45: counts as abandoned', [], ['settle']),
    ],
    abandonAsked: [
      to({ name: 'succeeded', by: 'reconcile' }, 'P43: it was found', ['voidForFound'], ['settle']),
      to({ name: 'cancelling', purpose: 'abandon' }, 'P45', ['windowOpen', '!forced'], ['dropAnswer', 'dueNow']),
      to({ name: 'abandoned', mayStillHappen: true, freed: true }, 'P45, H30: forced', ['forced'], ['settle']),
      to({ name: 'abandoned', mayStillHappen: true, freed: false }, 'P45', [], ['settle']),
    ],
  },

  unknown: {
    ...proofs,
    ...foundProcessing,
    ...found,
    ...absent,
    ...person,
    clockSteppedBack: [to('same', 'P35, H40: its age is lost for good', [], [], ['persist'])],
    // Worth knowing: what is not found from now on never happened, and never will (P43).
    expired: [to({ name: 'unknown', because: 'expired_in_doubt' }, 'P43, P57')],
    retryAsked: [
      to(
        { name: 'waiting', because: 'retried_by_person' },
        'P45, P48',
        ['deduplicates', 'windowOpen'],
        ['renewAttempts', 'dueNow'],
      ),
    ],
  },

  succeeded: { ...settled },
  rejected: { ...settled, ...surpassed },
  conflicted: { ...settled, ...surpassed },
  cancelled: { ...settled, ...surpassed },
  abandoned: {
    ...settled,
    ...proofs,
    checkAsked: [to('same', 'P42, P45: recorded', [], [], ['persist'])],
    foundElsewhere: [to({ name: 'succeeded', by: 'reconcile' }, 'P42, P43', [], ['keepAnswer', 'settle'])],
    resolvedSucceeded: [to({ name: 'succeeded', by: 'person' }, 'P45', [], ['settle'])],
    abandonAsked: [to({ name: 'abandoned', mayStillHappen: true, freed: true }, 'P45, H30', ['forced'], [])],
  },
}

/** A void that could not be had: what the person wanted decides what the intent counts as (P44, P45). */
function endOfVoid(when: readonly GuardRef[], because: UnknownBecause): Rule[] {
  return [
    to({ name: 'succeeded', by: 'reconcile' }, 'P43: it was found', [...when, 'voidForFound'], ['settle']),
    to(
      { name: 'abandoned', mayStillHappen: true, freed: false },
      'P45: counts as abandoned',
      [...when, 'voidToGiveUp'],
      ['settle'],
    ),
    to({ name: 'unknown', because }, 'P27, P44', when, ['dropAnswer', 'notDue', 'releaseLaneIfSkipped']),
  ]
}
