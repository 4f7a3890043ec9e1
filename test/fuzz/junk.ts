/** Junk: the values that break parsers, and sound documents with one thing wrong. */
import fc from 'fast-check'

type Place = readonly (string | number)[]

/** Member names that mean something to JavaScript itself. */
const trapNames = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'then', 'length'] as const

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

/** Values that JSON can say and that nobody expects. */
export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    '',
    ' ',
    '0',
    'NaN',
    'Infinity',
    '-1',
    '1e400',
    'null',
    '\0',
    '\ud800',
    'é€😀',
    'a\r\nb: c',
    'x'.repeat(5000),
    -1,
    -0.5,
    0,
    1,
    1.5,
    99,
    1e15,
    2 ** 53,
    -(2 ** 53),
    Number.MAX_SAFE_INTEGER,
    1e300,
    -1e300,
    5e-324,
    [],
    [[]],
    {},
    { a: 1 },
    nested(2000),
  ),
  fc.constantFrom<unknown>(...trapNames),
)

/** Text of any UTF-16 units, halves of surrogate pairs and NULs included. */
export const wildText: fc.Arbitrary<string> = fc.oneof(
  fc.string(),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
  fc.constantFrom(
    '[',
    '{"',
    '['.repeat(20_000),
    '{"a":'.repeat(20_000),
    '1e999',
    '"\\ud800"',
    '{}',
    '[]',
    'null',
    '\ufeff{}',
  ),
)

/** Any JSON text, and much that is none. */
export const wildJson: fc.Arbitrary<string> = fc.oneof(
  wildText,
  fc.json(),
  oddValue.map((value) => JSON.stringify(value)),
)

function places(value: unknown, at: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const here = [...at, Array.isArray(value) ? Number(name) : name]
    return [here, ...places(member, here)]
  })
}

/** A copy with another value at this place; undefined takes it away. */
function withValue(value: unknown, [step, ...rest]: Place, odd: unknown): unknown {
  if (step === undefined) return odd
  if (Array.isArray(value))
    return value.map((member, index) => (index === step ? withValue(member, rest, odd) : member))
  const { [step]: member, ...others } = value as Record<string | number, unknown>
  return rest.length === 0 && odd === undefined
    ? others
    : withMember(others, String(step), withValue(member, rest, odd))
}

/** By definition, not by assignment: a member called `__proto__` is to be a member. */
function withMember(value: object, name: string, member: unknown): object {
  return Object.defineProperty({ ...value }, name, {
    value: member,
    enumerable: true,
    writable: true,
    configurable: true,
  })
}

/** What is done to a sound document: which of its places, and what comes there. */
export interface Damage {
  readonly at: number
  readonly how: 'replaced' | 'taken away' | 'one more' | 'renamed'
  readonly odd: unknown
  readonly name: string
}

export const anyDamage: fc.Arbitrary<Damage> = fc.record({
  at: fc.nat(),
  how: fc.constantFrom('replaced', 'replaced', 'replaced', 'taken away', 'one more', 'renamed'),
  odd: oddValue,
  name: fc.constantFrom(...trapNames),
})

/** A copy of a plain document with one thing wrong. A whole document that is no container becomes the odd value. */
export function damaged(document: unknown, { at, how, odd, name }: Damage, spare: readonly string[] = []): unknown {
  const all = places(document).filter((place) => !spare.includes(place.join('.')))
  const place = all[at % Math.max(1, all.length)]
  if (place === undefined) return odd
  if (how === 'replaced') return withValue(document, place, odd)
  if (how === 'taken away') return withValue(document, place, undefined)
  const parent = place.slice(0, -1)
  const holder = parent.reduce<unknown>((value, step) => (value as Record<string | number, unknown>)[step], document)
  if (Array.isArray(holder)) return withValue(document, place, odd)
  const rest = how === 'renamed' ? withValue(holder, place.slice(-1), undefined) : holder
  return withValue(document, parent, withMember(rest as object, name, odd))
}
