/** Requests that are older than what the server remembers (P57). */
import type { Ask, ConformanceCase, Expected } from '../steps.ts'
import { absent, expired, keyInvalid, lookup, placed, replayOf, submit, tea, told, voided, voids } from '../words.ts'

const SECOND_MS = 1000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Seconds of age at which age plus transit reaches the retention. */
const TOO_OLD = (DAY_MS - 300_000) / SECOND_MS
/** Retention and grace are over: the row goes. */
const UNTIL_REAPED = DAY_MS + HOUR_MS

type Times = Pick<Ask, 'age' | 'since'>

/** Each way to ask, what it gets of a key that is free, and of one whose order was placed. */
const asks: readonly {
  readonly what: string
  readonly ask: (times: Times) => Ask
  readonly free: Expected
  readonly known: Expected
}[] = [
  { what: 'submit', ask: (times) => submit(tea, times), free: placed, known: replayOf('first') },
  {
    what: 'look-up',
    ask: (times) => lookup(times),
    free: absent,
    known: told('succeeded', { shows: 'first', digestOf: 'first' }),
  },
  {
    what: 'void',
    ask: (times) => voids(times),
    free: told('voided'),
    known: told('succeeded', { shows: 'first', digestOf: 'first' }),
  },
]

/** Times with which a request is too old, and by how little it would not be. */
const tooOld: readonly { readonly by: string; readonly times: Times; readonly young: Times }[] = [
  { by: 'age: plus transit, it reaches the retention', times: { age: TOO_OLD }, young: { age: TOO_OLD - 1 } },
  { by: 'since: it is a retention ago', times: { since: -DAY_MS }, young: { since: -DAY_MS + SECOND_MS } },
  {
    by: 'since, although a stepped clock says age 0',
    times: { age: 0, since: -DAY_MS },
    young: { age: 0, since: -DAY_MS + SECOND_MS },
  },
  { by: 'age, although since is now', times: { age: TOO_OLD, since: 0 }, young: { age: TOO_OLD - 1, since: 0 } },
  {
    by: 'both',
    times: { age: TOO_OLD, since: -DAY_MS },
    young: { age: TOO_OLD - 1, since: -DAY_MS + SECOND_MS },
  },
]

const boundaries = tooOld.flatMap(({ by, times, young }) =>
  asks.flatMap(({ what, ask, free }): ConformanceCase[] => [
    {
      title: `P57, H1, H8, H10: a ${what} for a free key is expired by ${by}; it leaves nothing behind`,
      // Time stands still, so that the boundary is exact.
      steps: [
        { passMs: 0 },
        { send: ask(times), gets: expired, times: 2 },
        { send: lookup(), gets: absent },
        { send: submit(tea), gets: placed },
      ],
      effects: 1,
    },
    {
      title: `P57: a ${what} one second younger is not expired by ${by}`,
      steps: [{ passMs: 0 }, { send: ask(young), gets: free }],
      effects: what === 'submit' ? 1 : 0,
    },
  ]),
)

const junk: readonly { readonly what: string; readonly times: Times }[] = [
  { what: 'an age with a fraction', times: { age: '1.5' } },
  { what: 'a negative age', times: { age: '-1' } },
  { what: 'an age with an exponent', times: { age: '1e3' } },
  { what: 'two ages', times: { age: '1, 2' } },
  { what: 'an empty age', times: { age: '' } },
  { what: 'an age in words', times: { age: 'young' } },
  { what: 'a date of another kind', times: { since: '2026-12-01T12:00:00Z' } },
  { what: 'a number as a date', times: { since: '1764590400' } },
  { what: 'an empty date', times: { since: '' } },
]

