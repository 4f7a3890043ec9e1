/** What the mocked server can do: operations like those of a real one, and one that is there by default. */
import type { MemoryTransaction } from '../server/memory.ts'
import type { ExecuteContext, IdempotentOptions } from '../server/options.ts'
import { type ExecuteResult, json } from '../server/results.ts'
import type { TaskEnd } from '../server/tasks/ends.ts'
import type { Task } from '../server/tasks/task.ts'
import type { PathParams, PathPattern } from './path-pattern.ts'

/** An order that was created: what a test counts in the end. */
export interface MockOrder {
  /** Counts from 1. An order that was rolled back leaves a gap, as database sequences do. */
  readonly id: number
  readonly operation: string
  readonly key: string
  readonly principal: string
  /** As it was given to `createOrder`. */
  readonly value: unknown
}

/** What `execute` of a mocked operation gets. */
export interface MockCall extends ExecuteContext<MemoryTransaction> {
  /** What the names in `path` stand for, decoded. */
  readonly params: PathParams
  /** Adds a row to `server.orders` if the transaction commits; its id is known at once. */
  createOrder(value: unknown): MockOrder
}

/** What `work` of a mocked operation gets besides the task. */
export interface MockWork {
  /** Adds a row to `server.orders` if the transaction of `finish` or of a step commits; its id is known at once. */
  createOrder(transaction: MemoryTransaction, value: unknown): MockOrder
}

/** One operation of the mocked server; what is left out is the server kit's default. */
export interface MockOperation
  extends Pick<
    IdempotentOptions<MemoryTransaction>,
    'authorize' | 'fingerprint' | 'limits' | 'retentionMs' | 'transitMs' | 'graceMs' | 'onVoid' | 'reread'
  > {
  /** Default POST. */
  readonly method?: string
  /** Path below `baseUrl`: `/orders`, or `/orders/:id/refunds`. */
  readonly path: string
  /**
   * Does it, with the helpers of `samekey/server` (`json`, `refuse`, `decline`, `accepted`). State of your own belongs
   * into `transaction.onCommit`, or it stays when the transaction is rolled back. Default: creates an order of the
   * JSON body and answers 201.
   */
  readonly execute?: (call: MockCall) => ExecuteResult | Promise<ExecuteResult>
  /**
   * Does the work that `execute` queued with `accepted({ work })`: a handler as `startWorker` takes it, run on the mock's
   * clock by the kit's own worker. Default: none; the work waits for `server.complete`.
   */
  readonly work?: (
    task: Task<MemoryTransaction>,
    mock: MockWork,
  ) => TaskEnd<MemoryTransaction> | Promise<TaskEnd<MemoryTransaction>>
}

/** An operation with its pattern read. */
export interface NamedOperation {
  readonly name: string
  readonly method: string
  /** Takes the whole pathname, the base's included. */
  readonly params: PathPattern
  readonly options: MockOperation
}

/** `POST /orders`. */
export const defaultOperations: Readonly<Record<string, MockOperation>> = {
  'orders.create': { method: 'POST', path: '/orders' },
}

/** An order of whatever came as JSON: 201 with the same members and an id. */
export function placeOrder({ body, request, createOrder }: MockCall): ExecuteResult {
  const value = body.kind === 'json' ? body.value : null
  const order = createOrder(value)
  const shown = typeof value === 'object' && !Array.isArray(value) ? value : { value }
  return json(201, { id: order.id, ...shown }, { Location: `${new URL(request.url).pathname}/${order.id}` })
}
