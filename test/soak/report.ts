/** How a run stands, while it goes on and in the end; for people, and for programs. */
import { styleText } from 'node:util'
import Table from 'cli-table3'
import type { Sight, SoakResult } from './soak.ts'

/** Nothing on a terminal is wider than this. */
const widest = 120
const labelWidth = 10

/** A table without lines: a word, and what there is to say about it. */
function plainTable(rows: readonly (readonly [label: string, text: string])[], columns: number): string {
  const none = [
    'top',
    'top-mid',
    'top-left',
    'top-right',
    'bottom',
    'bottom-mid',
    'bottom-left',
    'bottom-right',
  ] as const
  const inner = ['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'] as const
  const table = new Table({
    chars: Object.fromEntries([...none, ...inner].map((name) => [name, ''])),
    colWidths: [labelWidth, Math.min(columns, widest) - labelWidth],
    wordWrap: true,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 1 },
  })
  for (const row of rows) table.push([...row])
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

/** For a terminal, which is told again and again. */
export function sightText(sight: Sight, seed: number, columns: number): string {
  const { intents, open, outcomes, kills, faults } = sight
  return plainTable(
    [
      ['soak', `${phaseOf(sight)}; seed ${seed}`],
      ['intents', `${intents}${listOf({ open, ...outcomes })}`],
      ['kills', `${sum(kills)}${listOf(kills)}`],
      ['faults', `${sum(faults)}${listOf(faults)}`],
    ],
    columns,
  )
}

/** For a log. */
export function sightLine(sight: Sight): string {
  const { intents, open, kills, faults } = sight
  return `${phaseOf(sight)}: ${intents} intents, ${open} open; ${sum(kills)} kills${listOf(kills)}; ${sum(faults)} faults`
}

function phaseOf({ phase, leftMs, open }: Sight): string {
  switch (phase) {
    case 'starting':
      return 'starting PostgreSQL, servers, workers and clients'
    case 'faults':
      return leftMs > 0 ? `faults and kills, ${minutesOf(leftMs)} left` : 'the last ones come back'
    case 'settling':
      return open > 0 ? `peace, until the last ${open} have their end` : 'peace, until nothing is under way'
    case 'counting':
      return 'counting'
  }
}

export function resultText(result: SoakResult, columns: number, colour: boolean): string {
  const paint = (style: Parameters<typeof styleText>[0], text: string): string =>
    colour ? styleText(style, text, { validateStream: false }) : text
  const { intents, outcomes, answers, orders, effects, kills, faults, violations, unknown, bodiless } = result
  const table = plainTable(
    [
      ['intents', `${intents}${listOf(outcomes)}`],
      ['answers', `${answers} that callers were told`],
      ['orders', `${orders} in PostgreSQL, ${effects} of them done by workers`],
      ['kills', `${sum(kills)}${listOf(kills)}`],
      ['faults', `${sum(faults)}${listOf(faults)}`],
      ['lost', String(result.lost)],
      ['doubled', String(result.doubled)],
      ['wrong', String(result.wrong)],
      ['unknown', [String(unknown.length), ...unknown].join(' ')],
      ['no body', `${sum(bodiless)}${listOf(bodiless)}`],
      ['seed', `${result.seed}, ${minutesOf(result.minutes * 60_000)} of faults, ${minutesOf(result.wallMs)} in all`],
    ],
    columns,
  )
  const verdict =
    violations.length === 0
      ? paint(['green', 'bold'], 'None lost, none doubled, none wrong.')
      : paint('red', violations.map(violationText).join('\n\n'))
  return `${table}\n\n${verdict}`
}

function violationText({ kind, intent, what, evidence }: SoakResult['violations'][number]): string {
  return [`${kind.toUpperCase()}: ${intent ?? ''} ${what}`, ...evidence.map((line) => `    ${line}`)].join('\n')
}

/** One document. */
export function resultJson(result: SoakResult): string {
  const { minutes, seed, kills, faults, intents, outcomes, lost, doubled, wrong, unknown, orders } = result
  const { effects, answers, bodiless, wallMs, violations } = result
  const counted = { intents, outcomes, lost, doubled, wrong, unknown: unknown.length, unknownIntents: unknown, orders }
  return JSON.stringify({ minutes, seed, kills, faults, ...counted, effects, answers, bodiless, wallMs, violations })
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, number) => total + number, 0)
}

/** What there is none of is not named. */
function listOf(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).flatMap(([name, number]) => (number > 0 ? [`${number} ${name}`] : []))
  return parts.length === 0 ? '' : `: ${parts.join(', ')}`
}

function minutesOf(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
