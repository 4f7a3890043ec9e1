/** What becomes of an accepted order: charged by the provider, then confirmed. It may run again at any time. */
import { externalCall, finish, json, refuse, type TaskHandler } from 'samekey/server'
import { type PgQueryable, writeOutbox } from 'samekey/server/postgres'
import { confirmation } from './e-mails.ts'
import type { PaidOrder } from './operations.ts'
import { chargeCall, type ProviderOptions } from './payments.ts'
import { confirmOrder, takeBack } from './place.ts'

export function fulfilment(provider: ProviderOptions): TaskHandler<PgQueryable> {
  return async (task) => {
    const { account, payment, customer, ...placed } = task.work as PaidOrder
    const { id: orderId, reference, currency, total: amount } = placed
    const request = { orderId, reference: `${account}/${reference}`, currency, amount }
    // Written down before it is sent; not sent again once its end is known, whoever runs this.
    const charge = await externalCall(task, 'charge', chargeCall(provider, payment, request))
    if (charge.outcome === 'refused') {
      // In a step of its own: what `finish` writes is taken back together with a refusal.
      await task.step('take back', (transaction) => takeBack(transaction, orderId, 'refused'))
      return refuse(402, charge.value)
    }
    return finish(async (transaction) => {
      await confirmOrder(transaction, placed, charge.value.id)
      await writeOutbox(transaction, confirmation(placed, customer))
      return json(201, placed, { Location: `/orders/${orderId}` })
    })
  }
}
