import { type MemoryServerStore, type MemoryTransaction, memoryServerStore } from 'samekey/server'
import { virtualClock } from 'samekey/testing'
import type { World } from './world.ts'

/** A memory store on virtual time, and a list of orders. */
export function memoryWorld(): World<MemoryTransaction> & { readonly store: MemoryServerStore } {
  const clock = virtualClock()
  const orders: string[] = []
  let count = 0
  return {
    store: memoryServerStore({ clock }),
    place(transaction, item) {
      transaction.onCommit(() => orders.push(item))
      count += 1
      return Promise.resolve(count)
    },
    orders: () => Promise.resolve(orders),
    now: clock.now,
    pass: clock.jump,
    async after(ms, promise) {
      await clock.advance(ms)
      return promise
    },
  }
}
