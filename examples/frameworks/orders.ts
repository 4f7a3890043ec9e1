/**
 * What each program in this folder serves: orders on PostgreSQL, as in ../server.ts, with look-up and void by key. Both
 * are web-standard handlers, with the CORS lines that pages of other origins need.
 */
import pg from 'pg'
import { cors, decline, type Handler, idempotencyRoutes, idempotent, json, startReaper } from 'samekey/server'
import { migrate, postgresServerStore } from 'samekey/server/postgres'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, connectionTimeoutMillis: 5000 })
pool.on('error', (error) => console.error('an idle connection was lost:', error.message))
const store = postgresServerStore(pool)

export const keysUrl = '/idempotency-keys'

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
    const { sku = null } = body.kind === 'json' ? (body.value as { sku?: unknown }) : {}
    if (typeof sku !== 'string') return decline(422, { title: 'an order has a sku' })
    const { rows } = await transaction.query<{ id: number }>('insert into orders (sku) values ($1) returning id', [sku])
    return json(201, { id: rows[0]?.id })
  },
})

const byKey = idempotencyRoutes({ keysUrl, operations: [createOrder] })
const withCors = cors({ origins: ['https://shop.example'] })

/** `POST /orders`, and the preflight for it. */
export const orders: Handler = withCors(createOrder)

/** `GET` and `DELETE` of `/idempotency-keys/{operation}/{key}`, and the preflights for them. */
export const keys: Handler = withCors(async (request) => (await byKey(request)) ?? new Response(null, { status: 404 }))

/** Makes the tables, and forgets keys some time after their retention. Returns the way to stop. */
export async function open(): Promise<() => Promise<void>> {
  await migrate(pool)
  await pool.query('create table if not exists orders (id serial primary key, sku text not null)')
  const reaper = startReaper(store)
  return async () => {
    await reaper.stop()
    await pool.end()
  }
}
