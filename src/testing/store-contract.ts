/**
 * What every `IntentStore` has to keep, as one suite: each sentence of the port is a test here. Run it over a store of
 * your own before you trust it with intents.
 */

import { isSamekeyError } from '../errors.ts'
import type { IntentStore, NewRow, RowKey, StoredRow } from '../ports.ts'

/** One empty place to keep rows in, made anew for each test. */
export interface StoreBench {
  /** A new store object on this place; all of one bench see the same rows, and the suite closes them. */
  open(): IntentStore | Promise<IntentStore>
  /** Removes the place once all its stores are closed. */
  dispose?(): void | Promise<void>
}

/** The test framework's functions. Those of vitest, jest and Bun fit as they are. */
export interface ContractTools {
  /** Groups tests. */
  describe(name: string, body: () => void): unknown
  /** One test. */
  it(name: string, body: () => Promise<void>): unknown
  /** `toBe` compares by identity, `toEqual` by content. */
  expect(actual: unknown): { toBe(expected: unknown): unknown; toEqual(expected: unknown): unknown }
}

/**
 * Declares the suite.
 *
 * @param name what the store is called in test titles
 * @param make an empty place; called once per test
 * @param tools the test framework
 * @example
 * ```ts
 * import { memoryShelf, memoryStore } from 'samekey/memory'
 * import { storeContract } from 'samekey/testing'
 * import { describe, expect, it } from 'vitest'
 *
 * const bench = () => {
 *   const shelf = memoryShelf()
 *   return { open: () => memoryStore({ shared: shelf }) }
 * }
 * storeContract('memory', bench, { describe, it, expect })
 * ```
 */
