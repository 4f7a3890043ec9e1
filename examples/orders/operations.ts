/** The two ways to order. What is written here through `transaction` commits with the key and the answer, or not at all. */
import {
  accepted,
  decline,
  type ExecuteContext,
  type ExecuteResult,
  type IdempotentHandler,
  type IdempotentOptions,
  idempotent,
  json,
  refuse,
} from 'samekey/server'
import { type PgQueryable, writeOutbox } from 'samekey/server/postgres'
import { confirmation } from './e-mails.ts'
import { type Order, orderOf, type PaymentMethod } from './order.ts'
import { bookCharge, type Placed, placeOrder, type SoldOut, takeBack } from './place.ts'

/** What both have in common: the store, whose request it is, where keys are looked up, how long they are remembered. */
export type Common = Omit<IdempotentOptions<PgQueryable>, 'operation' | 'execute' | 'onVoid'>

/** What the worker gets of an order that is paid at once. */
export interface PaidOrder extends Placed {
  readonly account: string
  readonly payment: PaymentMethod
  readonly customer: Order['customer']
}

export function operationsOf(common: Common): { createOrder: IdempotentHandler; createPaidOrder: IdempotentHandler } {
  return {
    /** Customers who have an account with us: order, stock, what they owe and their e-mail, in one transaction. */
    createOrder: idempotent({
      ...common,
      operation: 'orders.create',
      execute: failingOnce(async ({ transaction, body, scope }) => {
        const order = orderOf(body.kind === 'json' ? body.value : null)
        if (order === null) return noOrder()
        const placed = await placeOrder(transaction, scope.principal, order, 'account')
        if ('soldOut' in placed) return soldOut(placed)
        await bookCharge(transaction, placed, null)
        await writeOutbox(transaction, confirmation(placed, order.customer))
        return json(201, placed, { Location: `/orders/${placed.id}` })
      }),
    }),

    /** Customers who pay at once: the provider is another company's service, so the answer is "accepted", see fulfil.ts. */
    createPaidOrder: idempotent({
      ...common,
      operation: 'paid-orders.create',
      execute: failingOnce(async ({ transaction, body, scope }) => {
        const order = orderOf(body.kind === 'json' ? body.value : null)
        if (order === null) return noOrder()
        const { payment = 'card', customer } = order
        const placed = await placeOrder(transaction, scope.principal, order, payment)
        if ('soldOut' in placed) return soldOut(placed)
        const work: PaidOrder = { ...placed, account: scope.principal, payment, customer }
        return accepted({ work, retryAfterSeconds: 1 })
      }),
      /** Only called while nothing can have been charged. */
      onVoid: ({ transaction, work }) => takeBack(transaction, (work as PaidOrder).id, 'cancelled'),
    }),
  }
}

/** Not remembered: nothing was done, and a corrected request may follow. */
function noOrder(): ExecuteResult {
  return decline(422, { title: 'An order has reference, customer, currency and items.' })
}

/** Remembered, although the order is rolled back: who asks again with this key hears the same no, whatever arrives meanwhile. */
function soldOut({ soldOut: sku }: SoldOut): ExecuteResult {
  return refuse(409, { code: 'out_of_stock', title: `There is not enough ${sku}.` })
}

type Execute = (context: ExecuteContext<PgQueryable>) => Promise<ExecuteResult>

/**
 * What the database refuses because of its content would be refused again: our mistake, remembered as 500, so that
 * clients stop asking and a person looks. Everything else that is thrown may pass, and is not remembered.
 */
function failingOnce(execute: Execute): Execute {
  return async (context) => {
    try {
      return await execute(context)
    } catch (error) {
      const { code, message } = error as { code?: unknown; message?: string }
      // Classes of SQLSTATE: 22 is a value that cannot be, 23 a constraint that was violated.
      if (typeof code !== 'string' || !/^2[23]...$/.test(code)) throw error
      console.error(`shop: the order with key ${context.key} cannot be booked: ${message}`)
      return refuse(500, { code: 'cannot_be_booked', title: 'This order cannot be booked; we look into it.' })
    }
  }
}
