import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseTimestamp } from '../../src/protocol/timestamp.ts'

describe('parseTimestamp (section 16: resultExpiresAt)', () => {
  it.each([
    ['2027-01-20T08:00:05Z', Date.UTC(2027, 0, 20, 8, 0, 5)],
    ['2027-01-20t08:00:05z', Date.UTC(2027, 0, 20, 8, 0, 5)],
    ['2027-01-20T08:00:05.123Z', Date.UTC(2027, 0, 20, 8, 0, 5, 123)],
    ['2027-01-20T08:00:05.1239999Z', Date.UTC(2027, 0, 20, 8, 0, 5, 123)],
    ['2027-01-20T08:00:05+00:00', Date.UTC(2027, 0, 20, 8, 0, 5)],
    ['2027-01-20T08:00:05+02:30', Date.UTC(2027, 0, 20, 5, 30, 5)],
    ['2027-01-20T08:00:05-02:30', Date.UTC(2027, 0, 20, 10, 30, 5)],
    ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
  ])('P39: %s', (text, ms) => {
    expect(parseTimestamp(text)).toBe(ms)
  })

  it.each([
    '',
    'soon',
    '2027-01-20',
    '2027-01-20 08:00:05Z',
    '2027-01-20T08:00:05',
    '2027-01-20T08:00Z',
    '2027-13-20T08:00:05Z',
    '2027-00-20T08:00:05Z',
    '2027-02-29T08:00:05Z',
    '2027-01-20T24:00:00Z',
    '2027-01-20T08:60:00Z',
    '2027-01-20T08:00:05+24:00',
    '2027-01-20T08:00:05+00:60',
    '2027-01-20T08:00:05+0200',
    '+002027-01-20T08:00:05Z',
    'Wed, 20 Jan 2027 08:00:05 GMT',
  ])('P39: %j is no time', (text) => {
    expect(parseTimestamp(text)).toBeNull()
  })

  it('P39: what a platform writes is read back, and nothing throws', () => {
    const range = { min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }
    fc.assert(
      fc.property(fc.date(range), (date) => {
        expect(parseTimestamp(date.toISOString())).toBe(date.getTime())
      }),
    )
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect([null, 'number']).toContain(parseTimestamp(text) === null ? null : 'number')
      }),
    )
  })
})
