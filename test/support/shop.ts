/**
 * The real server kit on virtual time, as a network's answer: what a client test proves against it holds against the
 * server that users run. Faults are wrapped around it; effects are counted where they commit.
 */
import {
  accepted,
  complete,
  type ExecuteResult,
  idempotencyRoutes,
  idempotent,
  json,
  type KeyId,
  type MemoryServerStore,
  memoryServerStore,
  refuse,
  type TaskStatus,
  tellTask,
} from 'samekey/server'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import type { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { type Answer, day, type HonestServer, order } from './world.ts'

/** How the shop takes an order: at once, as a task of its own, or not at all. */
type Mode = 'at_once' | 'as_task' | 'refuses'

export interface Shop extends HonestServer {
  readonly store: MemoryServerStore
  /** How orders are taken from now on. */
  take(mode: Mode): void
  /** The worker ends the task of this key; false when there is none to end. */
  finish(key: string, status?: number): Promise<boolean>
  /** The worker says how far the task is, without ending it. */
  tell(key: string, status: TaskStatus, retryAfterSeconds?: number): Promise<boolean>
}

/** Name of the shop's one operation. */
export const operation = 'orders.create'

/** An item that the shop refuses for good, whatever its mode. */
export const soldOut = 'last year’s calendar'

/** Options of a client that knows the shop's operation, so that it can look up and void by key. */
export const knowsShop = { operations: { [operation]: {} } } as const

/** An order of the shop's operation. */
export function shopOrder(intent: string, json?: unknown): ReturnType<typeof order> & { operation: typeof operation } {
  return { ...order(intent, json), operation }
}

export function shop(
  clock: VirtualClock,
  { dated = false, retentionMs = day, transitMs = 300_000, retryAfterSeconds = 2 } = {},
): Shop {
  const store = memoryServerStore({ clock })
  const effects = new Map<string, number>()
  let mode: Mode = 'at_once'

  const happens = (key: string): void => void effects.set(key, (effects.get(key) ?? 0) + 1)
  const idOf = (key: string): KeyId => ({ tenant: 'shop', principal: 'someone', operation, key })

  const handler = idempotent({
    store,
    operation,
    scope: () => ({ tenant: 'shop', principal: 'someone' }),
    retentionMs,
    transitMs,
    keysUrl: '/keys',
    report: () => {},
    execute({ transaction, key, body }): ExecuteResult {
      const item = body.kind === 'json' ? (body.value as { item?: unknown }).item : null
      if (mode === 'refuses' || item === soldOut) return refuse(422, { code: 'out_of_stock' })
      if (mode === 'as_task') return accepted({ retryAfterSeconds })
      transaction.onCommit(() => happens(key))
      return json(201, { id: key })
    },
  })
  const keys = idempotencyRoutes({ keysUrl: '/keys', operations: [handler] })

  return {
    store,
    effects,
    total: () => [...effects.values()].reduce((sum, count) => sum + count, 0),
    take(next) {
      mode = next
    },
    async finish(key, status = 201) {
      const answer = status < 400 ? json(status, { id: key }) : refuse(status, { code: 'out_of_stock' })
      const ended = await complete(store, idOf(key), answer)
      if (ended && status < 400) happens(key)
      return ended
    },
    tell: (key, status, seconds = retryAfterSeconds) =>
      tellTask(store, idOf(key), { status, result: null, error: null, retryAfterSeconds: seconds }),
    answer: async (_call, request) => {
      // Forgets as early as it may.
      await store.reap()
      const response = (await keys(request.clone())) ?? (await handler(request.clone()))
      if (dated) response.headers.set('date', formatHttpDate(clock.now()))
      return response
    },
  }
}

/** The shop answers writes with `writes`, and everything else itself. */
export function onWrites(writes: Answer, otherwise: Answer): Answer {
  return (call, request) => (call.method === 'POST' ? writes : otherwise)(call, request)
}
