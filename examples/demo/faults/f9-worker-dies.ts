import type { Fault } from '../fault.ts'
import { openPaidSite } from '../paid-site.ts'
import type { Fate } from '../proxy.ts'
import { rulesFor } from '../stage.ts'

const fates: readonly (readonly Fate[])[] = [['lose the answer'], [], ['cut the answer']]
/** Of all questions to monitors, every so-manieth is lost. */
const everyPoll = 4
/** Charges of each client that have to be under way when the worker is killed. */
const enough = 4
/** The worker is to be killed, not to give up: it would wait that long for the provider. */
const patient = { CALL_TRANSIT_MS: 60_000, CALL_TIMEOUT_MS: 30_000, CONCURRENCY: 24 }

/**
 * The worker is killed with SIGKILL while it waits for the provider, which has charged half of the customers by then and
 * not heard of the others. Some of the 202s and of the polls are lost as well.
 */
export const f9: Fault = {
  id: 'F9',
  story: 'Worker killed while it charges; some 202s and polls lost',
  person: 'inspect the task',
  counts: 'charges',
  isSlow: true,
  async play(stage) {
    const site = await openPaidSite(stage, 'f9', { LATE_MS: 60_000 })
    const { database, shop } = site
    await site.behave((place) => [place % 2 === 0 ? 'hang' : 'late'])
    await stage.network(() => {
      const rules = rulesFor(stage.orders, (place) => fates[place % fates.length] ?? [])()
      let polls = 0
      return (seen) => (seen.method === 'GET' && polls++ % everyPoll === 0 ? 'lose the answer' : rules(seen))
    }, shop)
    const path = 'paid-orders'
    // All at once: who waits for one order's end before it sends the next would wait for the worker.
    const concurrency = stage.orders.length
    const clients = [stage.plain(path, { concurrency }), stage.samekey(path, 'paid-orders.create', { concurrency })]
    await site.untilAccepted()
    const worker = await site.startWorker(patient)
    await site.untilCharging(enough)
    await worker.kill()
    const happened = await site.begunCalls('samekey')
    await site.behave(() => [])
    await site.startWorker(patient)
    await Promise.all(clients.map(({ ended }) => ended))
    await site.untilPaid()
    const { rowCount } = await database.query(
      `select from samekey_tasks where principal = 'samekey' and status = 'succeeded' and epoch > 1`,
    )
    const takenOver = rowCount ?? 0
    return {
      happened,
      broken: takenOver >= happened ? [] : [`${happened - takenOver} orders were not taken over`],
      database,
    }
  },
}
