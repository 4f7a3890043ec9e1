/**
 * Ends a run with `N passed, N failed`. With SAMEKEY_SUMMARY_FILE set it also appends the counts there, one line per
 * run, so that .ci/run can add up several runs.
 */
import { appendFileSync } from 'node:fs'
import type { SerializedError } from 'vitest'
import type { Reporter, TestModule } from 'vitest/node'

export default class SummaryReporter implements Reporter {
  #line = '0 passed, 1 failed'

  onInit(): void {
    // At exit, because the coverage report comes after the last hook: the counts are the last line either way.
    process.once('exit', () => process.stdout.write(`${this.#line}\n`))
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state]++
      // A file that cannot be loaded, or whose beforeAll throws, has no failed test to show for it.
      const suites = [...module.children.allSuites()]
      counts.failed += module.errors().length + suites.reduce((sum, suite) => sum + suite.errors().length, 0)
    }
    const failed = counts.failed + unhandledErrors.length
    const skipped = counts.skipped + counts.pending
    this.#line = `${counts.passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
    const file = process.env.SAMEKEY_SUMMARY_FILE
    if (file) appendFileSync(file, `${counts.passed} ${failed} ${skipped}\n`)
  }
}
