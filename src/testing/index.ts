/** For tests of apps, of stores and of servers: time that a test owns, and the contracts that others keep. */

export type { BenchAbility, ConformanceTools, Hold, ServerBench } from './conformance/bench.ts'
export {
  type ConformanceShop,
  conformanceShop,
  type ShopCaller,
  type ShopOperation,
  type ShopOrder,
  type ShopOutcome,
  type ShopTry,
} from './conformance/shop.ts'
export { type ConformanceOptions, type DeclaredConformance, serverConformance } from './conformance/suite.ts'
export { type ContractTools, type StoreBench, storeContract } from './store-contract.ts'
export { settled, type VirtualClock, type VirtualClockOptions, virtualClock } from './virtual-clock.ts'
