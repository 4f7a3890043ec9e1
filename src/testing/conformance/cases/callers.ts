/** Whose key it is, and who may see what it knows (P53, P55, `Idempotency-Scope`). */
import type { Ask, ConformanceCase, Expected } from '../steps.ts'
import {
  absent,
  coffee,
  first,
  forbidden,
  lookup,
  placed,
  refused,
  replayOf,
  submit,
  tea,
  told,
  voids,
} from '../words.ts'

const mismatch = refused('idempotency_scope_mismatch', { without: 'tea' })
const unauthenticated: Expected = { status: 401, from: 'elsewhere', without: 'tea' }

/** Every way to ask. */
const asks: readonly { readonly what: string; readonly ask: (more: Partial<Ask>) => Ask }[] = [
  { what: 'submit', ask: (more) => ({ ...submit(tea), ...more }) as Ask },
  { what: 'look-up', ask: (more) => ({ ...lookup(), ...more }) as Ask },
  { what: 'void', ask: (more) => ({ ...voids(), ...more }) as Ask },
]

export const callers: readonly ConformanceCase[] = [
  {
    title: 'P53, B117: the same key of another principal is another key, and nobody gets somebody else’s answer',
    steps: [
      { send: submit(tea), gets: placed, name: 'ann' },
      { send: lookup({ by: 'acme.bob' }), gets: absent },
      { send: submit(coffee, { by: 'acme.bob' }), gets: first(201, { json: coffee, without: 'tea' }) },
      { send: submit(tea), gets: replayOf('ann') },
    ],
    effects: 2,
  },
  {
    title: 'P53: the same key and principal of another tenant is another key',
    steps: [
      { send: submit(tea), gets: placed, name: 'acme' },
      { send: lookup({ by: 'globex.ann' }), gets: absent },
      { send: submit(tea, { by: 'globex.ann' }), gets: placed },
      { send: submit(tea), gets: replayOf('acme') },
    ],
    effects: 2,
  },
  {
    title: 'P53, B117: the same key of another operation is another key',
    steps: [
      { send: submit(tea), gets: placed },
      { send: lookup({ operation: 'orders.cancel' }), gets: absent },
      { send: submit(tea, { operation: 'orders.cancel' }), gets: first(200, { json: tea }), name: 'cancelled' },
      { send: submit(tea, { operation: 'orders.cancel' }), gets: replayOf('cancelled') },
    ],
    effects: 2,
  },
  {
    title: 'P53: a void by another principal, or of another operation, leaves the key alone',
    steps: [
      { send: voids({ by: 'acme.bob' }), gets: told('voided') },
      { send: voids({ operation: 'orders.cancel' }), gets: told('voided') },
      { send: submit(tea), gets: placed },
    ],
    effects: 1,
  },
  {
    title: 'section 12, F14: failed authentication never touches the key; renewed, the same request goes on',
    steps: [
      ...asks.map(({ ask }) => ({ send: ask({ by: null }), gets: unauthenticated })),
      { send: lookup(), gets: absent },
      { send: submit(tea), gets: placed, name: 'first' },
      ...asks.map(({ ask }) => ({ send: ask({ by: null }), gets: unauthenticated })),
      { send: submit(tea), gets: replayOf('first') },
    ],
    effects: 1,
  },
  {
    title: 'H5: the tag of another account touches nothing, and learns nothing',
    steps: [
      ...asks.map(({ ask }) => ({ send: ask({ tag: 'acme.bob' }), gets: mismatch })),
      { send: lookup(), gets: absent },
      { send: submit(tea, { tag: 'acme.ann' }), gets: placed, name: 'first' },
      ...asks.map(({ ask }) => ({ send: ask({ tag: 'acme.bob' }), gets: mismatch })),
      { send: submit(tea, { tag: 'acme.ann' }), gets: replayOf('first') },
      { send: lookup({ tag: 'acme.ann' }), gets: told('succeeded') },
    ],
    effects: 1,
  },
  {
    title: 'H5: to somebody else’s request nothing more is said, not even that its key is wrong',
    steps: [{ send: submit(tea, { tag: 'acme.bob', key: null, age: 'junk' }), gets: mismatch }],
    effects: 0,
  },
  {
    title: 'H5: a tag that the server cannot check is refused, not ignored',
    steps: [
      ...asks.map(({ ask }) => ({ send: ask({ by: 'acme.robot', tag: 'acme.robot' }), gets: mismatch })),
      { send: submit(tea, { by: 'acme.robot' }), gets: placed },
    ],
    effects: 1,
  },
  {
    title: 'P27, P55: who may not do it is refused before the key is touched',
    steps: [
      { revoke: 'acme.ann' },
      ...asks.map(({ ask }) => ({ send: ask({}), gets: forbidden })),
      { grant: 'acme.ann' },
      { send: lookup(), gets: absent },
      { send: submit(tea), gets: placed },
    ],
    effects: 1,
  },
  ...asks.map(
    ({ what, ask }): ConformanceCase => ({
      title: `P55: a permission revoked since hides the stored answer from a ${what}, until it is granted again`,
      steps: [
        { send: submit(tea), gets: placed, name: 'first' },
        { revoke: 'acme.ann' },
        { send: ask({}), gets: { ...forbidden, without: 'tea' } },
        { send: submit(tea, { by: 'acme.bob' }), gets: placed },
        { grant: 'acme.ann' },
        { send: submit(tea), gets: replayOf('first') },
        { send: lookup(), gets: told('succeeded', { shows: 'first', digestOf: 'first' }) },
      ],
      effects: 2,
    }),
  ),
  {
    title: 'P55: today’s authorisation is asked with the stored answer in hand, before any of it is shown',
    steps: [
      { send: submit({ item: 'tea', outcome: 'hide' }), gets: placed },
      { send: submit({ item: 'tea', outcome: 'hide' }), gets: { ...forbidden, without: 'tea' }, times: 2 },
      { send: lookup(), gets: { ...forbidden, without: 'tea' } },
      { send: voids(), gets: { ...forbidden, without: 'tea' } },
    ],
    effects: 1,
  },
  {
    title: 'P55, P60: nor is an answer kept by reference read for who may not see it',
    steps: [
      { send: submit({ item: 'tea', outcome: 'refer' }), gets: first(201) },
      { revoke: 'acme.ann' },
      { send: submit({ item: 'tea', outcome: 'refer' }), gets: { ...forbidden, without: 'orders' } },
      { send: lookup(), gets: { ...forbidden, without: 'orders' } },
    ],
    effects: 1,
  },
]
