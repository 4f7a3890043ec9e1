import type { MonitorStatus } from '../../protocol/wire.ts'
import { keepable } from '../error-text.ts'
import type { KeyId, ServerStore } from '../store.ts'
import { LOCK_WAIT_MS, lockTask } from './lock.ts'
import { type TaskWord, told } from './task-row.ts'

const STATUSES: ReadonlySet<MonitorStatus> = new Set([
  'processing',
  'failed_retryable',
  'unknown',
  'succeeded',
  'failed',
])
const ENDS: ReadonlySet<MonitorStatus> = new Set(['succeeded', 'failed'])

/**
 * Says how far accepted work is, for an app that does it by itself; see `complete` for its end. Of work that workers of
 * ours do, only an end can be said, or that it is unknown.
 *
 * @returns false where there is no such unfinished work under this id: nothing was changed then.
 * @throws StoreUnavailableError nothing was written. CommitUnknownError: it may have been; saying it again is harmless.
 * @throws TypeError for what cannot be said of work.
 */
export async function tellTask(
  store: Pick<ServerStore<unknown>, 'begin'>,
  id: KeyId,
  word: TaskWord,
): Promise<boolean> {
  const { status, result } = word
  if (!STATUSES.has(status)) throw new TypeError(`${JSON.stringify(status)} is nothing that work can be said to be.`)
  if ((result !== null) !== ENDS.has(status)) throw new TypeError('An end has a result, and nothing else has one.')
  return store.begin({ waitMs: LOCK_WAIT_MS }, async (unit) => {
    const { row } = await lockTask(unit, id)
    const next =
      row === null ? null : told(row, { ...word, ...(word.note !== undefined && { note: keepable(word.note) }) })
    if (next === null) return { commit: false, value: false }
    await unit.saveTask(id, next)
    return { commit: true, value: true }
  })
}
