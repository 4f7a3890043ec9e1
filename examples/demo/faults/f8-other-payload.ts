import type { Order } from '../../orders/order.ts'
import type { Fault } from '../fault.ts'
import { allPass } from '../stage.ts'

/**
 * A second device of the same customer sends an older state of the same cart: one order is wanted per cart. With
 * samekey, both devices make the key of the cart. Without a key the server has nothing to see it by.
 */
export const f8: Fault = {
  id: 'F8',
  story: 'Same cart from a second device, with other quantities',
  person: 'new intent',
  async play(stage) {
    const { orders, folder } = stage
    await stage.network(allPass)
    const more = { ownKeys: true }
    await Promise.all([stage.plain('orders').ended, stage.samekey('orders', 'orders.create', more).ended])
    const changed = orders.map(withOneMore)
    const second = { orders: changed, ownKeys: true, storeFile: `${folder}/F8-second-device.db` }
    await Promise.all([
      stage.plain('orders', { orders: changed, doneFile: `${folder}/F8-second-device.txt` }).ended,
      stage.samekey('orders', 'orders.create', second).ended,
    ])
    return { happened: changed.length, besides: { conflicted: changed.length } }
  },
}

function withOneMore(order: Order): Order {
  return { ...order, items: order.items.map((item) => ({ ...item, quantity: item.quantity + 1 })) }
}
