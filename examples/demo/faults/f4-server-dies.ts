import type { Fault } from '../fault.ts'
import { allPass, until } from '../stage.ts'

/** Transactions of each client that have to stand before their commit when the server is killed. */
const enough = 4

/**
 * A shop of its own, so that the other faults keep theirs. A lock in the database stops its transactions between the
 * insert and the commit; there it is killed with SIGKILL, and started again.
 */
export const f4: Fault = {
  id: 'F4',
  story: 'Server killed between insert and commit',
  person: 'check, retry, cancel',
  async play(stage) {
    const { database, references } = stage
    const name = 'shop that dies'
    const list = references.map((reference) => `'${reference}'`).join(', ')
    await database.query(`
      create function wait_for_the_lock() returns trigger language plpgsql as $$
      begin
        perform pg_advisory_xact_lock_shared(4, case new.account when 'plain' then 1 else 2 end);
        return null;
      end $$;
      create trigger waits after insert on orders for each row
        when (new.reference in (${list})) execute function wait_for_the_lock()`)
    const holder = await database.connect()
    holder.on('error', () => {})
    await holder.query('select pg_advisory_lock(4, 1), pg_advisory_lock(4, 2)')

    const env = { PROGRAM_NAME: name, POOL_SIZE: 40 }
    const shop = await stage.start('shop', env)
    await stage.network(allPass, shop)
    const standing = async (lock: number): Promise<number> => {
      const { rowCount } = await database.query(
        `select from pg_locks where locktype = 'advisory' and classid = 4 and objid = $1 and not granted`,
        [lock],
      )
      return rowCount ?? 0
    }
    // One after the other, because the plain client alone can take all connections of the shop: each of its tries is
    // one more transaction.
    const samekey = stage.samekey('orders', 'orders.create')
    await until('transactions of samekey stand before their commit', async () => (await standing(2)) >= enough)
    const plain = stage.plain('orders')
    await until('transactions of plain fetch stand before their commit', async () => (await standing(1)) >= enough)
    const happened = await standing(2)
    await shop.kill()
    await holder.query('select pg_advisory_unlock_all()')
    holder.release()
    await until('the database has noticed', async () => {
      const { rowCount } = await database.query('select from pg_stat_activity where application_name = $1', [name])
      return rowCount === 0
    })
    const { rowCount: left } = await database.query(`select from orders where reference in (${list})`)
    const restarted = await stage.start('shop', { ...env, PORT: shop.port })
    await Promise.all([plain.ended, samekey.ended])
    await restarted.kill()
    return { happened, broken: left === 0 ? [] : [`${left} orders outlived the transactions of the killed server`] }
  },
}
