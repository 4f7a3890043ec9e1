/** Shows: the server kit as a route handler of Next.js; it is one already. `POST /orders`, and the preflight for it. */
import type { Handler } from 'samekey/server'
import { orders } from '../../../orders.ts'

export const POST: Handler = orders
export const OPTIONS: Handler = orders
