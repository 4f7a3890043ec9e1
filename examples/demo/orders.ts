/** The input: what customers ordered. */
import { readFileSync } from 'node:fs'
import { type Order, orderOf } from '../orders/order.ts'

/** Reads the orders, one JSON document per line. */
export function readOrders(): readonly Order[] {
  const lines = readFileSync(new URL('orders.jsonl', import.meta.url), 'utf8').split('\n')
  return lines
    .filter((line) => line !== '')
    .map((line, index) => {
      const order = orderOf(JSON.parse(line))
      if (order === null) throw new TypeError(`Line ${index + 1} of orders.jsonl is no order.`)
      return order
    })
}
