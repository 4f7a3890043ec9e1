/** The findings, for people (a table) and for programs (JSON). */
import { styleText } from 'node:util'
import Table from 'cli-table3'
import type { Account, Finding } from './audit.ts'

/** True when every promise held. */
export function allHeld(findings: readonly Finding[]): boolean {
  return findings.every(({ broken }) => broken.length === 0)
}

/** One line of JSON. */
export function jsonReport(findings: readonly Finding[]): string {
  const faults = findings.map(({ fault: { id }, wanted, plain, samekey }) => {
    const { orders, effects, lost, unknown, attempts } = samekey
    return { id, wanted, plain: { orders: plain.orders }, samekey: { orders, effects, lost, unknown, attempts } }
  })
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
const head = ['Orders\nwanted', 'In database:\nplain fetch', 'In database:\nsamekey', 'Sends:\nplain /\nsamekey']
const style = { head: [], border: [], 'padding-left': 1, 'padding-right': 1 }

function wideTable(findings: readonly Finding[], paint: Paint): string {
  const table = new Table({
    head: ['Fault', 'What went wrong', ...head, 'samekey:\noutcome', 'A person\ncan'].map((text) =>
      paint('bold', text),
    ),
    colWidths: [7, 26, 8, 14, 14, 12, 15, 15],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'left', 'left'],
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
  const heads = [
    'Orders\nwanted',
    'In database:\nplain fetch',
    'samekey',
    'Sends',
    'samekey:\noutcome',
    'A person\ncan',
  ]
  const table = new Table({
    head: heads.map((text) => paint('bold', text)),
    colWidths: [8, 14, 10, 10, 15, 15],
    colAligns: ['right', 'right', 'right', 'right', 'left', 'left'],
    wordWrap: true,
    style,
  })
  for (const finding of findings) {
    const { id, story, person } = finding.fault
    table.push(
      [{ colSpan: 6, hAlign: 'left', content: `${paint('bold', id)}  ${story}` }],
      [...numbers(finding, paint), outcomes(finding), person],
    )
  }
  return table.toString()
}

function numbers({ wanted, plain, samekey, broken }: Finding, paint: Paint): string[] {
  const right = plain.tooMany === 0 && plain.missing === 0
  return [
    String(wanted),
    paint(right ? 'green' : 'red', ordersText(plain)),
    paint(broken.length > 0 ? 'red' : samekey.unknown > 0 ? 'yellow' : 'green', ordersText(samekey)),
    `${plain.sends} / ${samekey.attempts}`,
  ]
}

function ordersText({ orders, tooMany, missing }: Account): string {
  const notes = [...(tooMany > 0 ? [`+${tooMany}`] : []), ...(missing > 0 ? [`−${missing}`] : [])]
  return notes.length === 0 ? String(orders) : `${orders} (${notes.join(' ')})`
}

/** The good ones first. */
const places = ['succeeded', 'conflicted', 'unknown']

function outcomes({ samekey }: Finding): string {
  return Object.entries(samekey.outcomes)
    .sort(([a], [b]) => places.indexOf(a) - places.indexOf(b))
    .map(([state, count]) => `${count} ${state}`)
    .join('\n')
}

function howToRead(findings: readonly Finding[]): string {
  const unknown = total(findings, ({ samekey }) => samekey.unknown)
  const told =
    ' What samekey calls unknown may or may not have happened, and nobody could send it again safely: it is kept, with its key, until a person settles it.'
  return `Both clients were given the same orders and the same faults, and the orders were counted in PostgreSQL: +n are too many, −n are missing.${unknown > 0 ? told : ''}`
}

function verdict(findings: readonly Finding[], paint: Paint, width: number): string {
  const broken = findings.flatMap(({ fault, broken }) => broken.map((what) => `${fault.id}: ${what}`))
  const wanted = total(findings, (finding) => finding.wanted)
  const tooMany = total(findings, ({ plain }) => plain.tooMany)
  const failed = total(findings, ({ plain }) => plain.failed)
  const there = total(findings, ({ plain }) => plain.failedButThere)
  const gaveUp =
    failed > 0 ? ` It reported ${failed} as failed, of which ${there} are in the database all the same.` : ''
  const plain = `Of ${wanted} orders wanted, plain fetch made ${tooMany} too many.${gaveUp}`
  if (broken.length > 0) {
    return paint('red', ['samekey BROKE its promise:', ...broken.map((line) => `  ${line}`)].join('\n'))
  }
  const unknown = total(findings, ({ samekey }) => samekey.unknown)
  const own = `samekey made none twice and lost none${unknown > 0 ? `; ${unknown} are unknown, and it says which` : ''}. Every promise held.`
  return `${wrapped(plain, width)}\n${paint(['green', 'bold'], wrapped(own, width))}`
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
