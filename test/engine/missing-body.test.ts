import { expect, it } from 'vitest'
import { broken, honestServer, order, world } from '../support/world.ts'

it('P23, P5: a record whose body was lost from the store is never sent without it (no other request under its key)', async () => {
  const { clock, network, tab } = world()
  const server = honestServer()
  network.script(broken(), server.answer)
  const first = tab()
  first.fetch('orders', order('checkout:1')).catch(() => {})
  await clock.advance(10)
  first.kill()

  const second = tab({ autoStart: false })
  const [row] = await second.store.list('https://api.example.com', { limit: 9 })
  if (row === undefined) throw new Error('nothing was stored')
  await second.store.update(row, { revision: row.revision, token: row.token }, { request: null })
  await second.fetch.start()
  await clock.advance(3600_000)

  expect(network.writes()).toHaveLength(1)
  expect(server.total()).toBe(0)
  expect(await second.fetch.intents.get('checkout:1')).toMatchObject({ inDoubt: true })
  const codes = second.notes.filter((note) => note.type === 'warning').map((note) => note.code)
  expect(codes.filter((code) => code === 'record_set_aside')).toHaveLength(1)
  expect((await second.fetch.intents.abandon('checkout:1', 'asked the shop', { force: true })).state).not.toBe(
    'waiting',
  )
})
