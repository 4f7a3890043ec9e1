import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../fault.ts'
import type { Fate } from '../proxy.ts'
import { rulesFor } from '../stage.ts'

const fates: readonly (readonly Fate[])[] = [
  ['lose the answer'],
  [],
  ['lose the request'],
  ['lose the answer silently'],
]
/** How long connections are refused at first. */
const refusingMs = 700

/**
 * The server knows nothing of keys. A refused connection proves that nothing was delivered, so trying again is safe
 * even here; after anything else samekey does not guess.
 */
export const f24: Fault = {
  id: 'F24',
  story: 'Server does not de-duplicate; connections refused, answers lost',
  person: 'check, resolve',
  mayStayUnknown: true,
  async play(stage) {
    const fateOf = (place: number): readonly Fate[] => fates[place % fates.length] ?? []
    const { plain, samekey } = await stage.network(rulesFor(stage.orders, fateOf))
    await Promise.all([plain.refuse(), samekey.refuse()])
    const path = 'legacy/orders'
    const clients = [stage.plain(path), stage.samekey(path, 'legacy.orders')]
    await sleep(refusingMs)
    await Promise.all([plain.accept(), samekey.accept()])
    await Promise.all(clients.map(({ ended }) => ended))
    const unknown = stage.orders.filter((_, place) => fateOf(place).length > 0).length
    return { happened: samekey.seen.filter(({ fate }) => fate !== 'pass').length, besides: { unknown } }
  },
}
