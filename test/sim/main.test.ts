/** The command: what it prints is what it found, and its exit code says the same. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from '../../scripts/entries.ts'
import { seedOf } from '../support/chance.ts'
import { commandOf } from './arguments.ts'
import type { Edit } from './bundle.ts'
import { replayJson, replayText, simulationJson, simulationText } from './report.ts'
import { sightLine } from './screen.ts'
import { type Programs, programsIn, replay, type Simulation, simulate } from './simulate.ts'

const timeout = 300_000
const paper = { columns: 80, colour: false }

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly complaint: string
}

function sim(...args: string[]): Promise<Ended> {
  const child = spawn(join(root, 'node_modules/.bin/tsx'), ['test/sim/main.ts', ...args], { cwd: root })
  const ended = { out: '', complaint: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    ended.out += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    ended.complaint += chunk
  })
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...ended })))
}

describe('the command', { timeout }, () => {
  test('with --json there is one JSON document on stdout, and the exit code is 0 when all held', async () => {
    const { code, out } = await sim('--schedules', '20', '--seed', '3', '--json')
    const { wallMs, perSecond, ends, ...rest } = JSON.parse(out)
    expect(rest).toEqual({ schedules: 20, seed: 3, jobs: 1, violations: [] })
    expect([wallMs, perSecond]).toEqual([expect.any(Number), expect.any(Number)])
    expect(ends.succeeded).toBeGreaterThan(0)
    expect(code).toBe(0)
  })

  test('--replay tells the same schedule twice to the byte', async () => {
    const [one, other] = await Promise.all([sim('--replay', '42'), sim('--replay', '42')])
    expect(one.out).toContain('What happens')
    expect(one.out).toMatch(/\nheld\n$/)
    expect(other).toEqual(one)
  })

  test('a wrong call is told in one sentence with the usage, no stack, and exit code 2', async () => {
    const { code, out, complaint } = await sim('--schedules', 'many')
    expect(complaint).toMatch(/^--schedules wants a whole number from 1 to \d+, not "many"\.\n\nnpm run sim/)
    expect(complaint).not.toContain('    at ')
    expect({ code, out }).toEqual({ code: 2, out: '' })
  })

  test('--help is the usage, and nothing is run', async () => {
    const { code, out } = await sim('--help')
    expect(out).toMatch(/^npm run sim -- /)
    expect(code).toBe(0)
  })
})

describe('arguments', () => {
  const of = (...args: string[]) => commandOf(args, 4, 99)

  test('nothing given is 10,000 schedules of any seed in one process', () => {
    expect(of()).toEqual({ do: 'simulate', schedules: 10_000, seed: 99, jobs: 1, json: false })
  })

  test.each([
    [['--schedules', '0']],
    [['--schedules', '1.5']],
    [['--seed', '-1']],
    [['--seed=']],
    [['--jobs', '5']],
    [['--jobs', '0']],
    [['--replay', 'last']],
    [['--replay', '4294967296']],
    [['--mutants', '--replay', '1']],
    [['--shedules', '5']],
    [['5000']],
  ])('%j is refused with a word of the option', (args) => {
    expect(() => of(...args)).toThrow(/--|argument/)
  })
})

/** Every coffee counts twice in the books. */
const doubled: Edit = {
  file: 'test/sim/truth.ts',
  find: '(counts.get(effect.key) ?? 0) + 1)',
  replace: "(counts.get(effect.key) ?? 0) + (effect.content === 'coffee' ? 2 : 1))",
}

