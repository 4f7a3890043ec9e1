/** `npm start` as it is run, for three of its faults: real processes, sockets, kills and PostgreSQL, counted in SQL. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

interface Report {
  faults: {
    id: string
    wanted: number
    plain: { orders: number }
    samekey: { orders: number; effects: number; lost: number; unknown: number; attempts: number }
  }[]
  ok: boolean
}

test('npm start: crashes before and after sending, and lost answers, leave one order each (F2, F5, F6)', async () => {
  const args = ['node_modules/tsx/dist/cli.mjs', 'examples/demo/main.ts', '--json', '--only', 'F2,F5,F6']
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root })
  const { faults, ok } = JSON.parse(stdout) as Report

  expect(faults.map(({ id }) => id)).toEqual(['F2', 'F5', 'F6'])
  for (const { wanted, samekey } of faults) {
    expect(wanted).toBeGreaterThanOrEqual(20)
    expect(samekey).toMatchObject({ orders: wanted, effects: wanted, lost: 0, unknown: 0 })
    expect(samekey.attempts).toBeGreaterThanOrEqual(wanted)
  }
  const [, lost, died] = faults
  // Without these, the faults would have been harmless, and the numbers above would prove nothing.
  expect(lost!.plain.orders).toBeGreaterThan(lost!.wanted)
  expect(died!.plain.orders).toBeGreaterThan(died!.wanted)
  expect(ok).toBe(true)
}, 120_000)
