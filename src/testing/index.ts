/** For tests of apps and of stores: time that a test owns, and the contract that every store keeps. */

export { type ContractTools, type StoreBench, storeContract } from './store-contract.ts'
export { settled, type VirtualClock, type VirtualClockOptions, virtualClock } from './virtual-clock.ts'
