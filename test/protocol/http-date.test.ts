import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatHttpDate, parseHttpDate } from '../../src/protocol/http-date.ts'

const EXAMPLE_MS = 784_111_777_000
const NOW_MS = Date.UTC(2026, 11, 1)
const years = { min: new Date('0000-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }

describe('parseHttpDate', () => {
  it.each(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
    'P32: all three forms of RFC 9110 name the same instant: %s',
    (text) => {
      expect(parseHttpDate(text, NOW_MS)).toBe(EXAMPLE_MS)
    },
  )

  it('P32: every second of four-digit years is read as the platform reads it', () => {
    fc.assert(
      fc.property(fc.date(years), (date) => {
        const ms = Math.floor(date.getTime() / 1000) * 1000
        expect(parseHttpDate(new Date(ms).toUTCString())).toBe(ms)
      }),
    )
  })

  it.each([
    '',
    'now',
    '0',
    '1994-11-06T08:49:37Z',
    'Sun, 06 Nov 1994 08:49:37',
    'Sun, 06 Nov 1994 08:49:37 UTC',
    'Sun, 06 Nov 1994 08:49:37 +0000',
    'sun, 06 nov 1994 08:49:37 gmt',
    'Xyz, 06 Nov 1994 08:49:37 GMT',
    'Sun, 6 Nov 1994 08:49:37 GMT',
    'Sun, 06 Foo 1994 08:49:37 GMT',
    'Sun, 06 Nov 94 08:49:37 GMT',
    'Sun,  06 Nov 1994 08:49:37 GMT',
    ' Sun, 06 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 8:49:37 GMT',
    'Sun, 00 Nov 1994 08:49:37 GMT',
    'Thu, 31 Nov 1994 08:49:37 GMT',
    'Wed, 29 Feb 1995 08:49:37 GMT',
    'Thu, 29 Feb 1900 08:49:37 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 06 Nov 1994 08:60:37 GMT',
    'Sun, 06 Nov 1994 08:49:61 GMT',
    'Sun-day, 06-Nov-94 08:49:37 GMT',
    'Sun, 06-Nov-94 08:49:37 GMT',
    'Sun Nov 6 08:49:37 1994',
    'Sun Nov  6 08:49:37 1994 GMT',
  ])('P32: %j is no HTTP date', (text) => {
    expect(parseHttpDate(text, NOW_MS)).toBeNull()
  })

  it('leap days and leap seconds exist, and a wrong weekday does no harm', () => {
    expect(parseHttpDate('Tue, 29 Feb 2000 00:00:00 GMT')).toBe(Date.UTC(2000, 1, 29))
    expect(parseHttpDate('Sat, 31 Dec 2016 23:59:60 GMT')).toBe(Date.UTC(2017, 0, 1))
    expect(parseHttpDate('Mon, 06 Nov 1994 08:49:37 GMT')).toBe(EXAMPLE_MS)
  })

  it.each([
    [2026, '94', 1994],
    [2026, '76', 2076],
    [2026, '77', 1977],
    [2099, '01', 2101],
    [1994, '94', 1994],
    [2026, '00', 2000],
  ])('P32: seen from %i, the two-digit year %s is %i', (now, twoDigits, year) => {
    expect(parseHttpDate(`Monday, 01-Mar-${twoDigits} 00:00:00 GMT`, Date.UTC(now, 5, 1))).toBe(Date.UTC(year, 2, 1))
  })

  it.each([undefined, Number.NaN, Number.POSITIVE_INFINITY])('a two-digit year is refused when now is %s', (nowMs) => {
    expect(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT', nowMs)).toBeNull()
  })
})

describe('formatHttpDate', () => {
  it('writes the IMF-fixdate that the platform writes', () => {
    expect(formatHttpDate(EXAMPLE_MS + 999)).toBe('Sun, 06 Nov 1994 08:49:37 GMT')
    fc.assert(
      fc.property(fc.date(years), (date) => {
        expect(formatHttpDate(date.getTime())).toBe(date.toUTCString())
      }),
    )
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 253_402_300_800_000, -62_167_219_200_001])(
    'refuses %s, which four digits of a year cannot say',
    (ms) => {
      expect(() => formatHttpDate(ms)).toThrow(RangeError)
    },
  )
})
