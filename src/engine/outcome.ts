/** How an intent's end looks to a caller: a Response, a typed error, or a union on `state`. */
import {
  AbandonedError,
  BodyNotStoredError,
  CancelledError,
  type ErrorFacts,
  KeyConflictError,
  OutcomeUnknownError,
  StillOpenError,
} from '../errors.ts'
import { unknownReasons } from '../protocol/events.ts'
import { type Answer, type IntentRecord, isInDoubt } from '../protocol/record.ts'
import type { OpenStateName } from '../protocol/states.ts'
import { detailOf } from './view.ts'

/** Where an intent stands, by `state`. The key is always there (P13). */
export type Outcome = { readonly id: string; readonly key: string } & (
  | {
      readonly state: 'succeeded' | 'rejected' | 'conflicted' /** A copy of the server's answer. */
      readonly response: Response
    }
  | { readonly state: 'cancelled' }
  | { readonly state: 'abandoned'; readonly mayStillHappen: boolean }
  | { readonly state: 'unknown' /** Why, in a fixed word. */; readonly because: string }
  /** Not ended within the time that was waited; it goes on by itself, or waits for what `detail` names, e.g. `credentials`. */
  | { readonly state: OpenStateName; readonly inDoubt: boolean; readonly detail: string | null }
)

/** The intent's outcome as a union; never throws for a state of the protocol. */
export function outcomeOf(record: IntentRecord, body: Uint8Array | null): Outcome {
  const { id, key, state } = record
  switch (state.name) {
    case 'succeeded':
    case 'rejected':
    case 'conflicted':
      return { id, key, state: state.name, response: responseFor(record, body) }
    case 'cancelled':
      return { id, key, state: 'cancelled' }
    case 'abandoned':
      return { id, key, state: 'abandoned', mayStillHappen: state.mayStillHappen }
    case 'unknown':
      return { id, key, state: 'unknown', because: state.because }
    default:
      return { id, key, state: state.name, inDoubt: isInDoubt(record), detail: detailOf(record) }
  }
}

/**
 * The server's final answer, as fetch gives it.
 *
 * @throws the typed error of a state without an answer.
 */
export function answerOrThrow(record: IntentRecord, body: Uint8Array | null): Response {
  const { state } = record
  const facts: ErrorFacts = { intentId: record.id, key: record.key }
  switch (state.name) {
    case 'succeeded':
    case 'rejected':
      return responseFor(record, body)
    case 'conflicted':
      if (record.answer !== null) return responseFor(record, body)
      throw new KeyConflictError(
        `The server knows the key of "${record.id}" with another request. Submit what is meant under a new intent id.`,
        facts,
      )
    case 'cancelled':
      throw new CancelledError(`"${record.id}" was cancelled and will not happen.`, facts)
    case 'abandoned':
      throw new AbandonedError(
        state.mayStillHappen,
        `"${record.id}" was abandoned; it may still happen. To use this id for a new intent, abandon it with force.`,
        facts,
      )
    case 'unknown':
      throw new OutcomeUnknownError(
        state.because,
        `Whether "${record.id}" happened is unknown: ${unknownReasons[state.because] ?? state.because}. Do not submit it under a new id: check it, retry it where that is still safe, or resolve or abandon it.`,
        facts,
      )
    default:
      throw stillOpen(record)
  }
}

/** The waiting ended, the intent did not (P36). */
export function stillOpen(record: IntentRecord): StillOpenError {
  const inDoubt = isInDoubt(record)
  const detail = detailOf(record)
  const known = inDoubt ? 'it may have been executed' : 'nothing was executed so far'
  const waits = record.state.name === 'blocked' ? `, waiting for ${detail}` : ''
  return new StillOpenError(
    { state: record.state.name, detail, inDoubt },
    `"${record.id}" is still ${record.state.name}${waits}; ${known}. It is stored and goes on; submit the same id again to wait for it.`,
    { intentId: record.id, key: record.key },
  )
}

/** Why a body cannot be read, in words (P22). */
const absences: Readonly<Record<Exclude<Answer['body'], 'stored' | 'empty'>, string>> = {
  cut_off: 'the connection broke while it was read, and no replay could be had',
  too_large: 'it is larger than what is kept (64 KiB) or read (maxBodyBytes)',
  not_stored_by_choice: 'the operation says storeAnswer: false',
  omitted_by_server: 'the server does not keep it',
  not_given: 'none was given',
}

/** A Response of its own for each caller. A body that is not there throws when read; it is never an empty value (P22). */
function responseFor(record: IntentRecord, bytes: Uint8Array | null): Response {
  const { answer } = record
  const status = answer?.status ?? (record.state.name === 'succeeded' ? 200 : 409)
  const headers = (answer?.headers ?? []).map(([name, value]) => [name, value] as [string, string])
  const bodyless = status === 204 || status === 205 || status === 304
  const state = answer?.body ?? 'not_given'
  // An answer whose body the server does not keep has an empty one instead: that is no value either.
  const there = state === 'empty' || (bytes !== null && state !== 'omitted_by_server')
  const missing = bodyless || there ? null : notStored(record, state === 'stored' ? 'not_given' : state)
  const body = missing === null ? ((bytes ?? new Uint8Array()) as Uint8Array<ArrayBuffer>) : failing(missing)
  const response = new Response(bodyless ? null : body, { status, headers })
  Object.defineProperty(response, 'url', { value: answer?.url ?? record.request.url })
  if (missing !== null) forbidReading(response, missing)
  return response
}

function notStored(record: IntentRecord, absence: keyof typeof absences): BodyNotStoredError {
  return new BodyNotStoredError(
    `"${record.id}" ended ${record.state.name}, but the body of its answer is not here: ${absences[absence]}. Read the result from the server by its own identity.`,
    { intentId: record.id, key: record.key },
  )
}

/** For those who read the stream themselves. */
function failing(error: Error): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({ pull: (controller) => controller.error(error) }, { highWaterMark: 0 })
}

/** Platforms make an error of their own of what a stream throws: the methods say it themselves. */
function forbidReading(response: Response, error: Error): void {
  const fail = (): Promise<never> => Promise.reject(error)
  for (const method of ['json', 'text', 'arrayBuffer', 'blob', 'bytes', 'formData'] as const) {
    Object.defineProperty(response, method, { value: fail })
  }
  Object.defineProperty(response, 'clone', { value: () => response })
}
