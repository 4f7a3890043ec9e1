/** What customers order, as the shop's page sends it. */

/** Each is another company's service, and each forgives something else: see `payments.ts`. */
const paymentMethods = ['card', 'transfer', 'voucher'] as const
export type PaymentMethod = (typeof paymentMethods)[number]

export function isPaymentMethod(value: unknown): value is PaymentMethod {
  return paymentMethods.some((method) => method === value)
}

/** One order. Prices are in the currency's smallest unit. */
export interface Order {
  /** Names the order for people. */
  readonly reference: string
  readonly customer: { readonly name: string; readonly email: string; readonly [member: string]: unknown }
  readonly currency: string
  readonly items: readonly Item[]
  /** Only for orders that are paid at once. Default: by card. */
  readonly payment?: PaymentMethod
  /** Addresses, notes, options ...: everything else is kept as it came. */
  readonly [member: string]: unknown
}

export interface Item {
  readonly sku: string
  readonly quantity: number
  readonly unitPrice: number
  readonly [member: string]: unknown
}

/** Of one article in one order. */
const mostOfOne = 1_000_000

/** @returns null for what is no order. */
export function orderOf(value: unknown): Order | null {
  const { reference, customer, currency, items, payment } = membersOf(value)
  const { name, email } = membersOf(customer)
  const isOrder =
    [reference, name, email, currency].every((text) => typeof text === 'string' && text !== '') &&
    Array.isArray(items) &&
    items.length > 0 &&
    items.every(isItem) &&
    (payment === undefined || isPaymentMethod(payment))
  return isOrder ? (value as Order) : null
}

function isItem(value: unknown): boolean {
  const { sku, quantity, unitPrice } = membersOf(value)
  return typeof sku === 'string' && isCount(quantity) && quantity > 0 && quantity <= mostOfOne && isCount(unitPrice)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function membersOf(value: unknown): { readonly [member: string]: unknown } {
  return typeof value === 'object' && value !== null ? (value as { readonly [member: string]: unknown }) : {}
}

/** What the customer pays, in the currency's smallest unit. */
export function totalOf({ items }: Order): number {
  return items.reduce((total, { quantity, unitPrice }) => total + quantity * unitPrice, 0)
}
