/** The conformance suite: every case of the table as a test of the framework that runs it. */
import type { BenchAbility, ConformanceTools, ServerBench } from './bench.ts'
import { conformanceCases } from './cases.ts'
import { runCase } from './run.ts'
import { type ConformanceCase, needsOf } from './steps.ts'

/** Options of {@link serverConformance}. */
export interface ConformanceOptions {
  /** What the bench cannot do; the cases that need it are skipped, by name. Default: nothing. */
  readonly without?: readonly BenchAbility[]
}

/** What was declared. */
export interface DeclaredConformance {
  /** How many cases run. */
  readonly cases: number
  /** Titles of those that do not, each with what it would need. */
  readonly skipped: readonly string[]
}

/**
 * Declares the suite: what a server that speaks the `samekey` profile (PROTOCOL.md section 16) promises, as cases that
 * speak HTTP alone and count effects. It runs against any server that can be made the small shop of
 * `conformanceShop`: one of this kit on your database and framework, or one in another language.
 *
 * @param name what the server is called in test titles
 * @param make an empty shop, open; called once per case
 * @param tools the test framework
 * @returns what was declared, to be asserted where nothing may be skipped.
 * @example
 * ```ts
 * import { type ServerBench, serverConformance } from 'samekey/testing'
 * import { describe, expect, it } from 'vitest'
 *
 * async function shopOnTestServer(): Promise<ServerBench> {
 *   const base = 'http://127.0.0.1:3000' // your server, with an empty database
 *   return {
 *     fetch: (path, init) => fetch(base + path, init),
 *     effects: async () => Number(await (await fetch(`${base}/test/effects`)).text()),
 *     close: () => {},
 *   }
 * }
 *
 * const without = ['passMs', 'revoke', 'hold', 'work', 'damage'] as const
 * const { skipped } = serverConformance('my server', shopOnTestServer, { describe, it, expect }, { without })
 * console.log(`${skipped.length} promises were not tried`)
 * ```
 */
export function serverConformance(
  name: string,
  make: () => ServerBench | Promise<ServerBench>,
  tools: ConformanceTools,
  options: ConformanceOptions = {},
): DeclaredConformance {
  const { without = [] } = options
  // Counted before anything is declared: frameworks may call the bodies of groups later.
  const groups = Object.entries(conformanceCases).map(([group, cases]) => ({
    group,
    tests: cases.map((one) => {
      const missing = needsOf(one).filter((ability) => without.includes(ability))
      return { one, skipped: missing.length === 0 ? null : `${one.title} (needs ${missing.join(', ')})` }
    }),
  }))

  async function run(one: ConformanceCase): Promise<void> {
    const bench = await make()
    try {
      await runCase(bench, one, tools.expect)
    } finally {
      await bench.close()
    }
  }

  tools.describe(`conformance: ${name}`, () => {
    for (const { group, tests } of groups) {
      tools.describe(group, () => {
        for (const { one, skipped } of tests) {
          if (skipped === null) tools.it(one.title, () => run(one))
          else tools.it.skip(skipped, () => run(one))
        }
      })
    }
  })
  const all = groups.flatMap(({ tests }) => tests)
  const skipped = all.flatMap((test) => test.skipped ?? [])
  return { cases: all.length - skipped.length, skipped }
}
