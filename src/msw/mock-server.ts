/**
 * A server in memory that keeps the protocol, and breaks where a test says. It runs the real server kit, the same
 * `decide` included, so that it cannot drift from it.
 */
import { ConfigError } from '../errors.ts'
import { systemClock } from '../platform/clock.ts'
import type { Clock } from '../ports.ts'
import { type CorsOptions, cors } from '../server/cors.ts'
import type { MemoryServerStore, MemoryTransaction } from '../server/memory.ts'
import type { IdempotentOptions } from '../server/options.ts'
import { type Report, reportToConsole } from '../server/report.ts'
import { type Answer, type Refusal, refuse } from '../server/results.ts'
import type { KeyId } from '../server/store.ts'
import { hasCode } from '../server/tasks/errors.ts'
import { workSettings } from '../server/tasks/options.ts'
import { type AcceptedWork, acceptedWork } from './accepted-work.ts'
import { connectionsOn } from './connections.ts'
import { kitHandler } from './kit.ts'
import { connectionRefused, NetworkError } from './network-error.ts'
import { defaultOperations, type MockOperation, type MockOrder } from './operations.ts'
import { isOrderRoute, orderRoutes } from './order-routes.ts'
import { type LoggedRequest, newEntry } from './request-log.ts'
import { anonymous } from './scopes.ts'
import { type Faults, scriptBook } from './scripts.ts'
import { type Service, serve } from './serve.ts'
import { isServed, namedOperations, placeOf, targetFinder } from './targets.ts'
import { handlersOf, type MockWorker, type MockWorkerOptions, mockWorker } from './worker.ts'
import { type Effect, newWorld, type World } from './world.ts'

/** Options of {@link createMockServer}. */
export interface MockServerOptions {
  /** Time; nothing here looks at any other clock. Default: the system's. Tests hand in `virtualClock()`. */
  readonly clock?: Pick<Clock, 'now' | 'timer'> & Partial<Clock>
  /** Where the server is: the paths below count from here. Default `https://api.test`. */
  readonly baseUrl?: string | URL
  /** Where look-up and void are: the client's `keysUrl`. Default `/keys`. */
  readonly keysPath?: string
  /** Operations by name, which equals the client's. Default: `orders.create`, `POST /orders`. */
  readonly operations?: Readonly<Record<string, MockOperation>>
  /**
   * Answers what is no operation and no question about a key; null for 404. `path` is below `baseUrl`. For
   * `server.fetch` only: with MSW, other handlers do that. Default: the orders, at `GET /orders` and `GET /orders/{id}`.
   */
  readonly routes?: (request: Request, path: string) => Response | null | Promise<Response | null>
  /** How long a key is remembered, ms. Default 24 hours. */
  readonly retentionMs?: number
  /** Longest time from the computing of an age to the look at the key, ms. Default 5 minutes. */
  readonly transitMs?: number
  /** How much longer than the retention a row lives, ms; more than `transitMs`. Default 1 hour. */
  readonly graceMs?: number
  /** Whose request it is, see `bearerScope`; a Response (401) refuses it. Default: everybody is the same. */
  readonly scope?: IdempotentOptions<MemoryTransaction>['scope']
  /** How workers do accepted work. Default: `startWorker`'s, but without chance: each wait is the whole back-off. */
  readonly worker?: MockWorkerOptions
  /** CORS lines for pages on other origins, as the kit's `cors` puts them. Default: none, and no answer to a preflight. */
  readonly cors?: CorsOptions
  /** From the sending to the answer, half each way, ms. Default 0. */
  readonly latencyMs?: number
  /** Told of what an operator would be told. Default: mistakes in the mocked operations are one line on the console. */
  readonly report?: Report
}

/** Counts what was really done. */
export interface Effects {
  readonly total: number
  forKey(key: string): number
  forOperation(name: string): number
  /** Oldest first. */
  list(): readonly Effect[]
}

