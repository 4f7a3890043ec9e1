/**
 * Shows: the server's half on PostgreSQL. The key, the order and the answer commit in one transaction, so that an order
 * cannot be made twice and a lost answer can be given again. `idempotencyRoutes` adds look-up and void by key.
 *
 *     DATABASE_URL=postgres://localhost/shop npx tsx examples/server.ts
 *     curl -i localhost:3000/orders -H 'authorization: ann' -H 'idempotency-key: k-1' \
 *       -H 'content-type: application/json' -d '{"sku":"tea","quantity":3}'
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { cors, decline, idempotencyRoutes, idempotent, json, refuse, startReaper } from 'samekey/server'
import { nodeHandler } from 'samekey/server/node'
import { migrate, postgresServerStore } from 'samekey/server/postgres'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, connectionTimeoutMillis: 5000 })
pool.on('error', (error) => console.error('an idle connection was lost:', error.message))
await migrate(pool)
await pool.query('create table if not exists orders (id serial primary key, sku text not null, quantity int not null)')

const store = postgresServerStore(pool)
const keysUrl = '/idempotency-keys'

const createOrder = idempotent({
  store,
  operation: 'orders.create',
  keysUrl,
  // Stands for real authentication: tenant and principal never come from the request's own fields.
  scope: (request) => {
    const user = request.headers.get('authorization')
    return user === null ? new Response(null, { status: 401 }) : { tenant: 'shop', principal: user }
  },
  execute: async ({ transaction, body }) => {
    const order = orderOf(body.kind === 'json' ? body.value : null)
    // Not remembered: nothing was done, and the same key may be tried again.
    if (order === null) return decline(422, { title: 'an order has a sku and a quantity' })
    // Remembered: whoever asks again with this key hears the same no.
    if (order.quantity > 100) return refuse(409, { title: 'not that many in stock' })
    const { rows } = await transaction.query<{ id: number }>(
      'insert into orders (sku, quantity) values ($1, $2) returning id',
      [order.sku, order.quantity],
    )
    return json(201, { id: rows[0]?.id })
  },
})

function orderOf(value: unknown): { sku: string; quantity: number } | null {
  if (typeof value !== 'object' || value === null) return null
  const { sku, quantity } = value as { sku?: unknown; quantity?: unknown }
  return typeof sku === 'string' && Number.isInteger(quantity) ? { sku, quantity: quantity as number } : null
}

const keys = idempotencyRoutes({ keysUrl, operations: [createOrder] })
const handle = cors({ origins: ['https://shop.example'] })(
  async (request) => (await keys(request)) ?? createOrder(request),
)

// Keys are forgotten some time after their retention; in batches, so that no statement runs long.
const reaper = startReaper(store)

const server = createServer(nodeHandler(handle))
server.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`listening on http://localhost:${(server.address() as AddressInfo).port}`)
})

process.once('SIGTERM', () => {
  server.close(() => void reaper.stop().then(() => pool.end()))
})
