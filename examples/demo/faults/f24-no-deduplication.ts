import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../fault.ts'
import type { Fate } from '../proxy.ts'
import { rulesFor, until } from '../stage.ts'

const fates: readonly (readonly Fate[])[] = [
  [],
  ['lose the answer'],
  ['lose the request'],
  ['lose the answer silently'],
]
/** How long connections are still refused when every intent is stored and the first attempts were made. */
const refusingMs = 300

/**
 * The server knows nothing of keys. A refused connection proves that nothing was delivered, so trying again is safe
 * even here; after anything else samekey does not guess.
 */
export const f24: Fault = {
  id: 'F24',
  story: 'Server does not de-duplicate; refused, then lost',
  person: 'check, resolve',
  mayStayUnknown: true,
  async play(stage) {
    const { plain, samekey } = await stage.network(rulesFor(stage.orders, (place) => fates[place % fates.length] ?? []))
    await Promise.all([plain.refuse(), samekey.refuse()])
    const path = 'legacy/orders'
    const stored = new Set<string>()
    const first = stage.samekey(path, 'legacy.orders', {}, (report) => {
      if (report.type === 'stored') stored.add(report.reference)
    })
    const clients = [stage.plain(path), first]
    await until('every intent is stored', () => stored.size === stage.orders.length)
    await sleep(refusingMs)
    await Promise.all([plain.accept(), samekey.accept()])
    await Promise.all(clients.map(({ ended }) => ended))
    return { happened: samekey.seen.filter(({ fate }) => fate !== 'pass').length }
  },
}
