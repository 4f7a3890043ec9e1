import { expect, it } from 'vitest'
import { businessHeaders, IGNORED_HEADER_PREFIXES, IGNORED_HEADERS } from '../../src/protocol/business-headers.ts'

const NONE: ReadonlySet<string> = new Set()

it('P15: trace ids, credentials and transport headers stay out', () => {
  const ignored = [...IGNORED_HEADERS, ...IGNORED_HEADER_PREFIXES.map((prefix) => `${prefix}x`)]
  expect(
    businessHeaders(
      ignored.map((name) => [name.toUpperCase(), '1'] as const),
      NONE,
    ),
  ).toEqual([])
  for (const name of [
    'authorization',
    'cookie',
    'proxy-authorization',
    'traceparent',
    'tracestate',
    'baggage',
    'x-request-id',
    'x-correlation-id',
    'date',
    'user-agent',
    'accept',
    'accept-encoding',
    'accept-language',
    'content-length',
    'content-type',
    'idempotency-key',
    'samekey-intent',
    'host',
    'connection',
  ]) {
    expect(businessHeaders([[name, '1']], NONE), name).toEqual([])
  }
})

it('P15: the lists are in lower case, or they would never match', () => {
  for (const name of [...IGNORED_HEADERS, ...IGNORED_HEADER_PREFIXES]) expect(name).toBe(name.toLowerCase())
})

it('P15: every other header stays, sorted by name, with trimmed values', () => {
  expect(
    businessHeaders(
      [
        ['X-Tenant', ' acme '],
        ['api-version', '2'],
        ['If-Match', '"7"'],
        ['X-Tenant', 'second'],
      ],
      NONE,
    ),
  ).toEqual([
    ['api-version', '2'],
    ['if-match', '"7"'],
    ['x-tenant', 'acme, second'],
  ])
})

it('P15: an operation can leave out more', () => {
  expect(
    businessHeaders(
      [
        ['X-Client-Build', '9'],
        ['x-tenant', 'acme'],
      ],
      new Set(['x-client-build']),
    ),
  ).toEqual([['x-tenant', 'acme']])
})
