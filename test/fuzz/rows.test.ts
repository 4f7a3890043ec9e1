/** Junk on the shelf beside good rows: the good ones go on, the junk keeps its id and its key (P23, F22, H19). */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { StoredRow } from '../../src/ports.ts'
import { isOpen } from '../../src/protocol/states.ts'
import { commitThenDrop, honestServer, order, origin, world } from '../support/world.ts'
import { anyDamage, damaged, oddValue, wildJson } from './junk.ts'
import { typed } from './replies.ts'
import { runs } from './runs.ts'
import { expectNoStrays } from './strays.ts'

const minute = 60_000

/** What of a row may be junk: its record's text, or a column beside it. Identity is the store's own key. */
const anyJunk = fc.oneof(
  { weight: 4, arbitrary: fc.record({ record: anyDamage }) },
  fc.record({ data: wildJson }),
  fc.record({
    column: fc.constantFrom(
      'token',
      'leaseUntil',
      'state',
      'open',
      'dueAt',
      'laneHolds',
      'laneWaits',
      'twin',
      'format',
    ),
    odd: fc.oneof(
      oddValue,
      fc.constantFrom<unknown>(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, '.', 'tab9.1'),
    ),
  }),
)
type Junk = typeof anyJunk extends fc.Arbitrary<infer T> ? T : never

function spoilt(row: StoredRow, junk: Junk): StoredRow {
  if ('record' in junk) return { ...row, data: JSON.stringify(damaged(JSON.parse(row.data), junk.record)) }
  if ('data' in junk) return { ...row, data: junk.data }
  return { ...row, [junk.column]: junk.odd } as StoredRow
}

it('P23, P5, H19: junk rows stop nobody, keep their key and id, and lead to no second key and no strange error', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyJunk, { minLength: 1, maxLength: 3 }),
      fc.constantFrom('lost' as const, 'down' as const),
      fc.boolean(),
      async (junk, how, blobGone) => {
        const { clock, network, tab } = world()
        const server = honestServer()
        network.script(how === 'lost' ? commitThenDrop(server) : () => Promise.reject(new TypeError('fetch failed')))
        const before = tab()
        for (const [n] of junk.entries()) before.fetch('orders', order(`bad:${n}`, { n })).catch(() => {})
        for (const name of ['good:1', 'good:2']) before.fetch('orders', order(name, { name })).catch(() => {})
        await clock.advance(100)
        before.kill()
        const keys = new Map<string, string>()
        for (const row of await before.store.list(origin, { limit: 99 })) {
          keys.set(row.id, row.key)
          const what = row.id.startsWith('bad:') ? junk[Number(row.id.slice(4))]! : null
          if (what === null) continue
          const change = spoilt(row, what)
          const blobs = blobGone ? { request: null } : {}
          // What the store itself refuses never lies on the shelf.
          await before.store.update(change, { revision: row.revision, token: row.token }, blobs).catch(() => {})
        }
        network.script(server.answer)
        const sent = network.calls.length
        const next = tab({ waitMs: 10_000 })
        await clock.advance(3 * minute)
        for (const name of ['good:1', 'good:2']) {
          expect((await next.fetch.intents.get(name))?.state, 'the good ones go on').toBe('succeeded')
          expect(server.effects.get(keys.get(name)!)).toBe(1)
        }
        const { intents, setAside } = await next.fetch.intents.list()
        for (const [n] of junk.entries()) {
          const id = `bad:${n}`
          const listed = [...intents, ...setAside].filter((one) => one.id === id)
          expect(
            listed.map(({ key }) => key),
            `${id} keeps its key and id`,
          ).toEqual([keys.get(id)])
        }
        const calls = junk.flatMap((_, n) => {
          const again = next.fetch('orders', order(`bad:${n}`, { n }))
          const edited = next.fetch('orders', order(`bad:${n}`, { n, edited: true }))
          return [
            typed(again),
            typed(edited),
            typed(next.fetch.intents.check(`bad:${n}`)),
            typed(next.fetch.intents.cancel(`bad:${n}`)),
          ]
        })
        await clock.advance(3 * minute)
        let open = calls.length
        for (const call of calls) void call.then(() => open--)
        await Promise.race([Promise.all(calls), clock.advance(0)])
        expect(open, 'calls that came to nothing').toBe(0)
        await expectNoStrays()
        for (const { key } of network.writes()) expect([...keys.values()], 'P5: no key but the first').toContain(key)
        expect([...server.effects.values()].every((count) => count === 1)).toBe(true)
        // P33, P39: what cannot be worked on is no busy loop.
        expect(network.calls.length - sent).toBeLessThan(100)
        for (const view of (await next.fetch.intents.list()).intents)
          if (isOpen(view.state) && view.dueAt === null) expect(['attempts', 'lane']).toContain(view.detail)
      },
    ),
    runs(40, 150),
  )
})
