/** Calls to other services from accepted work: written down first, known afterwards, and never guessed (P65). */
import { ConfigError } from '../../errors.ts'
import { canonicalJson } from '../../protocol/json.ts'
import { operationIdOf } from '../../protocol/operation-id.ts'
import { wholeMs } from '../whole.ts'
import type { CallAbsent, CallDone, CallRefused, CallResult, CallUndelivered } from './call-ends.ts'
import { makeCall } from './call-flow.ts'
import { type CallContext, jsonText } from './call-try.ts'
import type { Held } from './held.ts'
import type { CanBeAsked, Neither, TakesKeys } from './services.ts'
import type { Task } from './task.ts'

interface CallBase<Request, Done, Refused> {
  /** What to ask for, as JSON. Kept with the call: no secrets. */
  readonly request: Request
  /** Time limit of `send`, and of `ask`, ms; at most half of the service's `transitMs`. Default 30 seconds, or that. */
  readonly timeoutMs?: number
  /**
   * Makes the call. Resolves with `done(value)`, `refused(value)` or `undelivered(error)`. Whatever it throws, and the
   * time limit, leave the call open: it may have taken effect.
   */
  readonly send: (context: CallContext<Request>) => Promise<CallDone<Done> | CallRefused<Refused> | CallUndelivered>
}

/** A call to a service that takes keys, or to one of which nothing is known. */
export interface PlainCall<Request, Done, Refused> extends CallBase<Request, Done, Refused> {
  readonly service: TakesKeys | Neither
  readonly ask?: never
}

/** A call to a service that tells whether an operation happened. */
export interface AskedCall<Request, Done, Refused> extends CallBase<Request, Done, Refused> {
  readonly service: CanBeAsked
  /** Asks whether it happened: `done(value)`, `refused(value)` or `absent()`. Throwing: not known, asked again later. */
  readonly ask: (context: CallContext<Request>) => Promise<CallDone<Done> | CallRefused<Refused> | CallAbsent>
}

/** What {@link externalCall} is told. */
export type ExternalCall<Request, Done, Refused> = PlainCall<Request, Done, Refused> | AskedCall<Request, Done, Refused>

/**
 * Calls another service, so that it takes effect once, or nobody says that it did or did not (P65).
 *
 * The intent to call is committed before anything is sent, with an operation id that is the same on every try. When the
 * handler runs again, a call whose end is known is not made again: it resolves with what was heard then. One that broke
 * off (time limit, crash, takeover) is continued as its kind of service allows: sent again with the same id, asked about
 * first, or left for a person. Open ends are thrown; a handler need not catch them, the worker knows what they mean.
 *
 * The request of the first try stays the request of this call: the first copy may have been carried out, and the id
 * must not mean two payloads. A later execution that asks for something else is told through `report`, goes on with the
 * first, and finds in the result what was really asked for; stopping there instead would leave a payment unknown for
 * good because a timestamp differed. Within one execution it is a mistake, two calls under one name, and throws.
 *
 * @param task as the handler got it; not inside of `step` or `finish`.
 * @param name unique within the work, and the same whenever the handler runs: `charge`, `ship:2`.
 * @returns how it ended: `done`, or `refused` (surely without effect), with what the service said.
 * @throws CallOpenError tried again later, by itself.
 * @throws CallUndeliveredError surely without effect; tried again later, by itself.
 * @throws CallUnknownError a person has to find out; the work becomes unknown.
 * @throws WorkLostError another worker has the work. What is heard too late is kept as evidence (P63).
 * @throws StoreUnavailableError, CommitUnknownError
 * @throws ConfigError for what cannot be meant.
 * @example
 * ```ts
 * import { done, externalCall, finish, json, refuse, refused, type Task, takesKeys } from 'samekey/server'
 * import type { PgQueryable } from 'samekey/server/postgres'
 *
 * const day = 24 * 60 * 60 * 1000
 *
 * export async function pay(task: Task<PgQueryable>) {
 *   const { orderId, amount } = task.work as { orderId: number; amount: string }
 *   const charge = await externalCall(task, 'charge', {
 *     service: takesKeys({ retentionMs: day }), // as the provider's documentation promises
 *     request: { amount, currency: 'EUR' },
 *     async send({ request, operationId, signal }) {
 *       const response = await fetch('https://pay.example/charges', {
 *         method: 'POST',
 *         headers: { 'Content-Type': 'application/json', 'Idempotency-Key': operationId },
 *         body: JSON.stringify(request),
 *         signal,
 *       })
 *       if (response.status === 201) return done((await response.json()) as { id: string })
 *       if (response.status === 402) return refused({ code: 'card_declined' })
 *       throw new Error(`The provider answered ${response.status}.`) // not known: the same id again, later
 *     },
 *   })
 *   return finish<PgQueryable>(async (transaction) => {
 *     if (charge.outcome === 'refused') return refuse(402, charge.value)
 *     await transaction.query('update orders set charge = $1 where id = $2', [charge.value.id, orderId])
 *     return json(200, { orderId, charge: charge.value.id })
 *   })
 * }
 * ```
 */
export async function externalCall<Transaction, Request, Done, Refused>(
  task: Task<Transaction>,
  name: string,
  call: ExternalCall<Request, Done, Refused>,
): Promise<CallResult<Request, Done, Refused>> {
  const { held, id, epoch } = task
  const { service } = call
  const timeoutMs = timeLimitOf(call)
  if (name === '') throw new ConfigError('name', 'give the call a name that is unique within its work, such as charge')
  // Before anything is sent: afterwards it would be too late to find out that nobody can ask.
  const { ask = nobodyToAsk } = call
  if (service.kind === 'canBeAsked' && ask === nobodyToAsk) {
    throw new ConfigError('ask', 'say how the service is asked, since it canBeAsked')
  }
  const request = jsonText(call.request, 'request')
  const operationId = operationIdOf({ ...id, call: name })
  const leave = enter(held, name, request)
  try {
    const ended = await makeCall({
      held,
      name,
      wanted: { operationId, service, request, epoch },
      timeoutMs,
      send: (context) => call.send(context as CallContext<Request>),
      ask: (context) => ask(context as CallContext<Request>),
    })
    return ended as CallResult<Request, Done, Refused>
  } finally {
    leave()
  }
}

function nobodyToAsk(): Promise<never> {
  return Promise.reject(new Error('This service cannot be asked.'))
}

/** @throws ConfigError */
function timeLimitOf({
  service: { transitMs },
  timeoutMs = Math.min(30_000, Math.floor(transitMs / 2)),
}: Pick<ExternalCall<unknown, unknown, unknown>, 'service' | 'timeoutMs'>): number {
  wholeMs('timeoutMs', timeoutMs)
  if (timeoutMs > transitMs / 2) {
    // A copy that is still being sent after the transit could arrive behind a "no, that did not happen".
    throw new ConfigError('timeoutMs', `must be at most half of the service's transitMs (${transitMs})`)
  }
  return timeoutMs
}

/** @throws ConfigError for two calls under one name. */
function enter<Transaction>({ calls }: Held<Transaction>, name: string, requestText: string): () => void {
  const request = canonicalJson(JSON.parse(requestText))
  const own = calls.get(name)
  if (own?.running === true || (own !== undefined && own.request !== request)) {
    throw new ConfigError('name', `there are two calls named ${name} in one execution; give each a name of its own`)
  }
  calls.set(name, { request, running: true })
  return () => void calls.set(name, { request, running: false })
}
