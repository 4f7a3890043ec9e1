/** Errors as fetch reports them: a `TypeError` that says nothing, with the platform's code underneath. */

/** How the mock's network fails; by its class, handlers tell it from a mistake in the mock. */
export class NetworkError extends TypeError {
  constructor(detail: string, code: string, message = 'fetch failed') {
    super(message, { cause: Object.assign(new Error(detail), { code }) })
  }
}

/** The connection broke: whether the server did anything, the client cannot know. */
export function connectionReset(): NetworkError {
  return new NetworkError('read ECONNRESET', 'ECONNRESET')
}

/** The connection was never made: nothing was delivered. */
export function connectionRefused(): NetworkError {
  return new NetworkError('connect ECONNREFUSED', 'ECONNREFUSED')
}

/** The answer's body broke off. */
export function bodyTerminated(): NetworkError {
  return new NetworkError('other side closed', 'UND_ERR_SOCKET', 'terminated')
}
