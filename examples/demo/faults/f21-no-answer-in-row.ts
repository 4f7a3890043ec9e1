import { sendByHand } from '../by-hand.ts'
import type { Fault } from '../fault.ts'
import { allPass } from '../stage.ts'
import { SHORT_GRACE_MS, SHORT_RETENTION_MS } from '../terms.ts'

/**
 * Half of the orders were placed from another device, with the keys that both make of the cart. Then somebody's script
 * damages the shop's key rows: all of these carts have one, and none says how its request ended. The shop tells its
 * operator and refuses to guess; the client waits as long as that is safe. A person looks for the orders and says what
 * was found.
 */
export const f21: Fault = {
  id: 'F21',
  story: 'Key rows without a finished answer; a person looks for the orders',
  person: 'inspect, settle',
  plainHasNone: true,
  isSlow: true,
  async play(stage) {
    const { database, orders, references } = stage
    const shop = await stage.forgetfulShop()
    await stage.network(allPass, shop)
    const keyOf = (reference: string): string => `cart-${reference}`
    const placed = orders.filter((_, place) => place % 2 === 0)
    await Promise.all(placed.map((order) => sendByHand(stage, shop, order, keyOf(order.reference))))
    const keys = references.map(keyOf)
    await database.query(
      `insert into samekey_keys (tenant, principal, operation, key, state, created_at, expires_at, reap_at)
      select 'shop', 'samekey', 'orders.create', key, 'running', now(), now() + $2, now() + $2 + $3
      from unnest($1::text[]) as key
      on conflict (tenant, principal, operation, key) do update
      set state = 'running', answer_status = null, answer_headers = null, answer_body = null`,
      [keys, `${SHORT_RETENTION_MS} ms`, `${SHORT_GRACE_MS} ms`],
    )
    const job = {
      ownKeys: true,
      retentionMs: SHORT_RETENTION_MS,
      attemptTimeoutMs: 2000,
      concurrency: references.length,
    }
    await stage.samekey('orders', 'orders.create', job).ended
    const unknown = [...stage.heard.intents.values()].filter(({ state }) => state === 'unknown')
    const toldOf = keys.filter((key) =>
      shop.said.some((line) => line.includes(`inconsistent in orders.create key ${key} `)),
    )

    const { rows } = await database.query<{ reference: string; id: string }>(
      `select reference, id from orders where account = 'samekey' and reference = any($1)`,
      [references],
    )
    const found = new Map(rows.map(({ reference, id }) => [reference, id]))
    const resolve = unknown.map(({ reference }) => {
      const id = found.get(reference)
      return id === undefined
        ? { reference, outcome: 'did_not_happen' as const, note: 'looked for it, and there is none' }
        : { reference, outcome: 'succeeded' as const, note: `found order ${id}` }
    })
    await stage.samekey('orders', 'orders.create', { ...job, orders: [], person: { check: [], resolve } }).ended
    return {
      happened: toldOf.length,
      broken: unknown.length === references.length ? [] : [`only ${unknown.length} were unknown before a person came`],
      besides: { abandoned: references.length - placed.length },
    }
  },
}
