/** How an order gets into the tables, and out of them again. All of it runs in a transaction of the caller's. */
import type { PgQueryable } from 'samekey/server/postgres'
import { type Order, type PaymentMethod, totalOf } from './order.ts'

/** An order as the shop confirms it. */
export interface Placed {
  readonly id: string
  readonly reference: string
  readonly currency: string
  readonly total: string
}

/** There is not enough of it. */
export interface SoldOut {
  readonly soldOut: string
}

/** Writes the order, its lines, and takes the goods from stock. */
export async function placeOrder(
  transaction: PgQueryable,
  account: string,
  order: Order,
  payment: 'account' | PaymentMethod,
): Promise<Placed | SoldOut> {
  const { reference, currency, items } = order
  const { rows } = await transaction.query<Placed>(
    `insert into orders (account, reference, currency, total, payment, status, document)
    values ($1, $2, $3, $4, $5, $6, $7) returning id, reference, currency, total`,
    [
      account,
      reference,
      currency,
      totalOf(order),
      payment,
      payment === 'account' ? 'confirmed' : 'accepted',
      JSON.stringify(order),
    ],
  )
  const [placed] = rows
  if (placed === undefined) throw new Error('The insert gave no row.')
  const missing = await takeFromStock(transaction, items)
  if (missing !== null) return { soldOut: missing }
  await transaction.query(
    `insert into order_lines (order_id, line, sku, quantity, unit_price)
    select $1, line, sku, quantity, price
    from unnest($2::text[], $3::integer[], $4::numeric[]) with ordinality as lines (sku, quantity, price, line)`,
    [
      placed.id,
      items.map(({ sku }) => sku),
      items.map(({ quantity }) => quantity),
      items.map((item) => item.unitPrice),
    ],
  )
  return placed
}

/**
 * Takes all of it, or what there is; whoever finds something missing rolls back. Rows are locked in the order of their
 * names: two orders that want the same goods would else wait for each other for ever.
 */
const TAKE = `
with wanted as (
  select sku, sum(quantity)::integer as quantity from unnest($1::text[], $2::integer[]) as item (sku, quantity) group by sku
), locked as (
  select sku from stock where sku in (select sku from wanted) order by sku for update
), taken as (
  update stock set quantity = stock.quantity - wanted.quantity
  from wanted join locked using (sku)
  where stock.sku = wanted.sku and stock.quantity >= wanted.quantity
  returning stock.sku
)
select sku from wanted where sku not in (select sku from taken) limit 1`

/** @returns what there is not enough of, or null. */
async function takeFromStock(transaction: PgQueryable, items: Order['items']): Promise<string | null> {
  const { rows } = await transaction.query<{ sku: string }>(TAKE, [
    items.map(({ sku }) => sku),
    items.map(({ quantity }) => quantity),
  ])
  return rows[0]?.sku ?? null
}

/** Books what was paid, or what the account owes. */
export async function bookCharge(
  transaction: PgQueryable,
  placed: Placed,
  providerCharge: string | null,
): Promise<void> {
  const { id, currency, total } = placed
  await transaction.query('insert into charges (order_id, currency, amount, provider_charge) values ($1, $2, $3, $4)', [
    id,
    currency,
    total,
    providerCharge,
  ])
}

/** An accepted order is paid. */
export async function confirmOrder(transaction: PgQueryable, placed: Placed, providerCharge: string): Promise<void> {
  await transaction.query(`update orders set status = 'confirmed' where id = $1 and status = 'accepted'`, [placed.id])
  await bookCharge(transaction, placed, providerCharge)
}

/** An accepted order comes to nothing, and its goods go back. Harmless when it is done twice. */
export async function takeBack(
  transaction: PgQueryable,
  orderId: string,
  because: 'refused' | 'cancelled',
): Promise<void> {
  const { rowCount } = await transaction.query(`update orders set status = $2 where id = $1 and status = 'accepted'`, [
    orderId,
    because,
  ])
  if (rowCount === 0) return
  await transaction.query(
    `with back as (
      select sku, sum(quantity) as quantity from order_lines where order_id = $1 group by sku
    ), locked as (
      select sku from stock where sku in (select sku from back) order by sku for update
    )
    update stock set quantity = stock.quantity + back.quantity
    from back join locked using (sku) where stock.sku = back.sku`,
    [orderId],
  )
}
