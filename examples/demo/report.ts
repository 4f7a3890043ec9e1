/** The findings, for people (a table) and for programs (JSON). */
import { styleText } from 'node:util'
import Table from 'cli-table3'
import type { Account, Finding, PlainAccount } from './audit.ts'

/** True when every promise held. */
export function allHeld(findings: readonly Finding[]): boolean {
  return findings.every(({ broken }) => broken.length === 0)
}

/** One line of JSON. */
export function jsonReport(findings: readonly Finding[]): string {
  const faults = findings.map(({ fault: { id }, wanted, plain, samekey, broken }) => ({
    id,
    wanted,
    plain,
    // The effect of an order is its charge, where the fault is not about another one.
    samekey: { ...samekey, effects: samekey.effects ?? samekey.charges },
    broken,
  }))
  return JSON.stringify({ faults, ok: allHeld(findings) })
}

/** How it is shown. */
export interface Look {
  /** Width of the terminal, in characters. */
  readonly columns: number
  readonly colour: boolean
}

/** The table, how to read it, and the verdict. */
export function textReport(findings: readonly Finding[], look: Look): string {
  const paint = painter(look)
  const table = look.columns >= wideColumns ? wideTable(findings, paint) : narrowTable(findings, paint)
  const width = Math.min(look.columns, wideColumns)
  return [table, wrapped(howToRead(findings), width), verdict(findings, paint, width)].join('\n\n')
}

type Style = Parameters<typeof styleText>[0]
type Paint = (style: Style, text: string) => string

function painter({ colour }: Look): Paint {
  return (style, text) => (colour ? styleText(style, text, { validateStream: false }) : text)
}

const wideColumns = 120
const style = { head: [], border: [], 'padding-left': 1, 'padding-right': 1 }

function headsOf([first]: readonly Finding[]): string[] {
  // Each fault is given the same number of orders.
  const there = `There of ${first?.wanted ?? 0}:`
  return [`${there}\nplain fetch`, `${there}\nsamekey`, 'Sends:\nplain /\nsamekey', 'samekey\nsays', 'A person\ncan']
}

function wideTable(findings: readonly Finding[], paint: Paint): string {
  const table = new Table({
    head: ['', 'What went wrong', ...headsOf(findings)].map((text) => paint('bold', text)),
    colWidths: [5, 37, 14, 14, 11, 15, 16],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'left', 'left'],
    wordWrap: true,
    style,
  })
  for (const finding of findings) {
    const { id, story, person } = finding.fault
    table.push([paint('bold', id), story, ...numbers(finding, paint), outcomes(finding), person])
  }
  return table.toString()
}

/** The story on a line of its own, above its numbers. */
function narrowTable(findings: readonly Finding[], paint: Paint): string {
  const table = new Table({
    head: headsOf(findings).map((text) => paint('bold', text)),
    colWidths: [14, 14, 11, 15, 19],
    colAligns: ['right', 'right', 'right', 'left', 'left'],
    wordWrap: true,
    style,
  })
  for (const finding of findings) {
    const { id, story, person } = finding.fault
    table.push(
      [{ colSpan: 5, hAlign: 'left', content: `${paint('bold', id)}  ${story}` }],
      [...numbers(finding, paint), outcomes(finding), person],
    )
  }
  return table.toString()
}

function numbers({ fault, plain, samekey, broken }: Finding, paint: Paint): string[] {
  // Yellow: not there, or not known to be, and it said so.
  const isShort = samekey.unknown > 0 || samekey.missing > 0
  const own = paint(broken.length > 0 ? 'red' : isShort ? 'yellow' : 'green', thereText(fault, samekey))
  const sends = `${plain?.sends ?? '-'} / ${samekey.attempts}`
  return [plain === null ? '-' : paint(plainColour(plain), plainText(fault, plain)), own, sends]
}

/** Red: more than was wanted, or a wrong word. Yellow: not there, and it said so. */
function plainColour({ tooMany, missing, failedButThere }: PlainAccount): 'red' | 'yellow' | 'green' {
  if (tooMany > 0 || failedButThere > 0) return 'red'
  return missing > 0 ? 'yellow' : 'green'
}

