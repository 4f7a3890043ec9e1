/** The device's storage, shared by all of its tabs: the real memory store, whose every write is looked at. */
import type { IntentStore, RowKey, StoredRow } from '../../src/ports.ts'
import { memoryShelf, memoryStore } from '../../src/stores/memory.ts'
import type { Watch } from './invariants.ts'

export interface Storage {
  /** A tab's own connection. */
  connect(holder: string): IntentStore
  rows(): readonly StoredRow[]
  /** All of it is gone; whatever still writes there writes into nothing. */
  lose(): void
  /** Somebody else's hand: the disk, or a newer version of the app. */
  spoil(key: string, change: Pick<StoredRow, 'data' | 'format'>): Promise<void>
}

export function createStorage(watch: Watch): Storage {
  const shelf = memoryShelf()
  const own = memoryStore({ shared: shelf })
  const rows = new Map<string, StoredRow>()
  let isLost = false
  const nameOf = ({ scope, key }: RowKey): string => `${scope} ${key}`

  function keep(row: StoredRow): void {
    rows.set(nameOf(row), row)
  }

  return {
    connect(holder) {
      const inner = memoryStore({ shared: shelf })
      return {
        ...inner,
        async insert(row, blobs, supersedes) {
          const result = await inner.insert(row, blobs, supersedes)
          if (result.inserted && !isLost) {
            keep(result.row)
            watch.inserted(result.row)
          }
          return result
        },
        async update(change, expected, blobs) {
          const row = await inner.update(change, expected, blobs)
          if (row !== null && !isLost) {
            keep(row)
            watch.updated(row, holder)
          }
          return row
        },
        async remove(key, expected) {
          const isGone = await inner.remove(key, expected)
          const row = rows.get(nameOf(key))
          if (isGone && row !== undefined && !isLost) {
            rows.delete(nameOf(key))
            watch.removed(row)
          }
          return isGone
        },
      }
    },
    rows: () => [...rows.values()],
    lose() {
      isLost = true
    },
    async spoil(key, { data, format }) {
      const row = [...rows.values()].find((other) => other.key === key)
      if (row === undefined) return
      const { revision, token } = row
      const spoiled = await own.update({ ...row, data, format }, { revision, token })
      if (spoiled === null) return
      keep(spoiled)
      watch.spoiled(spoiled)
    },
  }
}
