/** The simulator can fail: planted faults are found. All of them at once: `npm run sim -- --mutants`. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { edited } from '../bundle.ts'
import { mutants } from './all.ts'
import { hunt } from './hunt.ts'
import { mostSchedules } from './main.ts'
import { mutantsJson } from './report.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'samekey-mutants-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

it('at least 40 faults are planted, each under a name of its own', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(40)
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
})

it.each(mutants)('$name: the source still holds what it edits, exactly once', async ({ edits }) => {
  for (const file of new Set(edits.map((edit) => edit.file))) {
    const own = edits.filter((edit) => edit.file === file)
    const text = await readFile(file, 'utf8')
    expect(edited(text, own)).not.toBe(text)
  }
})

describe('one of each kind is caught, so that nobody has to believe the others', () => {
  const names = [
    'a new key for each attempt',
    'sent before it is stored',
    'a time-out means that nothing happened',
    'an outcome is announced before it is stored',
    'a stored intent is sent as whoever is signed in',
    'lanes are no lanes',
    'nothing is armed after a failure',
    'key row and effect are two transactions',
  ]

  it('within the schedules that have to be enough', { timeout: 900_000 }, async () => {
    const chosen = mutants.filter(({ name }) => names.includes(name))
    expect(chosen).toHaveLength(names.length)
    const hunted = await hunt({ mutants: chosen, folder, seed: 1, most: mostSchedules })
    expect(hunted.filter(({ killedBy }) => killedBy === null)).toEqual([])
    expect(JSON.parse(mutantsJson(hunted))).toMatchObject({ survivors: 0 })
  })
})
