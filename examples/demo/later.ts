/** Orders that were answered with 202: charged a little later, and then their monitor gives the answer. */
import type { Pool } from 'pg'
import { complete, json, type KeyId, type ServerStore } from 'samekey/server'
import type { PgQueryable } from 'samekey/server/postgres'
import type { Placed } from './tables.ts'

const everyMs = 250

interface AcceptedRow extends Placed {
  readonly accepted_under: string
}

/**
 * Goes on for ever. Charging and its mark commit together, so a crash between the two steps charges nobody twice: the
 * second step is simply taken again, which is harmless.
 */
export function chargeLater(pool: Pool, store: ServerStore<PgQueryable>): void {
  const round = async (): Promise<void> => {
    await pool.query(`
      with taken as (
        select id from orders where status = 'accepted' order by id limit 10 for update skip locked
      ), marked as (
        update orders set status = 'charged' where id in (select id from taken) returning id, currency, total
      )
      insert into charges (order_id, currency, amount) select id, currency, total from marked`)
    const { rows } = await pool.query<AcceptedRow>(
      `select id, reference, currency, total, accepted_under from orders where status = 'charged'`,
    )
    for (const { accepted_under, ...placed } of rows) {
      const id = JSON.parse(accepted_under) as KeyId
      await complete(store, id, json(201, placed, { Location: `/orders/${placed.id}` }))
      await pool.query(`update orders set status = 'confirmed' where id = $1`, [placed.id])
    }
  }
  const again = (): void =>
    void setTimeout(
      () =>
        void round()
          .catch(() => {})
          .then(again),
      everyMs,
    )
  again()
}
