/** A short `npm run soak`. How much happens in it depends on the machine; that nothing is lost, doubled or wrong does not. */
import { afterAll, expect, test } from 'vitest'
import type { TidyUp } from '../../examples/demo/guarded.ts'
import { networkFaults } from './network.ts'
import { soak } from './soak.ts'

const tidyUp: TidyUp = []

afterAll(async () => {
  for (let step = tidyUp.pop(); step !== undefined; step = tidyUp.pop()) await step()
})

test('F2-F7, F9, F19, F20: whoever is killed, and whatever the network loses, every intent happens once or never', async () => {
  const result = await soak({ minutes: 0.25, seed: 1, tidyUp })

  expect(result.violations).toEqual([])
  expect(result).toMatchObject({ lost: 0, doubled: 0, wrong: 0 })
  // Without these, the numbers above would prove nothing.
  const { kills, faults, orders, intents, outcomes } = result
  for (const count of Object.values(kills)) expect(count).toBeGreaterThan(0)
  expect(networkFaults.reduce((sum, fault) => sum + faults[fault], 0)).toBeGreaterThan(0)
  expect(orders).toBeGreaterThan(0)
  expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBe(intents)
}, 300_000)
