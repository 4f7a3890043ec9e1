/** The tables of docs/verification.md: from the simulator's own lists, and from what real runs printed with `--json`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { holes } from '../test/sim/holes/all.ts'
import { elsewhere } from '../test/sim/holes/elsewhere.ts'
import { invariants } from '../test/sim/invariants.ts'
import { root } from './entries.ts'

/** Where the records of runs are kept. */
const records = 'docs/verification'

interface Campaign {
  readonly seed: number
  readonly schedules: number
  readonly wallMs: number
  readonly perSecond: number
  readonly ends: Readonly<Record<string, number>>
  readonly violations: readonly unknown[]
}

interface MutantRun {
  readonly mutants: readonly { name: string; rule: string; killedBy: string | null; schedules: number }[]
  readonly survivors: number
}

interface SoakRun {
  readonly minutes: number
  readonly seed: number
  readonly kills: Readonly<Record<string, number>>
  readonly faults: Readonly<Record<string, number>>
  readonly intents: number
  readonly outcomes: Readonly<Record<string, number>>
  readonly orders: number
  readonly lost: number
  readonly doubled: number
  readonly wrong: number
  readonly unknown: number
}

function recordOf<T>(name: string): T {
  return JSON.parse(readFileSync(join(root, records, name), 'utf8')) as T
}

const grouped = (value: number): string => value.toLocaleString('en-US')

/** `|` would end a cell. */
const cell = (text: string): string => text.replaceAll('|', '\\|')

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n')
}

function counts(of: Readonly<Record<string, number>>): string {
  return Object.entries(of)
    .filter(([, count]) => count > 0)
    .sort(([, one], [, other]) => other - one)
    .map(([name, count]) => `${grouped(count)} ${name}`)
    .join(', ')
}

/** What must hold in every schedule. */
export function renderInvariants(): string {
  return table(['', 'must hold in every schedule'], Object.entries(invariants))
}

/** Every hole, with its script or the reason why there is none. */
export function renderHoles(): string {
  const scripted = holes.map(({ hole, schedule, rule, without }) => [
    hole,
    schedule,
    rule,
    `script; breaks with: ${without.name}`,
  ])
  const others = elsewhere.map(({ hole, schedule, rule, why, test }) => [
    hole,
    schedule,
    rule,
    `not in the simulator: ${why}. Covered by ${test.file}, "${test.title}"`,
  ])
  const rows = [...scripted, ...others].sort(([a = ''], [b = '']) => Number(a.slice(1)) - Number(b.slice(1)))
  return table(['hole', 'what happens', 'closed by', 'checked by'], rows)
}

/** The planted faults and what caught them. */
export function renderMutants(): string {
  const { mutants, survivors } = recordOf<MutantRun>('mutants.json')
  const rows = mutants.map(({ name, rule, killedBy, schedules }) => [
    name,
    rule,
    killedBy ?? 'nothing',
    grouped(schedules),
  ])
  const sum = `${mutants.length} planted, ${survivors} alive.`
  return `${sum}\n\n${table(['planted fault', 'breaks', 'caught by', 'after so many schedules'], rows)}`
}

/** The long run. */
export function renderSchedules(): string {
  const runs = recordOf<readonly Campaign[]>('schedules.json')
  const total = (of: (run: Campaign) => number): number => runs.reduce((sum, run) => sum + of(run), 0)
  const ends: Record<string, number> = {}
  for (const run of runs)
    for (const [state, count] of Object.entries(run.ends)) ends[state] = (ends[state] ?? 0) + count
  const violations = total((run) => run.violations.length)
  const perSecond = Math.round(total((run) => run.perSecond) / runs.length)
  const seeds = runs.map(({ seed }) => seed).join(', ')
  return table(
    ['', 'the long run'],
    [
      ['schedules', grouped(total(({ schedules }) => schedules))],
      ['seeds', seeds],
      [
        'wall time',
        `${Math.round(total(({ wallMs }) => wallMs) / 60_000)} minutes in two processes, ${perSecond} schedules a second in each`,
      ],
      ['intents', `ended as ${counts(ends)}`],
      ['violations', grouped(violations)],
    ],
  )
}

/** The run with real processes. */
export function renderSoak(): string {
  const { minutes, seed, kills, faults, intents, outcomes, orders, lost, doubled, wrong, unknown } =
    recordOf<SoakRun>('soak.json')
  const killed = Object.values(kills).reduce((sum, count) => sum + count, 0)
  return table(
    ['', `the soak of ${minutes} minutes, seed ${seed}`],
    [
      ['SIGKILLs', `${grouped(killed)}: ${counts(kills)}`],
      ['faults on the wire', counts(faults)],
      ['intents', `${grouped(intents)}: ${counts(outcomes)}`],
      ['orders in the database', grouped(orders)],
      ['lost, doubled, wrong, unknown', [lost, doubled, wrong, unknown].join(', ')],
    ],
  )
}
