/**
 * How much is tried, and from which seed. As it stands, every run is the same run: what fails on one machine fails on
 * all. To look for what nobody found yet: `FUZZ_RUNS=50 FUZZ_SEED=7 npx vitest run test/fuzz`.
 */
import type { Parameters } from 'fast-check'
import { vi } from 'vitest'

const times = Number(process.env.FUZZ_RUNS ?? 1)
const shift = Number(process.env.FUZZ_SEED ?? 0)

vi.setConfig({ testTimeout: 60_000 * Math.max(1, times) })

/** Parameters of one property: a seed of its own, and how often it runs by default. */
export function runs(seed: number, numRuns: number): Pick<Parameters<unknown>, 'seed' | 'numRuns'> {
  return { seed: seed + shift * 1_000_003, numRuns: Math.ceil(numRuns * times) }
}
