/** Runs the app's `execute` inside the claimed transaction and turns what it returns into the way the unit ends. */
import { ConfigError } from '../errors.ts'
import { sha256Hex } from '../protocol/sha256.ts'
import { LOCATION, type MonitorDocument, RETRY_AFTER } from '../protocol/wire.ts'
import { type AnswerData, plainAnswer, storedAnswer } from './answer-for.ts'
import type { Caller } from './caller.ts'
import type { Settings } from './options.ts'
import type { RequestBody } from './request-body.ts'
import { type Accepted, type Answer, checkAnswer, type ExecuteResult } from './results.ts'
import type { Ending, KeyId, Unit } from './store.ts'
import type { NewTask } from './tasks/task-row.ts'

/** What an execution came to, to be answered once the unit has ended as it says. */
export interface Executed {
  readonly answer: AnswerData
  /** The answer's body was too long to keep (P60). */
  readonly bodyNotStored: boolean
}

/** What is being executed. */
export interface Execution<Transaction> {
  readonly settings: Settings<Transaction>
  readonly unit: Unit<Transaction>
  readonly caller: Caller
  readonly id: KeyId
  readonly body: RequestBody
  /** Epoch ms. */
  readonly expiresAt: number
}

/**
 * Business change and finished answer, in one transaction (P54).
 *
 * @throws whatever `execute` throws, and a TypeError or RangeError for what cannot be an answer: all of it rolls back.
 */
export async function run<Transaction>(execution: Execution<Transaction>): Promise<Ending<Executed>> {
  const { settings, unit, id, expiresAt } = execution
  const { answerBytes } = settings.limits
  const result = await call(execution)
  if (result.outcome === 'declined') {
    const { first } = checkAnswer(result, [400, 599], answerBytes)
    return { commit: false, value: { answer: plainAnswer(first), bodyNotStored: false } }
  }
  const task: NewTask | null = result.outcome === 'accepted' ? result : null
  const answer = result.outcome === 'accepted' ? acceptedAnswer(execution, result) : result
  const { first, kept } = checkAnswer(answer, result.outcome === 'refused' ? [400, 599] : [200, 399], answerBytes)
  if (answer.reference !== undefined && settings.reread === null) {
    throw new ConfigError('reread', 'say how an answer that is kept byReference is read again')
  }
  // The refusal is remembered, the business change is not (P56).
  if (result.outcome === 'refused') await unit.undo()
  await unit.finish(id, kept, task)
  const bodyNotStored = kept.body.kind === 'omitted' && answer.storeBody !== false
  return { commit: true, value: { answer: storedAnswer(first, expiresAt, false), bodyNotStored } }
}

async function call<Transaction>({ settings, unit, caller, id, body }: Execution<Transaction>): Promise<ExecuteResult> {
  const { scope, request } = caller
  const { operation, execute } = settings
  const result: unknown = await unit.run((transaction) =>
    execute({ transaction, request: again(request, body), body, key: id.key, scope, operation }),
  )
  if (typeof result !== 'object' || result === null) {
    throw new TypeError('execute must return json(...), bytes(...), empty(), refuse(...), decline(...) or accepted().')
  }
  return result as ExecuteResult
}

/** The original's body has been read; `execute` may want to read it its own way. */
function again({ url, method, headers }: Request, { bytes }: RequestBody): Request {
  return new Request(url, { method, headers, body: bytes.length === 0 ? null : bytes })
}

/** The 202, with the monitor under `keysUrl` unless the app has one of its own (P62, P64). */
function acceptedAnswer<Transaction>(
  { settings: { keysUrl, operation }, id: { key }, body, expiresAt }: Execution<Transaction>,
  { monitor, retryAfterSeconds }: Accepted,
): Answer {
  if (!Number.isSafeInteger(retryAfterSeconds) || retryAfterSeconds < 0) {
    throw new RangeError('accepted({ retryAfterSeconds }) must be whole seconds.')
  }
  if (monitor === null && keysUrl === null) {
    throw new ConfigError('keysUrl', 'say where idempotencyRoutes is mounted, or give accepted() a monitor of your own')
  }
  const address = monitor ?? `${keysUrl}/${encodeURIComponent(operation)}/${encodeURIComponent(key)}`
  const document: MonitorDocument = {
    id: key,
    status: 'processing',
    monitor: address,
    requestDigest: sha256Hex(body.bytes),
    retryAfter: retryAfterSeconds,
    resultExpiresAt: new Date(expiresAt).toISOString(),
  }
  const headers = [
    ['Content-Type', 'application/json'],
    [LOCATION, address],
    [RETRY_AFTER, String(retryAfterSeconds)],
  ] as const
  return { status: 202, headers, body: JSON.stringify(document) }
}
