/**
 * The shop that the conformance suite talks to: a small server that every bench has to build on its own kit, database and
 * framework. What it does with an order is said by the order, so that the cases can be data that speaks HTTP alone.
 */

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** What the shop is made of; see {@link ShopOrder} for what it does. */
export const conformanceShop: ConformanceShop = {
  operations: {
    'orders.create': '/orders',
    'orders.cancel': '/cancellations',
    'shipments.create': '/shipments',
  },
  keysPath: '/keys',
  origin: 'https://shop.example',
  retentionMs: 24 * HOUR_MS,
  transitMs: 5 * MINUTE_MS,
  graceMs: HOUR_MS,
  waitMs: 200,
  voidWaitMs: 1000,
  requestBytes: 2 ** 21,
  answerBytes: 2 ** 20,
  leaseMs: MINUTE_MS,
}

/** Type of {@link conformanceShop}. */
export interface ConformanceShop {
  /** Operations and their paths. All of them take `POST`. */
  readonly operations: Readonly<Record<ShopOperation, string>>
  /** Where look-up and void are: `/keys/{operation}/{key}`. */
  readonly keysPath: string
  /** The one origin that CORS lets in, for the operations and for the keys. */
  readonly origin: string
  /** How long a key is remembered, ms. */
  readonly retentionMs: number
  /** ms */
  readonly transitMs: number
  /** ms */
  readonly graceMs: number
  /** How long a request waits for a running one with its key, ms. Short: real databases really wait. */
  readonly waitMs: number
  /** The same for a void, ms. */
  readonly voidWaitMs: number
  /** Longest request body, bytes. */
  readonly requestBytes: number
  /** Longest answer body that is kept, bytes. */
  readonly answerBytes: number
  /** How long a worker has accepted work, ms. */
  readonly leaseMs: number
}

/**
 * - `orders.create` does what {@link ShopOrder} says. Its accepted work cannot be voided.
 * - `orders.cancel` removes the orders of an item and answers 200 with `{ item }`; a business effect like any other.
 * - `shipments.create` is like `orders.create`, and its accepted work can be voided: it wrote nothing before its end.
 */
export type ShopOperation = 'orders.create' | 'orders.cancel' | 'shipments.create'

/**
 * Who calls, as in `Authorization: Bearer acme.ann`: tenant and principal; the whole text is the tag that
 * `Idempotency-Scope` is compared with. The principal `robot` has no tag. Without the header: 401. Whoever was revoked is
 * refused with 403, whatever the purpose.
 */
export type ShopCaller = 'acme.ann' | 'acme.bob' | 'globex.ann' | 'acme.robot'

/**
 * An order, as JSON. A body of any other type is an order of `nothing`, to be placed.
 *
 * Placing it writes one business row, which is one effect, and answers 201 with `{ id, item }` and the headers
 * `Location: /orders/{id}`, `ETag: "{id}"`, `X-Shop: conformance` and `Set-Cookie: seen=1`.
 */
export interface ShopOrder {
  /** Default: `nothing`. */
  readonly item?: string
  /** What becomes of it. Default: it is placed. */
  readonly outcome?: ShopOutcome
  /** For `accept`: what a worker does, execution by execution; the last one stays. Default: no work for a worker. */
  readonly tries?: readonly ShopTry[]
  /** Means nothing to the shop, and is a part of the order. */
  readonly [more: string]: unknown
}

/**
 * - `refuse`: places it, and then refuses with 402 `{ reason: 'declined' }`: remembered, and the order is taken back.
 * - `fail`: the same with 500 `{ reason: 'broken' }`.
 * - `decline-once`: places it, and the first time that it sees this key, declines with 422 `{ reason: 'not yet' }`: not
 *   remembered.
 * - `throw-once`: places it, and the first time that it sees this key, throws an error with the word `secret`.
 * - `omit`: places it; the body of the answer is not kept.
 * - `refer`: places it and answers 201 with `{ item, orders }`, kept by reference: `orders` is how many orders of the item
 *   there are today; where there are none, there is no body any more.
 * - `hide`: places it and answers as usual; that answer may not be seen by anybody who asks again: 403.
 * - `empty`: places it and answers 204.
 * - `binary`: places it and answers 200, `application/octet-stream`, with the bytes 0, 255, 254, 0.
 * - `large`: places it and answers 200 with a JSON body that is longer than the shop keeps.
 * - `accept`: places nothing, accepts, and queues `tries` for a worker.
 */
export type ShopOutcome =
  | 'refuse'
  | 'fail'
  | 'decline-once'
  | 'throw-once'
  | 'omit'
  | 'refer'
  | 'hide'
  | 'empty'
  | 'binary'
  | 'large'
  | 'accept'

/**
 * What a worker does with accepted work:
 *
 * - `place`: places the order and finishes with 200 `{ item }`, in one transaction.
 * - `refuse`: places it and finishes with the refusal 422 `{ reason: 'no stock' }`, which takes the order back.
 * - `retry`: tries again later, at the back-off of the worker, which is an hour at most.
 * - `later`: tries again in 20 hours.
 * - `begin`: commits a step, which writes nothing that counts, and tries again later.
 * - `unknown`: leaves it unknown.
 */
export type ShopTry = 'place' | 'refuse' | 'retry' | 'later' | 'begin' | 'unknown'
