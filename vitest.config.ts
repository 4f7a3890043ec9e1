import { defineConfig } from 'vitest/config'
import { sourceAliases } from './scripts/entries.ts'

/** Files that start a real PostgreSQL, a real browser, or npm. Everything else is quick and runs on virtual time. */
const postgres = ['test/**/*postgres*.test.ts']
const browser = ['test/browser/**/*.test.ts', 'test/e2e/**/*.test.ts']
const packed = ['test/package/**/*.test.ts']

/** Each group runs after the one before it, so that a browser never competes with the unit tests for two cores. */
const slow = (name: string, include: string[], groupOrder: number) => ({
  extends: true as const,
  test: { name, include, sequence: { groupOrder }, testTimeout: 60_000, hookTimeout: 120_000 },
})

export default defineConfig({
  resolve: {
    // Exact matches only: as plain strings, `samekey` would also catch the start of `samekey/fetch`.
    alias: Object.entries(sourceAliases).map(([name, file]) => ({ find: new RegExp(`^${name}$`), replacement: file })),
  },
  test: {
    pool: 'forks',
    restoreMocks: true,
    unstubGlobals: true,
    reporters: ['default', './scripts/summary-reporter.ts'],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reporter: ['text-summary', 'html', 'json-summary'],
      // The protocol is a pure function of its input: a branch that no test reaches is a rule that nobody checked.
      thresholds: { 'src/protocol/**': { branches: 100 } },
    },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [...postgres, ...browser, ...packed],
          // Most take milliseconds. Not the default of 5 s: a busy machine is no reason to fail.
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      slow('postgres', postgres, 1),
      slow('browser', browser, 2),
      slow('package', packed, 3),
    ],
  },
})
