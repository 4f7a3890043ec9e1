/** The client's window against the real kit, whose rows are reaped as early as they may be (P67). */
import { expect, it } from 'vitest'
import { knowsShop, shop, shopOrder } from '../support/shop.ts'
import { broken, commitThenDrop, day, world } from '../support/world.ts'

const minute = 60_000
const hour = 60 * minute

it('P67: whenever a client comes back, what it sends finds its row, or is not sent: one effect, never two', async () => {
  // From well inside the window to long after the row is gone, the end of the window and of the row among them.
  const away = [
    0,
    6 * hour,
    23 * hour,
    day - 6 * minute,
    day - 5 * minute,
    day,
    day + hour,
    day + hour + minute,
    3 * day,
  ]
  for (const gone of away) {
    const small = world()
    const server = shop(small.clock, { dated: true })
    small.network.script(commitThenDrop(server))
    const first = small.tab(knowsShop)
    await first.fetch('orders', shopOrder('checkout:1')).stored
    await small.pass(0)
    first.kill()
    expect(server.total()).toBe(1)

    small.clock.jump(gone)
    small.network.script(server.answer)
    const later = small.tab(knowsShop)
    await small.pass(2 * hour)
    const view = await later.fetch.intents.get('checkout:1')
    expect([gone, server.total()]).toEqual([gone, 1])
    expect([gone, view?.state]).toEqual([gone, gone < day - 5 * minute - 30_000 ? 'succeeded' : 'unknown'])
  }
})

it('P67: nor does a person who tries again by hand, or a queue that held a copy back', async () => {
  const small = world()
  const server = shop(small.clock, { dated: true })
  small.network.script(commitThenDrop(server), broken())
  const tab = small.tab(knowsShop)
  await tab.fetch('orders', shopOrder('checkout:1')).stored
  await small.pass(minute)
  const [copy] = small.network.calls
  if (copy === undefined) throw new Error('Nothing was sent.')
  small.clock.jump(2 * day)
  small.network.script(server.answer)
  await small.pass(hour)
  await expect(tab.fetch.intents.retry('checkout:1')).rejects.toMatchObject({ code: expect.any(String) })
  // The copy tells its age as of two days ago; what the server's own clock says of the first sending does not lie.
  const headers = { ...copy.headers, 'idempotency-since': new Date(copy.at).toUTCString() }
  const late = new Request(copy.url, { method: copy.method, headers, body: copy.body })
  const answer = await server.answer(copy, late)
  expect([answer.status, await answer.json()]).toMatchObject([409, { code: 'idempotency_expired' }])
  expect(server.total()).toBe(1)
})
