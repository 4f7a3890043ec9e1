import { describe, expect, it } from 'vitest'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { day, type TabOptions, world } from '../support/world.ts'

async function warnings(options: TabOptions): Promise<string[]> {
  const { clock, tab } = world()
  const only = tab(options)
  await clock.advance(1000)
  await only.fetch.start()
  const codes = only.notes.filter((note) => note.type === 'warning').map(({ code }) => code as string)
  return codes.filter((code) => code === 'window_closed' || code === 'keys_url_unused')
}

const registered = { operations: { 'orders.create': {} } }

describe('P35: options that can hardly be meant are told once, at start', () => {
  it('a retention that leaves no window: every ambiguous attempt would be unknown', async () => {
    expect(await warnings({ ...registered, dialect: ietf({ retentionMs: 60_000 }) })).toEqual([
      'window_closed',
      'window_closed',
    ])
    expect(await warnings({ operations: { 'orders.create': { retentionMs: 60_000 } } })).toEqual(['window_closed'])
  })

  it('a keysUrl that no operation can use: look-up and void would silently never happen', async () => {
    expect(await warnings({ keysUrl: '/keys' })).toEqual(['keys_url_unused'])
  })

  it('says nothing where all is well, or the server does not de-duplicate', async () => {
    expect(await warnings({ ...registered, dialect: ietf({ retentionMs: day }) })).toEqual([])
    expect(await warnings({ ...registered, dialect: none })).toEqual([])
  })
})
