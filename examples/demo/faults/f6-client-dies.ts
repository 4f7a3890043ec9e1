import type { Fault } from '../fault.ts'
import type { Fate, TcpProxy } from '../proxy.ts'
import { rulesFor, until } from '../stage.ts'

/** Orders that get through before things go wrong. */
const calm = 3
const always: readonly Fate[] = Array.from({ length: 100 }, () => 'lose the answer silently')
/** Answers that each client has waited for when it is killed. */
const enough = 4

/**
 * Killed with SIGKILL while the server has committed and the answers are still under way. Both are started again on
 * what they had on disk, and given the same orders: the plain client sends again what it does not know to be done.
 */
export const f6: Fault = {
  id: 'F6',
  story: 'Client killed before the answer came, and restarted',
  person: 'check',
  async play(stage) {
    const { plain, samekey } = await stage.network(rulesFor(stage.orders, (place) => (place < calm ? [] : always)))
    const first = { plain: stage.plain('orders'), samekey: stage.samekey('orders', 'orders.create') }
    let happened = 0
    const kill = async (client: 'plain' | 'samekey', network: TcpProxy): Promise<void> => {
      await until(`the ${client} client waits for answers`, () => network.held >= enough)
      if (client === 'samekey') happened = network.held
      await first[client].kill()
    }
    await Promise.all([kill('plain', plain), kill('samekey', samekey)])
    // What was lost is lost; from here on the network is fine.
    plain.heal()
    samekey.heal()
    await Promise.all([stage.plain('orders').ended, stage.samekey('orders', 'orders.create').ended])
    return { happened }
  },
}
