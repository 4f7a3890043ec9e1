/** What the shop did before it knew of keys, for clients that still do it: each request is one more order. */
import type { Pool } from 'pg'
import { writeOutbox } from 'samekey/server/postgres'
import { confirmation } from './e-mails.ts'
import { orderOf } from './order.ts'
import { bookCharge, placeOrder } from './place.ts'

export async function legacyOrder(pool: Pool, account: string | null, request: Request): Promise<Response> {
  if (account === null) return new Response('Who are you?', { status: 401 })
  const order = orderOf(await request.json())
  if (order === null) return new Response('This is no order.', { status: 422 })
  const client = await pool.connect()
  let failed = true
  try {
    await client.query('begin')
    const placed = await placeOrder(client, account, order, 'account')
    if ('soldOut' in placed) {
      await client.query('rollback')
      failed = false
      return new Response('Sold out.', { status: 409 })
    }
    await bookCharge(client, placed, null)
    await writeOutbox(client, confirmation(placed, order.customer))
    await client.query('commit')
    failed = false
    return Response.json(placed, { status: 201 })
  } finally {
    // Closing the connection rolls back whatever is left of it.
    client.release(failed)
  }
}
