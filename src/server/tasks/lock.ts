import { StoreUnavailableError } from '../errors.ts'
import type { KeyId, LockedTask, Unit } from '../store.ts'

/** How long whoever changes a task waits for somebody else who is just saving it, ms. */
export const LOCK_WAIT_MS = 10_000

/**
 * Locks the row of accepted work.
 *
 * @throws StoreUnavailableError when somebody else kept it locked for too long: nothing was written.
 */
export async function lockTask(unit: Unit<unknown>, id: KeyId): Promise<LockedTask> {
  const locked = await unit.lockTask(id)
  if (locked.seen === 'busy') throw new StoreUnavailableError('The work is locked by somebody else.')
  return locked
}
