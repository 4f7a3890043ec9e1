/** The shop on a store of the kit, as a bench; what serves it over HTTP is somebody else's. */
import { cors, type Handler, type IdempotentHandler, idempotent, type ServerStore, workOnce } from 'samekey/server'
import { conformanceShop, type ServerBench, type ShopOperation } from 'samekey/testing'
import { gate } from '../server/world.ts'
import {
  graceMs,
  identityOf,
  keysPath,
  leaseMs,
  origin,
  type Rows,
  retentionMs,
  scope,
  shopOver,
  transitMs,
} from './shop.ts'

/** A bench without its way to it. */
export type ShopOnStore = Omit<ServerBench, 'fetch' | 'effects' | 'close' | 'now' | 'passMs'> & {
  readonly handlers: readonly { readonly path: string; readonly method: 'POST'; readonly handler: IdempotentHandler }[]
  readonly withCors: (handler: Handler) => Handler
}

/** @param now epoch ms; time for workers. Their leases are never renewed: it passes in leaps. */
export function shopOnStore<Transaction>(
  store: ServerStore<Transaction>,
  rows: Rows<Transaction>,
  now: () => number,
): ShopOnStore {
  const { operations, ...abilities } = shopOver(rows)
  const names = Object.keys(operations) as ShopOperation[]
  const handlers = names.map((operation) => {
    const { work: _, ...options } = operations[operation]
    const handler = idempotent<Transaction>({
      ...options,
      store,
      operation,
      scope,
      keysUrl: keysPath,
      retentionMs,
      transitMs,
      graceMs,
      report: () => {},
    })
    return { path: conformanceShop.operations[operation], method: 'POST', handler } as const
  })
  const work = Object.fromEntries(names.map((name) => [name, operations[name].work]))
  let sleepers: { wake(): void; readonly ended: Promise<unknown> }[] = []

  function round(at: () => number, from = store): Promise<number> {
    const clock = { now: at, monotonic: at, timer: () => ({ cancel() {} }) }
    return workOnce({ store: from, work, clock, leaseMs, concurrency: 100, random: () => 1, report: () => {} })
  }

  /** It has taken the work and stands still; its clocks too, so that only the fence in the store stops it. */
  async function sleep(): Promise<void> {
    const at = now()
    const asleep = gate()
    const { opened, open } = gate()
    const ended = round(() => at, {
      ...store,
      async claimTasks(options) {
        const taken = await store.claimTasks(options)
        asleep.open()
        await opened
        return taken
      },
    })
    sleepers.push({ wake: open, ended })
    await asleep.opened
  }

  return {
    ...abilities,
    handlers,
    withCors: cors({ origins: [origin] }),
    async work(fate) {
      if (fate === 'sleeps') await sleep()
      // All that is left of a worker that died at once.
      else if (fate === 'dies') await store.claimTasks({ operations: names, limit: 100, leaseMs })
      else await round(now)
    },
    async wake() {
      const woken = sleepers
      sleepers = []
      for (const { wake } of woken) wake()
      await Promise.all(woken.map(({ ended }) => ended))
    },
    damage: (operation, key, caller) =>
      store.begin({ waitMs: 0 }, async (unit) => {
        const id = identityOf(operation, key, caller)
        await unit.claim(id, { state: 'running', fingerprint: null, requestDigest: null, retentionMs, graceMs })
        return { commit: true, value: undefined }
      }),
  }
}
