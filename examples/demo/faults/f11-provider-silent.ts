import { settle } from 'samekey/server'
import { postgresServerStore } from 'samekey/server/postgres'
import type { ChargeRequest } from '../../orders/payments.ts'
import type { Fault } from '../fault.ts'
import { openPaidSite, type PaidSite } from '../paid-site.ts'
import { allPass } from '../stage.ts'

const methods = ['card', 'transfer', 'voucher'] as const

/**
 * The provider charges, and closes the connection without a word. Its card service takes keys, so the charge is sent
 * again under the same operation id. Its transfer service can be asked. Its voucher service does neither, so the order
 * is unknown until a person has looked into the provider's statement and said so.
 */
export const f11: Fault = {
  id: 'F11',
  story: 'Provider charged and said nothing; by card, by transfer, by voucher',
  person: 'settle on the server, check',
  counts: 'charges',
  isSlow: true,
  edit: (order, place) => ({ ...order, payment: methods[place % methods.length] ?? 'card' }),
  async play(stage) {
    const site = await openPaidSite(stage, 'f11')
    const { database, shop } = site
    await site.behave(() => ['lose'])
    await stage.network(allPass, shop)
    await site.startWorker({ CONCURRENCY: 8 })
    const path = 'paid-orders'
    await Promise.all([stage.plain(path).ended, stage.samekey(path, 'paid-orders.create').ended])
    const unknown = [...stage.heard.intents.values()].filter(({ state }) => state === 'unknown')
    const settled = await settleByHand(site)
    await site.untilPaid()
    const person = { check: unknown.map(({ reference }) => reference), resolve: [] }
    await stage.samekey(path, 'paid-orders.create', { orders: [], person }).ended
    const { rowCount } = await database.query(`select from provider_charges where reference like 'samekey/%'`)
    const byVoucher = stage.orders.filter(({ payment }) => payment === 'voucher').length
    return {
      happened: rowCount ?? 0,
      broken: [
        ...(unknown.length === byVoucher ? [] : [`${unknown.length} orders instead of ${byVoucher} were unknown`]),
        ...(settled === 2 * byVoucher ? [] : [`a person was asked about ${settled} charges`]),
      ],
      database,
    }
  },
}

/** What `settle.ts` does for a person: looks at what is unknown, finds it in the statement, says so. */
async function settleByHand({ database, provider }: PaidSite): Promise<number> {
  const store = postgresServerStore(database)
  const calls = (await store.unknownTasks()).flatMap((task) => task.calls)
  for (const { row } of calls) {
    const { reference } = JSON.parse(row.request) as ChargeRequest
    const statement = await fetch(`${provider.url}/statement?reference=${encodeURIComponent(reference)}`)
    const [charge] = (await statement.json()) as { id: string }[]
    if (charge !== undefined) await settle(store, row.operationId, 'done', 'found in the statement', { id: charge.id })
  }
  return calls.length
}
