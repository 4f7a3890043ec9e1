/**
 * HTTP dates (RFC 9110, 5.6.7) by plain arithmetic: the platform's own parser accepts much more than the three forms,
 * and differs between engines.
 */

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const
const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec'

const WEEKDAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const LONG_WEEKDAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day'
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)'
const TIME = '\\d{2}:\\d{2}:\\d{2}'
const IMF_FIXDATE: RegExp = new RegExp(`^${WEEKDAY}, \\d{2} ${MONTH} \\d{4} ${TIME} GMT$`)
const RFC_850: RegExp = new RegExp(`^${LONG_WEEKDAY}, \\d{2}-${MONTH}-\\d{2} ${TIME} GMT$`)
const ASCTIME: RegExp = new RegExp(`^${WEEKDAY} ${MONTH} (?:\\d{2}| \\d) ${TIME} \\d{4}$`)

const DAY_MS = 86_400_000
/** Days from the first day of year 0 to 1 January 1970. */
const EPOCH_DAYS = 719_528
/** Last millisecond of year 9999 and first of year 0: what four digits can say. */
const LATEST_MS = 253_402_300_799_999
const EARLIEST_MS = -62_167_219_200_000

/**
 * Reads an HTTP date in one of its three forms: IMF-fixdate, RFC 850, asctime. Strict about form, letter case and
 * ranges (30 February is refused); a leap second counts as the second after it. The weekday must be one, but need not
 * be the right one: it adds nothing to the date.
 *
 * @param nowMs epoch ms, only for the two-digit years of RFC 850: the latest such year that is at most 50 years ahead.
 * Without it, that form is refused.
 * @returns epoch ms, or null for anything else.
 */
export function parseHttpDate(text: string, nowMs?: number): number | null {
  if (IMF_FIXDATE.test(text)) {
    return epochMs(text.slice(12, 16), text.slice(8, 11), text.slice(5, 7), text.slice(17, 25))
  }
  if (ASCTIME.test(text)) {
    return epochMs(text.slice(20, 24), text.slice(4, 7), text.slice(8, 10), text.slice(11, 19))
  }
  if (nowMs === undefined || !isSayable(nowMs) || !RFC_850.test(text)) return null
  const date = text.slice(text.indexOf(' ') + 1)
  return epochMs(fullYear(date.slice(7, 9), nowMs), date.slice(3, 6), date.slice(0, 2), date.slice(10, 18))
}

/**
 * Writes an IMF-fixdate such as `Sun, 06 Nov 1994 08:49:37 GMT`.
 *
 * @param ms epoch ms; parts of a second are dropped.
 * @throws RangeError outside the years 0 to 9999, and for what is no number.
 */
export function formatHttpDate(ms: number): string {
  if (!isSayable(ms)) throw new RangeError('An HTTP date is in one of the years 0 to 9999.')
  const days = Math.floor(ms / DAY_MS)
  const { year, month, day } = civilDate(days)
  const seconds = Math.floor((ms - days * DAY_MS) / 1000)
  const time = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map((part) => pad(part, 2))
  const weekday = WEEKDAYS[(days + EPOCH_DAYS + 6) % 7]
  const monthName = MONTHS.slice(month * 3 - 3, month * 3)
  return `${weekday}, ${pad(day, 2)} ${monthName} ${pad(year, 4)} ${time.join(':')} GMT`
}

/** True for a time that an HTTP date can say; false for NaN and the infinities too. */
export function isSayable(ms: number): boolean {
  return ms >= EARLIEST_MS && ms <= LATEST_MS
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, '0')
}

/** The texts are digits and a month's name; what is checked here is whether such a day and time exist. */
function epochMs(yearText: string | number, monthName: string, dayText: string, time: string): number | null {
  const [year, month, day] = [Number(yearText), MONTHS.indexOf(monthName) / 3 + 1, Number(dayText)]
  const [hour, minute, second] = [Number(time.slice(0, 2)), Number(time.slice(3, 5)), Number(time.slice(6))]
  if (day < 1 || day > daysInMonth(year, month)) return null
  if (hour > 23 || minute > 59 || second > 60) return null
  const days = daysBefore(year, month) + day - 1 - EPOCH_DAYS
  return days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000
}

function fullYear(twoDigits: string, nowMs: number): number {
  const now = civilDate(Math.floor(nowMs / DAY_MS)).year
  let year = Math.floor(now / 100) * 100 + 100 + Number(twoDigits)
  while (year > now + 50) year -= 100
  return year
}

function civilDate(daysSinceEpoch: number): { year: number; month: number; day: number } {
  const days = daysSinceEpoch + EPOCH_DAYS
  let year = Math.floor(days / 365.2425) + 1
  while (daysBefore(year, 1) > days) year -= 1
  let month = 12
  while (daysBefore(year, month) > days) month -= 1
  return { year, month, day: days - daysBefore(year, month) + 1 }
}

/** Days from the first day of year 0 (a leap year) to the first day of that month. */
function daysBefore(year: number, month: number): number {
  let days = year * 365 + Math.floor((year + 3) / 4) - Math.floor((year + 99) / 100) + Math.floor((year + 399) / 400)
  for (let before = 1; before < month; before += 1) days += daysInMonth(year, before)
  return days
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}
