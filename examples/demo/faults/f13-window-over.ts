import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../fault.ts'
import type { Fate } from '../proxy.ts'
import { rulesFor } from '../stage.ts'
import { SHORT_RETENTION_MS } from '../terms.ts'

/** How long nothing more may come, to be believed. */
const quietMs = 1500

/**
 * The network stays broken for longer than the server remembers keys. Half of the orders are in, half are not, and
 * nobody can tell which; sending again would not be safe any more, so samekey stops and says so.
 */
export const f13: Fault = {
  id: 'F13',
  story: 'Network down for longer than keys are remembered',
  person: 'check, resolve, abandon',
  mayStayUnknown: true,
  isSlow: true,
  async play(stage) {
    const { orders } = stage
    const always = (fate: Fate): Fate[] => Array.from({ length: 100 }, () => fate)
    const { samekey } = await stage.network(
      rulesFor(orders, (place) => always(place % 2 === 0 ? 'lose the answer silently' : 'lose the request silently')),
      await stage.forgetfulShop(),
    )
    // All at once, so that each order is in doubt from the start.
    const concurrency = orders.length
    const more = { concurrency, retentionMs: SHORT_RETENTION_MS }
    await Promise.all([
      stage.plain('orders', { concurrency }).ended,
      stage.samekey('orders', 'orders.create', more).ended,
    ])
    const sent = samekey.seen.length
    // A second life does not send either.
    await stage.samekey('orders', 'orders.create', more).ended
    await sleep(quietMs)
    const later = samekey.seen.length - sent
    return {
      happened: sent,
      broken: later === 0 ? [] : [`${later} requests were sent after the window`],
      besides: { unknown: orders.length },
    }
  },
}
