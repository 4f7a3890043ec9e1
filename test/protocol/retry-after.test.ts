import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_RETRY_AFTER_MS, retryAfterMs } from '../../src/protocol/retry-after.ts'

const NOW_MS = Date.UTC(2026, 11, 1, 12)
const NOW = 'Tue, 01 Dec 2026 12:00:00 GMT'
const IN_A_MINUTE = 'Tue, 01 Dec 2026 12:01:00 GMT'

describe('retryAfterMs', () => {
  it.each([
    ['0', 0],
    ['5', 5000],
    [' 120 ', 120_000],
    ['007', 7000],
    [IN_A_MINUTE, 60_000],
    ['Tuesday, 01-Dec-26 12:01:00 GMT', 60_000],
    ['Tue Dec  1 12:01:00 2026', 60_000],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
  ])('P32: %j asks for a wait of %i ms', (value, ms) => {
    expect(retryAfterMs(value, NOW_MS, null)).toBe(ms)
  })

  it.each([
    null,
    '',
    ' ',
    '-5',
    '+5',
    '1.5',
    '1e9',
    '0x10',
    'abc',
    '5, 10',
    '5;',
    '٥',
    'Infinity',
    'NaN',
    '2026-12-01',
  ])('P32: %j is junk, and junk means normal back-off', (value) => {
    expect(retryAfterMs(value, NOW_MS, NOW)).toBeNull()
  })

  it('P32: a date is read against the clock of the server that wrote it', () => {
    const wrongClockMs = NOW_MS - 86_400_000
    expect(retryAfterMs(IN_A_MINUTE, wrongClockMs, NOW)).toBe(60_000)
    expect(retryAfterMs(IN_A_MINUTE, Number.NaN, ` ${NOW} `)).toBe(60_000)
    expect(retryAfterMs('5', wrongClockMs, NOW)).toBe(5000)
  })

  it('P32: a server date that cannot be read leaves our own clock', () => {
    expect(retryAfterMs(IN_A_MINUTE, NOW_MS, 'yesterday')).toBe(60_000)
    expect(retryAfterMs(IN_A_MINUTE, Number.NaN, null)).toBeNull()
  })

  it('P32: a huge wait stays a number', () => {
    expect(retryAfterMs('9'.repeat(400), NOW_MS, null)).toBe(MAX_RETRY_AFTER_MS)
    expect(retryAfterMs('Fri, 31 Dec 9999 23:59:59 GMT', NOW_MS, null)).toBe(MAX_RETRY_AFTER_MS)
  })

  it('P32: no junk makes a wait that is negative, infinite or no number', () => {
    const header = fc.oneof(
      fc.string(),
      fc.integer().map(String),
      fc.double().map(String),
      fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
      fc.stringMatching(/^[0-9 ,.e+-]{0,12}$/),
    )
    fc.assert(
      fc.property(header, fc.double(), fc.option(header), (value, nowMs, serverDate) => {
        const ms = retryAfterMs(value, nowMs, serverDate)
        expect(ms === null || (ms >= 0 && ms <= MAX_RETRY_AFTER_MS)).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })
})
