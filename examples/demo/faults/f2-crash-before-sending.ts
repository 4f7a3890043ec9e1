import type { Fault } from '../fault.ts'
import { allPass, until } from '../stage.ts'

/**
 * The sign-in service hangs, so nothing can be sent; then the process is killed. samekey's second life is not told of
 * the orders again: its store remembers them. The plain one's caller has to bring what is not known to be done.
 */
export const f2: Fault = {
  id: 'F2',
  story: 'Client killed before it sends the orders it took',
  person: 'cancel',
  async play(stage) {
    const { plain, samekey } = await stage.network(allPass)
    const stored = new Set<string>()
    const first = stage.samekey('orders', 'orders.create', { signInHangs: true }, (report) => {
      if (report.type === 'stored') stored.add(report.reference)
    })
    const firstPlain = stage.plain('orders', { signInHangs: true })
    await until('every intent is stored', () => stored.size === stage.orders.length)
    await Promise.all([first.kill(), firstPlain.kill()])
    const early = plain.seen.length + samekey.seen.length
    await Promise.all([stage.plain('orders').ended, stage.samekey('orders', 'orders.create', { orders: [] }).ended])
    return { happened: stored.size, broken: early === 0 ? [] : ['something was sent without credentials'] }
  },
}
