/** Accepted work: 202, its monitor, its workers and its void (P58, P62-P64). */
import type { ShopTry } from '../shop.ts'
import type { ConformanceCase, Expected, Submission } from '../steps.ts'
import {
  absent,
  conflict,
  expired,
  first,
  forbidden,
  lookup,
  placed,
  replayOf,
  submit,
  told,
  voided,
  voids,
} from '../words.ts'

/** Longer than any lease, and than any back-off. */
const LATER_MS = 3_600_000
const DAY_MS = 24 * LATER_MS

const ship = (...tries: ShopTry[]): Submission =>
  submit({ item: 'tea', outcome: 'accept', tries }, { operation: 'shipments.create' })
const look = (gets: Expected) => ({ send: lookup({ operation: 'shipments.create' }), gets })
const cancel = (gets: Expected) => ({ send: voids({ operation: 'shipments.create' }), gets })

/** 202 with all that a client needs to ask again. */
const accepted = first(202, {
  headers: { location: '/keys/shipments.create/k-1', 'retry-after': '2', 'content-type': 'application/json' },
  json: { id: 'k-1', status: 'processing', monitor: '/keys/shipments.create/k-1', retryAfter: 2 },
  digestOf: 'the 202',
})
/** Accepted, and named. */
const taken = (...tries: ShopTry[]) => ({ send: ship(...tries), gets: accepted, name: 'the 202' })
const again = (...tries: ShopTry[]) => ({ send: ship(...tries), gets: replayOf('the 202') })

const processing = told('processing', {
  headers: { 'retry-after': '2' },
  digestOf: 'the 202',
  json: { response: undefined },
})
const done = told('succeeded', {
  headers: { 'retry-after': null },
  digestOf: 'the 202',
  json: { response: { status: 200, body: '{"item":"tea"}', headers: { 'Idempotent-Replayed': 'true' } } },
})
const failed = told('failed', {
  digestOf: 'the 202',
  json: { response: { status: 422, body: '{"reason":"no stock"}' } },
})
const retrying = told('failed_retryable', { digestOf: 'the 202', json: { response: undefined } })
const unknown = told('unknown', { digestOf: 'the 202', json: { response: undefined } })

