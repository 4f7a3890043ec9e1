/**
 * The shop, as a process of its own.
 *
 *     POST /sessions         {"account":"ann"} gives a token
 *     POST /orders           on account: 201, or a refusal that is remembered
 *     POST /paid-orders      paid at once: 202 with a monitor, see worker.ts
 *     GET  /orders           the account's orders
 *     GET  /idempotency-keys/{operation}/{key}   what became of it; DELETE: it shall never happen
 *     POST /legacy/orders    an older address, which knows nothing of keys
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { cors, idempotencyRoutes, type Scope, startReaper } from 'samekey/server'
import { nodeHandler } from 'samekey/server/node'
import { postgresServerStore } from 'samekey/server/postgres'
import { legacyOrder } from './legacy.ts'
import { operationsOf } from './operations.ts'
import { atTheEnd, closed, listen, numberSetting, openPool, setting } from './program.ts'
import { accountOf, signIn } from './sessions.ts'
import { prepare } from './tables.ts'

const program = setting('PROGRAM_NAME', 'shop')
const pool = openPool(program)
await prepare(pool)
const store = postgresServerStore(pool)
const keysUrl = '/idempotency-keys'

const { createOrder, createPaidOrder } = operationsOf({
  store,
  keysUrl,
  // The address that customers use: what is between, such as a proxy, must not change what a request means.
  publicOrigin: setting('PUBLIC_ORIGIN', 'http://localhost:3000'),
  retentionMs: numberSetting('RETENTION_MS', 86_400_000),
  transitMs: numberSetting('TRANSIT_MS', 300_000),
  graceMs: numberSetting('GRACE_MS', 3_600_000),
  scope: async (request): Promise<Scope | Response> => {
    const principal = await accountOf(pool, request)
    return principal === null ? new Response('Who are you?', { status: 401 }) : { tenant: 'shop', principal }
  },
})
const keys = idempotencyRoutes({ keysUrl, operations: [createOrder, createPaidOrder] })

async function route(request: Request): Promise<Response> {
  switch (`${request.method} ${new URL(request.url).pathname}`) {
    case 'POST /orders':
      return createOrder(withKey(request))
    case 'POST /paid-orders':
      return createPaidOrder(withKey(request))
    case 'GET /orders':
      return ordersOf(await accountOf(pool, request))
    case 'POST /legacy/orders':
      return legacyOrder(pool, await accountOf(pool, request), request)
    case 'POST /sessions':
      return newSession(request)
    default:
      return (await keys(request)) ?? new Response('There is nothing here.', { status: 404 })
  }
}

/**
 * Clients that know nothing of keys are served all the same while they are being changed: each of their requests is one
 * of its kind, so it gets a key of its own and takes the same way. Without this line they would hear 400.
 */
function withKey(request: Request): Request {
  if (request.headers.has('idempotency-key')) return request
  const headers = new Headers(request.headers)
  headers.set('idempotency-key', randomUUID())
  return new Request(request, { headers })
}

async function newSession(request: Request): Promise<Response> {
  const { account } = (await request.json()) as { account?: unknown }
  if (typeof account !== 'string' || account === '') return new Response('Whose session?', { status: 400 })
  return Response.json({ token: await signIn(pool, account) }, { status: 201 })
}

async function ordersOf(account: string | null): Promise<Response> {
  if (account === null) return new Response('Who are you?', { status: 401 })
  const { rows } = await pool.query(
    'select id, reference, currency, total, payment, status from orders where account = $1 order by orders.id',
    [account],
  )
  return Response.json(rows)
}

// Keys are forgotten some time after their retention; in batches, so that no statement runs long.
const reaper = startReaper(store, { everyMs: numberSetting('REAP_EVERY_MS', 60_000) })

const withCors = cors({ origins: [setting('PAGES_ORIGIN', 'http://localhost:5173')] })
const server = createServer(nodeHandler(withCors(route)))
await listen(program, server, 3000)
atTheEnd(
  () => closed(server),
  () => reaper.stop(),
  () => pool.end(),
)
