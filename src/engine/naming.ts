/** A store does not know what its rows mean: whoever asked it says which intent its failure is about (P13). */
import { type ErrorFacts, StoreFailure } from '../errors.ts'

/** The error, with the facts where it is a store's failure that has none yet. */
export function naming(error: unknown, facts: ErrorFacts): unknown {
  if (!(error instanceof StoreFailure) || error.intentId !== undefined) return error
  const { intentId, key = error.key } = facts
  return new StoreFailure(error.reason, error.written, error.message, { intentId, key, cause: error })
}

/** The method, whose failures name the intent that it was called for. */
export function named<Args extends [id: string, ...rest: unknown[]], Result>(
  method: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    try {
      return await method(...args)
    } catch (error) {
      throw naming(error, { intentId: args[0] })
    }
  }
}
