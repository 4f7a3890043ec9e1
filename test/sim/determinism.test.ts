/** A seed is all there is to tell: without that, no replay, and no shrinking. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { seedOf } from '../support/chance.ts'
import { bundle } from './bundle.ts'
import { runProgram } from './child.ts'
import { generate } from './generate.ts'
import type { Replay } from './replay-program.ts'
import { run } from './run.ts'

const seeds = Array.from({ length: 100 }, (_, index) => seedOf(2024, index))
const slow = 600_000

const tracesOf = async (): Promise<string[]> => {
  const traces: string[] = []
  for (const seed of seeds) traces.push((await run(generate(seed), true)).trace.join('\n'))
  return traces
}

test('the same seed gives the same schedule, and other seeds give other ones', () => {
  const schedules = seeds.map((seed) => JSON.stringify(generate(seed)))
  expect(seeds.map((seed) => JSON.stringify(generate(seed)))).toEqual(schedules)
  expect(new Set(schedules).size).toBe(seeds.length)
})

test('the same seed gives the same trace to the byte, again and in another process', { timeout: slow }, async () => {
  const traces = await tracesOf()
  expect(traces.every((trace) => trace.split('\n').length > 5)).toBe(true)
  expect(await tracesOf()).toEqual(traces)

  const folder = await mkdtemp(join(tmpdir(), 'samekey-sim-'))
  try {
    const file = join(folder, 'replay.mjs')
    await bundle(file, [], 'replay-program.ts')
    const replays: Replay[] = []
    await runProgram(file, { seeds, shrinks: false }, (line) => void replays.push(line as Replay))
    expect(replays.map(({ schedule }) => schedule)).toEqual(seeds.map(generate))
    expect(replays.map(({ trace }) => trace.join('\n'))).toEqual(traces)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('what a schedule does not see does not change it: a run without a trace ends as one with it', {
  timeout: slow,
}, async () => {
  for (const seed of seeds.slice(0, 30)) {
    const { trace, ...traced } = await run(generate(seed), true)
    expect(trace).not.toEqual([])
    expect(await run(generate(seed))).toEqual({ ...traced, trace: [] })
  }
})
