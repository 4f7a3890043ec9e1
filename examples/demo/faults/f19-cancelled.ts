import type { Fault } from '../fault.ts'
import type { Fate, Seen } from '../proxy.ts'
import { until } from '../stage.ts'

/** What becomes of the first request of an order that its customer then does not want any more. */
const fates: readonly Fate[] = ['lose the request', 'lose the answer', 'deliver late']
/** Of so many orders, one is wanted. */
const wantedOf = 4

/**
 * The customer wants most of these orders cancelled while nobody knows what became of them: some never arrived, some
 * were placed, some are still under way and arrive after the cancellation.
 */
export const f19: Fault = {
  id: 'F19',
  story: 'Cancelled while in doubt; late copies arrive after that',
  person: 'cancel',
  async play(stage) {
    const { references } = stage
    const isCancelled = (place: number): boolean => place % wantedOf !== 0
    const fateOf = (place: number): Fate => fates[place % fates.length] ?? 'pass'
    const cancelled = references.filter((_, place) => isCancelled(place))
    const { plain, samekey } = await stage.network(() => {
      const known = new Set<string>()
      return ({ method, reference }: Seen): Fate => {
        const place = references.indexOf(reference)
        if (method !== 'POST' || !isCancelled(place)) return 'pass'
        const isFirst = !known.has(reference)
        known.add(reference)
        return isFirst ? fateOf(place) : 'lose the request'
      }
    })
    // All at once, so that each of them is in doubt when it is cancelled.
    const concurrency = references.length
    const clients = [stage.plain('orders', { concurrency }), stage.samekey('orders', 'orders.create', { concurrency })]
    await until('every order was sent', () =>
      [plain, samekey].every(({ seen }) => cancelled.every((one) => seen.some(({ reference }) => reference === one))),
    )
    for (const client of clients) client.say({ cancel: cancelled })
    await Promise.all(clients.map(({ ended }) => ended))
    const [, late] = await Promise.all([plain.deliverLate(), samekey.deliverLate()])
    const taken = late.filter(({ status }) => status < 400)
    // Placed before it was cancelled: too late, and the customer is told.
    const placed = references.filter((_, place) => isCancelled(place) && fateOf(place) === 'lose the answer')
    return {
      happened: cancelled.length,
      broken: taken.map(({ reference, status }) => `a late copy of ${reference} was answered with ${status}`),
      besides: { cancelled: cancelled.length - placed.length },
    }
  },
}
