/** What customers are told: written as a message in the transaction that makes it true, delivered later. */
import type { Order } from './order.ts'
import type { Placed } from './place.ts'

export const E_MAILS = 'e-mails'

/** What the mailer gets. */
export interface EMail {
  readonly to: string
  readonly subject: string
  readonly orderId: string
}

/** "We have your order", as a message for the outbox. */
export function confirmation({ id, reference }: Placed, customer: Order['customer']) {
  const { name, email } = customer
  const content: EMail = { to: `${name} <${email}>`, subject: `Your order ${reference}`, orderId: id }
  return { topic: E_MAILS, aggregate: `orders/${id}`, payload: JSON.stringify(content) }
}
