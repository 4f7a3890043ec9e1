import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundle } from '../bundle.ts'
import { runProgram } from '../child.ts'
import { holes } from './all.ts'
import { elsewhere } from './elsewhere.ts'
import { type Hole, linesOf } from './hole.ts'
import { play } from './play.ts'
import type { HoleLine, HoleOrder } from './program.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'samekey-holes-'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

describe('every hole, as a schedule of its own', () => {
  it('H1 to H63 are each scripted here or covered elsewhere, and none twice', () => {
    const names = [...holes, ...elsewhere].map(({ hole }) => hole)
    const all = Array.from({ length: 63 }, (_, at) => `H${at + 1}`)
    expect(names.toSorted()).toEqual(all.toSorted())
  })

  it.each(elsewhere)('$hole cannot arise here, and its test is there', async ({ test: { file, title } }) => {
    expect(await readFile(join(root, file), 'utf8')).toContain(`it('${title}'`)
  })

  it.each(holes)('$hole: $schedule', async (hole) => {
    const { violation, ends } = await play(hole)
    expect(violation).toBeNull()
    expect(ends).toEqual(linesOf(hole.ends, hole.ends))
  })
})

// A script that passes with its rule switched off would have shown nothing.
describe('the same schedule, its rule switched off', () => {
  it('no two holes plant the same bug under one name', () => {
    const names = holes.map(({ without }) => without.name)
    expect(new Set(names).size).toBe(names.length)
  })

  it.concurrent.for(holes)('$hole breaks: $without.name', async (hole, { signal, expect }) => {
    const { violation, ends } = await playedWithout(hole, signal)
    expect({ violation, ends }).not.toEqual({ violation: null, ends: linesOf(hole.ends, hole.ends) })
  })
})

async function playedWithout({ hole, without }: Hole, signal: AbortSignal): Promise<HoleLine> {
  const file = join(folder, `${hole}.mjs`)
  await bundle(file, without.edits, 'holes/program.ts')
  const lines: HoleLine[] = []
  const order: HoleOrder = { holes: [hole] }
  await runProgram(file, order, (line) => void lines.push(line as HoleLine), signal)
  const [line] = lines
  if (line === undefined) throw new Error(`${hole} was not played to its end.`)
  return line
}
