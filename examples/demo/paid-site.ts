/** A site for orders that are paid at once: a shop and a payment provider; the fault brings the workers. */
import type { Behaviour, BehaviourRequest } from '../orders/provider.ts'
import { type ClientName, clientNames, type Site } from './house.ts'
import type { Environment, Program } from './programs.ts'
import { type Stage, until } from './stage.ts'

export interface PaidSite extends Site {
  readonly shop: Program
  readonly provider: Program
  startWorker(env?: Environment, more?: { readonly willBeStopped?: boolean }): Promise<Program>
  /** What the provider does about the coming requests for each order, of both clients. */
  behave(nextOf: (place: number) => readonly Behaviour[]): Promise<void>
  /** Waits until every order of both clients is accepted. */
  untilAccepted(): Promise<void>
  /** Waits until so many calls of each client are under way. */
  untilCharging(atLeast: number): Promise<void>
  /** How many of a client's calls were written down, and what became of them is not known yet. */
  begunCalls(client: ClientName): Promise<number>
  /** Waits until every accepted order is paid. */
  untilPaid(): Promise<void>
}

export async function openPaidSite(stage: Stage, name: string, provider: Environment = {}): Promise<PaidSite> {
  const site = await stage.newSite(name)
  const [shop, started] = await Promise.all([site.start('shop'), site.start('provider', provider)])
  const begunCalls = async (client: ClientName): Promise<number> => {
    const { rowCount } = await site.database.query(
      `select from samekey_calls where principal = $1 and state = 'begun'`,
      [client],
    )
    return rowCount ?? 0
  }
  return {
    ...site,
    shop,
    provider: started,
    startWorker: (env = {}, more = {}) => site.start('worker', { PROVIDER_URL: started.url, ...env }, more),
    async behave(nextOf) {
      for (const client of clientNames) {
        for (const [place, reference] of stage.references.entries()) {
          const body: BehaviourRequest = { reference: `${client}/${reference}`, next: nextOf(place) }
          await fetch(`${started.url}/behaviour`, { method: 'POST', body: JSON.stringify(body) })
        }
      }
    },
    begunCalls,
    untilAccepted: () =>
      until('every order is accepted', async () => {
        const { rows } = await site.database.query<{ accepted: number }>(
          'select count(distinct (account, reference))::integer as accepted from orders',
        )
        return rows[0]?.accepted === clientNames.length * stage.orders.length
      }),
    untilCharging: (atLeast) =>
      until('charges of both clients are under way', async () => {
        return (await begunCalls('plain')) >= atLeast && (await begunCalls('samekey')) >= atLeast
      }),
    untilPaid: () =>
      until('every accepted order is paid', async () => {
        const { rowCount } = await site.database.query(`select from orders where status = 'accepted'`)
        return rowCount === 0
      }),
  }
}
