/** What a person can do about unknown work, besides `complete` (P65). Each is recorded with its note. */
import { keepable } from '../error-text.ts'
import type { KeyId, ServerStore } from '../store.ts'
import { type CallFinding, settledCall } from './call-row.ts'
import { LOCK_WAIT_MS, lockTask } from './lock.ts'
import { reopened, type TaskRow } from './task-row.ts'

const FINDINGS: ReadonlySet<CallFinding> = new Set(['done', 'refused', 'undelivered'])

type Begins = Pick<ServerStore<unknown>, 'begin'>

/**
 * A person found out how a call to another service ended. Work that waited for it goes on once no other call of it is
 * open (settle those too): its handler runs again, and its `externalCall` resolves with this without sending anything (or, where it was
 * `undelivered`, sends).
 *
 * @param operationId of the call, see `unknownTasks`.
 * @param outcome `done`: it took effect. `refused`: it surely did not, and is not to. `undelivered`: it surely did not,
 * no copy of it is under way any more, and it is to be made: then it is sent once more, with the same id.
 * @param note what was found, kept with the call.
 * @param value what the handler gets as if the service had said it, JSON of that shape. Default: null.
 * @returns false where no call with this id waits for an outcome, or, unless it is `done`, while a worker has the work
 * in hand: nothing was changed then.
 * @throws StoreUnavailableError nothing was written. CommitUnknownError: it may have been; settling again is harmless.
 * @throws TypeError for a value that JSON cannot say.
 */
export function settle(
  store: Begins,
  operationId: string,
  outcome: CallFinding,
  note: string,
  value: unknown = null,
): Promise<boolean> {
  if (!FINDINGS.has(outcome)) return Promise.reject(new TypeError(`${JSON.stringify(outcome)} is no finding.`))
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) return Promise.reject(new TypeError('The value of a call must have a JSON form.'))
  return store.begin({ waitMs: LOCK_WAIT_MS }, async (unit) => {
    const nothing = { commit: false, value: false } as const
    const place = await unit.findCall(operationId)
    if (place === null) return nothing
    const { id, name } = place
    const { row, now } = await lockTask(unit, id)
    const call = row === null ? null : await unit.readCall(id, name)
    const next = call === null ? null : settledCall(call, outcome, text, keepable(note))
    if (row === null || next === null) return nothing
    // A worker may be making the call at this moment: nobody can know yet that it has no effect.
    if (outcome !== 'done' && !waits(row)) return nothing
    await unit.saveCall(id, name, next)
    const goesOn = waits(row) && !(await unit.hasOpenCalls(id)) ? reopened(row, now, null) : null
    if (goesOn !== null) await unit.saveTask(id, goesOn)
    return { commit: true, value: true }
  })
}

/** Unknown, or to be tried again later; what a worker has in hand, or may take at once, needs no push. */
function waits({ status }: TaskRow): boolean {
  return status === 'unknown' || status === 'failed_retryable'
}

/**
 * A person says: try again. The handler of unknown work runs again, with all its attempts. A call that only a person
 * can find out about stays so, and the work is unknown again: `settle` that first.
 *
 * @param id the key that was accepted: tenant and principal as `scope` gave them.
 * @param note why, kept with the work.
 * @returns false where there is no unknown work of a worker under this id: nothing was changed then.
 * @throws StoreUnavailableError nothing was written. CommitUnknownError: it may have been; saying it again is harmless.
 */
export function resume(store: Begins, id: KeyId, note: string): Promise<boolean> {
  return store.begin({ waitMs: LOCK_WAIT_MS }, async (unit) => {
    const { row, now } = await lockTask(unit, id)
    const next = row?.status === 'unknown' ? reopened(row, now, keepable(note)) : null
    if (next === null) return { commit: false, value: false }
    await unit.saveTask(id, next)
    return { commit: true, value: true }
  })
}
