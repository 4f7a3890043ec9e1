/** One of the servers: orders on the kit, and a log of what came in. */
import { createServer } from 'node:http'
import { flushCompileCache } from 'node:module'
import {
  accepted,
  type ExecuteContext,
  type IdempotentOptions,
  idempotencyRoutes,
  idempotent,
  json,
  refuse,
  type Scope,
} from 'samekey/server'
import { nodeHandler } from 'samekey/server/node'
import { type PgQueryable, postgresServerStore } from 'samekey/server/postgres'
import { listen, openPool, setting } from '../../examples/orders/program.ts'
import { logAnswer, logRequest, placeOrder, takeBack } from './tables.ts'
import { KEYS_PATH, type Order, type Work } from './words.ts'

const program = setting('PROGRAM_NAME')
const pool = openPool(program)

const common: Omit<IdempotentOptions<PgQueryable>, 'operation' | 'execute'> = {
  store: postgresServerStore(pool),
  keysUrl: KEYS_PATH,
  // What is between changes ports, and must not change what a request means.
  publicOrigin: 'https://soak.example',
  // Below the clients' time limit, or nobody would hear "in progress".
  limits: { waitMs: 500, voidWaitMs: 1000 },
  scope(request): Scope | Response {
    const account = /^Bearer (\w+)$/.exec(request.headers.get('authorization') ?? '')?.[1]
    return account === undefined ? new Response(null, { status: 401 }) : { tenant: 'soak', principal: account }
  },
}

async function place({ transaction, body, key, scope }: ExecuteContext<PgQueryable>): Promise<Work> {
  const order = (body.kind === 'json' ? body.value : null) as Order
  const orderId = await placeOrder(transaction, order, { key, account: scope.principal, madeBy: program })
  return { ...order, orderId }
}

const createOrder = idempotent({
  ...common,
  operation: 'orders.create',
  async execute(context) {
    const { kind, orderId, intent, dwellMs } = await place(context)
    // In the middle of the transaction: what dies or is voided here, is.
    await context.transaction.query('select pg_sleep($1)', [dwellMs / 1000])
    if (kind === 'refused') return refuse(422, { intent, reason: 'refused on purpose' })
    return json(201, { intent, orderId })
  },
})

const createLater = idempotent({
  ...common,
  operation: 'orders.later',
  execute: async (context) => accepted({ work: (await place(context)) satisfies Work, retryAfterSeconds: 1 }),
  onVoid: ({ transaction, work }) => takeBack(transaction, (work as Work).orderId),
})

const keys = idempotencyRoutes({ keysUrl: KEYS_PATH, operations: [createOrder, createLater] })

async function route(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (request.method === 'POST' && pathname === '/orders') return createOrder(request)
  if (request.method === 'POST' && pathname === '/later') return createLater(request)
  return (await keys(request)) ?? new Response(null, { status: 404 })
}

async function logged(request: Request): Promise<Response> {
  const { method, headers, url } = request
  const key = headers.get('idempotency-key') ?? decodeURIComponent(url.slice(url.lastIndexOf('/') + 1))
  const body = method === 'POST' ? await request.clone().text() : null
  const id = await logRequest(pool, { server: program, method, key, body })
  const response = await route(request)
  logAnswer(pool, id, response.status)
  return response
}

await listen(program, createServer(nodeHandler(logged)), 0)
// Otherwise written at an orderly end, which nobody here comes to.
flushCompileCache()
