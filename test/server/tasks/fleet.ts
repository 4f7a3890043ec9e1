import {
  accepted,
  type CallRow,
  type IdempotentOptions,
  type ServerEvent,
  type ServerStore,
  type Task,
  type TaskHandler,
  type TaskRow,
  type WorkOptions,
  workOnce,
} from 'samekey/server'
import { type VirtualClock, virtualClock } from 'samekey/testing'
import { gate, idOf, type Shop, shop, type World } from '../world.ts'

/** How long these workers take work for, ms. */
export const LEASE_MS = 30_000

/** A process that works, with clocks of its own: one that is not moved is frozen, or dead. */
export interface WorkerProcess<Transaction> {
  readonly clock: VirtualClock
  readonly events: ServerEvent[]
  kinds(): string[]
  /** One round with this handler. */
  round(handler: TaskHandler<Transaction>, part?: Partial<WorkOptions<Transaction>>): Promise<number>
}

export function workerProcess<Transaction>(
  world: World<Transaction>,
  store: ServerStore<Transaction> = world.store,
): WorkerProcess<Transaction> {
  const clock = virtualClock(world.now())
  const events: ServerEvent[] = []
  return {
    clock,
    events,
    kinds: () => events.map(({ kind }) => kind),
    round: (handler, part = {}) =>
      workOnce<Transaction>({
        store,
        work: { 'orders.create': handler },
        concurrency: 1,
        leaseMs: LEASE_MS,
        // As short as they can be: tests of waiting say so.
        retry: { baseMs: 1, capMs: 1 },
        clock,
        random: () => 1,
        report: (event) => events.push(event),
        ...part,
      }),
  }
}

/** A shop that accepts its orders as work; it can take them back. */
export function acceptingShop<Transaction>(
  world: World<Transaction>,
  part: Partial<IdempotentOptions<Transaction>> = {},
): Shop {
  return shop(world, {
    execute: ({ body }) => accepted({ work: body.kind === 'json' ? body.value : null }),
    onVoid: () => {},
    ...part,
  })
}

/** What the task is to place. */
export function itemOf<Transaction>({ work }: Task<Transaction>): string {
  return (work as { item: string }).item
}

/** A handler that is killed in its first execution: it never comes back by itself. `wake` lets the corpse go on. */
export function killable<Transaction>(before: TaskHandler<Transaction>): {
  readonly handler: TaskHandler<Transaction>
  /** Resolves when it is as far as it gets. */
  readonly reached: Promise<void>
  /** Resolves when the corpse is through, although nobody waits for it any more. */
  readonly through: Promise<void>
  wake(): void
} {
  const reached = gate()
  const woken = gate()
  const through = gate()
  return {
    async handler(task) {
      reached.open()
      await woken.opened
      try {
        return await before(task)
      } finally {
        through.open()
      }
    },
    reached: reached.opened,
    through: through.opened,
    wake: woken.open,
  }
}

/** The committed row of the work under a key. */
export function taskRow<Transaction>({ store }: World<Transaction>, key: string): Promise<TaskRow | null> {
  return store.begin<TaskRow | null>({ waitMs: 1000 }, async (unit) => {
    const locked = await unit.lockTask(idOf(key))
    return { commit: false, value: locked.seen === 'task' ? locked.row : null }
  })
}

/** A committed call of the work under a key. */
export function callRow<Transaction>(
  { store }: World<Transaction>,
  key: string,
  name: string,
): Promise<CallRow | null> {
  return store.begin<CallRow | null>({ waitMs: 1000 }, async (unit) => {
    await unit.lockTask(idOf(key))
    return { commit: false, value: await unit.readCall(idOf(key), name) }
  })
}

/** The same store, of which a test breaks what it likes. */
export function withStore<Transaction>(
  store: ServerStore<Transaction>,
  part: Partial<ServerStore<Transaction>>,
): ServerStore<Transaction> {
  return {
    begin: (options, work) => store.begin(options, work),
    find: (id) => store.find(id),
    claimTasks: (options) => store.claimTasks(options),
    unknownTasks: (limit) => store.unknownTasks(limit),
    onTask: (wake) => store.onTask(wake),
    reap: (limit) => store.reap(limit),
    ...part,
  }
}

/** A service behind us: what took effect, and who asked for it how often. */
export interface PaymentService {
  /** Operation ids of what took effect, one per effect. */
  readonly charges: string[]
  /** Every request that arrived. */
  readonly requests: { readonly operationId: string; readonly request: unknown }[]
  /** It does the same id once. */
  chargeOnce(operationId: string, request: unknown): { readonly charge: number }
  /** It does whatever it is told. */
  charge(operationId: string, request: unknown): { readonly charge: number }
  happened(operationId: string): boolean
}

export function paymentService(): PaymentService {
  const charges: string[] = []
  const requests: { operationId: string; request: unknown }[] = []
  const service: PaymentService = {
    charges,
    requests,
    charge(operationId, request) {
      requests.push({ operationId, request })
      charges.push(operationId)
      return { charge: charges.length }
    },
    chargeOnce(operationId, request) {
      if (!charges.includes(operationId)) return service.charge(operationId, request)
      requests.push({ operationId, request })
      return { charge: charges.indexOf(operationId) + 1 }
    },
    happened: (operationId) => charges.includes(operationId),
  }
  return service
}

/** Never resolves: a connection that died, or a process. */
export const never = <T>(): Promise<T> => new Promise<T>(() => {})

/** The status that a monitor shows, and all of it. */
export async function monitorOf(
  { lookup }: Shop,
  key: string,
): Promise<Record<string, unknown> & { readonly status: unknown }> {
  return (await (await lookup(key)).json()) as Record<string, unknown> & { readonly status: unknown }
}
