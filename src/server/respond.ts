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
  const title = 'It is not known whether this was committed.'
  const detail = 'Send the same request with the same key again: the answer is in the key row, if there is one.'
  return problemAnswer(otherProblem(503, 'outcome-unknown', title, detail), RETRY_AFTER_SECONDS)
}

/** 500: `execute` failed. It says no more than that: why is for the operator. */
export function executeFailed(): AnswerData {
  const title = 'The operation failed unexpectedly; its changes were rolled back and nothing is remembered.'
  return problemAnswer(otherProblem(500, 'execution-failed', title))
}

/** 500: something failed that was no execution, or after one. It claims nothing: the key knows. */
export function answerFailed(): AnswerData {
  const title = 'The answer could not be given. What became of the request is known under its key.'
  return problemAnswer(otherProblem(500, 'answer-failed', title))
}

/** 405: an operation is not for reading. */
export function methodNotAllowed(): AnswerData {
  return problemAnswer(
    otherProblem(405, 'method-not-allowed', 'This method executes nothing; the operation wants another.'),
  )
}

/** 403 of `authorize`. */
export function forbidden(): AnswerData {
  return problemAnswer(otherProblem(403, 'forbidden', 'The caller may not do this.'))
}
