import { expect, it } from 'vitest'
import { knowsShop, shop, shopOrder } from '../support/shop.ts'
import { broken, commitThenDrop, order, world } from '../support/world.ts'

it('shop sync', async () => {
  const { clock, network, tab } = world()
  const server = shop(clock)
  network.script(commitThenDrop(server), server.answer)
  const a = tab(knowsShop)
  const w = a.fetch('orders', shopOrder('1'))
  const [o] = await Promise.all([w.outcome(), clock.advance(60_000)])
  expect(o.state).toBe('succeeded')
  expect(server.total()).toBe(1)
  console.log(network.calls.map((c) => `${c.method} ${c.url} ${c.age} ${c.at}`), clock.pending())
  await Promise.all([a.fetch.stop(), clock.advance(10_000)])
  console.log(clock.pending())
})
it('shop task', async () => {
  const { clock, network, tab } = world()
  const server = shop(clock)
  server.take('as_task')
  network.script(server.answer)
  const a = tab(knowsShop)
  const w = a.fetch('orders', shopOrder('1'))
  await clock.advance(20_000)
  const { key } = await w.stored
  console.log(await a.fetch.intents.get('1'))
  await server.finish(key)
  const [o] = await Promise.all([w.outcome(), clock.advance(60_000)])
  expect(o.state).toBe('succeeded')
  console.log(network.calls.map((c) => `${c.method} ${c.url} ${c.age} ${c.at}`), clock.pending())
})
it('damaged hot loop', async () => {
  const { clock, network, tab } = world()
  network.script(broken())
  const a = tab()
  const w = a.fetch('orders', order('1'))
  await w.stored
  await clock.advance(100)
  a.kill()
  const row = (await a.store.current('https://api.example.com', 'anonymous', '1'))!
  await a.store.update({ ...row, data: '{' }, { revision: row.revision, token: row.token })
  let n = 0
  const b = tab({ wrapStore: (s) => new Proxy(s, { get(t, k) { if (k === 'due') { n++; return async (...x: any[]) => { const r = await (t as any).due(...x); console.log('due', x[2]-1796126400000, r.length); return r } } return Reflect.get(t, k) } }) })
  console.log(row.state, row.dueAt, clock.now(), row.token); const t0 = Date.now()
  await clock.advance(120_000)
  console.log('due calls', n, Date.now() - t0, b.notes.length)
})
