import type { Fault } from '../fault.ts'
import type { Fate } from '../proxy.ts'
import { rulesFor } from '../stage.ts'

const fates: readonly (readonly Fate[])[] = [
  ['lose the answer'],
  ['cut the answer'],
  ['lose the answer silently'],
  ['delay the answer'],
  ['lose the answer', 'lose the answer'],
  [],
]

export const f5: Fault = {
  id: 'F5',
  story: 'Server committed; its answer was lost, cut or late',
  person: 'check',
  async play(stage) {
    const { samekey } = await stage.network(rulesFor(stage.orders, (place) => fates[place % fates.length] ?? []))
    await Promise.all([stage.plain('orders').ended, stage.samekey('orders', 'orders.create').ended])
    return { happened: samekey.seen.filter(({ fate }) => fate !== 'pass').length }
  },
}
