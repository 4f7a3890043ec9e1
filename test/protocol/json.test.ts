import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, JsonRefusedError, MAX_JSON_DEPTH, parseJson } from '../../src/protocol/json.ts'
import vectors from '../vectors/jcs.json' with { type: 'json' }

function refusal(run: () => unknown): { reason: string; path: string | null } {
  try {
    run()
  } catch (error) {
    if (error instanceof JsonRefusedError) return { reason: error.reason, path: error.path }
    throw error
  }
  throw new Error('was accepted')
}

const refused = (text: string) => refusal(() => parseJson(text))

/** The IEEE 754 bits of the RFC's samples, as a number. */
function double(hex: string): number {
  return new DataView(Uint8Array.from(hex.match(/../g)!, (byte) => Number.parseInt(byte, 16)).buffer).getFloat64(0)
}

/** JSON values without `-0`, which has no JSON form of its own. */
const jsonValue = fc.jsonValue({ noUnicodeString: false }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)

describe('parseJson', () => {
  it('P14: reads plain JSON as JSON.parse does', () => {
    const text = ' {"a": [1, -2.5e3, "x\\n\\u20ac", true, false, null, {}, []], "b": {"c": ""}} \n'
    expect(parseJson(text)).toEqual(JSON.parse(text))
    for (const scalar of ['1', '"a"', 'null', 'true', ' false ']) expect(parseJson(scalar)).toBe(JSON.parse(scalar))
  })

  it.each([
    '',
    ' ',
    'undefined',
    '{',
    '[1',
    '[1,]',
    '[1 2]',
    '{"a":1,}',
    '{"a" 1}',
    '{a:1}',
    '{"a":}',
    '01',
    '-',
    '1.',
    '.5',
    '+1',
    'NaN',
    '"a',
    '"a\\',
    '"\\x"',
    '"\\u12"',
    '"\n"',
    '\ufeff{}',
    '{} {}',
    '}',
    ']]',
  ])('P14: refuses %j, which is no JSON', (text) => {
    expect(refused(text)).toEqual({ reason: 'syntax', path: null })
  })

  it('P14: accepts whatever JSON.parse wrote, and refuses as syntax only what JSON.parse refuses', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      'a',
      '"a"',
      '"b"',
      '1',
      '-',
      '0',
      '.',
      'e',
      ' ',
      'null',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('')
        let plain: unknown
        try {
          plain = JSON.parse(text)
        } catch {
          expect(refused(text).reason).toBe('syntax')
          return
        }
        try {
          expect(canonicalJson(parseJson(text))).toBe(canonicalJson(plain))
        } catch (error) {
          expect(error).toHaveProperty('reason', expect.stringMatching(/duplicate|inexact/))
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('P14: a member that occurs twice is refused, and the error says where', () => {
    expect(refused('{"a":1,"a":2}')).toEqual({ reason: 'duplicate-member', path: '/a' })
    expect(refused('{"x":[0,{"a/b":{"~":1 , "~" :2}}]}')).toEqual({ reason: 'duplicate-member', path: '/x/1/a~1b/~0' })
  })

  it('P14: a member that occurs twice with the same value is refused too', () => {
    expect(refused('{"a":1,"a":1}')).toEqual({ reason: 'duplicate-member', path: '/a' })
    expect(refused('{"a":{"b":[]},"c":"a","a":{"b":[]}}')).toEqual({ reason: 'duplicate-member', path: '/a' })
  })

  it('P14: a member name is compared decoded, so that escapes do not hide a duplicate', () => {
    expect(refused('{"a":1,"\\u0061":1}')).toEqual({ reason: 'duplicate-member', path: '/a' })
    expect(parseJson('{"a\\"":1,"a":2}')).toEqual({ 'a"': 1, a: 2 })
  })

  it('P14: the same name in different objects, and as a value, is no duplicate', () => {
    const text = '[{"a":{"a":"a"}},{"a":["a","a",{"a":1}]}, "a", ["b"]]'
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  it('a member called __proto__ is an ordinary member, and a duplicate of it is found', () => {
    const value = parseJson('{"__proto__":{"admin":true}}') as { admin?: unknown }
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(value.admin).toBeUndefined()
    expect(canonicalJson(value)).toBe('{"__proto__":{"admin":true}}')
    expect(refused('{"__proto__":1,"__proto__":1}')).toEqual({ reason: 'duplicate-member', path: '/__proto__' })
    expect(parseJson('{"constructor":1,"toString":2}')).toEqual({ constructor: 1, toString: 2 })
  })

  it.each([
    '9007199254740993',
    '-9007199254740993',
    '9007199254740993.0',
    '0.1000000000000000055511151231257827',
    '333333333.33333329',
    '1e400',
    '-1e400',
    '1e-400',
    '12345678901234567890',
  ])('P14: refuses the number %s, which a double would change', (text) => {
    expect(refused(text)).toEqual({ reason: 'inexact-number', path: '' })
    expect(refused(`{"a":[1,{"b":${text}}]}`)).toEqual({ reason: 'inexact-number', path: '/a/1/b' })
  })

  it.each([
    ['9007199254740991', 9007199254740991],
    ['9007199254740992', 9007199254740992],
    ['0.1', 0.1],
    ['1.0', 1],
    ['1e2', 100],
    ['1E+2', 100],
    ['100e-2', 1],
    ['0e99999', 0],
    ['0.00', 0],
    ['1e30', 1e30],
    ['5e-324', 5e-324],
    ['-12.50', -12.5],
  ])('P14: accepts the number %s, which comes back from a double', (text, value) => {
    expect(parseJson(text)).toBe(value)
  })

  it('P14: -0 is read as 0', () => {
    expect(parseJson('-0')).toBe(0)
    expect(parseJson('[-0.0, -0e5]')).toEqual([0, 0])
  })

  it('P14: half a surrogate pair is refused in values and in names', () => {
    expect(refused('"\\ud800"')).toEqual({ reason: 'lone-surrogate', path: '' })
    expect(refused('{"a":["x","\ude00"]}')).toEqual({ reason: 'lone-surrogate', path: '/a/1' })
    expect(refused('{"a":{"\\udc00":1}}')).toEqual({ reason: 'lone-surrogate', path: '/a' })
    expect(parseJson('"\\ud83d\\ude00"')).toBe('😀')
  })

  it('nesting up to the limit is read, one more is refused', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(() => parseJson(nested(MAX_JSON_DEPTH))).not.toThrow()
    expect(refused(nested(MAX_JSON_DEPTH + 1))).toEqual({ reason: 'too-deep', path: null })
  })

  it('a million open brackets are a refusal, not a stack overflow', () => {
    expect(refused('['.repeat(1_000_000)).reason).toBe('too-deep')
    expect(refused('{"a":'.repeat(1_000_000)).reason).toBe('too-deep')
  })

  it('brackets inside strings are no nesting', () => {
    const text = JSON.stringify({ a: '['.repeat(2000), 'b"{': '\\"{'.repeat(2000) })
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  it('a number of half a million digits is judged in linear time', () => {
    expect(refused(`1${'0'.repeat(500_000)}1`).reason).toBe('inexact-number')
    expect(parseJson(`0.${'0'.repeat(300)}1${'0'.repeat(500_000)}`)).toBe(1e-301)
  })

  it('P51: the error holds nothing of the text', () => {
    for (const text of ['{"card":"4242",', '{"card":4242x}', '[9007199254740993]']) {
      let error: unknown
      try {
        parseJson(text)
      } catch (thrown) {
        error = thrown
      }
      expect(error).toMatchObject({ name: 'JsonRefusedError' })
      expect(String(error)).not.toMatch(/4242|card|9007/)
      expect(error).not.toHaveProperty('cause')
    }
  })
})

describe('canonicalJson', () => {
  it.each(vectors.numbers)('RFC 8785: the double $ieee754 is $canonical', ({ ieee754, canonical }) => {
    const run = () => canonicalJson(double(ieee754))
    if (canonical === null) expect(refusal(run)).toEqual({ reason: 'inexact-number', path: null })
    else expect(run()).toBe(canonical)
  })

  it.each(vectors.documents)('RFC 8785: $about', ({ input, canonical, exact }) => {
    expect(canonicalJson(JSON.parse(input))).toBe(canonical)
    if (exact) expect(canonicalJson(parseJson(input))).toBe(canonical)
    else expect(refused(input).reason).toBe('inexact-number')
  })

  it('what JSON cannot say is refused by kind', () => {
    const cycle: unknown[] = []
    cycle.push(cycle)
    expect(refusal(() => canonicalJson(['\ud800'])).reason).toBe('lone-surrogate')
    expect(refusal(() => canonicalJson([Number.NaN])).reason).toBe('inexact-number')
    expect(refusal(() => canonicalJson(Number.NEGATIVE_INFINITY)).reason).toBe('inexact-number')
    expect(refusal(() => canonicalJson(cycle)).reason).toBe('syntax')
    expect(refusal(() => canonicalJson(1n)).reason).toBe('syntax')
    expect(refusal(() => canonicalJson(undefined)).reason).toBe('syntax')
  })

  it('P14: parsing a canonical text and writing it again changes nothing', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const text = canonicalJson(value)
        expect(canonicalJson(parseJson(text))).toBe(text)
        expect(parseJson(text)).toEqual(value)
      }),
    )
  })

  it('P14: white space and spelling of a text do not reach the canonical form', () => {
    fc.assert(
      fc.property(jsonValue, fc.integer({ min: 0, max: 4 }), (value, indent) => {
        expect(canonicalJson(parseJson(JSON.stringify(value, null, indent)))).toBe(canonicalJson(value))
      }),
    )
  })
})
