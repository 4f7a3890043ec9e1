import { type Answer, checkAnswer, type Refusal } from './results.ts'
import type { KeyId, ServerStore } from './store.ts'
import { tellTask } from './tasks/tell.ts'

/**
 * Finishes the work of a 202 from outside: an app that does such work by itself, or a person who knows how it ended.
 * From now on its monitor gives this answer; below 400 means `succeeded`, from 400 `failed`. A worker that still has the
 * work is fenced out (P63).
 *
 * @param id the key that was accepted: tenant and principal as `scope` gave them.
 * @param answer as `json` and `refuse` make them; its body is kept whole.
 * @param note what a person found out, kept with the work. Default: none.
 * @returns false where there is no unfinished work under this id (it was finished before, or voided): nothing changed.
 * @throws StoreUnavailableError nothing was written. CommitUnknownError: it may have been; finishing again is harmless.
 * @throws TypeError or RangeError for what cannot be an answer.
 */
export async function complete(
  store: Pick<ServerStore<unknown>, 'begin'>,
  id: KeyId,
  answer: Answer | Refusal,
  note?: string,
): Promise<boolean> {
  const { kept } = checkAnswer(answer, [200, 599], Number.POSITIVE_INFINITY)
  const status = kept.status < 400 ? 'succeeded' : 'failed'
  return tellTask(store, id, {
    status,
    result: kept,
    error: null,
    retryAfterSeconds: null,
    ...(note !== undefined && { note }),
  })
}
