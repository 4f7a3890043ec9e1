import { parseHttpDate } from './http-date.ts'

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** An RFC 3339 time as epoch ms, or null for anything else: `resultExpiresAt` of section 16. Strict, and never throws. */
export function parseTimestamp(text: string): number | null {
  const parts = RFC_3339.exec(text)
  if (parts === null) return null
  const [, year, month, day, time, fraction = '.0', sign, hours, minutes] = parts
  const whole = parseHttpDate(`Mon, ${day} ${MONTHS[Number(month) - 1]} ${year} ${time} GMT`)
  if (whole === null) return null
  const offsetMs = sign === undefined ? 0 : (Number(hours) * 60 + Number(minutes)) * 60_000
  return whole + Math.floor(Number(fraction) * 1000) - (sign === '-' ? -offsetMs : offsetMs)
}
