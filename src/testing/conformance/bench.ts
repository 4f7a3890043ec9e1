/** What the conformance suite needs of whoever runs it. */
import type { ContractTools } from '../store-contract.ts'
import type { ShopCaller, ShopOperation } from './shop.ts'

/**
 * An empty shop that is open (see `conformanceShop` and `ShopOrder`), made anew for each case.
 *
 * Only `fetch`, `effects` and `close` are needed. The rest is what cannot be done over HTTP; a bench that cannot do it
 * either says so (`without`), and the cases that need it are skipped by name.
 */
export interface ServerBench {
  /**
   * One request.
   *
   * @param path from the shop's root: `/orders`.
   */
  fetch(path: string, init: RequestInit): Promise<Response>
  /** Committed business effects so far: orders placed and cancelled. The number that all of this is about. */
  effects(): number | Promise<number>
  /** Ends the shop, whatever still runs in it included. */
  close(): void | Promise<void>

  /** Epoch ms by the shop's clock. Default: the system's. */
  now?(): number
  /**
   * Lets time pass for keys, waits and workers; then the reaper runs. The shop's time then stands still by itself, at the
   * start of a second.
   */
  passMs?(ms: number): void | Promise<void>
  /** From now on the caller may not do anything. */
  revoke?(caller: ShopCaller): void | Promise<void>
  /** From now on the caller may do everything again. */
  grant?(caller: ShopCaller): void | Promise<void>
  /** The next execution of an order stops in the middle of its transaction, the order placed and uncommitted. */
  hold?(): Hold
  /**
   * Lets a worker do the work that is due. Resolves when all of it has come to its end.
   *
   * @param fate `dies`: it takes the work and is never heard of again. `sleeps`: it takes the work and stands still before
   * it does any of it, clock, renewals and all. Default: it does it.
   */
  work?(fate?: 'dies' | 'sleeps'): void | Promise<void>
  /** Workers that sleep wake up and go on. Resolves when they have come to their end. */
  wake?(): void | Promise<void>
  /** Leaves a committed key row without an answer (F21). */
  damage?(operation: ShopOperation, key: string, caller: ShopCaller): void | Promise<void>
}

/** An execution that is to be stopped. */
export interface Hold {
  /** Resolves when one stands there. */
  readonly reached: Promise<unknown>
  /** Lets it go on. */
  release(): void
}

/** What a bench may be unable to do. */
export type BenchAbility = 'passMs' | 'revoke' | 'hold' | 'work' | 'damage'

/** The test framework's functions. Those of vitest, jest and Bun fit as they are. */
export interface ConformanceTools extends ContractTools {
  readonly it: ContractTools['it'] & {
    /** A test that is named and not run. */
    skip(name: string, body: () => Promise<void>): unknown
  }
}

/** Functions that make up an ability. */
export const abilityMembers: Readonly<Record<BenchAbility, readonly (keyof ServerBench)[]>> = {
  passMs: ['passMs', 'now'],
  revoke: ['revoke', 'grant'],
  hold: ['hold'],
  work: ['work', 'wake'],
  damage: ['damage'],
}
