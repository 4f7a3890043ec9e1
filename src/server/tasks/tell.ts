import type { KeyId, ServerStore } from '../store.ts'
import { LOCK_WAIT_MS, lockTask } from './lock.ts'
import { type TaskWord, told } from './task-row.ts'

/**
 * Says how far accepted work is, for an app that does it by itself; see `complete` for its end.
 *
 * @returns false where there is no unfinished work under this id: nothing was changed then.
 * @throws StoreUnavailableError it may or may not have been written; saying it again is harmless.
 */
export function tellTask(store: Pick<ServerStore<unknown>, 'begin'>, id: KeyId, word: TaskWord): Promise<boolean> {
  return store.begin({ waitMs: LOCK_WAIT_MS }, async (unit) => {
    const { row } = await lockTask(unit, id)
    const next = row === null ? null : told(row, word)
    if (next === null) return { commit: false, value: false }
    await unit.saveTask(id, next)
    return { commit: true, value: true }
  })
}
