import { makeProblem } from '../protocol/problem.ts'
import { type AnswerData, otherProblem, problemAnswer, RETRY_AFTER_SECONDS } from './answer-for.ts'

/** An answer as a web-standard Response. */
export function toResponse({ status, headers, body }: AnswerData): Response {
  return new Response(body, { status, headers: headers.map(([name, value]): [string, string] => [name, value]) })
}

/** 503: the store is down, or something else failed before the key was touched. Nothing was executed. */
export function unavailable(detail?: string): AnswerData {
  return problemAnswer(makeProblem('idempotency_unavailable', detail), RETRY_AFTER_SECONDS)
}

/**
 * 503 for a connection that was lost while committing: unlike {@link unavailable} it must not say that nothing was
 * executed, for nobody knows (P61). Its code is none of section 16's, so a client takes it as ambiguous.
 */
export function outcomeUnknown(): AnswerData {
  const title = 'The database was lost while committing: whether it was executed is not known.'
  const detail = 'Send the same request with the same key again: the answer is in the key row, if there is one.'
  return problemAnswer(otherProblem(503, 'outcome-unknown', title, detail), RETRY_AFTER_SECONDS)
}

/** 500: `execute` failed. It says no more than that: why is for the operator. */
export function executeFailed(): AnswerData {
  const title = 'The operation failed unexpectedly; its changes were rolled back and nothing is remembered.'
  return problemAnswer(otherProblem(500, 'execution-failed', title))
}

/** 403 of `authorize`. */
export function forbidden(): AnswerData {
  return problemAnswer(otherProblem(403, 'forbidden', 'The caller may not do this.'))
}
