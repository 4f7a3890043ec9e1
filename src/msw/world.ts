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
  /** Counts work that succeeds as an effect, whoever finishes it. */
  readonly store: MemoryServerStore
  readonly orders: MockOrder[]
  readonly effects: Effect[]
  readonly log: LogEntry[]
  /** Keys whose rows are gone, and that are too old for everything. */
  readonly expired: Set<string>
  /** The number of a key, by first sight, from 1. */
  intentOf(key: string): number
  /** What the server sees of a row: nothing, where it has been scripted that its key is forgotten. */
  shown(id: KeyId, row: KeyRow | null): KeyRow | null
  /** Runs the operation. What it creates is there if, and only if, the transaction commits. */
  execute(operation: NamedOperation, context: ExecuteContext<MemoryTransaction>): Promise<ExecuteResult>
  /** Adds an order with the commit; its id is known at once. */
  createOrder(
    id: Pick<KeyId, 'operation' | 'key' | 'principal'>,
    transaction: MemoryTransaction,
    value: unknown,
  ): MockOrder
  /** Counts a business execution with the commit. */
  count(id: Pick<KeyId, 'operation' | 'key' | 'principal'>, transaction: MemoryTransaction): void
}

/** A world in which nothing has happened yet. */
export function newWorld(clock: Pick<Clock, 'now' | 'timer'>): World {
  const orders: MockOrder[] = []
  const effects: Effect[] = []
  const expired = new Set<string>()
  const intents = new Map<string, number>()
  let lastId = 0

  const count: World['count'] = ({ operation, key, principal }, transaction) =>
    transaction.onCommit(() => effects.push({ operation, key, principal, at: clock.now() }))

  const createOrder: World['createOrder'] = ({ operation, key, principal }, transaction, value) => {
    lastId += 1
    const order = { id: lastId, operation, key, principal, value }
    transaction.onCommit(() => orders.push(order))
    return order
  }

  return {
    store: countingSuccess(memoryServerStore({ clock }), count),
    orders,
    effects,
    log: [],
    expired,
    createOrder,
    count,

    intentOf(key) {
      const number = intents.get(key) ?? intents.size + 1
      intents.set(key, number)
      return number
    },

    shown: (id, row) => (expired.has(id.key) ? null : row),

    async execute({ name, options, params }, context) {
      const { transaction, request, key, scope } = context
      const id = { operation: name, key, principal: scope.principal }
      return (options.execute ?? placeOrder)({
        ...context,
        params: params(new URL(request.url).pathname) ?? {},
        createOrder: (value) => createOrder(id, transaction, value),
      })
    },
  }
}

/** The store, where work that succeeds counts: by a worker, a script, or a person. */
function countingSuccess(store: MemoryServerStore, count: World['count']): MemoryServerStore {
  return {
    ...store,
    begin: (options, work) =>
      store.begin(options, (unit) =>
        work({
          ...unit,
          async saveTask(id, row) {
            if (row.status === 'succeeded') await unit.run((transaction) => count(id, transaction))
            return unit.saveTask(id, row)
          },
        }),
      ),
  }
}

/** One text per identity. */
export function nameOf({ tenant, principal, operation, key }: KeyId): string {
  return JSON.stringify([tenant, principal, operation, key])
}
