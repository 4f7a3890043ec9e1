import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkKey, derivedKey, MAX_KEY_LENGTH, readKeyHeader } from '../../src/protocol/key.ts'

const V4 = '3f333df6-90a4-4fda-8dd3-9485d27cee36'
const V7 = '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'

describe('checkKey', () => {
  it.each(['a', V4, V7, 'checkout:cart-42', "!#$%&'()*+-./:;<=>?@[]^_`{|}~", '...'])('P12: %s is a key', (key) => {
    expect(checkKey(key, {})).toBeNull()
  })

  it.each(['', ' ', 'a b', 'a\tb', 'a,b', 'a"b', 'a\\b', 'ключ', 'é', '\u0000', '\u007f', 'a\n', '.', '..'])(
    'P12: %j is refused before anything is stored',
    (key) => {
      expect(checkKey(key, {})).toMatch(/^The key .*\.$/)
    },
  )

  it('P12: a key has at most 255 characters', () => {
    expect(checkKey('x'.repeat(MAX_KEY_LENGTH), {})).toBeNull()
    expect(checkKey('x'.repeat(MAX_KEY_LENGTH + 1), {})).toContain('256')
    expect(readKeyHeader('x'.repeat(MAX_KEY_LENGTH + 1))).toEqual({ ok: false, reason: 'malformed' })
  })

  it('P12: the limits that the server states are kept', () => {
    expect(checkKey('12345', { minLength: 6 })).toContain('6 to 255')
    expect(checkKey('12345', { maxLength: 4 })).toContain('1 to 4')
    expect(checkKey('12345', { minLength: 5, maxLength: 5 })).toBeNull()
    expect(checkKey('x'.repeat(300), { maxLength: 1000 })).toContain('1 to 255')
    expect(checkKey('', { minLength: 0 })).toContain('1 to 255')
  })

  it('P12: a pattern must match the whole key', () => {
    expect(checkKey('abc', { pattern: '[a-z]+' })).toBeNull()
    expect(checkKey('abc1', { pattern: '[a-z]+' })).toContain('[a-z]+')
    expect(checkKey('ab1', { pattern: 'ab|1' })).not.toBeNull()
    expect(() => checkKey('a', { pattern: '(' })).toThrow(SyntaxError)
  })

  it('P12: the UUID version is checked', () => {
    expect(checkKey(V4, { uuidVersion: 4 })).toBeNull()
    expect(checkKey(V7, { uuidVersion: 7 })).toBeNull()
    expect(checkKey(V7, { uuidVersion: 4 })).toContain('version 4')
    expect(checkKey('order-42', { uuidVersion: 7 })).toContain('version 7')
  })

  it('P51: the sentence never holds the key', () => {
    for (const rules of [{ maxLength: 5 }, { uuidVersion: 4 }, { pattern: 'x' }] as const) {
      expect(checkKey('secret-42', rules)).not.toContain('secret')
    }
    expect(checkKey('secret 42', {})).not.toContain('secret')
  })
})

describe('readKeyHeader', () => {
  it.each([V4, 'checkout:42', '8e03978e-40d5-43dd-bc93-6894a57f9324'])(
    'the raw token %s and the quoted string are the same key',
    (key) => {
      expect(readKeyHeader(key)).toEqual({ ok: true, key })
      expect(readKeyHeader(`"${key}"`)).toEqual({ ok: true, key })
      expect(readKeyHeader(` \t${key} `)).toEqual({ ok: true, key })
    },
  )

  it.each([null, '', '  '])('%j is a missing key', (value) => {
    expect(readKeyHeader(value)).toEqual({ ok: false, reason: 'missing' })
  })

  it.each(['a, b', 'a,a', '"a", "b"', '"a", b', ',', 'a,', '"a,b", "c"'])(
    'B133: %s is refused: more than one value',
    (value) => {
      expect(readKeyHeader(value)).toEqual({ ok: false, reason: 'multiple' })
    },
  )

  it.each(['""', '"a', '"', '"a"b', '"a";p=1', '"a,b"', '"a\\"b"', '"a b"', 'a b', 'a"b"', 'é', '"é"', '..', '"a\\x"'])(
    'B07: %s is malformed',
    (value) => {
      expect(readKeyHeader(value)).toEqual({ ok: false, reason: 'malformed' })
    },
  )

  it('P12: what is read is fine to send, and what is fine to send is read back, raw and quoted', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.stringMatching(/^[!-~]{0,260}$/))
    fc.assert(
      fc.property(text, (key) => {
        const read = readKeyHeader(key)
        if (read.ok) expect(checkKey(read.key, {})).toBeNull()
        if (checkKey(key, {}) !== null) return
        expect(read).toEqual({ ok: true, key })
        expect(readKeyHeader(`"${key}"`)).toEqual({ ok: true, key })
      }),
    )
  })
})

describe('derivedKey', () => {
  const parts = {
    origin: 'https://api.example.com',
    scope: 'acme/42',
    operation: 'orders.create',
    intentId: 'checkout:cart-42',
  }

  it('P11: golden values: a derived key never changes', () => {
    expect(derivedKey(parts)).toBe('09bc19d4-67e5-5377-962d-5124f5c059af')
    expect(derivedKey({ ...parts, scope: '', intentId: 'ключ 😀' })).toBe('add7bc6c-fe82-52ac-9f4b-ba5feb9a2aaa')
  })

  it('P11: a derived key is a UUIDv5, and every part counts', () => {
    const keys = [
      parts,
      { ...parts, origin: 'https://api.example.org' },
      { ...parts, scope: 'acme/43' },
      { ...parts, operation: 'orders.cancel' },
      { ...parts, intentId: 'checkout:cart-43' },
    ].map(derivedKey)
    expect(new Set(keys).size).toBe(keys.length)
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  it('P11: text cannot move from one part into the next', () => {
    const split = (scope: string, operation: string) => derivedKey({ ...parts, scope, operation })
    expect(split('a', 'bc')).not.toBe(split('ab', 'c'))
    expect(split('a","b', 'c')).not.toBe(split('a', 'b","c'))
    expect(split('\ud800', 'c')).not.toBe(split('\ud801', 'c'))
  })
})
