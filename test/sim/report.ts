/** What a campaign or a replay found, for people and for programs. */
import { styleText } from 'node:util'
import type { Found } from './campaign.ts'
import { generate } from './generate.ts'
import { type InvariantName, invariants } from './invariants.ts'
import { literalOf } from './literal.ts'
import type { Replay } from './replay-program.ts'
import type { Schedule } from './schedule.ts'
import { clockOf, numberOf } from './screen.ts'
import { type Simulation, shownPerInvariant } from './simulate.ts'
import { wordsOf } from './words.ts'

/** Where it is shown. */
export interface Paper {
  readonly columns: number
  readonly colour: boolean
}

type Style = Parameters<typeof styleText>[0]

/** Nothing is wider than this. */
const widest = 120
const indent = '    '

const painter =
  ({ colour }: Paper) =>
  (style: Style, text: string): string =>
    colour ? styleText(style, text, { validateStream: false }) : text

export function simulationText(simulation: Simulation, paper: Paper): string {
  const { schedules, seed, jobs, wallMs, perSecond, ends, found } = simulation
  const paint = painter(paper)
  const listed = Object.entries(ends).sort(([, one], [, other]) => other - one)
  const ending = listed.map(([state, times]) => `${numberOf(times)} ${state}`).join(', ')
  const facts: [string, string][] = [
    ['schedules', `${numberOf(schedules)} of seed ${seed}`],
    ['time', `${clockOf(wallMs)}; ${numberOf(Math.round(perSecond))} schedules/s in ${ofProcesses(jobs)}`],
    ['intents', `ended as ${ending || 'nothing'}`],
    ['violations', numberOf(found.length)],
  ]
  const table = facts.map(([name, text]) => hanging(name.padEnd(12), text, paper)).join('\n')
  if (found.length === 0) return `${table}\n\n${paint(['green', 'bold'], 'Every invariant held.')}`
  const groups = Object.keys(invariants).flatMap((name) => {
    const ofIt = found.filter(({ invariant }) => invariant === name)
    return ofIt.length === 0 ? [] : [groupText(name as InvariantName, ofIt, simulation, paper)]
  })
  return [table, ...groups].join('\n\n')
}

function ofProcesses(jobs: number): string {
  return jobs === 1 ? '1 process' : `each of ${jobs} processes`
}

function groupText(name: InvariantName, found: readonly Found[], { replays }: Simulation, paper: Paper): string {
  const paint = painter(paper)
  const often = found.length === 1 ? 'in 1 schedule' : `in ${numberOf(found.length)} schedules`
  const shown = found.slice(0, shownPerInvariant).map((one) => foundText(one, replays.get(one.seed), paper))
  const more = found.slice(shown.length).map(({ seed }) => seed)
  return [
    paint(['red', 'bold'], hanging(`${name} `, `${invariants[name]} Broken ${often}.`, paper)),
    ...shown,
    ...(more.length === 0 ? [] : [hanging('More seeds: ', listOf(more), paper)]),
  ].join('\n\n')
}

/** The first ones are enough. */
function listOf(seeds: readonly number[]): string {
  const [first, rest] = [seeds.slice(0, 20), seeds.length - 20]
  return `${first.join(', ')}${rest > 0 ? `, and ${numberOf(rest)} others` : ''}`
}

function foundText({ invariant, text, seed }: Found, replayed: Replay | undefined, paper: Paper): string {
  const { violation = null, shrunk = null } = replayed ?? {}
  const isSame = violation?.invariant === invariant && shrunk !== null
  return [
    hanging(indent, (isSame && shrunk.violation?.text) || text, paper),
    '',
    ...linesOf(isSame ? shrunk.schedule : generate(seed), paper),
    '',
    `${indent}${isSame ? shortened(shrunk) : 'This did not happen again when it was replayed.'}`,
    `${indent}${commandFor(seed)}`,
  ].join('\n')
}

function linesOf(schedule: Schedule, paper: Paper): string[] {
  return wordsOf(schedule).map((line) => hanging(`${indent}${line.slice(0, 4)}`, line.slice(4), paper))
}

function shortened({ runs, isSmallest }: NonNullable<Replay['shrunk']>): string {
  return `Made short in ${numberOf(runs)} runs${isSmallest ? '' : ', which were all it may take'}. The whole of it:`
}

/** What runs one schedule again. */
function commandFor(seed: number): string {
  return `npm run sim -- --replay ${seed}`
}

/** A text that stays right of the words before it. */
function hanging(before: string, text: string, { columns }: Paper): string {
  const width = Math.max(20, Math.min(columns, widest) - before.length)
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].map((part, at) => `${at === 0 ? before : ' '.repeat(before.length)}${part}`).join('\n')
}

/** One document. Of a schedule that was made short, `shrunk` tells what breaks in it: the names may be others. */
export function simulationJson(simulation: Simulation): string {
  const { schedules, seed, jobs, wallMs, perSecond, ends, found, replays } = simulation
  return JSON.stringify({
    schedules,
    seed,
    jobs,
    wallMs: Math.round(wallMs),
    perSecond: Math.round(perSecond),
    ends,
    violations: found.map((one) => {
      const shrunk = replays.get(one.seed)?.shrunk ?? null
      return {
        invariant: one.invariant,
        rule: invariants[one.invariant],
        text: one.text,
        seed: one.seed,
        replay: commandFor(one.seed),
        shrunk: shrunk && { text: shrunk.violation?.text ?? null, runs: shrunk.runs },
        schedule: wordsOf(shrunk?.schedule ?? generate(one.seed)),
      }
    }),
  })
}

export function replayText({ seed, schedule, trace, violation, shrunk }: Replay, paper: Paper): string {
  const paint = painter(paper)
  const head = (text: string): string => paint('bold', text)
  const lines = [head(`Schedule ${seed}`), '', ...linesOf(schedule, paper), '', head('What happens'), '']
  lines.push(...trace.map((line) => `${indent}${line}`), '', verdictText(violation, paper))
  if (shrunk === null) return lines.join('\n')
  lines.push('', head('The same, made short'), '', ...linesOf(shrunk.schedule, paper), '')
  lines.push(...shrunk.trace.map((line) => `${indent}${line}`), '', verdictText(shrunk.violation, paper))
  lines.push('', head('For a test'), '', literalOf(shrunk.schedule))
  return lines.join('\n')
}

function verdictText(violation: Replay['violation'], paper: Paper): string {
  const paint = painter(paper)
  if (violation === null) return paint(['green', 'bold'], 'held')
  const { invariant, text } = violation
  const rule = hanging(`${invariant} `, invariants[invariant], paper)
  return `${paint(['red', 'bold'], rule)}\n${hanging(indent, text, paper)}`
}

export function replayJson({ shrunk, ...replayed }: Replay): string {
  return JSON.stringify({ ...replayed, shrunk: shrunk && { ...shrunk, literal: literalOf(shrunk.schedule) } })
}