export function storeContract(name: string, make: () => StoreBench | Promise<StoreBench>, tools: ContractTools): void {
  const { expect } = tools

  /** A test on one store, and on more of the same place where it asks for them. */
  function it(title: string, body: (store: IntentStore, another: () => Promise<IntentStore>) => Promise<void>): void {
    tools.it(title, async () => {
      const bench = await make()
      const opened: IntentStore[] = []
      const open = async () => {
        const store = await bench.open()
        opened.push(store)
        return store
      }
      try {
        await body(await open(), open)
      } finally {
        await Promise.all(opened.map((store) => store.close()))
        await bench.dispose?.()
      }
    })
  }

  /** The failure of a call that has to be refused as a `StoreFailure` of which nothing was written. */
  async function refusal(call: Promise<unknown>): Promise<{ reason: unknown; written: unknown }> {
    const error = await call.then(
      (value) => new Error(`resolved with ${JSON.stringify(value)} instead of being refused`),
      (reason: unknown) => reason,
    )
    if (!isSamekeyError(error) || error.code !== 'store_failure') throw error
    const { reason, written } = error as unknown as { reason: unknown; written: unknown }
    return { reason, written }
  }

  const keysOf = (rows: readonly StoredRow[]) => rows.map((found) => found.key)

  tools.describe(`store contract: ${name}`, () => {
    tools.describe('insert', () => {
      it('P6: stores the row as it was given, current, at revision 1', async (store) => {
        const given = row({ token: 'token-1', leaseUntil: 1_800_000_000_123, twin: 'digest', dueAt: 7, lane: 'lane' })
        const result = await insert(store, given)
        expect(result).toEqual({ ...given, revision: 1, seq: result.seq, current: true })
        expect(await store.byKey(given)).toEqual(result)
        expect(await store.current(given.client, given.scope, given.id)).toEqual(result)
      })

      it('keeps null apart from empty text, false from null, and fractions of milliseconds', async (store) => {
        const given = row({ token: '', lane: '', twin: '', dueAt: 0.25, leaseUntil: 1_800_000_000_000.5, data: '' })
        const inserted = await insert(store, given)
        expect(inserted).toEqual({ ...given, revision: 1, seq: inserted.seq, current: true })
        const bare = await insert(store, row())
        expect([bare.token, bare.lane, bare.twin, bare.dueAt, bare.leaseUntil]).toEqual([null, null, null, null, null])
        expect([inserted.open, inserted.laneHolds, inserted.laneWaits]).toEqual([true, false, false])
      })

      it('keeps nothing of the given object but the members of a row', async (store) => {
        const given = { ...row(), revision: 9, seq: 9, current: false, more: 'more' }
        const { more, ...rest } = given
        expect(more).toBe('more')
        const inserted = await insert(store, given)
        expect(inserted).toEqual({ ...rest, revision: 1, seq: inserted.seq, current: true })
        expect(await store.byKey(given)).toEqual(inserted)
      })

      it('gives every row a higher seq than all before it, removed ones included', async (store, another) => {
        const first = await insert(store, row())
        const second = await insert(store, row({ client: 'other' }))
        expect(await store.remove(second, { revision: 1 })).toBe(true)
        const third = await insert(await another(), row())
        expect(first.seq < second.seq && second.seq < third.seq).toBe(true)
      })

      it('P6: is told of the row that has the id', async (store) => {
        const holder = await insert(store, row({ id: 'order' }))
        expect(await store.insert(row({ id: 'order' }), {})).toEqual({ inserted: false, taken: 'id', row: holder })
        expect(keysOf(await store.list('client', { limit: 10 }))).toEqual([holder.key])
      })

      it('is told of the row that has the key', async (store) => {
        const holder = await insert(store, row({ id: 'order', key: 'key' }))
        const rival = row({ id: 'another', key: 'key' })
        expect(await store.insert(rival, {})).toEqual({ inserted: false, taken: 'key', row: holder })
        expect(await store.current('client', 'scope', 'another')).toBe(undefined)
      })

      it('looks at the id first when both are taken, so that a submit joins its own intent', async (store) => {
        const given = row({ id: 'order', key: 'key' })
        const holder = await insert(store, given)
        expect(await store.insert(given, {})).toEqual({ inserted: false, taken: 'id', row: holder })
        await insert(store, row({ id: 'other', key: 'other-key' }))
        const rival = await store.insert(row({ id: 'order', key: 'other-key' }), {})
        expect(rival).toEqual({ inserted: false, taken: 'id', row: holder })
      })

      it('writes nothing, blobs included, when it is refused', async (store) => {
        const given = row({ id: 'order', key: 'key' })
        await insert(store, given, { request: bytes(1) })
        await store.insert({ ...given, data: 'rival' }, { request: bytes(2), answer: bytes(3) })
        const rival = row({ id: 'order' })
        await store.insert(rival, { request: bytes(4) })
        expect(await store.blob(given, 'request')).toEqual(bytes(1))
        expect(await store.blob(given, 'answer')).toBe(undefined)
        expect(await store.blob(rival, 'request')).toBe(undefined)
      })
    })

    tools.describe('insert that supersedes', () => {
      it('P7: takes the id over; the superseded row stays under its key, unchanged otherwise', async (store) => {
        const old = await insert(store, row({ id: 'order', open: false, state: 'rejected', dueAt: 5 }))
        const given = row({ id: 'order' })
        const result = await store.insert(given, { request: bytes(1) }, { key: old.key, revision: 1 })
        const current = await store.current('client', 'scope', 'order')
        expect(result).toEqual({ inserted: true, row: current })
        expect(current?.key).toBe(given.key)
        expect(await store.byKey(old)).toEqual({ ...old, current: false })
        expect(keysOf(await store.due('client', 'scope', 9, 9))).toEqual([old.key])
      })

      it('leaves the superseded row open to updates and removal, which do not give the id back', async (store) => {
        const old = await insert(store, row({ id: 'order' }))
        const next = await insert(store, row({ id: 'order' }), {}, { key: old.key, revision: 1 })
        const updated = await store.update({ ...old, state: 'succeeded' }, { revision: 1, token: null })
        expect(updated).toEqual({ ...old, state: 'succeeded', revision: 2, current: false })
        expect(await store.current('client', 'scope', 'order')).toEqual(next)
        expect(await store.remove(old, { revision: 2 })).toBe(true)
        expect(await store.current('client', 'scope', 'order')).toEqual(next)
      })

      it('is refused when the row moved on, and changes nothing', async (store) => {
        const old = await insert(store, row({ id: 'order' }))
        const moved = await store.update({ ...old, state: 'sending' }, { revision: 1, token: null })
        const result = await store.insert(row({ id: 'order' }), {}, { key: old.key, revision: 1 })
        expect(result).toEqual({ inserted: false, taken: 'id', row: moved })
        expect(await store.current('client', 'scope', 'order')).toEqual(moved)
      })

      it('is refused when another row is current', async (store) => {
        const first = await insert(store, row({ id: 'order' }))
        const second = await insert(store, row({ id: 'order' }), {}, { key: first.key, revision: 1 })
        const late = await store.insert(row({ id: 'order' }), {}, { key: first.key, revision: 1 })
        expect(late).toEqual({ inserted: false, taken: 'id', row: second })
      })

      it('is refused when the key is taken, and the old row stays current', async (store) => {
        const old = await insert(store, row({ id: 'order' }))
        const other = await insert(store, row({ id: 'other', key: 'key' }))
        const supersedes = { key: old.key, revision: 1 }
        const foreign = await store.insert(row({ id: 'order', key: 'key' }), {}, supersedes)
        expect(foreign).toEqual({ inserted: false, taken: 'key', row: other })
        const itself = await store.insert(row({ id: 'order', key: old.key }), {}, supersedes)
        expect(itself).toEqual({ inserted: false, taken: 'key', row: old })
        expect(await store.current('client', 'scope', 'order')).toEqual(old)
      })

      it('goes through when nothing is current any more', async (store) => {
        const old = await insert(store, row({ id: 'order' }))
        await store.remove(old, { revision: 1 })
        const next = await insert(store, row({ id: 'order' }), {}, { key: old.key, revision: 1 })
        expect(await store.current('client', 'scope', 'order')).toEqual(next)
      })

      it('lets exactly one of two win', async (store, another) => {
        const old = await insert(store, row({ id: 'order' }))
        const supersedes = { key: old.key, revision: 1 }
        const rivals = [store, await another()].flatMap((each) => [each, each, each])
        const results = await Promise.all(rivals.map((each) => each.insert(row({ id: 'order' }), {}, supersedes)))
        const winners = results.filter((result) => result.inserted)
        expect(winners.length).toBe(1)
        for (const result of results) expect(result.row).toEqual(winners[0]?.row)
        expect((await store.list('client', { id: 'order', limit: 10 })).length).toBe(2)
      })
    })

    tools.describe('update', () => {
      it('replaces what may change, and counts the revision up', async (store) => {
        const old = await insert(store, row({ lane: 'lane' }))
        const change: NewRow = {
          ...old,
          token: 'token',
          leaseUntil: 2,
          state: 'waiting',
          open: false,
          dueAt: 3,
          laneHolds: true,
          laneWaits: true,
          twin: 'twin',
          format: 2,
          data: 'new data',
        }
        const updated = await store.update(change, { revision: 1, token: null })
        expect(updated).toEqual({ ...change, revision: 2, seq: old.seq, current: true })
        expect(await store.byKey(old)).toEqual(updated)
        expect(await store.current(old.client, old.scope, old.id)).toEqual(updated)
      })

      it('does not touch id and lane, whatever it is given', async (store) => {
        const old = await insert(store, row({ id: 'order', lane: 'lane' }))
        const updated = await store.update({ ...old, id: 'other', lane: null }, { revision: 1, token: null })
        expect([updated?.id, updated?.lane]).toEqual(['order', 'lane'])
        expect(await store.current('client', 'scope', 'other')).toBe(undefined)
      })

      it('P47: resolves with null at another revision or token, and changes nothing', async (store) => {
        const first = await insert(store, row({ token: 'mine' }), { request: bytes(1) })
        const change = { ...first, state: 'changed' }
        const blobs = { request: bytes(2) }
        expect(await store.update(change, { revision: 2, token: 'mine' }, blobs)).toBe(null)
        expect(await store.update(change, { revision: 0, token: 'mine' }, blobs)).toBe(null)
        expect(await store.update(change, { revision: 1, token: 'yours' }, blobs)).toBe(null)
        expect(await store.update(change, { revision: 1, token: null }, blobs)).toBe(null)
        expect(await store.byKey(first)).toEqual(first)
        expect(await store.blob(first, 'request')).toEqual(bytes(1))
      })

      it('tells no token from an empty one', async (store) => {
        const free = await insert(store, row())
        expect(await store.update(free, { revision: 1, token: '' })).toBe(null)
        const held = await insert(store, row({ token: '' }))
        expect(await store.update(held, { revision: 1, token: null })).toBe(null)
      })

      it('resolves with null when the row is gone or never was', async (store) => {
        const never = row()
        expect(await store.update(never, { revision: 1, token: null }, { request: bytes(1) })).toBe(null)
        expect(await store.blob(never, 'request')).toBe(undefined)
        const gone = await insert(store, row())
        await store.remove(gone, { revision: 1 })
        expect(await store.update(gone, { revision: 1, token: null })).toBe(null)
        expect(await store.byKey(gone)).toBe(undefined)
      })

      it('B36: lets exactly one of two stores win', async (store, another) => {
        const old = await insert(store, row())
        const stores = [store, await another()]
        const claims = await Promise.all(
          Array.from({ length: 20 }, (_, turn) => {
            const change = { ...old, token: `token-${turn}` }
            return stores[turn % 2]?.update(change, { revision: 1, token: null })
          }),
        )
        const won = claims.filter((claim) => claim !== null)
        expect(won.length).toBe(1)
        expect(await store.byKey(old)).toEqual(won[0])
      })
    })

    tools.describe('remove', () => {
      it('removes the row, its blobs and every way to find it, and frees the id', async (store) => {
        const given = row({ id: 'order', dueAt: 1, twin: 'twin', lane: 'lane', laneHolds: true })
        const old = await insert(store, given, { request: bytes(1), answer: bytes(2) })
        expect(await store.remove(old, { revision: 1 })).toBe(true)
        expect(await store.byKey(old)).toBe(undefined)
        expect(await store.current('client', 'scope', 'order')).toBe(undefined)
        expect(await store.blob(old, 'request')).toBe(undefined)
        expect(await store.blob(old, 'answer')).toBe(undefined)
        expect(await store.due('client', 'scope', 9, 9)).toEqual([])
        expect(await store.nextDueAt('client', 'scope')).toBe(null)
        expect(await store.laneHead('client', 'lane')).toBe(undefined)
        expect(await store.twins('client', 'scope', 'twin')).toEqual([])
        expect(await store.list('client', { limit: 9 })).toEqual([])
        expect(await store.countElsewhere('client', 'elsewhere')).toBe(0)
        const again = await insert(store, given)
        expect(await store.blob(again, 'request')).toBe(undefined)
      })

      it('is false at another revision, and when the row is gone', async (store) => {
        const old = await insert(store, row(), { request: bytes(1) })
        expect(await store.remove(old, { revision: 2 })).toBe(false)
        expect(await store.byKey(old)).toEqual(old)
        expect(await store.blob(old, 'request')).toEqual(bytes(1))
        expect(await store.remove(old, { revision: 1 })).toBe(true)
        expect(await store.remove(old, { revision: 1 })).toBe(false)
      })

      it('does not make a superseded row current again', async (store) => {
        const old = await insert(store, row({ id: 'order' }))
        const next = await insert(store, row({ id: 'order' }), {}, { key: old.key, revision: 1 })
        await store.remove(next, { revision: 1 })
        expect(await store.current('client', 'scope', 'order')).toBe(undefined)
        expect(await store.byKey(old)).toEqual({ ...old, current: false })
      })
    })

    tools.describe('blobs', () => {
      it('are written with the row, left alone when not named, replaced, and removed with null', async (store) => {
        const old = await insert(store, row(), { request: bytes(1, 2, 3) })
        expect(await store.blob(old, 'request')).toEqual(bytes(1, 2, 3))
        expect(await store.blob(old, 'answer')).toBe(undefined)
        await store.update(old, { revision: 1, token: null }, { answer: bytes(4) })
        expect(await store.blob(old, 'request')).toEqual(bytes(1, 2, 3))
        expect(await store.blob(old, 'answer')).toEqual(bytes(4))
        await store.update(old, { revision: 2, token: null }, { request: null, answer: bytes(5, 6) })
        expect(await store.blob(old, 'request')).toBe(undefined)
        expect(await store.blob(old, 'answer')).toEqual(bytes(5, 6))
        await store.update(old, { revision: 3, token: null })
        expect(await store.blob(old, 'answer')).toEqual(bytes(5, 6))
      })

      it('may be empty, which is not the same as absent', async (store) => {
        const old = await insert(store, row(), { request: bytes(), answer: null })
        expect(await store.blob(old, 'request')).toEqual(bytes())
        expect(await store.blob(old, 'answer')).toBe(undefined)
      })

      it('P9: are taken when the method is called, and only the part that the view shows', async (store) => {
        const buffer = bytes(0, 1, 2, 3, 4)
        const inserting = store.insert(row({ key: 'key' }), { request: buffer.subarray(1, 3) })
        buffer.fill(9)
        await inserting
        const key = { client: 'client', scope: 'scope', key: 'key' }
        const found = await store.blob(key, 'request')
        expect(found).toEqual(bytes(1, 2))
        expect(found?.buffer.byteLength).toBe(2)
      })

      it('are given out as copies', async (store) => {
        const old = await insert(store, row(), { request: bytes(1, 2) })
        const copy = await store.blob(old, 'request')
        copy?.fill(9)
        expect(await store.blob(old, 'request')).toEqual(bytes(1, 2))
      })

      it('may be large', async (store, another) => {
        const large = new Uint8Array(5 * 1024 * 1024).map((_, at) => (at * 31 + (at >>> 8)) % 256)
        const old = await insert(store, row(), { answer: large })
        const found = await (await another()).blob(old, 'answer')
        expect(found?.length).toBe(large.length)
        expect(found?.every((byte, at) => byte === large[at])).toBe(true)
      })
    })

    tools.describe('due', () => {
      it('gives what is due, the longest due first, ties in order of insertion, up to the limit', async (store) => {
        const dueTimes: readonly (readonly [string, number | null])[] = [
          ['at 30', 30],
          ['never', null],
          ['at 20 first', 20],
          ['at 31', 31],
          ['at 20 second', 20],
          ['at 9', 9],
        ]
        for (const [key, dueAt] of dueTimes) await insert(store, row({ key, dueAt }))
        const order = ['at 9', 'at 20 first', 'at 20 second', 'at 30']
        expect(keysOf(await store.due('client', 'scope', 30, 100))).toEqual(order)
        expect(keysOf(await store.due('client', 'scope', 30, 2))).toEqual(order.slice(0, 2))
        expect(await store.due('client', 'scope', 30, 0)).toEqual([])
        expect(await store.due('client', 'scope', 8.9, 100)).toEqual([])
      })

      it('follows updates', async (store) => {
        const first = await insert(store, row({ key: 'first', dueAt: 10 }))
        await insert(store, row({ key: 'second', dueAt: 20 }))
        await store.update({ ...first, dueAt: 30 }, { revision: 1, token: null })
        expect(keysOf(await store.due('client', 'scope', 100, 9))).toEqual(['second', 'first'])
        expect(await store.nextDueAt('client', 'scope')).toBe(20)
        await store.update({ ...first, dueAt: null }, { revision: 2, token: null })
        expect(keysOf(await store.due('client', 'scope', 100, 9))).toEqual(['second'])
      })

      it('looks at neither state nor lease: that is for whoever asks', async (store) => {
        await insert(store, row({ key: 'held', token: 'token', leaseUntil: 1_000, dueAt: 1, open: false }))
        expect(keysOf(await store.due('client', 'scope', 5, 9))).toEqual(['held'])
      })

      it('nextDueAt is the smallest time, or null', async (store) => {
        expect(await store.nextDueAt('client', 'scope')).toBe(null)
        await insert(store, row())
        expect(await store.nextDueAt('client', 'scope')).toBe(null)
        await insert(store, row({ dueAt: 1_800_000_000_000 }))
        const sooner = await insert(store, row({ dueAt: 1_700_000_000_000.5 }))
        expect(await store.nextDueAt('client', 'scope')).toBe(1_700_000_000_000.5)
        await store.remove(sooner, { revision: 1 })
        expect(await store.nextDueAt('client', 'scope')).toBe(1_800_000_000_000)
      })

      it('nextDueAt looks past what is due already: that must not hide the next time', async (store) => {
        await insert(store, row({ dueAt: 10 }))
        await insert(store, row({ dueAt: 10 }))
        await insert(store, row({ dueAt: 20 }))
        expect(await store.nextDueAt('client', 'scope', 9)).toBe(10)
        expect(await store.nextDueAt('client', 'scope', 10)).toBe(20)
        expect(await store.nextDueAt('client', 'scope', 20)).toBe(null)
      })
    })

    tools.describe('lanes', () => {
      const waiting = { lane: 'lane', laneHolds: true, laneWaits: true } as const
      const head = (store: IntentStore) => store.laneHead('client', 'lane').then((found) => found?.key)

      it('P34: the head is the first row that holds, in order of insertion', async (store) => {
        expect(await head(store)).toBe(undefined)
        await insert(store, row({ key: 'a', lane: 'lane', laneHolds: false }))
        await insert(store, row({ key: 'b', ...waiting }))
        await insert(store, row({ key: 'c', ...waiting }))
        expect(await head(store)).toBe('b')
      })

      it('P34: an insert at the head of an empty lane has its turn at once, without a second revision', async (store) => {
        const first = await insert(store, row(waiting))
        expect([first.dueAt, first.revision]).toEqual([0, 1])
        expect(await store.byKey(first)).toEqual(first)
        expect(await store.nextDueAt('client', 'scope')).toBe(0)
        const second = await insert(store, row(waiting))
        expect(second.dueAt).toBe(null)
        expect(keysOf(await store.due('client', 'scope', 0, 9))).toEqual([first.key])
      })

      it('P34: an update that lets go passes the turn on in the same transaction', async (store) => {
        const first = await insert(store, row(waiting))
        const second = await insert(store, row(waiting))
        const third = await insert(store, row(waiting))
        const done = { ...first, dueAt: null, laneHolds: false, laneWaits: false, open: false }
        await store.update(done, { revision: 1, token: null })
        expect(await store.laneHead('client', 'lane')).toEqual({ ...second, dueAt: 0 })
        expect(await store.byKey(third)).toEqual(third)
        expect(keysOf(await store.due('client', 'scope', 0, 9))).toEqual([second.key])
      })

      it('P34: so does a removal', async (store) => {
        const first = await insert(store, row(waiting))
        const second = await insert(store, row(waiting))
        await store.remove(first, { revision: 1 })
        expect(await store.laneHead('client', 'lane')).toEqual({ ...second, dueAt: 0 })
      })

      it('P34: the turn goes to a row that waits while the one before it was never in the way', async (store) => {
        await insert(store, row({ lane: 'lane', laneHolds: false, laneWaits: true }))
        const second = await insert(store, row(waiting))
        expect(second.dueAt).toBe(0)
      })

      it('a head that holds without waiting is not made due, nor is anything behind it', async (store) => {
        const first = await insert(store, row({ lane: 'lane', laneHolds: true, laneWaits: false }))
        const second = await insert(store, row(waiting))
        expect([first.dueAt, second.dueAt]).toEqual([null, null])
        const updated = await store.update({ ...first, state: 'unknown' }, { revision: 1, token: null })
        expect(updated?.dueAt).toBe(null)
        expect(await store.nextDueAt('client', 'scope')).toBe(null)
        expect(await head(store)).toBe(first.key)
      })

      it('a head that has a due time keeps it', async (store) => {
        const first = await insert(store, row({ ...waiting, dueAt: 500 }))
        expect(first.dueAt).toBe(500)
        await insert(store, row(waiting))
        expect(await store.nextDueAt('client', 'scope')).toBe(500)
      })

      it('an update of the head itself comes back as it was stored: with its turn', async (store) => {
        const first = await insert(store, row({ lane: 'lane', laneHolds: true, laneWaits: false }))
        const updated = await store.update({ ...first, laneWaits: true }, { revision: 1, token: null })
        expect([updated?.dueAt, updated?.revision]).toEqual([0, 2])
        expect(await store.byKey(first)).toEqual(updated)
      })

      it('a row that holds again stands where it was inserted', async (store) => {
        const first = await insert(store, row({ key: 'first', lane: 'lane', laneHolds: false }))
        await insert(store, row({ key: 'second', ...waiting }))
        expect(await head(store)).toBe('second')
        await store.update({ ...first, laneHolds: true }, { revision: 1, token: null })
        expect(await head(store)).toBe('first')
      })

      it('the turn does not make a stale holder of the head miss its revision', async (store) => {
        const first = await insert(store, row(waiting))
        const second = await insert(store, row(waiting))
        await store.remove(first, { revision: 1 })
        const claimed = await store.update({ ...second, token: 'token' }, { revision: 1, token: null })
        expect([claimed?.revision, claimed?.token]).toEqual([2, 'token'])
      })

      it('one lane may run through several scopes of a client, never through clients', async (store) => {
        const first = await insert(store, row({ ...waiting, scope: 'one' }))
        const second = await insert(store, row({ ...waiting, scope: 'two' }))
        const foreign = await insert(store, row({ ...waiting, client: 'foreign' }))
        expect([first.dueAt, second.dueAt, foreign.dueAt]).toEqual([0, null, 0])
        await store.remove(first, { revision: 1 })
        expect(await store.nextDueAt('client', 'two')).toBe(0)
      })

      it('P34: passes every turn on when many leave at once', async (store, another) => {
        const stores = [store, await another()]
        const rows: StoredRow[] = []
        for (let at = 0; at < 12; at += 1) rows.push(await insert(store, row(waiting)))
        const leaving = rows.slice(0, 11)
        await Promise.all(leaving.map((each, at) => stores[at % 2]?.remove(each, { revision: 1 })))
        expect(await store.laneHead('client', 'lane')).toEqual({ ...rows[11], dueAt: 0 })
      })
    })

    tools.describe('searches', () => {
      it('P10: twins are the rows of a scope with this digest, in order of insertion', async (store) => {
        const first = await insert(store, row({ key: 'first', twin: 'digest' }))
        await insert(store, row({ key: 'second', twin: 'digest', open: false }))
        await insert(store, row({ key: 'other digest', twin: 'digest2' }))
        await insert(store, row({ key: 'other scope', twin: 'digest', scope: 'other' }))
        await insert(store, row({ key: 'none' }))
        expect(keysOf(await store.twins('client', 'scope', 'digest'))).toEqual(['first', 'second'])
        await store.update({ ...first, twin: null }, { revision: 1, token: null })
        expect(keysOf(await store.twins('client', 'scope', 'digest'))).toEqual(['second'])
      })

      it('list filters by scope, state, id and openness, all at once, in order of insertion', async (store) => {
        const a = await insert(store, row({ key: 'a', id: 'x', state: 'queued' }))
        await insert(store, row({ key: 'b', id: 'x', state: 'waiting' }), {}, { key: a.key, revision: 1 })
        await insert(store, row({ key: 'c', state: 'succeeded', open: false }))
        await insert(store, row({ key: 'd', id: 'x', state: 'queued', scope: 'other' }))
        await insert(store, row({ key: 'e', state: 'unknown' }))
        const listed = async (filter: Omit<Parameters<IntentStore['list']>[1], 'limit'>) =>
          keysOf(await store.list('client', { ...filter, limit: 50 })).join('')
        expect(await listed({})).toBe('abcde')
        expect(await listed({ scope: 'scope' })).toBe('abce')
        expect(await listed({ id: 'x' })).toBe('abd')
        expect(await listed({ id: 'x', scope: 'scope' })).toBe('ab')
        expect(await listed({ states: ['queued', 'unknown'] })).toBe('ade')
        expect(await listed({ states: [] })).toBe('')
        expect(await listed({ open: true })).toBe('abde')
        expect(await listed({ open: false })).toBe('c')
        expect(await listed({ open: true, scope: 'scope', states: ['queued'] })).toBe('a')
        expect(await listed({ open: true, scope: 'scope', states: ['waiting'], id: 'x' })).toBe('b')
        expect(await listed({ open: false, scope: 'other' })).toBe('')
      })

      it('list pages by seq without a gap or a double, whatever the filter leaves out', async (store) => {
        const expected: string[] = []
        for (let at = 0; at < 23; at += 1) {
          const key = `key-${at}`
          const scope = at % 3 === 0 ? 'other' : 'scope'
          await insert(store, row({ key, scope, open: at % 2 === 0 }))
          if (scope === 'scope' && at % 2 === 0) expected.push(key)
        }
        const seen: string[] = []
        let afterSeq: number | undefined
        do {
          const filter = { scope: 'scope', open: true, limit: 3 }
          const page = await store.list('client', afterSeq === undefined ? filter : { ...filter, afterSeq })
          expect(page.length <= 3).toBe(true)
          seen.push(...keysOf(page))
          afterSeq = page.at(-1)?.seq
        } while (afterSeq !== undefined)
        expect(seen).toEqual(expected)
        expect(await store.list('client', { limit: 0 })).toEqual([])
      })

      it('list follows openness', async (store) => {
        const old = await insert(store, row())
        await store.update({ ...old, open: false }, { revision: 1, token: null })
        expect(await store.list('client', { scope: 'scope', open: true, limit: 9 })).toEqual([])
        expect((await store.list('client', { scope: 'scope', open: false, limit: 9 })).length).toBe(1)
      })

      it('P50: countElsewhere counts the open rows of all other scopes of the client', async (store) => {
        await insert(store, row())
        const a = await insert(store, row({ scope: 'a' }))
        await insert(store, row({ scope: 'a' }))
        await insert(store, row({ scope: 'z' }))
        await insert(store, row({ scope: 'z', open: false }))
        await insert(store, row({ scope: 'a', client: 'foreign' }))
        expect(await store.countElsewhere('client', 'scope')).toBe(3)
        expect(await store.countElsewhere('client', 'a')).toBe(2)
        expect(await store.countElsewhere('client', 'nobody')).toBe(4)
        expect(await store.countElsewhere('nobody', 'scope')).toBe(0)
        await store.update({ ...a, open: false }, { revision: 1, token: null })
        expect(await store.countElsewhere('client', 'scope')).toBe(2)
      })
    })

    tools.describe('whose', () => {
      it('P3, P4: clients and scopes never meet, even with equal ids and keys', async (store) => {
        const names = { id: 'id', key: 'key', dueAt: 1, twin: 'twin' } as const
        const places: readonly RowKey[] = [
          { client: 'client', scope: 'scope', key: 'key' },
          { client: 'client', scope: 'other', key: 'key' },
          { client: 'foreign', scope: 'scope', key: 'key' },
          // Joined carelessly, these two would be one name.
          { client: 'a', scope: 'b:c', key: 'key' },
          { client: 'a:b', scope: 'c', key: 'key' },
        ]
        const rows: StoredRow[] = []
        for (const place of places)
          rows.push(await insert(store, row({ ...names, ...place }), { request: bytes(rows.length) }))
        for (const [at, each] of rows.entries()) {
          const { client, scope } = each
          expect(await store.byKey(each)).toEqual(each)
          expect(await store.current(client, scope, 'id')).toEqual(each)
          expect(await store.due(client, scope, 9, 9)).toEqual([each])
          expect(await store.twins(client, scope, 'twin')).toEqual([each])
          expect(await store.list(client, { scope, limit: 9 })).toEqual([each])
          expect(await store.blob(each, 'request')).toEqual(bytes(at))
        }
        const [first] = rows
        if (first !== undefined) await store.remove(first, { revision: 1 })
        for (const each of rows.slice(1)) expect(await store.byKey(each)).toEqual(each)
      })

      it('takes any text apart from NUL and half surrogate pairs as it is', async (store) => {
        const texts = [
          '',
          ' ',
          'Ä',
          'A\u0308',
          'é',
          'e\u0301',
          '日本語',
          '🛒',
          '👩‍👩‍👧',
          '\u{10FFFF}',
          '\uFFFD',
          '\uFEFF',
          'a\nb\t',
          "'; DROP TABLE rows; --",
          '%_\\',
          'Case',
          'case',
          '1',
          '01',
          '1e0',
        ]
        for (const text of texts)
          await insert(store, row({ client: text, scope: text, id: text, key: text, data: text }))
        for (const text of texts) {
          const found = await store.byKey({ client: text, scope: text, key: text })
          expect([found?.client, found?.scope, found?.id, found?.data]).toEqual([text, text, text, text])
          expect((await store.list(text, { scope: text, id: text, limit: 9 })).length).toBe(1)
        }
      })

      it('refuses NUL and half surrogate pairs everywhere, so that no two ids can become one', async (store) => {
        const refused = { reason: 'other', written: 'no' }
        for (const bad of ['a\0b', 'a\uD800', '\uDC00b', '\uDC00\uD800']) {
          for (const member of ['client', 'scope', 'id', 'key', 'token', 'state', 'lane', 'twin', 'data'] as const) {
            expect(await refusal(store.insert(row({ [member]: bad }), {}))).toEqual(refused)
          }
          const key = { client: 'client', scope: 'scope', key: bad }
          const change = await insert(store, row())
          expect(await refusal(store.update({ ...change, data: bad }, { revision: 1, token: null }))).toEqual(refused)
          expect(await refusal(store.update(change, { revision: 1, token: bad }))).toEqual(refused)
          expect(await refusal(store.remove(key, { revision: 1 }))).toEqual(refused)
          expect(await refusal(store.byKey(key))).toEqual(refused)
          expect(await refusal(store.blob(key, 'request'))).toEqual(refused)
          expect(await refusal(store.current('client', 'scope', bad))).toEqual(refused)
          expect(await refusal(store.due('client', bad, 1, 1))).toEqual(refused)
          expect(await refusal(store.nextDueAt(bad, 'scope'))).toEqual(refused)
          expect(await refusal(store.laneHead('client', bad))).toEqual(refused)
          expect(await refusal(store.twins('client', 'scope', bad))).toEqual(refused)
          expect(await refusal(store.list('client', { scope: bad, limit: 1 }))).toEqual(refused)
          expect(await refusal(store.countElsewhere('client', bad))).toEqual(refused)
          expect(await store.remove(change, { revision: 1 })).toBe(true)
        }
        expect(await store.list('client', { limit: 9 })).toEqual([])
      })
    })

    tools.describe('several at once', () => {
      it('B36: keeps all of 200 rows that two store objects insert at once', async (store, another) => {
        const stores = [store, await another()]
        const rows = Array.from({ length: 200 }, (_, at) => row({ key: `key-${at}`, dueAt: at }))
        const results = await Promise.all(
          rows.map((each, at) => stores[at % 2]?.insert(each, { request: bytes(at % 256) })),
        )
        expect(results.every((result) => result?.inserted)).toBe(true)
        expect(new Set(results.map((result) => result?.row.seq)).size).toBe(200)
        const listed = await store.list('client', { scope: 'scope', limit: 500 })
        expect(new Set(keysOf(listed)).size).toBe(200)
        expect(keysOf(await store.due('client', 'scope', 500, 500))).toEqual(rows.map((each) => each.key))
        for (const at of [0, 1, 198, 199]) expect(await store.blob(rows[at] ?? row(), 'request')).toEqual(bytes(at))
      })

      it('P6: lets exactly one of many inserts of one id win, and shows it to all others', async (store, another) => {
        const stores = [store, await another(), await another()]
        const results = await Promise.all(
          Array.from({ length: 30 }, (_, at) => stores[at % 3]?.insert(row({ id: 'order' }), {})),
        )
        const [winner, ...more] = results.filter((result) => result?.inserted)
        expect(more.length).toBe(0)
        for (const result of results) expect(result?.row).toEqual(winner?.row)
        expect((await store.list('client', { limit: 99 })).length).toBe(1)
      })

      it('loses no update of many that read again and try again', async (store, another) => {
        const old = await insert(store, row({ data: '0' }))
        const addOne = async (each: IntentStore) => {
          for (;;) {
            const seen = await each.byKey(old)
            if (seen === undefined) throw new Error('the row is gone')
            const change = { ...seen, data: String(Number(seen.data) + 1) }
            if ((await each.update(change, { revision: seen.revision, token: null })) !== null) return
          }
        }
        const stores = [store, await another()]
        await Promise.all(stores.flatMap((each) => Array.from({ length: 8 }, () => addOne(each))))
        const found = await store.byKey(old)
        expect([found?.data, found?.revision]).toEqual(['16', 17])
      })

      it('sees at once what another store object of its location wrote', async (store, another) => {
        const second = await another()
        expect(second.location).toBe(store.location)
        const old = await insert(store, row(), { request: bytes(1) })
        expect(await second.byKey(old)).toEqual(old)
        const updated = await second.update({ ...old, state: 'seen' }, { revision: 1, token: null })
        expect(await store.byKey(old)).toEqual(updated)
      })
    })

    tools.describe('close', () => {
      it('says what it is', async (store) => {
        expect([typeof store.kind, typeof store.durable, typeof store.location]).toEqual([
          'string',
          'boolean',
          'string',
        ])
        expect(store.kind !== '' && store.location !== '').toBe(true)
      })

      it('waits for what was begun', async (store, another) => {
        let inserted = 0
        const inserts = Array.from({ length: 20 }, async () => {
          const result = await store.insert(row(), {})
          if (result.inserted) inserted += 1
        })
        await store.close()
        // The callers hear of it in the same moment.
        for (let step = 0; step < 50; step += 1) await null
        expect(inserted).toBe(20)
        await Promise.all(inserts)
        expect((await (await another()).list('client', { limit: 99 })).length).toBe(20)
      })

      it('refuses every later call, and closing again is harmless', async (store) => {
        const old = await insert(store, row())
        await store.close()
        await store.close()
        const closed = { reason: 'closed', written: 'no' }
        expect(await refusal(store.insert(row(), {}))).toEqual(closed)
        expect(await refusal(store.update(old, { revision: 1, token: null }))).toEqual(closed)
        expect(await refusal(store.remove(old, { revision: 1 }))).toEqual(closed)
        expect(await refusal(store.current('client', 'scope', old.id))).toEqual(closed)
        expect(await refusal(store.byKey(old))).toEqual(closed)
        expect(await refusal(store.blob(old, 'request'))).toEqual(closed)
        expect(await refusal(store.due('client', 'scope', 1, 1))).toEqual(closed)
        expect(await refusal(store.nextDueAt('client', 'scope'))).toEqual(closed)
        expect(await refusal(store.laneHead('client', 'lane'))).toEqual(closed)
        expect(await refusal(store.twins('client', 'scope', 'twin'))).toEqual(closed)
        expect(await refusal(store.list('client', { limit: 1 }))).toEqual(closed)
        expect(await refusal(store.countElsewhere('client', 'scope'))).toEqual(closed)
      })

      it('leaves the rows to other store objects, which stay open', async (store, another) => {
        const second = await another()
        const old = await insert(store, row({ dueAt: 5 }), { request: bytes(1) })
        await store.close()
        expect(await second.byKey(old)).toEqual(old)
        const third = await another()
        expect(await third.due('client', 'scope', 5, 9)).toEqual([old])
        expect(await third.blob(old, 'request')).toEqual(bytes(1))
      })

      it('may be closed before it was ever used', async (store) => {
        await store.close()
        expect(await refusal(store.nextDueAt('client', 'scope'))).toEqual({ reason: 'closed', written: 'no' })
      })
    })
  })
}

let made = 0

/** A row to insert; ids and keys differ from call to call unless given. */
function row(given: Partial<NewRow> = {}): NewRow {
  made += 1
  return {
    client: 'client',
    scope: 'scope',
    id: `id-${made}`,
    key: `key-made-${made}`,
    token: null,
    leaseUntil: null,
    state: 'queued',
    open: true,
    dueAt: null,
    lane: null,
    laneHolds: false,
    laneWaits: false,
    twin: null,
    format: 1,
    data: '{"some":"data"}',
    ...given,
  }
}

function bytes(...values: readonly number[]): Uint8Array {
  return Uint8Array.from(values)
}

/** Inserts where nothing can be in the way. */
async function insert(
  store: IntentStore,
  given: NewRow,
  blobs: Parameters<IntentStore['insert']>[1] = {},
  supersedes?: Parameters<IntentStore['insert']>[2],
): Promise<StoredRow> {
  const result = await store.insert(given, blobs, supersedes)
  if (!result.inserted) throw new Error(`not inserted: the ${result.taken} is taken by ${JSON.stringify(result.row)}`)
  return result.row
}