/** A mocked server; see {@link createMockServer}. */
export interface MockServer {
  /** Origin and path, without a slash at the end: the client's `baseUrl`. */
  readonly baseUrl: string
  /** Absolute: the client's `keysUrl`. */
  readonly keysUrl: string
  /**
   * One request, through its fault and the server. A drop-in for `fetch`, and a transport for the client. It never
   * follows redirects. When the client aborts, it learns that at once, and the server goes on.
   *
   * @throws TypeError as fetch does, when the connection breaks or the mock is closed.
   * @throws what the request's signal was aborted with.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>
  /**
   * True for a request to an operation, to anything below `keysUrl`, or to a route that the mock has by default; and for
   * a preflight of these, where the mock has CORS lines.
   */
  serves(request: Request): boolean
  /** Scripts of what goes wrong. */
  readonly faults: Faults
  /** Committed business executions: work that was accepted counts when it has succeeded. */
  readonly effects: Effects
  /** Orders of the default operation, and those that others created. Committed ones only, oldest first. */
  readonly orders: readonly MockOrder[]
  /** Everything that was asked, in order of sending. */
  readonly requests: readonly LoggedRequest[]
  /** The key rows, oldest first. */
  readonly keys: ReturnType<MemoryServerStore['rows']>
  /**
   * The store of the kit, for what the kit does with one: `unknownTasks`, `settle` and `resume` for a person, `reap`. What
   * `expire` says is not in it. A new one after `reset`.
   */
  readonly store: MemoryServerStore
  /** From now on this key counts as older than the retention and its row as gone: every request with it is refused as expired. */
  expire(key: string): void
  /**
   * Finishes accepted work: the monitor says `succeeded` from now on (or `failed`, for a refusal).
   *
   * @param answer what came of it. Default, for work that the fault `accepted` began: what the operation gives now.
   * @returns false where there is no unfinished work under this key.
   * @throws ConfigError where no answer is given and none can be made.
   */
  complete(key: string, answer?: Answer | Refusal): Promise<boolean>
  /**
   * Ends accepted work without an effect: the monitor says `failed` from now on.
   *
   * @param status of the answer that the monitor shows, 400 to 599. Default 422.
   * @param value its JSON body. Default: a problem document.
   * @returns false where there is no unfinished work under this key.
   */
  fail(key: string, status?: number, value?: unknown): Promise<boolean>
  /** Breaks every connection: whoever waits gets a network error, and what has not been committed is rolled back. */
  disconnect(): void
  /** Starts afresh: no keys, work, orders, effects, log entries and scripts; breaks every connection. */
  reset(): void
  /** `disconnect`, refuses connections from now on, and ends the workers. Nothing of the mock keeps the process alive then. */
  close(): void
}

/**
 * Creates a mocked server. It needs neither MSW nor a network: hand its `fetch` to the client, or mount it with
 * `handlers`.
 *
 * With a virtual clock, delays and latency pass when the test says so: `await clock.advance(1000)`. Without, fake
 * timers work as they do for any `setTimeout`: `await vi.advanceTimersByTimeAsync(1000)`, the asynchronous one, because
 * what follows from a timer takes some ticks.
 *
 * @throws ConfigError for a wrong option.
 * @example
 * ```ts
 * import { samekey } from 'samekey/dialects'
 * import { createFetch } from 'samekey/fetch'
 * import { memoryStore } from 'samekey/memory'
 * import { commitThenDrop, createMockServer } from 'samekey/msw'
 *
 * const mock = createMockServer()
 * const { baseUrl, keysUrl, fetch } = mock
 * const operations = { 'orders.create': { match: (request: { method: string }) => request.method === 'POST' } }
 * const anonymous = true
 * const store = memoryStore()
 * const safeFetch = createFetch({ dialect: samekey, baseUrl, keysUrl, operations, anonymous, store, fetch })
 *
 * mock.faults.next(commitThenDrop())
 * const response = await safeFetch('/orders', { method: 'POST', body: '{"item":"tea"}', intent: 'checkout:42' })
 * console.log(response.status, mock.effects.total) // 201 1
 * ```
 */
