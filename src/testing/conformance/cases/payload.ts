/** What counts as the same request (P14, P15). */
import { sha256Hex } from '../../../protocol/sha256.ts'
import { conformanceShop } from '../shop.ts'
import type { ConformanceCase, Submission } from '../steps.ts'
import { absent, bodyRefused, conflict, first, lookup, placed, problem, replayOf, submit, tea, told } from '../words.ts'

type Sent = Submission['order']

/** Two ways to say one thing. */
function same(
  title: string,
  one: Sent,
  other: Sent,
  more: [Partial<Submission>, Partial<Submission>] = [{}, {}],
): ConformanceCase {
  return {
    title,
    steps: [
      { send: submit(one, more[0]), gets: first(201), name: 'first' },
      { send: submit(other, more[1]), gets: replayOf('first') },
    ],
    effects: 1,
  }
}

/** Two things. */
function different(
  title: string,
  one: Sent,
  other: Sent,
  more: [Partial<Submission>, Partial<Submission>] = [{}, {}],
): ConformanceCase {
  return {
    title,
    steps: [
      { send: submit(one, more[0]), gets: first(201), name: 'first' },
      { send: submit(other, more[1]), gets: conflict },
      { send: submit(one, more[0]), gets: replayOf('first') },
    ],
    effects: 1,
  }
}

/** What two readers could read differently executes nothing, and the key stays free. */
function unreadable(title: string, order: Sent): ConformanceCase {
  return {
    title,
    steps: [
      { send: submit(order), gets: bodyRefused },
      { send: lookup(), gets: absent },
      { send: submit(tea), gets: placed },
    ],
    effects: 1,
  }
}

const form = (boundary: string, item: string): [string, Partial<Submission>] => [
  [`--${boundary}`, 'Content-Disposition: form-data; name="item"', '', item, `--${boundary}--`, ''].join('\r\n'),
  { type: `multipart/form-data; boundary=${boundary}` },
]
const [formA, typeA] = form('one', 'tea')
const [formB, typeB] = form('another', 'tea')
const [formC, typeC] = form('one', 'coffee')
const text = { type: 'text/plain' }
const megabyte = 'x'.repeat(1_000_000)

