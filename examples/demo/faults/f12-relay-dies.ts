import type { Fault } from '../fault.ts'
import { startProxy } from '../proxy.ts'
import { allPass, until } from '../stage.ts'

/**
 * Every e-mail is delivered to the mailer, and not one of its answers reaches the relay, which is killed with SIGKILL
 * before it could mark anything. The next one delivers everything again.
 */
export const f12: Fault = {
  id: 'F12',
  story: 'Relay killed after it delivered e-mails, before it noted that',
  person: 'inspect the outbox',
  counts: 'e-mails',
  async play(stage) {
    const site = await stage.newSite('f12')
    const [shop, mailer] = await Promise.all([site.start('shop'), site.start('mailer')])
    const between = await startProxy(
      () => mailer.port,
      () => 'lose the answer silently',
    )
    const env = { MAILER_URL: between.url, CONCURRENCY: 40 }
    const relay = await site.start('relay', env)
    await stage.network(allPass, shop)
    await Promise.all([stage.plain('orders').ended, stage.samekey('orders', 'orders.create').ended])
    const all = 2 * stage.orders.length
    /** How many e-mails the mailer has taken so many times. */
    const taken = (times: number): number => {
      const counts = new Map<string, number>()
      for (const { path, status } of between.seen) if (status === 204) counts.set(path, (counts.get(path) ?? 0) + 1)
      return [...counts.values()].filter((count) => count >= times).length
    }
    await until('every e-mail is delivered, and the relay does not know', () => taken(1) >= all)
    await relay.kill()
    between.heal()
    await site.start('relay', env)
    await until('every e-mail is delivered again', () => taken(2) >= all)
    await between.close()
    // Half of them are those of the plain client.
    return { happened: taken(2) / 2, database: site.database }
  },
}