export function createMockServer(options: MockServerOptions = {}): MockServer {
  const { latencyMs = 0, routes } = options
  const clock = wholeClock(options.clock ?? systemClock)
  if (!(latencyMs >= 0)) throw new ConfigError('latencyMs', `must be at least 0, not ${latencyMs}`)
  const place = placeOf(options.baseUrl ?? 'https://api.test', options.keysPath ?? '/keys')
  const baseUrl = place.origin + place.pathname
  const operations = namedOperations(options.operations ?? defaultOperations, place)
  const service: Service = {
    clock,
    latencyMs,
    place,
    operations,
    kit: {
      scope: options.scope ?? anonymous,
      keysUrl: place.keysPathname,
      retention: retentionOf(options),
      report: unlessBroken(options.report ?? reportMistakes),
    },
    withCors: options.cors === undefined ? (handler) => handler : cors(options.cors),
    routes: routes ?? ((request, path, { orders }) => orderRoutes(request, path, orders)),
  }
  const targetOf = targetFinder(place, operations)
  const scripts = scriptBook(operations.map(({ name }) => name))
  const connections = connectionsOn(clock)
  let closed = false
  let { world, work, worker } = begin()

  function begin(): { world: World; work: AcceptedWork; worker: MockWorker } {
    const world = newWorld(clock)
    const { worker = {} } = options
    const fateOf = (id: KeyId) => scripts.take(aboutWork(world, id))?.stages.worker ?? null
    const { report } = service.kit
    return {
      world,
      work: acceptedWork(world),
      worker: mockWorker({ world, operations, clock, options: worker, report, fateOf }),
    }
  }

  // Wrong options are found now, not at the first request.
  for (const operation of operations) {
    kitHandler(service.kit, world, work, operation, { stages: {}, pause: () => Promise.resolve(), executing() {} })
  }
  const handlers = handlersOf(world, operations)
  const idle = { 'no work': () => ({ status: 204 }) }
  workSettings({ ...options.worker, store: world.store, work: Object.keys(handlers).length === 0 ? idle : handlers })

  async function serverFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const wanted = input instanceof Request ? input : new URL(input, `${baseUrl}/`)
    const request = wanted instanceof Request && init === undefined ? wanted : new Request(wanted, init)
    request.signal.throwIfAborted()
    if (closed) throw connectionRefused()
    // All of this in one tick, so that requests have their faults in the order in which they were sent.
    const target = targetOf(request)
    const fault = scripts.take({
      kind: target.kind,
      key: target.key,
      intent: target.key === null ? null : world.intentOf(target.key),
      operation: target.operation?.name ?? null,
    })
    const stages = fault?.stages ?? {}
    const entry = newEntry(request, target, fault, clock.now())
    world.log.push(entry)
    const connection = connections.open(request.signal)
    const serving = serve(service, { request, target, stages, entry, connection, world, work })
    // The client may be gone by the time that the server fails.
    serving.catch(() => {})
    let stalls = false
    try {
      const response = await Promise.race([connection.lost, serving])
      stalls = stages.answer === 'stall'
      entry.delivered = stalls || stages.answer === 'cut' ? 'cut' : 'whole'
      return response
    } catch (error) {
      entry.delivered = request.signal.aborted ? 'aborted' : stages.refused ? 'refused' : 'lost'
      throw error
    } finally {
      // A body that stalls still has somebody waiting for it.
      if (!stalls) connection.release()
    }
  }

  return {
    baseUrl,
    keysUrl: place.origin + place.keysPathname,
    fetch: serverFetch,

    serves(request) {
      if (request.method === 'OPTIONS' && options.cors === undefined) return false
      if (isServed(place, operations, request)) return true
      const { path } = targetOf(request)
      return path !== null && routes === undefined && isOrderRoute(request, path)
    },

    faults: scripts.faults,
    effects: effectsOf(() => world.effects),
    get orders() {
      return [...world.orders]
    },
    get requests() {
      return [...world.log]
    },
    get store() {
      return world.store
    },
    get keys() {
      return world.store.rows().flatMap(({ row, ...id }) => {
        const shown = world.shown(id, row)
        return shown === null ? [] : [{ ...id, row: shown }]
      })
    },

    expire: (key) => void world.expired.add(key),
    complete: (key, answer) => work.finish(key, answer),
    fail: (key, status = 422, value = { title: 'The work failed for good.', code: 'work_failed' }) =>
      work.finish(key, refuse(status, value)),

    disconnect: () => connections.closeAll(),
    reset() {
      connections.closeAll()
      worker.stop()
      scripts.faults.clear()
      ;({ world, work, worker } = begin())
    },
    close() {
      closed = true
      connections.closeAll()
      worker.stop()
    },
  }
}

function retentionOf({ retentionMs, transitMs, graceMs }: MockServerOptions): Service['kit']['retention'] {
  return {
    ...(retentionMs !== undefined && { retentionMs }),
    ...(transitMs !== undefined && { transitMs }),
    ...(graceMs !== undefined && { graceMs }),
  }
}

/** Some clocks that tests make have no second reading; theirs do not jump either. */
function wholeClock(clock: NonNullable<MockServerOptions['clock']>): Clock {
  return {
    now: () => clock.now(),
    timer: (ms, run, hold) => clock.timer(ms, run, hold),
    monotonic: () => clock.monotonic?.() ?? clock.now(),
  }
}

function aboutWork(world: World, { operation, key }: KeyId): Parameters<ReturnType<typeof scriptBook>['take']>[0] {
  return { kind: 'work', key, intent: world.intentOf(key), operation }
}

/** Most of what goes wrong here is scripted; what the operations do wrong is not. */
const reportMistakes: Report = (event) => {
  const { kind, error } = event
  // A call that broke off is what the worker is there for.
  const isMistake = error !== undefined && !hasCode(error, 'call_open') && !hasCode(error, 'call_undelivered')
  if (kind === 'executeFailed' || kind === 'entryFailed' || (kind === 'taskFailed' && isMistake)) reportToConsole(event)
}

/** A connection that the mock breaks in the middle of a transaction is nobody's mistake. */
function unlessBroken(report: Report): Report {
  return (event) => {
    if (!(event.error instanceof NetworkError)) report(event)
  }
}

function effectsOf(effects: () => readonly Effect[]): Effects {
  return {
    get total() {
      return effects().length
    },
    forKey: (key) => effects().filter((effect) => effect.key === key).length,
    forOperation: (name) => effects().filter((effect) => effect.operation === name).length,
    list: () => [...effects()],
  }
}
