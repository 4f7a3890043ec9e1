import { type CommitFate, startDatabaseProxy } from '../database-proxy.ts'
import type { Fault } from '../fault.ts'
import { allPass } from '../stage.ts'

const fates: readonly CommitFate[] = ['cut after', 'cut before', 'pass']

/**
 * The shop's connection to PostgreSQL is cut in COMMIT: for some orders after it was carried out, for some before. The
 * shop cannot tell which, and says so (503). The next request finds the truth.
 */
export const f20: Fault = {
  id: 'F20',
  story: 'Shop lost its database in COMMIT, before or after it was done',
  person: 'inspect by key',
  async play(stage) {
    const { databaseUrl, references } = stage
    const known = new Set<string>()
    const between = await startDatabaseProxy(databaseUrl, (transaction) => {
      const place = references.findIndex((reference) => transaction.includes(reference))
      if (place < 0) return 'pass'
      // As PostgreSQL gets it: the length of the text, then the text.
      const whose = transaction.includes('\0\0\0\x05plain') ? 'plain' : 'samekey'
      const name = `${whose} ${references[place]}`
      if (known.has(name)) return 'pass'
      known.add(name)
      return fates[place % fates.length] ?? 'pass'
    })
    const shop = await stage.start('shop', {
      DATABASE_URL: between.databaseUrl,
      PROGRAM_NAME: 'shop far from its database',
    })
    const { samekey } = await stage.network(allPass, shop)
    await Promise.all([stage.plain('orders').ended, stage.samekey('orders', 'orders.create').ended])
    await shop.kill()
    await between.close()
    return { happened: samekey.seen.filter(({ status }) => status === 503).length }
  },
}
