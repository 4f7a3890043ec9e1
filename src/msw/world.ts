/** All that the mocked server knows, from one `reset` to the next. */
import type { Clock } from '../ports.ts'
import type { KeyRow } from '../server/decide.ts'
import { type MemoryServerStore, type MemoryTransaction, memoryServerStore } from '../server/memory.ts'
import type { ExecuteContext } from '../server/options.ts'
import type { ExecuteResult } from '../server/results.ts'
import type { KeyId } from '../server/store.ts'
import { type MockOrder, type NamedOperation, placeOrder } from './operations.ts'
import type { LogEntry } from './request-log.ts'

/** One business execution that was committed. */
export interface Effect {
  readonly operation: string
  readonly key: string
  readonly principal: string
  /** Epoch ms by the mock's clock. */
  readonly at: number
}

/** State, and what changes it in the one right way. */
export interface World {
  readonly store: MemoryServerStore
  readonly orders: MockOrder[]
  readonly effects: Effect[]
  readonly log: LogEntry[]
  /** Keys whose rows are gone, and that are too old for everything. */
  readonly expired: Set<string>
  /** Names of keys whose accepted work was voided by somebody. */
  readonly voidedWork: Set<string>
  /** The number of a key, by first sight, from 1. */
  intentOf(key: string): number
  /** What the server sees of a row: with what has been scripted about its key. */
  shown(id: KeyId, row: KeyRow | null): KeyRow | null
  /** Runs the operation; its effect counts if, and only if, the transaction commits. */
  execute(operation: NamedOperation, context: ExecuteContext<MemoryTransaction>): Promise<ExecuteResult>
  /** Counts a business execution. */
  count(id: Pick<KeyId, 'operation' | 'key' | 'principal'>): void
}

/** A world in which nothing has happened yet. */
export function newWorld(clock: Pick<Clock, 'now' | 'timer'>): World {
  const orders: MockOrder[] = []
  const effects: Effect[] = []
  const expired = new Set<string>()
  const voidedWork = new Set<string>()
  const intents = new Map<string, number>()
  let lastId = 0

  function count({ operation, key, principal }: Pick<KeyId, 'operation' | 'key' | 'principal'>): void {
    effects.push({ operation, key, principal, at: clock.now() })
  }

  return {
    store: memoryServerStore({ clock }),
    orders,
    effects,
    log: [],
    expired,
    voidedWork,
    count,

    intentOf(key) {
      const number = intents.get(key) ?? intents.size + 1
      intents.set(key, number)
      return number
    },

    shown(id, row) {
      if (row === null || expired.has(id.key)) return null
      return voidedWork.has(nameOf(id)) ? { ...row, state: 'voided' } : row
    },

    async execute({ name, options, params }, context) {
      const { transaction, request, key, scope } = context
      const { principal } = scope
      const result = await (options.execute ?? placeOrder)({
        ...context,
        params: params(new URL(request.url).pathname) ?? {},
        createOrder(value) {
          lastId += 1
          const order = { id: lastId, operation: name, key, principal, value }
          transaction.onCommit(() => orders.push(order))
          return order
        },
      })
      // Accepting is no effect: the work counts when it is done.
      if (result.outcome !== 'accepted') transaction.onCommit(() => count({ operation: name, key, principal }))
      return result
    },
  }
}

/** One text per identity. */
export function nameOf({ tenant, principal, operation, key }: KeyId): string {
  return JSON.stringify([tenant, principal, operation, key])
}
