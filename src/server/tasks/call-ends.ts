/** What became of one try of a call: what `send` and `ask` resolve with. Throwing means: not known. */

/** Made by {@link done}. */
export interface CallDone<Value> {
  readonly outcome: 'done'
  readonly value: Value
}

/** Made by {@link refused}. */
export interface CallRefused<Value> {
  readonly outcome: 'refused'
  readonly value: Value
}

/** Made by {@link undelivered}. */
export interface CallUndelivered {
  readonly outcome: 'undelivered'
  readonly error: unknown
}

/** Made by {@link absent}. */
export interface CallAbsent {
  readonly outcome: 'absent'
}

/**
 * It took effect.
 *
 * @param value what the service said, as JSON; kept, and given again whenever the handler runs again. Default: null.
 */
export function done(): CallDone<null>
export function done<Value>(value: Value): CallDone<Value>
export function done(value: unknown = null): CallDone<unknown> {
  return { outcome: 'done', value }
}

/**
 * The service surely did not do it and never will by this call: "card declined". A refusal that says nothing about
 * earlier tries (credentials, rate limits, a gateway's word) is none: throw, or say {@link undelivered}.
 *
 * @param value what the service said, as JSON; kept. Default: null.
 */
export function refused(): CallRefused<null>
export function refused<Value>(value: Value): CallRefused<Value>
export function refused(value: unknown = null): CallRefused<unknown> {
  return { outcome: 'refused', value }
}

/**
 * This try surely never reached the service: the connection was refused, or a gateway proves that it passed nothing on.
 * A time limit, a reset and a 502 prove nothing: throw.
 *
 * @param error why, for people.
 */
export function undelivered(error?: unknown): CallUndelivered {
  return { outcome: 'undelivered', error }
}

/** For `ask`: the service says that it did not happen. */
export function absent(): CallAbsent {
  return { outcome: 'absent' }
}

/** How a call ended. Values and request are JSON: a Date in them is a text here. */
export type CallResult<Request, Done, Refused> =
  | { readonly outcome: 'done'; readonly value: Done; readonly request: Request }
  | { readonly outcome: 'refused'; readonly value: Refused; readonly request: Request }
