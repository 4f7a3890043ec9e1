import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/entries.ts'

/** What each example says; those without an entry cannot run by themselves and are named below. */
const said: Record<string, readonly string[]> = {
  'quick-start.ts': [
    'the order is order-1',
    'submitted once more, it is still order-1',
    '2 attempts, 1 order on the server',
  ],
  'fetch-wrapper.ts': ['the order is order-1; 1 order on the server', 'a GET found 1 order; 1 intent is stored'],
  'ky-instance.ts': ['the order is order-1; 1 order on the server'],
  'node-outbox.ts': [
    'first process: bill:invoice-7 is written down; killed now',
    'first process: ended by SIGKILL',
    'second process: bill:invoice-7 succeeded; 1 order on the server',
  ],
  'custom-dialect.ts': ['the booking is booking-1, after ambiguous, inProgress, done; 1 booking on the server'],
  'unknown-inbox.ts': [
    expect.stringMatching(/^outcome_unknown: Whether "transfer:2026-12:ann" happened is unknown: /),
    'inbox: transfer:2026-12:ann (server_does_not_deduplicate), attempts: 1',
    'submitted again: 1 transfer on the server',
    'settled: succeeded by a person, note: found in the list of 3 December',
  ],
  'testing-with-mock.ts': expect.arrayContaining([expect.stringMatching(/pass 4$/), expect.stringMatching(/fail 0$/)]),
}

/** Needs a database: test/examples/server-postgres.test.ts. */
const elsewhere = ['server.ts']

describe.concurrent('examples run as they are written', () => {
  it('none is left out', ({ expect }) => {
    const files = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.ts'))
    expect(files.sort()).toEqual([...Object.keys(said), ...elsewhere].sort())
  })

  for (const [file, lines] of Object.entries(said)) {
    it(`${file} says what its comment promises`, { timeout: 60_000 }, async ({ expect }) => {
      const tsx = join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs')
      const { stdout } = await promisify(execFile)(process.execPath, [tsx, join('examples', file)], {
        cwd: root,
        timeout: 50_000,
      })
      expect(stdout.trimEnd().split('\n')).toEqual(lines)
    })
  }
})
