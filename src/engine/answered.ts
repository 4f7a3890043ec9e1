/** Which intent a Response answers: for layers above fetch that make errors of it (P13). */
import type { StateName } from '../protocol/states.ts'

/** The intent behind a Response. */
export interface AnsweredIntent {
  readonly id: string
  readonly key: string
  readonly state: StateName
}

const intents = new WeakMap<Response, AnsweredIntent>()

/** Marks a Response as the answer of an intent. */
export function answering(response: Response, intent: AnsweredIntent): Response {
  intents.set(response, intent)
  return response
}

/** The intent that a Response of ours answers; undefined for any other Response. */
export function answeredIntent(response: Response): AnsweredIntent | undefined {
  return intents.get(response)
}
