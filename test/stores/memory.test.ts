import { describe, expect, it } from 'vitest'
import { memoryShelf, memoryStore } from '../../src/stores/memory.ts'
import { storeContract } from '../../src/testing/index.ts'
import { rowNamed } from './fixtures/rows.ts'

storeContract(
  'memory',
  () => {
    const shared = memoryShelf()
    return { open: () => memoryStore({ shared }) }
  },
  { describe, it, expect },
)

describe('memory store', () => {
  it('says that it is not durable', () => {
    expect(memoryStore()).toMatchObject({ kind: 'memory', durable: false })
  })

  it('stands on a shelf of its own unless it is given one', async () => {
    const [one, two] = [memoryStore(), memoryStore()]
    expect(one.location).not.toBe(two.location)
    await one.insert(rowNamed('one'), {})
    expect(await two.list('client', { limit: 9 })).toEqual([])
  })

  it('gives out rows that nobody can change behind its back', async () => {
    const store = memoryStore()
    const given = { ...rowNamed('one') }
    await store.insert(given, {})
    given.data = 'changed'
    const found = await store.byKey(rowNamed('one'))
    expect(found?.data).toBe('{}')
    expect(Object.isFrozen(found)).toBe(true)
  })
})
