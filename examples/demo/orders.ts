/** The input: what customers ordered. */
import { readFileSync } from 'node:fs'

/** One customer's order, as the shop's page sends it. Prices are in the currency's smallest unit. */
export interface Order {
  /** Names the order for people; in this shop nothing in the database enforces that it is unique. */
  readonly reference: string
  readonly customer: { readonly name: string; readonly [member: string]: unknown }
  readonly currency: string
  readonly items: readonly { readonly quantity: number; readonly unitPrice: number }[]
  /** Addresses, notes, options ...: everything else is kept as it came. */
  readonly [member: string]: unknown
}

/** Reads the orders, one JSON document per line. */
export function readOrders(): readonly Order[] {
  const lines = readFileSync(new URL('orders.jsonl', import.meta.url), 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => orderOf(JSON.parse(line)))
}

/** @throws TypeError for what is no order. */
export function orderOf(value: unknown): Order {
  const { reference, customer, currency, items } = (value ?? {}) as { readonly [member: string]: unknown }
  const isOrder =
    typeof reference === 'string' &&
    typeof (customer as Order['customer'] | undefined)?.name === 'string' &&
    typeof currency === 'string' &&
    Array.isArray(items) &&
    items.length > 0
  if (!isOrder) throw new TypeError('An order needs reference, customer, currency and items.')
  return value as Order
}

/** What the customer pays, in the currency's smallest unit. */
export function totalOf({ items }: Order): number {
  return items.reduce((total, { quantity, unitPrice }) => total + quantity * unitPrice, 0)
}
