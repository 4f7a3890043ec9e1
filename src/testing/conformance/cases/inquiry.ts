/** Look-up and void by key (P43, P44, P58, F19). */
import type { ConformanceCase } from '../steps.ts'
import {
  absent,
  coffee,
  conflict,
  first,
  inProgress,
  lookup,
  placed,
  replayOf,
  submit,
  tea,
  told,
  voided,
  voids,
} from '../words.ts'

const held: ConformanceCase['steps'] = [{ hold: 'next' }, { begin: 'first', send: submit(tea) }, { hold: 'reached' }]

export const inquiry: readonly ConformanceCase[] = [
  {
    title: 'P43: a look-up of an unknown key is absent, and does nothing to it',
    steps: [
      { send: lookup(), gets: absent, times: 2 },
      { send: submit(tea), gets: placed },
    ],
    effects: 1,
  },
  {
    title:
      'P43, H37: a look-up tells the answer as a replay would, with the digest of its request, as often as it is asked',
    steps: [
      { send: submit(tea), gets: placed, name: 'first' },
      {
        send: lookup(),
        gets: told('succeeded', {
          shows: 'first',
          digestOf: 'first',
          json: { id: 'k-1', response: { status: 201, bodyEncoding: 'utf8' }, error: undefined, retryAfter: undefined },
        }),
        times: 3,
      },
    ],
    effects: 1,
  },
  {
    title: 'P58, F19: a void before the request: whatever comes later is refused, and a void again says the same',
    steps: [
      {
        send: voids(),
        gets: told('voided', { json: { id: 'k-1', response: undefined, requestDigest: undefined } }),
        times: 3,
      },
      { send: submit(tea), gets: voided },
      { send: submit(coffee), gets: voided },
      { send: lookup(), gets: told('voided', { json: { response: undefined } }) },
    ],
    effects: 0,
  },
  {
    title: 'P44, P58: a void after the request tells its answer and changes nothing',
    steps: [
      { send: submit(tea), gets: placed, name: 'first' },
      { send: voids(), gets: told('succeeded', { shows: 'first', digestOf: 'first' }), times: 2 },
      { send: submit(tea), gets: replayOf('first') },
      { send: submit(coffee), gets: conflict },
    ],
    effects: 1,
  },
  {
    title:
      'P58, H36: a void waits for a running request and tells how that ended; a look-up does not wait and proves nothing',
    steps: [
      ...held,
      { send: lookup(), gets: absent },
      { begin: 'void', send: voids() },
      { hold: 'release' },
      { end: 'first', gets: placed },
      { end: 'void', gets: told('succeeded', { shows: 'first', digestOf: 'first' }) },
    ],
    effects: 1,
  },
  {
    title: 'P58: a void that waits too long is told "in progress", never "voided"',
    steps: [
      ...held,
      { begin: 'void', send: voids() },
      { passMs: 1000 },
      { end: 'void', gets: inProgress },
      { hold: 'release' },
      { end: 'first', gets: placed },
      { send: voids(), gets: told('succeeded', { shows: 'first' }) },
    ],
    effects: 1,
  },
  {
    title: 'P58: a void that waits for a request that is rolled back voids the key',
    steps: [
      { hold: 'next' },
      { begin: 'first', send: submit({ item: 'tea', outcome: 'throw-once' }) },
      { hold: 'reached' },
      { begin: 'void', send: voids() },
      { hold: 'release' },
      { end: 'first', gets: { status: 500, from: 'elsewhere', code: 'execution_failed' } },
      { end: 'void', gets: told('voided') },
      { send: submit({ item: 'tea', outcome: 'throw-once' }), gets: voided },
    ],
    effects: 0,
  },
  {
    title: 'P58, F19: submit and void at once: either it happened and the void says so, or it never will',
    steps: [
      {
        atOnce: [submit(tea), voids()],
        ends: [
          { gets: [placed, told('succeeded')], effects: 1 },
          { gets: [voided, told('voided')], effects: 0 },
          { gets: [placed, inProgress], effects: 1 },
          { gets: [inProgress, told('voided')], effects: 0 },
        ],
      },
    ],
    effects: 'as they end',
  },
  {
    title: 'P58: eight voids at once are one void',
    steps: [
      {
        atOnce: Array.from({ length: 8 }, () => voids()),
        ends: [{ gets: Array.from({ length: 8 }, () => told('voided')), effects: 0 }],
      },
      { send: submit(tea), gets: voided },
    ],
    effects: 0,
  },
  {
    title: 'P58: a void of a refusal, and of an answer without its body, tells them',
    steps: [
      { send: submit({ item: 'tea', outcome: 'refuse' }, { key: 'k-1' }), gets: first(402), name: 'refusal' },
      { send: voids({ key: 'k-1' }), gets: told('failed', { shows: 'refusal' }) },
      { send: submit({ item: 'tea', outcome: 'omit' }, { key: 'k-2' }), gets: first(201) },
      { send: voids({ key: 'k-2' }), gets: told('succeeded', { json: { response: { status: 201, body: '' } } }) },
    ],
    effects: 1,
  },
]
