/** One effect per key, and the same answer for whoever asks again. */
import type { ConformanceCase } from '../steps.ts'
import {
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

const thrown = problem(500, 'execution_failed')

export const answers: readonly ConformanceCase[] = [
  {
    title: 'P55, P56, B118, B119: ten repetitions get the first answer, byte for byte, with its headers and the marker',
    steps: [
      {
        send: submit(tea),
        gets: first(201, { json: tea, headers: { 'content-type': 'application/json', 'x-shop': 'conformance' } }),
        name: 'first',
      },
      { send: submit(tea), gets: replayOf('first'), times: 10 },
    ],
    effects: 1,
  },
  {
    title: 'P55: Set-Cookie reaches the first caller, and neither a replay nor a document',
    steps: [
      { send: submit(tea), gets: first(201, { headers: { 'set-cookie': 'seen=1' } }), name: 'first' },
      { send: submit(tea), gets: replayOf('first', { headers: { 'set-cookie': null } }) },
      { send: lookup(), gets: told('succeeded', { without: 'seen=1', headers: { 'set-cookie': null } }) },
      { send: voids(), gets: told('succeeded', { without: 'seen=1', headers: { 'set-cookie': null } }) },
    ],
    effects: 1,
  },
  {
    title: 'P56, P57: the proof is the end of the promise, and a replay does not put it off',
    steps: [
      { send: submit(tea), gets: first(201, { expiresInMs: 86_400_000 }) },
      { passMs: 3_600_000 },
      { send: submit(tea), gets: { status: 201, from: 'replay', expiresInMs: 82_800_000 } },
      { send: lookup(), gets: told('succeeded', { expiresInMs: 82_800_000, resultExpiresInMs: 82_800_000 }) },
    ],
    effects: 1,
  },
  {
    title: 'F8: the same key with another payload is a conflict for good, and nothing happens',
    steps: [
      { send: submit(tea), gets: placed, name: 'first' },
      { send: submit(coffee), gets: conflict, times: 2 },
      { send: submit(tea), gets: replayOf('first') },
    ],
    effects: 1,
  },
  {
    title: 'other keys are other intents: the same payload under each of them is executed',
    steps: [
      { send: submit(tea, { key: 'k-1' }), gets: placed },
      { send: submit(tea, { key: 'k-2' }), gets: placed },
      { send: submit(tea, { key: 'K-1' }), gets: placed },
    ],
    effects: 3,
  },
  {
    title: 'an answer without a body is replayed without one',
    steps: [
      { send: submit({ item: 'tea', outcome: 'empty' }), gets: first(204, { text: '' }), name: 'first' },
      { send: submit({ item: 'tea', outcome: 'empty' }), gets: replayOf('first') },
      { send: lookup(), gets: told('succeeded', { shows: 'first', digestOf: 'first' }) },
    ],
    effects: 1,
  },
  {
    title: 'an answer that is no text is replayed and shown byte for byte',
    steps: [
      {
        send: submit({ item: 'tea', outcome: 'binary' }),
        gets: first(200, { bytes: [0, 255, 254, 0], headers: { 'content-type': 'application/octet-stream' } }),
        name: 'first',
      },
      { send: submit({ item: 'tea', outcome: 'binary' }), gets: replayOf('first') },
      { send: lookup(), gets: told('succeeded', { shows: 'first', json: { response: { body: 'AP/+AA==' } } }) },
    ],
    effects: 1,
  },
  {
    title: 'P60: an answer may be kept without its body; the replay says so',
    steps: [
      {
        send: submit({ item: 'tea', outcome: 'omit' }),
        gets: first(201, { json: tea, headers: { 'idempotency-body': null } }),
      },
      {
        send: submit({ item: 'tea', outcome: 'omit' }),
        gets: {
          status: 201,
          from: 'replay',
          text: '',
          headers: { 'idempotency-body': 'omitted', 'x-shop': 'conformance', 'set-cookie': null },
        },
      },
      { send: lookup(), gets: told('succeeded', { without: 'tea', json: { response: { status: 201, body: '' } } }) },
    ],
    effects: 1,
  },
  {
    title: 'P60: an answer that is too long to keep is sent whole once, and then without its body',
    steps: [
      {
        send: submit({ item: 'tea', outcome: 'large' }),
        gets: first(200, { headers: { 'idempotency-body': null } }),
      },
      {
        send: submit({ item: 'tea', outcome: 'large' }),
        gets: { status: 200, from: 'replay', text: '', headers: { 'idempotency-body': 'omitted' } },
      },
    ],
    effects: 1,
  },
  {
    title: 'P60: an answer that is kept by reference is read again as it is today, and omitted where it is gone',
    steps: [
      { send: submit({ item: 'tea', outcome: 'refer' }), gets: first(201, { json: { item: 'tea', orders: 1 } }) },
      { send: submit(tea, { key: 'k-2' }), gets: placed },
      {
        send: submit({ item: 'tea', outcome: 'refer' }),
        gets: {
          status: 201,
          from: 'replay',
          json: { item: 'tea', orders: 2 },
          headers: { 'content-type': 'application/json', 'idempotency-body': null },
        },
      },
      { send: lookup(), gets: told('succeeded', { json: { response: { body: '{"item":"tea","orders":2}' } } }) },
      { send: submit(tea, { key: 'k-3', operation: 'orders.cancel' }), gets: first(200, { json: tea }) },
      {
        send: submit({ item: 'tea', outcome: 'refer' }),
        gets: { status: 201, from: 'replay', text: '', headers: { 'idempotency-body': 'omitted' } },
      },
      { send: voids(), gets: told('succeeded', { json: { response: { status: 201, body: '' } } }) },
    ],
    effects: 3,
  },
  {
    title: 'F7, B113, B114: sixteen senders of one key are one order and one answer, and nobody gets a 5xx',
    steps: [{ crowd: 16, send: submit(tea), gets: placed }],
    effects: 1,
  },
  {
    title: 'F7, B116: of two at once, the one whose execution throws leaves the key to the other',
    steps: [
      {
        atOnce: [submit({ item: 'tea', outcome: 'throw-once' }), submit({ item: 'tea', outcome: 'throw-once' })],
        ends: [
          { gets: [thrown, placed], effects: 1 },
          { gets: [placed, thrown], effects: 1 },
          { gets: [thrown, inProgress], effects: 0 },
          { gets: [inProgress, thrown], effects: 0 },
        ],
      },
      { send: submit({ item: 'tea', outcome: 'throw-once' }), gets: { status: 201, from: 'either', json: tea } },
    ],
    effects: 1,
  },
]
