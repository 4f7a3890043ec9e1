/** Records, policies and events for tests of the pure machine. Times are epoch ms; a "now" of the tests is {@link NOW}. */
import fc from 'fast-check'
import { type EventName, type IntentEvent, verdictMeanings } from '../../src/protocol/events.ts'
import type { Context } from '../../src/protocol/guards.ts'
import type { Policy } from '../../src/protocol/policy.ts'
import type { Answer, IntentRecord } from '../../src/protocol/record.ts'
import type { Monitor, State } from '../../src/protocol/states.ts'
import { type Step, transition } from '../../src/protocol/transition.ts'

export const NOW = 1_800_000_000_000
export const HOUR = 3_600_000
export const DAY = 24 * HOUR

/** A server like samekey's: de-duplicates, voids, looks up, remembers for a day. */
export const POLICY: Policy = {
  deduplicates: true,
  retentionMs: DAY,
  attemptTimeoutMs: 30_000,
  transitMs: 60_000,
  voids: true,
  looksUp: true,
  operationKnown: true,
  maxAttempts: 5,
  backoff: { baseMs: 500, capMs: 60_000, minMs: 50 },
  ask: { baseMs: 1000, capMs: 60_000, minMs: 500 },
  maxPollErrors: 3,
  monitorGraceMs: 30_000,
  slowPollMs: 60_000,
  rememberMs: 7 * DAY,
}

/** One that de-duplicates, and nothing more. */
export const PLAIN: Policy = { ...POLICY, voids: false, looksUp: false }

/** One that does not de-duplicate (F24), whatever the app believes that it remembers. */
export const NONE: Policy = { ...PLAIN, deduplicates: false }

export function context(
  change: Partial<Context> & { readonly now?: number; readonly serverNow?: number | null } = {},
): Context {
  const { now = NOW, serverNow = null, ...rest } = change
  return {
    times: { now, serverNow },
    policy: POLICY,
    random: 0.5,
    exact: true,
    laneFree: true,
    offline: false,
    ...rest,
  }
}

/** A fresh intent, due now. */
export function record(change: Partial<IntentRecord> = {}): IntentRecord {
  return {
    client: 'https://api.example.com',
    scope: 'user-1',
    id: 'checkout:42',
    key: 'key-42',
    keyOrigin: 'minted',
    operation: 'orders.create',
    registered: true,
    fingerprint: { version: '1', digest: 'ab'.repeat(32), rules: {} },
    request: {
      method: 'POST',
      url: 'https://api.example.com/orders',
      headers: [['content-type', 'application/json']],
      hasBody: true,
      bodyDigest: 'cd'.repeat(32),
      credentials: 'same-origin',
      mode: 'cors',
      referrerPolicy: '',
    },
    lane: null,
    createdAt: NOW,
    since: null,
    sendBefore: null,
    state: { name: 'queued' },
    dueAt: NOW,
    attempts: 0,
    spent: 0,
    asked: 0,
    handedOver: false,
    doubt: null,
    lastHandOverAt: null,
    unmarked: 0,
    seenAt: NOW,
    answer: null,
    settledAt: null,
    acknowledgedAt: null,
    laneReleased: false,
    history: [],
    actions: [],
    ...change,
  }
}

export const MONITOR: Monitor = {
  url: 'https://api.example.com/tasks/1',
  since: NOW,
  resultExpiresAt: null,
  errors: 0,
  phase: 'running',
}

export const sending = (
  change: Partial<{ number: number; at: number; serverAt: number | null; exact: boolean }> = {},
): State => ({
  name: 'sending',
  attempt: { number: 1, at: NOW, serverAt: null, exact: true, ...change },
})

/** The first attempt under way, nothing else known. */
export function firstAttempt(change: Partial<IntentRecord> = {}): IntentRecord {
  return record({ state: sending(), attempts: 1, spent: 1, lastHandOverAt: NOW, ...change })
}

/** The second attempt under way, after one whose answer was lost. */
export function secondAttempt(change: Partial<IntentRecord> = {}): IntentRecord {
  return firstAttempt({
    state: sending({ number: 2 }),
    attempts: 2,
    spent: 2,
    handedOver: true,
    doubt: { at: NOW - 1000, serverAt: null },
    ...change,
  })
}

/** An attempt's answer was lost; the intent rests in `state`. */
export function inDoubt(state: State, change: Partial<IntentRecord> = {}): IntentRecord {
  return record({
    state,
    attempts: 1,
    spent: 1,
    handedOver: true,
    doubt: { at: NOW, serverAt: null },
    lastHandOverAt: NOW,
    ...change,
  })
}

export const answer = (change: Partial<Answer> = {}): Answer => ({
  status: 201,
  headers: [['content-type', 'application/json']],
  url: 'https://api.example.com/orders',
  body: 'stored',
  replayed: false,
  ...change,
})

/** A record of which every member has a value, so that every member can be damaged. */
export const FULL: IntentRecord = record({
  fingerprint: { version: '1', digest: 'ab'.repeat(32), rules: { omit: ['/meta'], version: '2' } },
  lane: { lane: 'l', kind: 'named' },
  since: NOW,
  sendBefore: NOW,
  doubt: { at: NOW, serverAt: NOW },
  lastHandOverAt: NOW,
  answer: answer(),
  settledAt: NOW,
  acknowledgedAt: NOW,
  history: [{ at: NOW, event: 'due', attempt: 1, status: 200, detail: 'x' }],
  actions: [{ at: NOW, action: 'resolve', note: 'x' }],
})

/** Success is known, its body is not. */
export const CUT_OFF = answer({ body: 'cut_off' })