export const payload: readonly ConformanceCase[] = [
  same(
    'P14: the order of members and white space do not matter',
    '{"item":"tea","n":[1,2]}',
    ' {\n"n" : [1, 2],\t"item":"tea"}\r\n',
  ),
  same('P14: an escape and its character are one', '{"item":"tea"}', '{"it\\u0065m":"te\\u0061"}'),
  same('P14: 1.0 is 1', '{"item":"tea","n":1}', '{"item":"tea","n":1.0}'),
  same('P14: 1e0 is 1', '{"item":"tea","n":1}', '{"item":"tea","n":1e0}'),
  same('P14: -0 is 0', '{"item":"tea","n":-0}', '{"item":"tea","n":0}'),
  different('P14: the text "1" is not the number 1', '{"item":"tea","n":"1"}', '{"item":"tea","n":1}'),
  different('P14: every digit of a text counts', '{"item":"tea","n":"1.0"}', '{"item":"tea","n":"1"}'),
  different('P14: the order of an array counts', '{"item":"tea","n":[1,2]}', '{"item":"tea","n":[2,1]}'),
  different('P14: null is not absent', '{"item":"tea","n":null}', '{"item":"tea"}'),
  different('P14: composed and decomposed letters are two texts', '{"item":"\u00e9"}', '{"item":"e\u0301"}'),
  different('P14: a NUL character in a text counts', '{"item":"tea\\u0000"}', '{"item":"tea"}'),
  different(
    'P14, H23: the largest amount that a double holds is not the one below it',
    '{"n":9007199254740991}',
    '{"n":9007199254740990}',
  ),
  different('P14: no body is not an empty object', null, '{}'),

  unreadable('P14: duplicate members are refused', '{"item":"tea","item":"coffee"}'),
  unreadable('P14: and so are those that differ in spelling alone', '{"item":"tea","it\\u0065m":"coffee"}'),
  unreadable(
    'P14, H23: an integer that a double cannot hold is refused, not rounded',
    '{"item":"tea","amount":9007199254740993}',
  ),
  unreadable(
    'P14: a fraction that a double cannot hold is refused',
    '{"item":"tea","amount":0.12345678901234567890123}',
  ),
  unreadable('P14: a number beyond every double is refused', '{"item":"tea","amount":1e400}'),
  unreadable('P14: half of a surrogate pair is refused', '{"item":"\\ud800"}'),
  unreadable('a NUL byte outside of a text is no JSON', '{"item":"tea"}\0'),
  unreadable('a NUL byte inside of a text is no JSON', '{"item":"tea\0"}'),
  unreadable('half a document is refused', '{"item":"tea"'),
  unreadable('what is called JSON and is no UTF-8 is refused', Uint8Array.of(0x22, 0xff, 0x22)),
  unreadable('a document that is nested without end is refused', '['.repeat(20_000)),

  {
    title: 'a NUL character is executed, replayed and digested like any other',
    steps: [
      { send: submit('{"item":"tea\\u0000"}'), gets: first(201, { json: { item: 'tea\0' } }), name: 'first' },
      { send: submit('{"item":"tea\\u0000"}'), gets: replayOf('first') },
      { send: lookup(), gets: told('succeeded', { shows: 'first', digestOf: 'first' }) },
    ],
    effects: 1,
  },
  same('P14: bodies that are no JSON are compared byte for byte, NUL included', 'a\0b', 'a\0b', [text, text]),
  different('P14: one byte makes another body', 'a\0b', 'a\0c', [text, text]),
  different('P14: the bytes that JSON would call equal are not, in another type', '{"a":1}', '{"a": 1}', [text, text]),
  different('P14: the type of a body counts', 'tea', 'tea', [text, { type: 'text/csv' }]),
  same('P14: a form is compared by its parts, not by its boundary', formA, formB, [typeA, typeB]),
  different('P14: another part is another form', formA, formC, [typeA, typeC]),
  same('P14: JSON is UTF-8, whatever the charset says', '{"item":"tea"}', '{"item":"tea"}', [
    {},
    { type: 'application/json; charset=utf-8' },
  ]),
  different('P15: a vendor’s JSON type may carry the version of the API', '{"item":"tea"}', '{"item":"tea"}', [
    { type: 'application/vnd.shop.v1+json' },
    { type: 'application/vnd.shop.v2+json' },
  ]),
  different('P15: the query is a part of the target', tea, tea, [{ query: '?size=1' }, { query: '?size=2' }]),
  different('P15: a header that may decide the result counts', tea, tea, [
    { headers: { 'x-account': 'one' } },
    { headers: { 'x-account': 'two' } },
  ]),
  same('P15: trace ids, ages and what transports add do not count', tea, tea, [
    { headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'user-agent': 'one' } },
    {
      headers: {
        traceparent: '00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01',
        'x-request-id': '2',
        accept: '*/*',
      },
      age: 7,
    },
  ]),

  {
    title: 'a megabyte is executed and replayed whole',
    steps: [
      { send: submit({ item: megabyte }), gets: first(201, { json: { item: megabyte } }), name: 'first' },
      { send: submit({ item: megabyte }), gets: replayOf('first') },
      { send: submit({ item: `${megabyte.slice(1)}y` }), gets: conflict },
    ],
    effects: 1,
  },
  {
    title: 'P60: a body over the limit is refused with 413 before the key is touched',
    steps: [
      { send: submit('x'.repeat(conformanceShop.requestBytes + 1), text), gets: problem(413, 'request_too_large') },
      { send: lookup(), gets: absent },
      { send: submit(tea), gets: placed },
    ],
    effects: 1,
  },
  {
    title: 'P60: a body at the limit is not over it',
    steps: [{ send: submit('x'.repeat(conformanceShop.requestBytes), text), gets: first(201) }],
    effects: 1,
  },
  {
    title: 'H37: the digest is that of the first request’s bytes, however a repetition spells them',
    steps: [
      { send: submit('{"item":"tea"}'), gets: placed, name: 'first' },
      { send: submit('{ "item": "tea" }'), gets: replayOf('first') },
      {
        send: lookup(),
        gets: told('succeeded', { digestOf: 'first', json: { requestDigest: sha256Hex('{"item":"tea"}') } }),
      },
    ],
    effects: 1,
  },
]