export const work: readonly ConformanceCase[] = [
  {
    title: 'P62, P64: accepted, then done: the monitor tells both, the 202 is replayed as stored, the effect is one',
    steps: [
      taken('place'),
      look(processing),
      again('place'),
      { effects: 0 },
      { work: 'done' },
      look(done),
      again('place'),
      { work: 'done' },
    ],
    effects: 1,
  },
  {
    title: 'F7, P62: sixteen senders of accepted work are one piece of work',
    steps: [
      { crowd: 16, send: ship('place'), gets: first(202) },
      { work: 'done' },
      { passMs: LATER_MS },
      { work: 'done' },
    ],
    effects: 1,
  },
  {
    title: 'F8: another payload is a conflict while the work goes on, and afterwards',
    steps: [
      taken('place'),
      { send: ship('refuse'), gets: conflict },
      { work: 'done' },
      { send: ship('refuse'), gets: conflict },
    ],
    effects: 1,
  },
  {
    title: 'P64, H32: a failure that is tried again by the server is told apart; nobody has to send anything',
    steps: [
      taken('retry', 'place'),
      { work: 'done' },
      look(retrying),
      again('retry', 'place'),
      { effects: 0 },
      { passMs: LATER_MS },
      { work: 'done' },
      look(done),
    ],
    effects: 1,
  },
  {
    title: 'P64, H33: work that failed for good is failed for the monitor and for a void, and its change is taken back',
    steps: [taken('refuse'), { work: 'done' }, look(failed), cancel(failed), again('refuse')],
    effects: 0,
  },
  {
    title: 'P64, P65, F11: what no worker can know stays unknown, whatever time and voids come',
    steps: [
      taken('unknown', 'place'),
      { work: 'done' },
      look(unknown),
      cancel(unknown),
      { passMs: 30 * DAY_MS },
      { work: 'done' },
      look(unknown),
      again('unknown', 'place'),
    ],
    effects: 0,
  },
  {
    title: 'F9, P63: a worker that dies blocks its work for one lease; then another does it, once',
    steps: [
      taken('place'),
      { work: 'dies' },
      look(processing),
      { effects: 0 },
      { passMs: LATER_MS },
      { work: 'done' },
      look(done),
      { passMs: LATER_MS },
      { work: 'done' },
    ],
    effects: 1,
  },
  {
    title: 'F10, P63: an old worker that wakes up after a takeover writes nothing',
    steps: [
      taken('place'),
      { work: 'sleeps' },
      look(processing),
      { passMs: LATER_MS },
      { work: 'done' },
      look(done),
      { work: 'wakes' },
      look(done),
    ],
    effects: 1,
  },
  {
    title: 'F10, P64: nor does it undo what the new one said',
    steps: [
      taken('place', 'refuse'),
      { work: 'sleeps' },
      { passMs: LATER_MS },
      { work: 'done' },
      look(failed),
      { work: 'wakes' },
      look(failed),
    ],
    effects: 0,
  },
  {
    title: 'P58, H34: a void before the work began: it never happens, the POST is refused, the worker finds nothing',
    steps: [
      taken('place'),
      cancel(told('voided', { json: { response: undefined } })),
      { send: ship('place'), gets: voided },
      look(told('voided')),
      cancel(told('voided')),
      { work: 'done' },
      { passMs: LATER_MS },
      { work: 'done' },
    ],
    effects: 0,
  },
  {
    title:
      'P58, H34: a void while a worker has the work and has done nothing of it: the worker writes nothing any more',
    steps: [taken('place'), { work: 'sleeps' }, cancel(told('voided')), { work: 'wakes' }, look(told('voided'))],
    effects: 0,
  },
  {
    title: 'P58: a void after something was done that cannot be taken back is told how far it is; the work goes on',
    steps: [
      taken('begin', 'place'),
      { work: 'done' },
      cancel(retrying),
      { passMs: LATER_MS },
      { work: 'done' },
      look(done),
    ],
    effects: 1,
  },
  {
    title: 'P58: between two tries that did nothing, the work can be voided',
    steps: [
      taken('retry', 'place'),
      { work: 'done' },
      cancel(told('voided')),
      { passMs: LATER_MS },
      { work: 'done' },
      look(told('voided')),
    ],
    effects: 0,
  },
  {
    title: 'P58, H33: a void after the work is done tells its result',
    steps: [taken('place'), { work: 'done' }, cancel(done), again('place')],
    effects: 1,
  },
  {
    title: 'P58: accepted work that nobody can take back is not voided; the void tells that it is processing',
    steps: [
      { send: submit({ item: 'tea', outcome: 'accept', tries: ['place'] }), gets: first(202), name: 'the 202' },
      { send: voids(), gets: processing, times: 2 },
      { work: 'done' },
      { send: voids(), gets: done },
    ],
    effects: 1,
  },
  {
    title: 'P57, P62: unfinished work is never forgotten, however old it is',
    steps: [
      { send: submit({ item: 'tea', outcome: 'accept' }), gets: first(202), name: 'the 202' },
      { passMs: 30 * DAY_MS },
      { send: lookup({ age: 30 * 86_400 }), gets: processing },
      { send: submit({ item: 'tea', outcome: 'accept' }, { age: 30 * 86_400 }), gets: replayOf('the 202') },
    ],
    effects: 0,
  },
  {
    title: 'P62: a result is kept for a retention from its own making, and the key as long as that',
    steps: [
      taken('later', 'place'),
      { work: 'done' },
      look(retrying),
      { passMs: 20 * LATER_MS },
      { work: 'done' },
      look({ ...done, resultExpiresInMs: DAY_MS }),
      // The key's own retention and grace are over; those of the result are not.
      { passMs: DAY_MS + LATER_MS - 1000 },
      look(done),
      { send: { ...ship('later', 'place'), age: 44 * 3600 }, gets: replayOf('the 202') },
      { passMs: 1000 },
      { send: { ...ship('later', 'place'), age: 45 * 3600 }, gets: expired },
    ],
    effects: 1,
  },
  {
    title: 'P55: a monitor is hidden from who lost the permission, and from everybody else',
    steps: [
      taken('place'),
      {
        send: lookup({ operation: 'shipments.create', by: 'acme.bob' }),
        gets: absent,
      },
      { revoke: 'acme.ann' },
      look(forbidden),
      cancel(forbidden),
      { send: ship('place'), gets: forbidden },
      { work: 'done' },
      look({ ...forbidden, without: 'tea' }),
      { grant: 'acme.ann' },
      look(done),
    ],
    effects: 1,
  },
  {
    title: 'P53: the key of accepted work is another operation’s free key',
    steps: [taken('place'), { send: submit({ item: 'tea' }), gets: placed }, { work: 'done' }],
    effects: 2,
  },
]