export const expiry: readonly ConformanceCase[] = [
  ...boundaries,

  ...asks.map(
    ({ what, ask, known }): ConformanceCase => ({
      title: `P57, H12: inside the grace the row is there, and an old ${what} gets what it knows`,
      steps: [
        { send: submit(tea, { age: 0 }), gets: placed, name: 'first' },
        { passMs: UNTIL_REAPED - SECOND_MS },
        {
          send: ask({ age: (UNTIL_REAPED - SECOND_MS) / SECOND_MS, since: -UNTIL_REAPED + SECOND_MS }),
          gets: known,
          times: 2,
        },
      ],
      effects: 1,
    }),
  ),
  ...asks.map(
    ({ what, ask }): ConformanceCase => ({
      title: `P57, H1, H8: after the reaper an old ${what} is expired: not executed, not voided, not absent`,
      steps: [
        { send: submit(tea, { age: 0 }), gets: placed },
        { passMs: UNTIL_REAPED },
        { send: ask({ age: UNTIL_REAPED / SECOND_MS }), gets: expired },
        { send: ask({ since: -UNTIL_REAPED }), gets: expired },
        { send: ask({ age: 0, since: -UNTIL_REAPED }), gets: expired },
        { send: lookup({ age: 0 }), gets: absent },
      ],
      effects: 1,
    }),
  ),
  {
    title: 'P57: a remembered refusal is kept and forgotten like any other answer',
    steps: [
      { send: submit({ item: 'tea', outcome: 'refuse' }), gets: { status: 402, from: 'key' }, name: 'first' },
      { passMs: DAY_MS },
      { send: submit({ item: 'tea', outcome: 'refuse' }, { age: DAY_MS / SECOND_MS }), gets: replayOf('first') },
      { passMs: HOUR_MS },
      { send: submit({ item: 'tea', outcome: 'refuse' }, { age: UNTIL_REAPED / SECOND_MS }), gets: expired },
    ],
    effects: 0,
  },
  {
    title: 'P57, F19: a voided key stays voided as long as a late copy can arrive; after that such a copy is expired',
    steps: [
      { send: voids({ age: 0 }), gets: told('voided') },
      { passMs: UNTIL_REAPED - SECOND_MS },
      { send: submit(tea, { age: (UNTIL_REAPED - SECOND_MS) / SECOND_MS }), gets: voided },
      { passMs: SECOND_MS },
      { send: submit(tea, { age: UNTIL_REAPED / SECOND_MS }), gets: expired },
    ],
    effects: 0,
  },
  {
    title: 'P57: without an age nothing is protected: after the reaper the key is a new one',
    steps: [{ send: submit(tea), gets: placed }, { passMs: UNTIL_REAPED }, { send: submit(tea), gets: placed }],
    effects: 2,
  },
  {
    title: 'P57: a young repetition of a key that is known needs no age at all',
    steps: [
      { send: submit(tea, { age: 0 }), gets: placed, name: 'first' },
      { passMs: DAY_MS - SECOND_MS },
      { send: submit(tea), gets: replayOf('first') },
    ],
    effects: 1,
  },
  {
    title: 'P57: a since in the future says nothing, and hides no age',
    steps: [
      { send: submit(tea, { key: 'k-1', since: HOUR_MS }), gets: placed },
      { send: submit(tea, { key: 'k-2', age: TOO_OLD, since: HOUR_MS }), gets: expired },
    ],
    effects: 1,
  },
  {
    title: 'H57: that one request is expired says nothing of a copy that left earlier: that one is still executed',
    steps: [
      { send: lookup({ age: TOO_OLD }), gets: expired },
      { send: voids({ age: TOO_OLD }), gets: expired },
      { send: submit(tea, { age: TOO_OLD - 1 }), gets: placed },
    ],
    effects: 1,
  },
  {
    title: 'P57: more digits than any number holds are older than anything',
    steps: [{ send: submit(tea, { age: '9'.repeat(400) }), gets: expired }],
    effects: 0,
  },
  {
    title: 'P57: old submits of one key at the same time are all expired, and none is executed',
    steps: [
      {
        atOnce: [submit(tea, { age: TOO_OLD }), submit(tea, { age: TOO_OLD }), voids({ age: TOO_OLD })],
        ends: [{ gets: [expired, expired, expired], effects: 0 }],
      },
      { send: lookup(), gets: absent },
    ],
    effects: 0,
  },
  ...junk.map(
    ({ what, times }): ConformanceCase => ({
      title: `P57: ${what} is refused, not ignored`,
      steps: [...asks.map(({ ask }) => ({ send: ask(times), gets: keyInvalid })), { send: lookup(), gets: absent }],
      effects: 0,
    }),
  ),
]
