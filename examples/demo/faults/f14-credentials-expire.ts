import { setTimeout as sleep } from 'node:timers/promises'
import { signIn } from '../../orders/sessions.ts'
import type { Fault } from '../fault.ts'
import { clientNames } from '../house.ts'
import type { Fate, Seen } from '../proxy.ts'
import { until } from '../stage.ts'

/** Orders that get through before. */
const calm = 2
/** Orders that each client has to have sent when the tokens end: no more than it sends at the same time. */
const enough = 6
/** How long nobody signs in again. */
const awayMs = 500

/**
 * The tokens end when some orders are through, some are committed without an answer, and some never arrived. A while
 * later the user signs in again, in both clients.
 */
export const f14: Fault = {
  id: 'F14',
  story: 'Credentials expired in the middle; signed in again later',
  person: 'sign in',
  async play(stage) {
    const { database, references } = stage
    let expired = false
    const { plain, samekey } = await stage.network(() => {
      const known = new Set<string>()
      return ({ reference }: Seen): Fate => {
        const place = references.indexOf(reference)
        if (expired || place < calm) return 'pass'
        const isFirst = !known.has(reference)
        known.add(reference)
        return isFirst && place % 2 === 0 ? 'lose the answer' : 'lose the request'
      }
    })
    const tokens = { plain: await signIn(database, 'plain'), samekey: await signIn(database, 'samekey') }
    const clients = {
      plain: stage.plain('orders', { token: tokens.plain }),
      samekey: stage.samekey('orders', 'orders.create', { token: tokens.samekey }),
    }
    await until('both clients have sent some orders', () =>
      [plain, samekey].every(({ seen }) => new Set(seen.map(({ reference }) => reference)).size >= enough),
    )
    await database.query('update sessions set expires_at = now() where token = any($1)', [Object.values(tokens)])
    expired = true
    const refused = (): number => samekey.seen.filter(({ status }) => status === 401).length
    await until('samekey was refused', () => refused() > 0)
    await until('the plain client was refused', () => plain.seen.some(({ status }) => status === 401))
    await sleep(awayMs)
    const happened = refused()
    for (const client of clientNames) clients[client].say({ token: await signIn(database, client) })
    await Promise.all([clients.plain.ended, clients.samekey.ended])
    return { happened }
  },
}