/** One event of each name, with the members that decide something left out or at their plainest. */
export const EVENTS: { readonly [name in EventName]: Extract<IntentEvent, { type: name }> } = {
  due: { type: 'due' },
  credentialsMissing: { type: 'credentialsMissing' },
  scopeDiffers: { type: 'scopeDiffers' },
  notHandedOver: { type: 'notHandedOver', detail: 'lease' },
  recovered: { type: 'recovered' },
  clockSteppedBack: { type: 'clockSteppedBack' },
  neverDelivered: { type: 'neverDelivered', detail: 'ECONNREFUSED' },
  refusedWithoutEffect: { type: 'refusedWithoutEffect', status: 429, retryAfterMs: null },
  needsCredentials: { type: 'needsCredentials', status: 401 },
  scopeMismatch: { type: 'scopeMismatch', status: 403 },
  inProgress: { type: 'inProgress', status: 409, retryAfterMs: null },
  accepted: { type: 'accepted', status: 202, retryAfterMs: null, monitorUrl: MONITOR.url, resultExpiresAt: null },
  done: { type: 'done', status: 201, answer: answer() },
  doneIncomplete: { type: 'doneIncomplete', status: 201, answer: CUT_OFF },
  conflict: { type: 'conflict', status: 409, answer: answer({ status: 409 }) },
  expired: { type: 'expired', status: 409, answer: answer({ status: 409 }) },
  voided: { type: 'voided', status: 409 },
  storedFailure: { type: 'storedFailure', status: 500, answer: answer({ status: 500, replayed: true }) },
  refused: { type: 'refused', status: 422, answer: answer({ status: 422 }), proof: false },
  ambiguous: { type: 'ambiguous', retryAfterMs: null, unmarked: false },
  stillProcessing: {
    type: 'stillProcessing',
    status: 200,
    retryAfterMs: null,
    phase: 'running',
    monitorUrl: null,
    resultExpiresAt: null,
  },
  clientMayRetry: { type: 'clientMayRetry', retryAfterMs: null },
  serverUnknown: { type: 'serverUnknown', status: 200 },
  otherPayload: { type: 'otherPayload', status: 200 },
  monitorMissing: { type: 'monitorMissing', status: 404 },
  inquiryFailed: { type: 'inquiryFailed', retryAfterMs: null },
  inquiryUnauthorized: { type: 'inquiryUnauthorized', status: 401 },
  voidNotOffered: { type: 'voidNotOffered', status: 405 },
  foundElsewhere: { type: 'foundElsewhere', answer: null },
  absent: { type: 'absent' },
  cancelAsked: { type: 'cancelAsked' },
  checkAsked: { type: 'checkAsked' },
  retryAsked: { type: 'retryAsked' },
  abandonAsked: { type: 'abandonAsked', force: false },
  resolvedSucceeded: { type: 'resolvedSucceeded' },
  resolvedNotHappened: { type: 'resolvedNotHappened' },
  skipAsked: { type: 'skipAsked' },
  laneResumed: { type: 'laneResumed' },
  acknowledged: { type: 'acknowledged' },
}

/** An event by name, with other members. */
export function event<N extends EventName>(
  name: N,
  change: Partial<Extract<IntentEvent, { type: N }>> = {},
): IntentEvent {
  return { ...EVENTS[name], ...change } as IntentEvent
}

/** The step for an event; fails where the table has none. */
export function step(
  before: IntentRecord,
  happening: IntentEvent | EventName,
  where: Partial<Parameters<typeof context>[0]> = {},
): Step {
  const result = transition(before, typeof happening === 'string' ? event(happening) : happening, context(where))
  if (result === null) throw new Error(`The table has no row for this event in ${before.state.name}.`)
  return result
}

/** The record after several events, each in its own circumstances. */
export function lived(
  before: IntentRecord,
  ...happenings: readonly (EventName | readonly [EventName | IntentEvent, Partial<Parameters<typeof context>[0]>])[]
): IntentRecord {
  return happenings.reduce(
    (now, happening) =>
      typeof happening === 'string' ? step(now, happening).record : step(now, happening[0], happening[1]).record,
    before,
  )
}

/** What the members of an event may hold. */
export interface Members {
  readonly flag: boolean
  readonly told: number | null
  readonly expires: number | null
  readonly kept: Answer | null
  /** Of what was heard of an attempt: a redirect was followed before (H16). Default is false. */
  readonly repeated?: boolean
}

export const anyMembers: fc.Arbitrary<Members> = fc.record({
  flag: fc.boolean(),
  told: fc.constantFrom(null, 0, 1000, 10 * DAY),
  expires: fc.constantFrom(null, NOW, NOW + DAY),
  kept: fc.constantFrom<Answer | null>(null, answer(), CUT_OFF, answer({ status: 422, body: 'cut_off' })),
  repeated: fc.boolean(),
})

/** Events that may be heard after a redirect was followed. */
const heard: ReadonlySet<string> = new Set(Object.keys(verdictMeanings).filter((name) => name !== 'neverDelivered'))

/** The event of this name with these members, where it has them. */
export function eventWith(name: EventName, { flag, told, expires, kept, repeated = false }: Members): IntentEvent {
  const plain = EVENTS[name]
  return {
    ...plain,
    ...('retryAfterMs' in plain && { retryAfterMs: told }),
    ...('unmarked' in plain && { unmarked: flag }),
    ...('proof' in plain && { proof: flag }),
    ...('force' in plain && { force: flag }),
    ...('monitorUrl' in plain && { monitorUrl: flag ? MONITOR.url : null, resultExpiresAt: expires }),
    ...('phase' in plain && { phase: flag ? 'running' : 'retrying' }),
    ...(name === 'foundElsewhere' && { answer: kept }),
    ...(repeated && heard.has(name) && { repeated }),
  } as IntentEvent
}
