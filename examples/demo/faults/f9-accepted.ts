import type { Fault } from '../fault.ts'
import type { Fate } from '../proxy.ts'
import { rulesFor } from '../stage.ts'

const fates: readonly (readonly Fate[])[] = [['lose the answer'], [], ['cut the answer']]
/** Of all questions to monitors, every so-manieth is lost. */
const everyPoll = 4

export const f9: Fault = {
  id: 'F9',
  story: 'Server answers 202, charges later; 202s and polls lost',
  person: 'inspect the task',
  async play(stage) {
    const { samekey } = await stage.network(() => {
      const rules = rulesFor(stage.orders, (place) => fates[place % fates.length] ?? [])()
      let polls = 0
      return (seen) => (seen.method === 'GET' && polls++ % everyPoll === 0 ? 'lose the answer' : rules(seen))
    })
    await Promise.all([stage.plain('orders/later').ended, stage.samekey('orders/later', 'orders.create-later').ended])
    return { happened: samekey.seen.filter(({ fate }) => fate !== 'pass').length }
  },
}
