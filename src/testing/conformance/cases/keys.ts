/** How a key is written (section 16, P12). */
import type { ConformanceCase } from '../steps.ts'
import { absent, keyInvalid, lookup, placed, refused, replayOf, submit, tea, told, voids } from '../words.ts'

/** Refused, executed nowhere. */
function invalid(title: string, key: string): ConformanceCase {
  return { title, steps: [{ send: submit(tea, { key }), gets: keyInvalid }], effects: 0 }
}

const longest = 'k'.repeat(255)
/** Each of these means something in a URL. */
const awkward = 'a/b?c#d%41;e=f&g+h:i@[j]'

export const keys: readonly ConformanceCase[] = [
  {
    title: 'B133: quoted and raw are one key',
    steps: [
      { send: submit(tea, { key: 'k-1' }), gets: placed, name: 'first' },
      { send: submit(tea, { key: '"k-1"' }), gets: replayOf('first') },
      { send: submit(tea, { key: '  k-1  ' }), gets: replayOf('first') },
    ],
    effects: 1,
  },
  {
    title: 'a request without a key, or with an empty one, is told so and executed nowhere',
    steps: [
      { send: submit(tea, { key: null }), gets: refused('idempotency_key_missing') },
      { send: submit(tea, { key: '' }), gets: refused('idempotency_key_missing') },
    ],
    effects: 0,
  },
  invalid('B133: two keys: nothing says which is meant', 'k-1, k-2'),
  invalid('B133: not even when they are equal', 'k-1, k-1'),
  invalid('a quote that is never closed', '"k-1'),
  invalid('a quote in the middle', 'k"1'),
  invalid('an empty quoted key', '""'),
  invalid('a quoted key with a parameter', '"k-1";v=1'),
  invalid('a quoted key with a comma, which joins two keys elsewhere', '"k,1"'),
  invalid('a space inside', 'k 1'),
  invalid('a backslash', 'k\\1'),
  invalid('a letter that is not ASCII', 'k\u00e9'),
  invalid('a path segment that URLs drop', '..'),
  invalid('P12, P60: more than 255 characters', `${longest}k`),
  {
    title: 'P12: 255 characters are a key, for a look-up too; one more is none',
    steps: [
      { send: submit(tea, { key: longest }), gets: placed, name: 'first' },
      { send: submit(tea, { key: longest }), gets: replayOf('first') },
      { send: lookup({ key: longest }), gets: told('succeeded', { json: { id: longest } }) },
      { send: lookup({ key: `${longest}k` }), gets: keyInvalid },
      { send: voids({ key: `${longest}k` }), gets: keyInvalid },
    ],
    effects: 1,
  },
  {
    title: 'section 16: a key is percent-encoded in the path, whatever URLs make of its characters',
    steps: [
      { send: submit(tea, { key: awkward }), gets: placed },
      { send: lookup({ key: awkward }), gets: told('succeeded', { json: { id: awkward } }) },
      { send: voids({ key: awkward }), gets: told('succeeded', { json: { id: awkward } }) },
      { send: lookup({ key: awkward.replace('%41', 'A') }), gets: absent },
    ],
    effects: 1,
  },
  {
    title: 'section 16: a path that encodes more than it must names the same key',
    steps: [
      { send: submit(tea), gets: placed, name: 'first' },
      {
        send: { kind: 'other', method: 'GET', path: '/keys/orders%2Ecreate/%6B%2D1' },
        gets: told('succeeded', { json: { id: 'k-1' }, shows: 'first' }),
      },
    ],
    effects: 1,
  },
  {
    title: 'a void by an encoded key voids that key and no other',
    steps: [
      { send: voids({ key: awkward }), gets: told('voided', { json: { id: awkward } }) },
      { send: submit(tea, { key: awkward }), gets: refused('idempotency_voided') },
      { send: submit(tea, { key: awkward.replace('%41', 'A') }), gets: placed },
    ],
    effects: 1,
  },
]
