/** A request that somebody sends by hand, or that a copy on the way is: the same bytes, under the account of samekey's client. */
import type { Order } from '../orders/order.ts'
import type { Stage } from './stage.ts'

export interface HandAnswer {
  readonly status: number
  /** Number of the order, where there is one. */
  readonly id: string | undefined
  /** Of a problem, where it is one. */
  readonly code: string | undefined
}

export async function sendByHand(
  { tokens }: Stage,
  shop: { readonly url: string },
  order: Order,
  key: string,
  ageSeconds = 0,
): Promise<HandAnswer> {
  const response = await fetch(`${shop.url}/orders`, {
    method: 'POST',
    body: JSON.stringify(order),
    headers: {
      authorization: `Bearer ${tokens.samekey}`,
      'content-type': 'application/json',
      'idempotency-key': key,
      'idempotency-age': String(ageSeconds),
    },
    signal: AbortSignal.timeout(30_000),
  })
  const { id, code } = (await response.json()) as { id?: string; code?: string }
  return { status: response.status, id, code }
}
