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
  return [table, '', ...paragraphs(findings).map((text) => wrapped(text, width)), verdict(findings, paint, width)].join(
    '\n',
  )
}

type Style = Parameters<typeof styleText>[0]
type Paint = (style: Style, text: string) => string

function painter({ colour }: Look): Paint {
  return (style, text) => (colour ? styleText(style, text, { validateStream: false }) : text)
}

const wideColumns = 118
const head = ['Orders\nwanted', 'In database:\nplain fetch', 'In database:\nsamekey', 'Sends: plain\n/ samekey']
const style = { head: [], border: [], 'padding-left': 1, 'padding-right': 1 }

function wideTable(findings: readonly Finding[], paint: Paint): string {
  const table = new Table({
    head: ['Fault', 'What went wrong', ...head, 'samekey:\noutcome', 'A person\ncan'].map((text) =>
      paint('bold', text),
    ),
    colWidths: [7, 29, 8, 14, 14, 14, 15, 16],
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
  const heads = ['Fault', 'Orders\nwanted', 'plain\nfetch', 'samekey', 'Sends', 'samekey:\noutcome', 'A person\ncan']
  const table = new Table({
    head: heads.map((text) => paint('bold', text)),
    colWidths: [7, 8, 10, 10, 9, 15, 13],
    colAligns: ['left', 'right', 'right', 'right', 'right', 'left', 'left'],
    wordWrap: true,
    style,
  })
  for (const finding of findings) {
    const { id, story, person } = finding.fault
    table.push(
      [
        { rowSpan: 2, content: paint('bold', id) },
        { colSpan: 6, content: story },
      ],
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
    paint(broken.length === 0 ? 'green' : 'red', ordersText(samekey)),
    `${plain.sends} / ${samekey.attempts}`,
  ]
}

function ordersText({ orders, tooMany, missing }: Account): string {
  const notes = [...(tooMany > 0 ? [`+${tooMany}`] : []), ...(missing > 0 ? [`−${missing}`] : [])]
  return notes.length === 0 ? String(orders) : `${orders} (${notes.join(' ')})`
}

function outcomes({ samekey }: Finding): string {
  return Object.entries(samekey.outcomes)
    .map(([state, count]) => `${count} ${state}`)
    .join('\n')
}

function paragraphs(findings: readonly Finding[]): string[] {
  const unknown = total(findings, ({ samekey }) => samekey.unknown)
  const told =
    unknown > 0
      ? ` What samekey calls unknown may or may not have happened, and nobody could send it again safely: it is listed with its key until a person settles it.`
      : ''
  return [
    `How to read it: both clients were given the same orders and the same faults; the numbers are counted in PostgreSQL. +n are orders too many, −n are missing.${told}`,
  ]
}

function verdict(findings: readonly Finding[], paint: Paint, width: number): string {
  const broken = findings.flatMap(({ fault, broken }) => broken.map((what) => `${fault.id}: ${what}`))
  const wanted = total(findings, (finding) => finding.wanted)
  const tooMany = total(findings, ({ plain }) => plain.tooMany)
  const missing = total(findings, ({ plain }) => plain.missing)
  const plain = `Of ${wanted} orders, plain fetch made ${tooMany} too many and left ${missing} out without a trace.`
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
