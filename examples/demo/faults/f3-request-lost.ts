import type { Fault } from '../fault.ts'
import type { Fate } from '../proxy.ts'
import { rulesFor } from '../stage.ts'

const fates: readonly (readonly Fate[])[] = [
  ['lose the request'],
  ['lose the request silently'],
  ['lose the request', 'lose the request'],
  [],
]

export const f3: Fault = {
  id: 'F3',
  story: 'Request lost on the way to the server',
  person: 'check, retry, cancel',
  async play(stage) {
    const { samekey } = await stage.network(rulesFor(stage.orders, (place) => fates[place % fates.length] ?? []))
    await Promise.all([stage.plain('orders').ended, stage.samekey('orders', 'orders.create').ended])
    return { happened: samekey.seen.filter(({ fate }) => fate !== 'pass').length }
  },
}
