/**
 * The shop: the real server kit on true time, with its faults. Effects are written down where they commit. Of the
 * simulation's own is only what stands around it: who is who, what is refused, which process dies.
 */
import {
  accepted,
  complete,
  decline,
  type ExecuteContext,
  type ExecuteResult,
  finish,
  type IdempotentHandler,
  idempotencyRoutes,
  idempotent,
  json,
  leaveUnknown,
  type MemoryTransaction,
  memoryServerStore,
  refuse,
  StoreUnavailableError,
  type Task,
  type TaskEnd,
  workOnce,
} from 'samekey/server'
import type { FingerprintRules } from '../../src/protocol/fingerprint.ts'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import { createOutside } from './outside.ts'
import type { Content, ServerFault, Setting, User, WorkerFault } from './schedule.ts'
import { times } from './schedule.ts'
import { spoken } from './speech.ts'
import type { Timeline } from './timeline.ts'
import type { Truth } from './truth.ts'
import { type WorkerProcess, workerProcess } from './worker-process.ts'

/** Request header by which the simulation tells an effect's key, whatever the dialect sends. No client sets or sees it. */
export const labelHeader = 'x-simulation-key'
/** Tells one delivery from another one of the same request. */
export const deliveryHeader = 'x-simulation-delivery'

/** Chooses one of the user's accounts. */
export const accountHeader = 'x-account'

/** Names of the operations. */
export const operations = { orders: 'orders.create', documents: 'documents.put' } as const

export interface Server {
  /** Answers; rejects when the process dies under it. */
  handle(request: Request): Promise<Response>
  /** For the next execution. */
  fault(fault: ServerFault): void
  workerFault(fault: WorkerFault): void
  /** May order, or not. */
  permit(user: User, allowed: boolean): void
  /** Tokens of this generation or later are taken. */
  expire(user: User): void
  /** The token that is good now. */
  token(user: User): string
  /** From now on requests are fingerprinted by other rules. */
  deploy(): void
  /** Every fault is over, and an operator settles what waits for one. */
  mend(): Promise<void>
}

/** What the simulation is told of, where it happens. */
export interface ServerWatch {
  /** About to execute: the key's row may be in the way, or gone. */
  executing(key: string): void
  /** The key is known from now on. */
  remembered(key: string): void
  /** Something was committed. */
  executed(): void
}

const noise = { report: () => {} }

