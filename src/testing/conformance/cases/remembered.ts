/** What is remembered, and what is not (P56). */
import type { ConformanceCase } from '../steps.ts'
import {
  absent,
  coffee,
  conflict,
  first,
  inProgress,
  lookup,
  placed,
  problem,
  replayOf,
  submit,
  tea,
  told,
  voids,
} from '../words.ts'

const thrown = problem(500, 'execution_failed', { without: 'secret' })

export const remembered: readonly ConformanceCase[] = [
  {
    title: 'P56: a definite refusal is remembered, although its business change was taken back',
    steps: [
      {
        send: submit({ item: 'tea', outcome: 'refuse' }),
        gets: first(402, { json: { reason: 'declined' } }),
        name: 'first',
      },
      { effects: 0 },
      { send: submit({ item: 'tea', outcome: 'refuse' }), gets: replayOf('first'), times: 3 },
      { send: lookup(), gets: told('failed', { shows: 'first', digestOf: 'first' }) },
      { send: voids(), gets: told('failed', { shows: 'first', digestOf: 'first' }) },
      { send: submit(tea), gets: conflict },
    ],
    effects: 0,
  },
  {
    title: 'P56: what was declined is not remembered: the same request may succeed later',
    steps: [
      {
        send: submit({ item: 'tea', outcome: 'decline-once' }),
        gets: { status: 422, from: 'elsewhere', json: { reason: 'not yet' } },
      },
      { effects: 0 },
      { send: lookup(), gets: absent },
      { send: submit({ item: 'tea', outcome: 'decline-once' }), gets: placed, name: 'first' },
      { send: submit({ item: 'tea', outcome: 'decline-once' }), gets: replayOf('first') },
    ],
    effects: 1,
  },
  {
    title: 'P56: after it was declined, a corrected request may have the same key',
    steps: [
      { send: submit({ item: 'tea', outcome: 'decline-once' }), gets: { status: 422, from: 'elsewhere' } },
      { send: submit(coffee), gets: first(201, { json: coffee }) },
    ],
    effects: 1,
  },
  {
    title:
      'B116, F4: what threw was rolled back, says nothing of why, and is not remembered: the next request executes',
    steps: [
      { send: submit({ item: 'tea', outcome: 'throw-once' }), gets: thrown },
      { effects: 0 },
      { send: lookup(), gets: absent },
      { send: submit({ item: 'tea', outcome: 'throw-once' }), gets: placed, name: 'first' },
      { send: submit({ item: 'tea', outcome: 'throw-once' }), gets: replayOf('first') },
    ],
    effects: 1,
  },
  {
    title: 'F18: a stored 500 is replayed as it is and told as unknown: a client stops, it does not loop',
    steps: [
      {
        send: submit({ item: 'tea', outcome: 'fail' }),
        gets: first(500, { json: { reason: 'broken' } }),
        name: 'first',
      },
      { send: submit({ item: 'tea', outcome: 'fail' }), gets: replayOf('first'), times: 3 },
      { send: lookup(), gets: told('unknown', { shows: 'first', digestOf: 'first' }) },
      { send: voids(), gets: told('unknown', { shows: 'first', digestOf: 'first' }) },
    ],
    effects: 0,
  },
  {
    title:
      'F7, F8, H36: while the first request runs, its payload is not visible; afterwards it is a replay or a conflict',
    steps: [
      { hold: 'next' },
      { begin: 'first', send: submit(tea) },
      { hold: 'reached' },
      { send: lookup(), gets: absent },
      { begin: 'same', send: submit(tea) },
      { begin: 'other', send: submit(coffee) },
      { passMs: 200 },
      { end: 'same', gets: inProgress },
      { end: 'other', gets: inProgress },
      { effects: 0 },
      { hold: 'release' },
      { end: 'first', gets: placed },
      { send: submit(tea), gets: replayOf('first') },
      { send: submit(coffee), gets: conflict },
    ],
    effects: 1,
  },
  {
    title: 'P54, B123: a running request that is rolled back leaves the key to the next one',
    steps: [
      { hold: 'next' },
      { begin: 'first', send: submit({ item: 'tea', outcome: 'throw-once' }) },
      { hold: 'reached' },
      { effects: 0 },
      { hold: 'release' },
      { end: 'first', gets: thrown },
      { send: submit({ item: 'tea', outcome: 'throw-once' }), gets: placed },
    ],
    effects: 1,
  },
  {
    title: 'F21: a row without an answer is never executed, whoever asks; other keys are not concerned',
    steps: [
      { damage: submit(tea) },
      { send: submit(tea), gets: problem(500, 'idempotency_inconsistent'), times: 2 },
      { send: lookup(), gets: problem(500, 'idempotency_inconsistent') },
      { send: voids(), gets: problem(500, 'idempotency_inconsistent') },
      { send: submit(tea, { key: 'k-2' }), gets: placed },
      { send: submit(tea, { by: 'acme.bob' }), gets: placed },
    ],
    effects: 2,
  },
  {
    title: 'F21, P57: and the reaper leaves it to the operator',
    steps: [
      { damage: submit(tea) },
      { passMs: 90_000_001 },
      { send: submit(tea), gets: problem(500, 'idempotency_inconsistent') },
    ],
    effects: 0,
  },
]
