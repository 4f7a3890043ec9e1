/**
 * What happens on each fault of docs/protocol.md (section 17), as far as a client sees it. Each fault is a short story of
 * events; where it leads is found by running the machine, so that the document shows what happens.
 */
import type { IntentEvent } from '../src/protocol/events.ts'
import type { Policy } from '../src/protocol/policy.ts'
import type { IntentRecord } from '../src/protocol/record.ts'
import { isSettled, type State } from '../src/protocol/states.ts'
import { transition } from '../src/protocol/transition.ts'
import { answer, byPerson, declared, firstAttempt, nameOf, none, table } from './machine-docs.ts'

interface Fault {
  readonly id: string
  readonly what: string
  /** Events from the moment of being stored; a number lets so many ms pass. */
  readonly story: readonly (IntentEvent | number)[]
  readonly policy?: Policy
  readonly change?: Partial<IntentRecord>
}

const queued: State = { name: 'queued' }
const due: IntentEvent = { type: 'due' }
const lost: IntentEvent = { type: 'ambiguous', retryAfterMs: null, unmarked: false }
const done: IntentEvent = { type: 'done', answer }
const died: IntentEvent = { type: 'recovered' }
const taken: IntentEvent = { type: 'accepted', retryAfterMs: null, monitorUrl: 'x', resultExpiresAt: null }

/** Faults that have a story here; F1 (nothing is stored), F10 to F12 (the server's own) and F22 (no record to read) have none. */
export const faults: readonly Fault[] = [
  { id: 'F2', what: 'crash after storing, before sending', story: [due, done] },
  { id: 'F3', what: 'the request is lost', story: [due, lost, due, done] },
  { id: 'F4', what: 'the server dies before it commits', story: [due, lost, due, done] },
  { id: 'F5', what: 'the server commits, the answer is lost', story: [due, lost, due, done] },
  { id: 'F6', what: 'the client dies after it sent', story: [due, died, due, done] },
  {
    id: 'F7',
    what: 'the same key at the same time',
    story: [due, { type: 'inProgress', retryAfterMs: null }, due, done],
  },
  { id: 'F8', what: 'the same key with another payload', story: [due, { type: 'conflict', answer }] },
  {
    id: 'F9',
    what: 'accepted, and the worker dies',
    story: [
      due,
      taken,
      { type: 'stillProcessing', phase: 'retrying', retryAfterMs: null, monitorUrl: null, resultExpiresAt: null },
      done,
    ],
  },
  { id: 'F13', what: 'the window is over, still in doubt', story: [due, lost, 10_000, due] },
  { id: 'F14', what: 'credentials expired', story: [due, { type: 'needsCredentials' }, due, done] },
  { id: 'F15', what: 'another user signed in', story: [{ type: 'scopeDiffers' }, due, done] },
  {
    id: 'F16',
    what: 'storage lost, derived key',
    story: [due, done],
    change: { keyOrigin: 'derived', since: 0, doubt: { at: 0, serverAt: 0 } },
  },
  { id: 'F18', what: 'the server stored a failure', story: [due, { type: 'storedFailure', answer }] },
  { id: 'F19', what: 'cancelled while in doubt', story: [due, lost, { type: 'cancelAsked' }, { type: 'voided' }] },
  { id: 'F20', what: 'the server lost its database in COMMIT', story: [due, lost, due, done] },
  { id: 'F21', what: 'the server has a row without an answer', story: [due, lost, 10_000, due] },
  { id: 'F23', what: "a lane's head is rejected", story: [due, { type: 'refused', answer, proof: true }] },
  { id: 'F24', what: 'the server does not de-duplicate', story: [due, lost], policy: none },
]

/** The table of faults. */
export function renderFaults(): string {
  const rows = faults.map(({ id, what, story, policy = declared, change = {} }) => {
    const states = livedThrough(story, policy, change)
    // While an attempt is under way there is little to do, and once it ended well nothing: what counts is the rest.
    const resting = states.findLast((state) => state.name !== 'sending' && !isSettled(state.name)) ?? queued
    return [id, what, states.map(nameOf).join(' → '), byPerson(resting.name)]
  })
  return table(['', 'fault', 'the intent', 'a person can, until it has ended'], rows)
}

function livedThrough(story: Fault['story'], policy: Policy, change: Partial<IntentRecord>): State[] {
  let record: IntentRecord = { ...firstAttempt, attempts: 0, spent: 0, state: queued, ...change }
  let now = 1
  const states = [record.state]
  for (const event of story) {
    if (typeof event === 'number') {
      now += event
      continue
    }
    const times = { now, serverNow: null }
    const step = transition(record, event, { times, policy, random: 0, exact: true, laneFree: true, offline: false })
    if (step === null)
      throw new Error(`The story of a fault has ${event.type} in ${record.state.name}, which means nothing.`)
    record = step.record
    states.push(record.state)
  }
  return states
}
