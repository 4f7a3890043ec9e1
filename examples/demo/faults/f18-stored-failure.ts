import type { Fault } from '../fault.ts'
import { allPass } from '../stage.ts'

/** Attempts after which it would be a loop. */
const most = 3

/**
 * A rule in the database that nobody thought of refuses these orders: the shop remembers its failure, because the same
 * request would fail again, and says the same for ever.
 */
export const f18: Fault = {
  id: 'F18',
  story: 'Server stored a failure (500), and would repeat it for ever',
  person: 'check, resolve',
  async play(stage) {
    const { database, references } = stage
    const list = references.map((reference) => `'${reference}'`).join(', ')
    await database.query(`
      create function refuse_the_order() returns trigger language plpgsql as $$
      begin
        raise check_violation using message = 'no orders after midnight';
      end $$;
      create trigger refuses before insert on orders for each row
        when (new.reference in (${list})) execute function refuse_the_order()`)
    const { samekey } = await stage.network(allPass)
    await Promise.all([stage.plain('orders').ended, stage.samekey('orders', 'orders.create').ended])
    const looping = [...stage.heard.intents.values()].filter(({ attempts }) => attempts > most)
    return {
      happened: samekey.seen.filter(({ status }) => status === 500).length,
      broken: looping.map(({ reference, attempts }) => `${reference} was sent ${attempts} times`),
      besides: { unknown: references.length },
    }
  },
}
