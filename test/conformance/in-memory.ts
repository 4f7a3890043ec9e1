/** Benches without a database: the handler itself on rows in memory, the mock, and the mock behind MSW. */
import { setupServer } from 'msw/node'
import {
  createMockServer,
  type MockOperation,
  type MockServer,
  handlers as mswHandlers,
  workerDies,
  workerSleeps,
} from 'samekey/msw'
import { idempotencyRoutes, type MemoryTransaction, memoryServerStore } from 'samekey/server'
import { conformanceShop, type ServerBench, type ShopOperation, settled, virtualClock } from 'samekey/testing'
import { shopOnStore } from './bench.ts'
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

interface MemoryRows extends Rows<MemoryTransaction> {
  effects(): number
}

function memoryRows(): MemoryRows {
  let orders: { readonly id: number; readonly item: string }[] = []
  let lastId = 0
  let effects = 0
  return {
    async place(transaction, item) {
      lastId += 1
      const order = { id: lastId, item }
      transaction.onCommit(() => {
        orders.push(order)
        effects += 1
      })
      return lastId
    },
    async cancel(transaction, item) {
      transaction.onCommit(() => {
        orders = orders.filter((order) => order.item !== item)
        effects += 1
      })
    },
    count: async (item) => orders.filter((order) => order.item === item).length,
    effects: () => effects,
  }
}

/** The handlers in process, on `memoryServerStore`. */
export function memoryBench(): ServerBench {
  const clock = virtualClock()
  const store = memoryServerStore({ clock })
  const rows = memoryRows()
  const { handlers, withCors, ...abilities } = shopOnStore(store, rows, clock.now)
  const keys = idempotencyRoutes({ keysUrl: keysPath, operations: handlers.map(({ handler }) => handler) })
  const app = withCors(async (request) => {
    const { pathname } = new URL(request.url)
    const route = handlers.find(({ path, method }) => path === pathname && method === request.method)
    return route?.handler(request) ?? (await keys(request)) ?? new Response(null, { status: 404 })
  })
  return {
    ...abilities,
    fetch: async (path, init) => app(new Request(`https://shop.test${path}`, init)),
    effects: rows.effects,
    now: clock.now,
    async passMs(ms) {
      await clock.advance(ms)
      await store.reap()
    },
    close() {},
  }
}

/** Longer than any step waits for a sleeper. */
const SLEEP_MS = 7_200_000

interface MockBench {
  readonly mock: MockServer
  readonly bench: ServerBench
}

function mockShop(): MockBench {
  const clock = virtualClock()
  const { operations, ...abilities } = shopOver(memoryRows())
  const names = Object.keys(operations) as ShopOperation[]
  const mocked = names.map((name): [string, MockOperation] => [
    name,
    { ...operations[name], path: conformanceShop.operations[name] },
  ])
  const mock = createMockServer({
    clock,
    baseUrl: 'https://shop.test',
    keysPath,
    scope,
    retentionMs,
    transitMs,
    graceMs,
    cors: { origins: [origin] },
    worker: { leaseMs },
    operations: Object.fromEntries(mocked),
    report: () => {},
  })
  return {
    mock,
    bench: {
      ...abilities,
      fetch: (path, init) => mock.fetch(path, init),
      effects: () => mock.effects.total,
      now: clock.now,
      passMs: clock.advance,
      async work(fate) {
        if (fate === 'dies') mock.faults.work.next(workerDies())
        if (fate === 'sleeps') mock.faults.work.next(workerSleeps(SLEEP_MS))
        await clock.advance(0)
      },
      wake: () => clock.advance(SLEEP_MS),
      damage: (operation, key, caller) =>
        mock.store.begin({ waitMs: 0 }, async (unit) => {
          const id = identityOf(operation, key, caller)
          await unit.claim(id, { state: 'running', fingerprint: null, requestDigest: null, retentionMs, graceMs })
          return { commit: true, value: undefined }
        }),
      close: () => mock.close(),
    },
  }
}

/** The mock, asked directly. */
export const mockBench = (): ServerBench => mockShop().bench

/** The mock behind MSW, asked through the platform's `fetch`. */
export function mswBench(): ServerBench {
  const { mock, bench } = mockShop()
  const server = setupServer(...mswHandlers(mock))
  server.listen({ onUnhandledFrame: 'error' })
  let sent = 0

  /** MSW takes its time: time must not pass before all that was sent is there. */
  async function arrived(): Promise<void> {
    while (mock.requests.length < sent) await settled()
  }

  return {
    ...bench,
    fetch(path, init) {
      sent += 1
      return fetch(`https://shop.test${path}`, init)
    },
    async passMs(ms) {
      await arrived()
      await bench.passMs?.(ms)
    },
    close() {
      mock.close()
      server.close()
    },
  }
}
