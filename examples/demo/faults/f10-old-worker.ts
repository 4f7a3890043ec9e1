import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../fault.ts'
import { openPaidSite } from '../paid-site.ts'
import { allPass, until } from '../stage.ts'

/** Charges of each client that have to be under way when the worker is stopped. */
const enough = 4
/** How late the provider's answers are: later than the worker is stopped, and earlier than it wakes up. */
const lateMs = 5000
/** It is to wake up in the middle of its calls, so it must not have given them up before. */
const patient = { CALL_TRANSIT_MS: 60_000, CALL_TIMEOUT_MS: 30_000, CONCURRENCY: 24 }

/**
 * The worker is stopped with SIGSTOP while the provider, which has done what it was asked for, is slow to say so. Another
 * worker takes over and ends the work. Then the old one wakes up, with all the answers waiting for it, and must not
 * write a word of them.
 */
export const f10: Fault = {
  id: 'F10',
  story: 'Worker frozen while it charges; wakes up when another has its work',
  person: 'inspect the task',
  counts: 'charges',
  isSlow: true,
  async play(stage) {
    const site = await openPaidSite(stage, 'f10', { LATE_MS: lateMs })
    const { database, shop } = site
    await site.behave(() => ['late'])
    await stage.network(allPass, shop)
    const path = 'paid-orders'
    // All at once: who waits for one order's end before it sends the next would wait for the worker.
    const concurrency = stage.orders.length
    const clients = [stage.plain(path, { concurrency }), stage.samekey(path, 'paid-orders.create', { concurrency })]
    await site.untilAccepted()
    const old = await site.startWorker(patient, { willBeStopped: true })
    await site.untilCharging(enough)
    old.signal('SIGSTOP')
    const answered = sleep(lateMs)
    const asleep = await site.begunCalls('samekey')
    await site.behave(() => [])
    await site.startWorker(patient)
    await Promise.all(clients.map(({ ended }) => ended))
    await site.untilPaid()
    await answered
    const before = await ends()
    old.signal('SIGCONT')
    const refused = (): number => new Set(old.said.filter((line) => /workLost .* of shop\/samekey/.test(line))).size
    await until('the old worker has found that its work is lost', () => refused() >= asleep)
    // It is well, and ends in an orderly way.
    old.signal('SIGTERM')
    await old.ended
    return {
      happened: refused(),
      broken: before === (await ends()) ? [] : ['the old worker changed something'],
      database,
    }

    /** All that is known about the work, as one text. */
    async function ends(): Promise<string> {
      const { rows } = await database.query(
        `select key, t.epoch, status, result_body, state, value from samekey_tasks as t
        join samekey_calls using (tenant, principal, operation, key) order by key`,
      )
      return JSON.stringify(rows)
    }
  },
}