export function createServer(setting: Setting, time: Timeline, truth: Truth, watch: ServerWatch): Server {
  const clock = time.server
  const store = memoryServerStore({ clock })
  const faults: ServerFault[] = []
  const workerFaults: WorkerFault[] = []
  const revoked = new Set<string>()
  const generations = new Map<string, number>()
  let working = 0
  let anonymousKeys = 0

  /** Deliveries whose process dies under them. */
  const dying = new Set<string>()
  /** The same store, with a database that is not there when told so. */
  const reachable: typeof store = {
    ...store,
    begin(options, run) {
      if (faults[0] !== 'unavailable') return store.begin(options, run)
      faults.shift()
      return Promise.reject(new StoreUnavailableError('The database is not there.'))
    },
  }

  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.timer(ms, resolve))
  const token = (user: User): string => `secret-${user}-${generations.get(user) ?? 0}`

  function authenticated(request: Request): { tenant: string; principal: string; tag: string } | Response {
    const given = request.headers.get('authorization')?.replace(/^Bearer /, '') ?? ''
    const [, user = ''] = given.split('-')
    if (given !== token(user as User)) return new Response(null, { status: 401 })
    return { tenant: request.headers.get(accountHeader) ?? 'shop', principal: user, tag: tagOf(user) }
  }

  async function execute({
    transaction,
    request,
    body,
    scope,
  }: ExecuteContext<MemoryTransaction>): Promise<ExecuteResult> {
    const key = request.headers.get(labelHeader) ?? ''
    watch.executing(key)
    const { intent, content } = (body.kind === 'json' ? body.value : {}) as { intent: string; content: Content }
    const fault = faults.shift()
    // Longer than an attempt waits: the next one meets it.
    if (fault === 'slow') await pause(times.attemptTimeout + 4000)
    if (fault === 'throws') throw new Error('The shop has a bug.')
    if (content === 'sold-out') return refuse(422, { code: 'out_of_stock' })
    if (content === 'nonsense') return decline(422, { code: 'nonsense' })
    if (content === 'broken') return refuse(500, { code: 'internal' })
    if (fault === 'accepts' && setting.dialect === 'samekey') {
      void pause(200).then(work)
      return accepted({ retryAfterSeconds: 3, work: { key, intent, content, user: scope.principal } })
    }
    transaction.onCommit(() => {
      truth.record({ key, intent, content, user: scope.principal })
      watch.executed()
      if (fault === 'crash-after-commit') dying.add(request.headers.get(deliveryHeader) ?? '')
    })
    if (fault === 'crash-before-commit') {
      dying.add(request.headers.get(deliveryHeader) ?? '')
      throw new Error('The process dies.')
    }
    return json(201, { key, intent, content })
  }

  const handlersBy = (fingerprint: FingerprintRules): IdempotentHandler[] =>
    Object.values(operations).map((operation) =>
      idempotent<MemoryTransaction>({
        store: reachable,
        operation,
        scope: authenticated,
        authorize: ({ scope }) => !revoked.has(scope.principal),
        // Servers of other dialects forget to the minute: the client's window is all that protects them.
        retentionMs: setting.dialect === 'samekey' ? times.retention : times.retention - times.transit - 1000,
        transitMs: times.transit,
        graceMs: setting.dialect === 'samekey' ? times.grace : times.transit + 1000,
        keysUrl: '/keys',
        fingerprint,
        onVoid: () => {},
        execute,
        ...noise,
      }),
    )
  // What comes with the simulation's own headers is no business of the fingerprint.
  const rules: FingerprintRules = { omit: [`header:${labelHeader}`, `header:${deliveryHeader}`] }
  let handlers = handlersBy(rules)
  const keys = idempotencyRoutes({ keysUrl: '/keys', operations: handlers })

  const outside = createOutside(truth, () => watch.executed())

  interface Work {
    readonly key: string
    readonly intent: string
    readonly content: string
    readonly user: string
  }

  async function doWork(task: Task<MemoryTransaction>, worker: WorkerProcess): Promise<TaskEnd<MemoryTransaction>> {
    const { key, intent, content, user } = task.work as Work
    const fault = workerFaults.shift()
    if (fault === 'dies') return worker.die()
    if (fault === 'sleeps') await worker.sleep(3 * times.workerLease)
    if (fault === 'fails') throw new Error('The worker has a bug.')
    if (fault === 'refuses') return refuse(422, { code: 'out_of_stock' })
    if (fault === 'leaves-unknown') return leaveUnknown()
    if (fault === 'dies-after-step') {
      await task.step(() => {})
      return worker.die()
    }
    if (intent.startsWith('pay-')) {
      const ofCall = fault === 'loses-call' || fault === 'dies-after-call' ? fault : undefined
      return outside.pay(task, { key, intent, content, user }, ofCall, worker.die)
    }
    return finish((transaction) => {
      transaction.onCommit(() => {
        truth.record({ key, intent, content, user })
        watch.executed()
      })
      return json(201, { key, intent, content })
    })
  }

  const hasWork = (): boolean =>
    store.rows().some(({ row }) => row.task?.status === 'processing' || row.task?.status === 'failed_retryable')

  /** One worker after another, until nothing is left to do. */
  async function work(): Promise<void> {
    if (working > 3) return
    working++
    try {
      // A worker that died holds its place only until its lease is over; then another one looks.
      const worker = workerProcess(clock)
      const handler = (task: Task<MemoryTransaction>): Promise<TaskEnd<MemoryTransaction>> => doWork(task, worker)
      const round = workOnce({
        store,
        work: { [operations.orders]: handler, [operations.documents]: handler },
        leaseMs: times.workerLease,
        retry: { baseMs: 1000, capMs: 20_000, maxAttempts: 6 },
        clock: worker.clock,
        random: () => 0.5,
        ...noise,
      })
      round.catch(() => {})
      await Promise.race([round, pause(times.workerLease)])
    } finally {
      working--
    }
    if (hasWork()) void pause(2000).then(work)
  }

  async function answer(request: Request): Promise<Response> {
    // Forgets as early as it may.
    while ((await store.reap()) > 0);
    const { pathname } = new URL(request.url)
    if (pathname === '/sign-in')
      return new Response('<p>Sign in, please.', { headers: { 'content-type': 'text/html' } })
    // A server that does not de-duplicate takes each request for a new one.
    if (setting.dialect === 'none') request.headers.set('idempotency-key', `unkeyed-${anonymousKeys++}`)
    const ofKey = await keys(request)
    if (ofKey !== null) return ofKey
    const [orders, documents] = handlers
    const handler = pathname.startsWith('/documents') ? documents : orders
    return handler === undefined ? new Response(null, { status: 404 }) : handler(request)
  }

  return {
    async handle(request) {
      const label = request.headers.get(labelHeader) ?? ''
      const delivery = request.headers.get(deliveryHeader) ?? ''
      const given = await answer(request)
      if (dying.delete(delivery)) throw new ProcessDied()
      if (setting.dialect !== 'none' && store.rows().some(({ key }) => key === label)) watch.remembered(label)
      const said = await spoken(setting.dialect, given)
      if (setting.dated) said.headers.set('date', formatHttpDate(clock.now()))
      return said
    },
    fault: (fault) => void faults.push(fault),
    workerFault: (fault) => void workerFaults.push(fault),
    permit(user, allowed) {
      if (allowed) revoked.delete(user)
      else revoked.add(user)
    },
    expire: (user) => void generations.set(user, (generations.get(user) ?? 0) + 1),
    token,
    deploy() {
      handlers = handlersBy({ ...rules, version: 'next', defaults: { '/priority': 'normal' } })
    },
    async mend() {
      faults.length = 0
      workerFaults.length = 0
      revoked.clear()
      for (const { row, ...id } of store.rows()) {
        if (row.task?.status !== 'unknown') continue
        // The operator looks into the books, those of the service behind it included.
        const happened = truth.count(id.key) > 0
        await complete(store, id, happened ? json(201, { key: id.key }) : refuse(422, { code: 'given_up' }))
      }
      if (hasWork()) await work()
    },
  }
}

/** Tag of an account, by the rule that client and server share (section 16). */
export function tagOf(user: string): string {
  return `tag-${user}`
}

/** The process is gone: whoever asked sees a broken connection. */
class ProcessDied extends Error {
  override readonly name = 'ProcessDied'
}
