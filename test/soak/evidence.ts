/** All that is known about an intent of which something is not as it must be: enough to find the cause. */
import type { Pool } from 'pg'
import type { Evidence, Violation } from './count.ts'
import type { LogLine, Member } from './member.ts'
import { logOf } from './truth.ts'

/** Of each kind. */
const mostLines = 30
/** Before the first and after the last word about an intent. */
const marginMs = 1000

export async function evidenceOf(
  { intent }: Violation,
  { wanted, told, stored, truth }: Evidence,
  { database, members }: { readonly database: Pool; readonly members: readonly Member[] },
): Promise<string[]> {
  if (intent === null)
    return members.flatMap((member) => section(`console of ${member.name}`, lines(member.log.slice(-8))))
  const isIts = (row: { readonly intent: string }): boolean => row.intent === intent
  const records = stored.filter(isIts)
  const keys = [...new Set([...records, ...truth.orders.filter(isIts)].map(({ key }) => key))]
  const logs = await Promise.all(keys.map((key) => logOf(database, key)))
  const heard = told.filter(({ report }) => report.intent === intent)
  // Who died, came back or complained while it went on.
  const [from, to] = [(heard[0]?.at ?? 0) - marginMs, (heard.at(-1)?.at ?? 0) + marginMs]
  const meanwhile = members.flatMap(({ name, log }) =>
    lines(log.filter(({ at }) => at >= from && at <= to).slice(0, mostLines)).map((line) => `${name}  ${line}`),
  )
  return [
    ...section('wanted', wanted.filter(({ order }) => order.intent === intent).map(text)),
    ...section(
      'told',
      heard.slice(0, mostLines).map(({ at, from, report }) => `${clock(at)} ${from} ${text(report)}`),
    ),
    ...section(
      'store',
      records.flatMap(({ history, ...record }) => [
        text(record),
        ...history.map(({ at, ...line }) => `  ${clock(at)} ${text(line)}`),
      ]),
    ),
    ...section('orders', truth.orders.filter(isIts).map(text)),
    ...section('effects', truth.effects.filter(isIts).map(text)),
    ...section('keys', truth.keys.filter(({ key }) => keys.includes(key)).map(text)),
    ...section('requests', logs.flat()),
    ...section('consoles', meanwhile),
  ]
}

function section(title: string, lines: readonly string[]): string[] {
  return [`${title}:`, ...(lines.length === 0 ? ['  nothing'] : lines.map((line) => `  ${line}`))]
}

function lines(log: readonly LogLine[]): string[] {
  return log.map(({ at, text }) => `${clock(at)}  ${text}`)
}

function text(value: object): string {
  return JSON.stringify(value)
}

function clock(at: number): string {
  return new Date(at).toISOString().slice(11, 23)
}
