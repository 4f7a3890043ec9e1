import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  FINGERPRINT_VERSION,
  type FingerprintBody,
  type FingerprintInput,
  type FingerprintRules,
  FingerprintVersionError,
  fingerprint,
  isJsonMediaType,
  sameFingerprint,
} from '../../src/protocol/fingerprint.ts'
import { JsonRefusedError } from '../../src/protocol/json.ts'

const ORDER: FingerprintInput = {
  method: 'POST',
  url: 'https://api.example.com/orders?dry=0&tag=a&tag=b',
  operation: 'orders.create',
  headers: [
    ['content-type', 'application/json'],
    ['api-version', '2'],
  ],
  body: { kind: 'json', text: '{"amount":1200,"currency":"EUR","items":[{"sku":"a"},{"sku":"b"}],"note":null}' },
}

const digest = (change: Partial<FingerprintInput> = {}, rules?: FingerprintRules) =>
  fingerprint({ ...ORDER, ...change }, rules).digest

const json = (text: string): Pick<FingerprintInput, 'body'> => ({ body: { kind: 'json', text } })
const ofJson = (text: string, rules?: FingerprintRules) => digest(json(text), rules)

/** Writes the members of every object in another order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reversed(member)]),
  )
}

describe('what is the same', () => {
  it('P14: property order and white space do not change the fingerprint (no false mismatch)', () => {
    const other = ' { "note": null, "items": [ {"sku":"a"} , {"sku":"b"} ],\n "currency":"EUR", "amount": 1200 }'
    expect(ofJson(other)).toBe(digest())
  })

  it('P14: whatever the body, the order of its members does not matter', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 3 }), (value, indent) => {
        const text = JSON.stringify(value)
        // Integer-like names always come first in an object; `reversed` moves the others.
        expect(ofJson(JSON.stringify(reversed(JSON.parse(text)), null, indent))).toBe(ofJson(text))
      }),
    )
  })

  it('P14: the spelling of a number does not matter', () => {
    expect(ofJson('[1.0, 1e2, -0, 0.10]')).toBe(ofJson('[1,100,0,0.1]'))
  })

  it('P14: the charset of JSON does not matter, nor whether its type is stated', () => {
    const charset = {
      headers: [
        ['Content-Type', 'application/json; charset=utf-8'],
        ['api-version', '2'],
      ] as const,
    }
    expect(digest(charset)).toBe(digest())
    expect(digest({ headers: [['api-version', '2']] })).toBe(digest())
  })

  it('P14: a multipart body is compared by its parts, not by its boundary', () => {
    const body: FingerprintBody = {
      kind: 'parts',
      parts: [{ name: 'f', fileName: 'a.png', type: 'image/png', digest: 'd' }],
    }
    const withBoundary = (boundary: string) =>
      digest({ headers: [['content-type', `multipart/form-data; boundary=${boundary}`]], body })
    expect(withBoundary('one')).toBe(withBoundary('two'))
  })

  it('P15: trace ids, send times, credentials and transport headers do not change it', () => {
    const noise = [
      ['traceparent', '00-1'],
      ['Date', 'now'],
      ['Authorization', 'Bearer x'],
      ['Idempotency-Key', 'k'],
    ] as const
    expect(digest({ headers: [...noise, ...ORDER.headers] })).toBe(digest())
  })

  it('P15: letter case and order of headers do not matter', () => {
    const headers = [
      ['a', '1'],
      ['B', '2'],
    ] as const
    expect(digest({ headers })).toBe(
      digest({
        headers: [
          ['b', '2'],
          ['A', '1'],
        ],
      }),
    )
  })

  it('P15: method in lower case, default port, fragment and user information do not matter', () => {
    const url = 'https://user:secret@API.example.com:443/orders?dry=0&tag=a&tag=b#top'
    expect(digest({ url, method: 'post' })).toBe(digest())
  })
})

describe('what is different', () => {
  const all = new Map<string, string>([['the order itself', digest()]])
  const differs = (title: string, change: Partial<FingerprintInput>) => all.set(title, digest(change))
  differs('method', { method: 'PUT' })
  differs('scheme', { url: 'http://api.example.com/orders?dry=0&tag=a&tag=b' })
  differs('host', { url: 'https://api.example.org/orders?dry=0&tag=a&tag=b' })
  differs('port', { url: 'https://api.example.com:8443/orders?dry=0&tag=a&tag=b' })
  differs('path', { url: 'https://api.example.com/refunds?dry=0&tag=a&tag=b' })
  differs('query value', { url: 'https://api.example.com/orders?dry=1&tag=a&tag=b' })
  differs('query order', { url: 'https://api.example.com/orders?dry=0&tag=b&tag=a' })
  differs('no query', { url: 'https://api.example.com/orders' })
  differs('operation', { operation: 'orders.import' })
  differs('API version', { headers: [['api-version', '3']] })
  differs('vendor type of JSON', {
    headers: [
      ['content-type', 'application/vnd.v2+json'],
      ['api-version', '2'],
    ],
  })
  differs('amount', json('{"amount":1201,"currency":"EUR","items":[{"sku":"a"},{"sku":"b"}],"note":null}'))
  differs('currency', json('{"amount":1200,"currency":"USD","items":[{"sku":"a"},{"sku":"b"}],"note":null}'))
  differs('array order', json('{"amount":1200,"currency":"EUR","items":[{"sku":"b"},{"sku":"a"}],"note":null}'))
  differs('null against absent', json('{"amount":1200,"currency":"EUR","items":[{"sku":"a"},{"sku":"b"}]}'))
  differs(
    'string against number',
    json('{"amount":"1200","currency":"EUR","items":[{"sku":"a"},{"sku":"b"}],"note":null}'),
  )
  differs('no body', { body: { kind: 'none' } })
  const bytes = (contentType: string, content: number[]): Partial<FingerprintInput> => ({
    body: { kind: 'bytes', contentType, bytes: Uint8Array.from(content) },
  })
  differs('bytes', bytes('text/plain', [1]))
  differs('other bytes', bytes('text/plain', [2]))
  differs('other type of bytes', bytes('text/csv', [1]))
  const part = (change: object): Partial<FingerprintInput> => ({
    body: { kind: 'parts', parts: [{ name: 'f', fileName: 'a', type: 'text/plain', digest: 'd', ...change }] },
  })
  differs('part', part({}))
  differs('part name', part({ name: 'g' }))
  differs('part file name', part({ fileName: 'b' }))
  differs('part without file name', part({ fileName: null }))
  differs('part type', part({ type: 'text/html' }))
  differs('part content', part({ digest: 'e' }))
  differs('no parts', { body: { kind: 'parts', parts: [] } })

  it.each([...all.keys()])('P14, P15: %s has a fingerprint of its own', (title) => {
    const twins = [...all].filter(([, value]) => value === all.get(title)).map(([name]) => name)
    expect(twins).toEqual([title])
  })

  it('P14: every digit of a string matters', () => {
    expect(ofJson('"9007199254740993"')).not.toBe(ofJson('"9007199254740992"'))
  })

  it('P14: a character and its decomposed form are different strings', () => {
    expect(ofJson(JSON.stringify('\u00e9'))).not.toBe(ofJson(JSON.stringify('e\u0301')))
  })

  it('P14: duplicate members and numbers that would be rounded are refused', () => {
    expect(() => ofJson('{"amount":1,"amount":1}')).toThrow(JsonRefusedError)
    expect(() => ofJson('{"amount":9007199254740993}')).toThrow(JsonRefusedError)
  })

  it('a URL that is not absolute is refused', () => {
    expect(() => digest({ url: '/orders' })).toThrow(TypeError)
  })
})

describe('rules', () => {
  it('P15: an omitted member does not change the fingerprint', () => {
    const rules = { omit: ['/meta/clientTime'] }
    expect(ofJson('{"a":1,"meta":{"clientTime":1,"x":2}}', rules)).toBe(ofJson('{"a":1,"meta":{"x":2}}', rules))
    expect(ofJson('{"a":1,"meta":{"clientTime":1}}', rules)).not.toBe(ofJson('{"a":2,"meta":{"clientTime":1}}', rules))
  })

  it('P15: an omitted element keeps its place, so that its neighbours are still compared', () => {
    const rules = { omit: ['/0', '/1'] }
    expect(ofJson('[1,2,3]', rules)).toBe(ofJson('[8,9,3]', rules))
    expect(ofJson('[1,2,3]', rules)).not.toBe(ofJson('[1,2,4]', rules))
    expect(ofJson('[1,2,3]', rules)).not.toBe(ofJson('[1,2]', rules))
  })

  it('P15: a rule for what is not there does nothing', () => {
    for (const text of ['{"a":1}', '[1]', '"a"', 'null']) {
      const rules = { omit: ['/b', '/a/b/c', '/length', '/toString', 'header:x', 'query:y'] }
      expect(ofJson(text, rules)).toBe(ofJson(text))
      expect(ofJson(text, { defaults: { '/b/c': 1, '/a/b': 1 } })).toBe(ofJson(text))
    }
    expect(digest({ body: { kind: 'none' } }, { omit: ['/a'], defaults: { '/a': 1 } })).toBe(
      digest({ body: { kind: 'none' } }),
    )
  })

  it('P15: an explicit default equals an absent member, and any other value does not', () => {
    const rules = { defaults: { '/channel': 'web' } }
    expect(ofJson('{"channel":"web"}', rules)).toBe(ofJson('{}', rules))
    expect(ofJson('{"channel":"app"}', rules)).not.toBe(ofJson('{}', rules))
    expect(ofJson('{"channel":null}', rules)).not.toBe(ofJson('{}', rules))
  })

  it('P15: defaults of outer members come first, whatever their order', () => {
    const rules = { defaults: { '/meta/source': 'web', '/meta': {} } }
    expect(ofJson('{}', rules)).toBe(ofJson('{"meta":{"source":"web"}}', rules))
  })

  it('P15: a member that is omitted needs no default, and the stored rules stay as they were', () => {
    const rules: FingerprintRules = { omit: ['/meta/at'], defaults: { '/meta': { at: 0, x: 1 } } }
    const taken = fingerprint({ ...ORDER, ...json('{}') }, rules)
    expect(taken.rules).toEqual(rules)
    expect(taken.digest).toBe(ofJson('{"meta":{"at":5,"x":1}}', rules))
    expect(rules.defaults).toEqual({ '/meta': { at: 0, x: 1 } })
  })

  it('a default called __proto__ is an ordinary member', () => {
    const rules = { defaults: { '/__proto__': { a: 1 } } }
    expect(ofJson('{}', rules)).toBe(ofJson('{"__proto__":{"a":1}}', rules))
  })

  it('P15: headers and query parameters can be left out', () => {
    const rules = { omit: ['header:API-Version', 'query:tag'] }
    const other = { url: 'https://api.example.com/orders?tag=z&dry=0', headers: [['api-version', '9']] as const }
    expect(digest(other, rules)).toBe(digest({}, rules))
    expect(digest({ url: 'https://api.example.com/orders?dry=1' }, rules)).not.toBe(digest({}, rules))
  })

  it('P15: a query parameter is named decoded, and compared as written', () => {
    const at = (query: string, rules?: FingerprintRules) => digest({ url: `https://api.example.com/?${query}` }, rules)
    expect(at('client%20time=1&a=1', { omit: ['query:client time'] })).toBe(at('a=1', { omit: ['query:client time'] }))
    expect(at('a=%20')).not.toBe(at('a=+'))
    expect(at('?a=1', { omit: ['query:a'] })).not.toBe(at('', { omit: ['query:a'] }))
    expect(at('a=1&&b', { omit: ['query:x'] })).toBe(at('a=1&&b', { omit: ['query:x'] }))
  })

  it.each(['', 'meta', 'header:', 'query:', '/a~b', 'cookie:x'])('a rule that names nothing is refused: %j', (rule) => {
    expect(() => digest({}, { omit: [rule] })).toThrow(TypeError)
    expect(() => digest({}, { defaults: { [rule]: 1 } })).toThrow(TypeError)
  })

  it('a default can only be given for a member of the body', () => {
    expect(() => digest({}, { defaults: { 'header:x': 1 } })).toThrow(/JSON pointer/)
  })
})

describe('later comparison', () => {
  it('P16: a stored fingerprint is compared under its own rules, not under those of today', () => {
    const stored = fingerprint({ ...ORDER, ...json('{"a":1,"at":1}') }, { omit: ['/at'], version: '2026-01' })
    const revived = JSON.parse(JSON.stringify(stored)) as typeof stored
    expect(sameFingerprint(revived, { ...ORDER, ...json('{"at":2,"a":1}') })).toBe(true)
    expect(sameFingerprint(revived, { ...ORDER, ...json('{"at":1,"a":2}') })).toBe(false)
    expect(stored).toMatchObject({ version: FINGERPRINT_VERSION, rules: { version: '2026-01' } })
  })

  it('P16: the version of the rules is part of the digest', () => {
    expect(digest({}, { version: '1' })).not.toBe(digest({}, { version: '2' }))
    expect(digest({}, { version: '1' })).not.toBe(digest())
  })

  it('P16: an unknown version is reported, not called a conflict', () => {
    const stored = { ...fingerprint(ORDER), version: '99' }
    expect(() => sameFingerprint(stored, ORDER)).toThrow(FingerprintVersionError)
    expect(() => sameFingerprint(stored, ORDER)).toThrow(
      expect.objectContaining({ reason: 'unknown-version', version: '99', message: expect.stringContaining('"99"') }),
    )
  })

  it('P9: changing the rules later does not reach the fingerprint', () => {
    const rules = { omit: ['/at'], defaults: { '/x': { y: 1 } } }
    const taken = fingerprint(ORDER, rules)
    rules.omit.push('/amount')
    rules.defaults['/x'].y = 2
    expect(taken.rules).toEqual({ omit: ['/at'], defaults: { '/x': { y: 1 } } })
  })

  it('golden values: a release that changes them needs a new version', () => {
    expect(FINGERPRINT_VERSION).toBe('1')
    expect(digest()).toBe('2a02fff18139b471d2cef572d823ce6929fbcdbd42e32e7300279dac33cb08d4')
    expect(digest({ url: 'https://api.example.com/', headers: [], body: { kind: 'none' } })).toBe(
      '8b43fe1734938745687a226f34dc661e6c839e24465c4acee7bef894fbb24249',
    )
    expect(digest({ body: { kind: 'bytes', contentType: 'text/plain', bytes: Uint8Array.of(104, 105) } })).toBe(
      'cf0463493068ca2b08a0fb97d9d8f4490d87b9b169513f2feb6a37cd57dbcba6',
    )
    const parts = [{ name: 'file', fileName: 'a.txt', type: 'text/plain', digest: '00' }]
    expect(digest({ body: { kind: 'parts', parts } }, { omit: ['query:dry'], version: 'r1' })).toBe(
      '1b876c4d39c10760d07d546fc3ec43ef71cd3e62e6304745a56546867a172883',
    )
  })

  it('says which media types are JSON', () => {
    expect(isJsonMediaType('application/problem+json; charset=utf-8')).toBe(true)
  })
})