function plainText(fault: Finding['fault'], plain: PlainAccount): string {
  const wrong = plain.failedButThere > 0 ? `\n${plain.failedButThere} "failed"` : ''
  return thereText(fault, plain) + wrong
}

function thereText({ counts }: Finding['fault'], { orders, tooMany, missing, effects }: Account): string {
  const notes = [...(tooMany > 0 ? [`+${tooMany}`] : []), ...(missing > 0 ? [`−${missing}`] : [])]
  const there = notes.length === 0 ? String(orders) : `${orders} (${notes.join(' ')})`
  return effects === null ? there : `${there}\n${effects} ${counts}`
}

/** The good ones first. */
const places = ['succeeded', 'conflicted', 'cancelled', 'abandoned', 'unknown']

function outcomes({ samekey }: Finding): string {
  return Object.entries(samekey.outcomes)
    .sort(([a], [b]) => places.indexOf(a) - places.indexOf(b))
    .map(([state, count]) => `${count} ${state}`)
    .join('\n')
}

function howToRead(findings: readonly Finding[]): string {
  const unknown = total(findings, ({ samekey }) => samekey.unknown)
  const wrong = findings.some(({ plain }) => plain !== null && plain.failedButThere > 0)
  const behind = findings.some(({ fault }) => fault.counts !== undefined)
  const abandoned = findings.some(({ samekey }) => samekey.outcomes.abandoned !== undefined)
  return [
    'Both clients were given the same orders and the same faults, and what is there was counted in PostgreSQL: +n are too many, −n are missing.',
    ...(behind ? ['Charges and e-mails are made behind the shop, by the same worker and relay for both.'] : []),
    ...(wrong ? ['"failed" are orders that plain fetch reported as failed, and that are there.'] : []),
    ...(unknown > 0
      ? [
          'What samekey calls unknown may or may not have happened, and nobody could send it again safely: it is kept, with its key, until a person settles it.',
        ]
      : []),
    ...(abandoned ? ['Abandoned are orders that a person looked for and did not find.'] : []),
  ].join(' ')
}

function verdict(findings: readonly Finding[], paint: Paint, width: number): string {
  const broken = findings.flatMap(({ fault, broken }) => broken.map((what) => `${fault.id}: ${what}`))
  if (broken.length > 0) {
    return paint('red', ['samekey BROKE its promise:', ...broken.map((line) => `  ${line}`)].join('\n'))
  }
  const unknown = total(findings, ({ samekey }) => samekey.unknown)
  const own = `samekey made none twice and lost none${unknown > 0 ? `; ${unknown} are unknown, and it says which` : ''}. Every promise held.`
  return `${wrapped(plainVerdict(findings), width)}\n${paint(['green', 'bold'], wrapped(own, width))}`
}

function plainVerdict(findings: readonly Finding[]): string {
  const count = (of: (plain: PlainAccount) => number): number =>
    total(findings, ({ plain }) => (plain === null ? 0 : of(plain)))
  const wanted = total(findings, (finding) => (finding.plain === null ? 0 : finding.wanted))
  const reported = (word: string, all: number, there: number): string =>
    all > 0 ? ` It reported ${all} as ${word}, of which ${there} are there all the same.` : ''
  return (
    `Of ${wanted} orders wanted, plain fetch made ${count(({ tooMany }) => tooMany)} too many.` +
    reported(
      'failed',
      count(({ failed }) => failed),
      count(({ failedButThere }) => failedButThere),
    ) +
    reported(
      'cancelled',
      count(({ cancelled }) => cancelled),
      count(({ cancelledButThere }) => cancelledButThere),
    )
  )
}

function total(findings: readonly Finding[], count: (finding: Finding) => number): number {
  return findings.reduce((sum, finding) => sum + count(finding), 0)
}

function wrapped(text: string, width: number): string {
  const lines: string[] = ['']
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? ''
    if (last === '') lines[lines.length - 1] = word
    else if (last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines.join('\n')
}
