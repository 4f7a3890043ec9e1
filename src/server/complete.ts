import { type Answer, checkAnswer, type Refusal } from './results.ts'
import type { KeyId, TaskStore } from './store.ts'

/**
 * Finishes the work of a 202: from now on its monitor gives this answer. An answer below 400 means `succeeded`, one
 * from 400 `failed`.
 *
 * @param id the key that was accepted: tenant and principal as `scope` gave them.
 * @param answer as `json` and `refuse` make them; its body is kept whole.
 * @returns false where there is no unfinished work under this id (it was finished before, or voided): nothing changed.
 * @throws StoreUnavailableError it may or may not have been written; finishing again is harmless.
 * @throws TypeError or RangeError for what cannot be an answer.
 */
export async function complete(store: TaskStore, id: KeyId, answer: Answer | Refusal): Promise<boolean> {
  const { kept } = checkAnswer(answer, [200, 599], Number.POSITIVE_INFINITY)
  const status = kept.status < 400 ? 'succeeded' : 'failed'
  return store.complete(id, { status, result: kept, error: null, retryAfterSeconds: null })
}