describe('a campaign that breaks something', { timeout }, () => {
  let folder = ''
  let programs: Programs
  let simulation: Simulation

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'samekey-sim-'))
    programs = await programsIn(folder, [doubled])
    simulation = await simulate({ programs, schedules: 60, seed: 3, jobs: 2 })
  }, timeout)

  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('the report shows the promise, the short schedule, and the command that replays it', () => {
    const text = simulationText(simulation, paper)
    const [first] = simulation.found
    expect(text).toContain('I1 An intent has at most one effect')
    expect(text).toContain(`
        setting: as usual
      1 open tab 0
      2 tab 0 submits order-1: coffee
`)
    expect(text).toContain(`npm run sim -- --replay ${first?.seed}\n`)
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  test('at most three of each invariant are made short; the seeds of the others are named', () => {
    expect(simulation.found.length).toBeGreaterThan(3)
    expect(simulation.replays.size).toBe(3)
    const text = simulationText(simulation, paper)
    for (const { seed } of simulation.found) expect(text).toContain(String(seed))
  })

  test('in JSON every violation is there, with what replays it', () => {
    const { violations } = JSON.parse(simulationJson(simulation))
    expect(violations).toHaveLength(simulation.found.length)
    expect(violations[0]).toEqual({
      invariant: 'I1',
      rule: expect.stringContaining('at most one effect'),
      text: simulation.found[0]?.text,
      seed: simulation.found[0]?.seed,
      replay: `npm run sim -- --replay ${simulation.found[0]?.seed}`,
      shrunk: { text: 'order-1 took effect 2 times', runs: expect.any(Number) },
      schedule: ['    setting: as usual', '  1 open tab 0', '  2 tab 0 submits order-1: coffee'],
    })
  })

  test('the schedules of a seed are the same, whatever the number of processes', async () => {
    const alone = await simulate({ programs, schedules: 60, seed: 3, jobs: 1 })
    expect(alone.found).toEqual(simulation.found)
    expect(alone.ends).toEqual(simulation.ends)
    for (const { seed, index } of alone.found) expect(seed).toBe(seedOf(3, index))
  })

  test('a replay ends with the short schedule as it stands in a test', async () => {
    const replayed = await replay(programs.replay, simulation.found[0]?.seed ?? 0, true)
    const text = replayText(replayed, paper)
    expect(text).toContain('The same, made short')
    expect(text).toMatch(/VIOLATION I1: order-1 took effect 2 times/)
    expect(text.slice(text.indexOf('const schedule'))).toBe(`const schedule: Schedule = {
  setting: plainSetting,
  steps: [
    { do: 'open', tab: 0 },
    { do: 'submit', tab: 0, intent: 'order-1', content: 'coffee' },
  ],
}`)
    expect(JSON.parse(replayJson(replayed)).violation.invariant).toBe('I1')
  })

  test('a process ends after as many violations as it may find', async () => {
    const { found, schedules } = await simulate({ programs, schedules: 60, seed: 3, jobs: 1, most: 2 })
    expect(found).toEqual(simulation.found.slice(0, 2))
    expect(schedules).toBeLessThan(60)
  })
})

describe('a campaign whose processes end before their time', { timeout }, () => {
  const planted = async (edit: Edit, use: (programs: Programs) => Promise<void>): Promise<void> => {
    const folder = await mkdtemp(join(tmpdir(), 'samekey-sim-'))
    try {
      await use(await programsIn(folder, [edit]))
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
  const atCoffee = (then: string): Edit => ({
    file: 'test/sim/truth.ts',
    find: '    record(effect) {',
    replace: `    record(effect) {\n      if (effect.content === 'coffee') ${then}`,
  })

  test('a rejection that nobody handles is a violation, and the rest of the schedules is run', () =>
    planted(atCoffee("void Promise.reject(new Error('planted'))"), async (programs) => {
      const { found, schedules, replays } = await simulate({ programs, schedules: 60, seed: 3, jobs: 1 })
      expect(schedules).toBe(60)
      expect(found.length).toBeGreaterThan(3)
      expect(found[0]).toMatchObject({ invariant: 'I16', text: 'nobody handles: Error: planted' })
      expect(replays.get(found[0]?.seed ?? 0)?.shrunk?.schedule.steps).toHaveLength(2)
    }))

  test('a crash ends the campaign with what the process complained about', () =>
    planted(atCoffee("queueMicrotask(() => { throw new Error('planted') })"), async (programs) => {
      await expect(simulate({ programs, schedules: 60, seed: 3, jobs: 2 })).rejects.toThrow(
        /ended with 1\.[\s\S]*planted/,
      )
    }))
})

describe('the line of progress', () => {
  test.each([
    [{ done: 0, violations: 0, toShrink: null }, 0, 'sim: 0 of 20,000 schedules, starting'],
    [
      { done: 5000, violations: 0, toShrink: null },
      20_000,
      'sim: 5,000 of 20,000 schedules, 250/s, 1:00 left, no violation',
    ],
    [
      { done: 19_999, violations: 1, toShrink: null },
      100_000,
      'sim: 19,999 of 20,000 schedules, 200/s, 0:01 left, 1 violation',
    ],
    [{ done: 20_000, violations: 12, toShrink: 3 }, 1, 'sim: 12 violations; making schedules short, 3 to go'],
  ])('%j', (sight, doneMs, line) => {
    expect(sightLine(sight, 20_000, doneMs)).toBe(line)
    expect(line.length).toBeLessThan(80)
  })
})
