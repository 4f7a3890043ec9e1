/** The machine: one event, one record, one context -> the next record and the effects that make it true. Pure. */
import type { EffectName } from './effects.ts'
import type { EventName, IntentEvent } from './events.ts'
import { type Context, holds } from './guards.ts'
import { type ActionLine, type HistoryLine, type IntentRecord, isInDoubt, withHistory } from './record.ts'
import type { Monitor, State } from './states.ts'
import { type Next, type Rule, transitions } from './transitions.ts'
import { updates } from './updates.ts'
import { clockSteppedBack, type Times, undatable, windowEndsInMs } from './window.ts'

/** What an event leads to. */
export interface Step {
  readonly record: IntentRecord
  readonly effects: readonly EffectName[]
  /** The row that applied. */
  readonly rule: Rule
}

/** The step for this event, or null where the table has none: then nothing changes. */
export function transition(record: IntentRecord, event: IntentEvent, context: Context): Step | null {
  const rules: readonly Rule[] = transitions[record.state.name][event.type] ?? []
  const rule = rules.find((candidate) => holds(candidate.when, record, event, context))
  if (rule === undefined) return null
  let next = record
  for (const name of rule.set) next = { ...next, ...updates[name](next, event, context) }
  next = remembered({ ...next, state: enter(rule.next, record, event, context) }, record, event, context)
  return { record: { ...next, dueAt: judgedAt(next, context) }, effects: rule.effects, rule }
}

/** Nothing rests beyond the time at which it has to be judged: the end of the window, or the app's own limit (P35, P36). */
function judgedAt(record: IntentRecord, { policy, times }: Context): number | null {
  const { state, dueAt, sendBefore } = record
  // In a lane, the turn is what it waits for.
  const rests = state.name === 'waiting' || (state.name === 'blocked' && state.on !== 'lane')
  if (!rests && state.name !== 'cancelling') return dueAt
  const windowEndsIn = windowEndsInMs(record, policy, times)
  const limits = [rests ? sendBefore : null, windowEndsIn === null ? null : times.now + windowEndsIn]
  const ahead = limits.filter((limit) => limit !== null && limit > times.now) as number[]
  return ahead.length === 0 ? dueAt : Math.min(dueAt ?? Number.POSITIVE_INFINITY, ...ahead)
}

function enter(next: Next, record: IntentRecord, event: IntentEvent, context: Context): State {
  if (next === 'same') return record.state
  if (next.name === 'sending') {
    const { now, serverNow } = context.times
    const attempt = { number: record.attempts + 1, at: now, serverAt: serverNow, exact: context.exact }
    return { name: 'sending', attempt }
  }
  if (next.name === 'processing') return { name: 'processing', monitor: monitorAfter(record, event, context) }
  return next
}

/** The monitor as an event leaves it. A record that is not processing yet is polled by key where no address is known. */
function monitorAfter(record: IntentRecord, event: IntentEvent, { times }: Context): Monitor {
  const before: Monitor =
    record.state.name === 'processing'
      ? record.state.monitor
      : { url: '', since: times.now, resultExpiresAt: null, errors: 0, phase: 'running' }
  const heard = event.type === 'accepted' || event.type === 'stillProcessing' ? event : null
  return {
    url: heard?.monitorUrl ?? before.url,
    since: before.since,
    resultExpiresAt: heard?.resultExpiresAt ?? before.resultExpiresAt,
    errors: event.type === 'inquiryFailed' ? before.errors + 1 : 0,
    // A poll that failed says nothing about the work.
    phase: heard === null ? before.phase : heard.type === 'stillProcessing' ? heard.phase : 'running',
  }
}

const silent: ReadonlySet<EventName> = new Set<EventName>(['acknowledged', 'clockSteppedBack'])

const actions: Partial<Record<EventName, ActionLine['action']>> = {
  cancelAsked: 'cancel',
  checkAsked: 'check',
  retryAsked: 'retry',
  abandonAsked: 'abandon',
  resolvedSucceeded: 'resolve',
  resolvedNotHappened: 'resolve',
  skipAsked: 'skip',
  laneResumed: 'resume',
}

/** Writes down what happened (P45, P51), and the highest wall time seen (P35). */
function remembered(next: IntentRecord, before: IntentRecord, event: IntentEvent, { times }: Context): IntentRecord {
  const seenAt = seenBy(next, event, times)
  const action = actions[event.type]
  if (action !== undefined) {
    const note = 'note' in event ? event.note : undefined
    const line: ActionLine = { at: times.now, action, ...(note === undefined ? {} : { note }) }
    return { ...next, seenAt, actions: [...next.actions, line] }
  }
  if (silent.has(event.type)) return { ...next, seenAt }
  if (event.type === 'due' && next.state.name === before.state.name) return { ...next, seenAt }
  const attempt = attemptNumber(before) ?? attemptNumber(next)
  const line: HistoryLine = {
    at: times.now,
    event: event.type,
    ...(attempt === undefined ? {} : { attempt }),
    ...('status' in event && event.status !== undefined ? { status: event.status } : {}),
    ...('detail' in event && event.detail !== undefined ? { detail: event.detail } : {}),
  }
  return withHistory({ ...next, seenAt }, line)
}

/**
 * The highest wall time seen. A record in doubt that has met a clock which stepped back can never again be dated by this
 * device: once that clock has passed the mark, nothing would tell that the age is too small (P35, H40).
 */
function seenBy(record: IntentRecord, event: IntentEvent, times: Times): number {
  const isLost = event.type === 'clockSteppedBack' || clockSteppedBack(record, times)
  return isInDoubt(record) && isLost ? undatable : Math.max(record.seenAt, times.now)
}

function attemptNumber({ state }: IntentRecord): number | undefined {
  return state.name === 'sending' ? state.attempt.number : undefined
}
