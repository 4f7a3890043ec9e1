/**
 * The shop: a process of its own. `POST /orders` runs in the kit's transaction, `POST /orders/later` answers 202 and
 * charges afterwards, and `POST /legacy/orders` knows nothing of keys.
 */
import { randomUUID } from 'node:crypto'
import { type ServerType, serve } from '@hono/node-server'
import { Hono } from 'hono'
import { Pool } from 'pg'
import { accepted, type ExecuteContext, idempotencyRoutes, idempotent, json, type Scope } from 'samekey/server'
import { type PgQueryable, postgresServerStore } from 'samekey/server/postgres'
import { jobOf, tell } from './child.ts'
import { chargeLater } from './later.ts'
import { type Order, orderOf } from './orders.ts'
import { acceptOrder, placeOrder } from './tables.ts'
import { KEYS_PATH, SHORT_RETENTION_MS, TRANSIT_MS } from './terms.ts'

/** What the server is told at its start. */
export interface ServerJob {
  readonly databaseUrl: string
  /** 0 for any free port. */
  readonly port: number
  /** Shown in PostgreSQL's list of connections. */
  readonly name: string
}

const job = await jobOf<ServerJob>()
const pool = new Pool({
  connectionString: job.databaseUrl,
  application_name: job.name,
  max: 40,
  connectionTimeoutMillis: 5000,
})
pool.on('error', () => {})
const store = postgresServerStore(pool)

/** Who asks: this shop's tokens are the account names themselves. */
function accountOf(request: Request): string | null {
  return /^Bearer (\w+)$/.exec(request.headers.get('authorization') ?? '')?.[1] ?? null
}

function scope(request: Request): Scope | Response {
  const principal = accountOf(request)
  return principal === null ? new Response('Who are you?', { status: 401 }) : { tenant: 'shop', principal }
}

/** The address that customers use: what is between, such as a proxy, must not change what a request means. */
const common = { store, scope, publicOrigin: 'https://shop.example', keysUrl: KEYS_PATH }

async function place({ transaction, body, scope }: ExecuteContext<PgQueryable>) {
  const placed = await placeOrder(transaction, scope.principal, orderIn(body))
  return json(201, placed, { Location: `/orders/${placed.id}` })
}

function orderIn(body: ExecuteContext<PgQueryable>['body']): Order {
  return orderOf(body.kind === 'json' ? body.value : null)
}

const createOrder = idempotent({ ...common, operation: 'orders.create', execute: place })

/** The same, for a server that forgets soon: keys are remembered for some seconds only. */
const createOrderForgetfully = idempotent({
  ...common,
  operation: 'orders.create-forgetfully',
  retentionMs: SHORT_RETENTION_MS,
  transitMs: TRANSIT_MS,
  graceMs: 2 * TRANSIT_MS,
  execute: place,
})

const createOrderLater = idempotent({
  ...common,
  operation: 'orders.create-later',
  execute: async ({ transaction, body, scope, operation, key }) => {
    await acceptOrder(transaction, scope.principal, orderIn(body), JSON.stringify({ ...scope, operation, key }))
    return accepted({ retryAfterSeconds: 1 })
  },
})

/**
 * Clients that know nothing of keys are served all the same: each of their requests is one of its kind, so it gets a
 * key of its own and takes the same way.
 */
function keyed(request: Request): Request {
  if (request.headers.has('idempotency-key')) return request
  const headers = new Headers(request.headers)
  headers.set('idempotency-key', randomUUID())
  return new Request(request, { headers })
}

const keys = idempotencyRoutes({
  keysUrl: KEYS_PATH,
  operations: [createOrder, createOrderForgetfully, createOrderLater],
})

const app = new Hono()
  .post('/orders', (c) => createOrder(keyed(c.req.raw)))
  .post('/orders/forgetful', (c) => createOrderForgetfully(keyed(c.req.raw)))
  .post('/orders/later', (c) => createOrderLater(keyed(c.req.raw)))
  .post('/legacy/orders', async (c) => {
    const account = accountOf(c.req.raw)
    if (account === null) return c.text('Who are you?', 401)
    return c.json(await placeOrder(pool, account, orderOf(await c.req.json())), 201)
  })
  .all(`${KEYS_PATH}/*`, async (c) => (await keys(c.req.raw)) ?? c.notFound())

chargeLater(pool, store)
const server: ServerType = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: job.port }, ({ port }) =>
  tell({ type: 'listening', port }),
)
server.on('error', (error: Error) => {
  throw error
})
