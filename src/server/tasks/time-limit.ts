import type { Clock } from '../../ports.ts'

/** How a try ended for who waited for it. `lost`: the work was, and nobody waits any more. */
export type Tried<T> =
  | { readonly kind: 'ended'; readonly value: T }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'timeUp' }
  | { readonly kind: 'lost' }

/** How long somebody waits. */
export interface Limit {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Ends the waiting early. */
  readonly signal: AbortSignal
}

/**
 * Calls `run` in this very tick, and waits for it for so long. It is asked to stop through its signal; whether it does
 * is up to it.
 *
 * @param run must not throw by itself, only reject.
 * @param late gets what it resolves with after nobody waits any more.
 */
export function withinLimit<T>(
  { clock, timeoutMs, signal }: Limit,
  run: (signal: AbortSignal) => Promise<T>,
  late: (value: T) => void,
): Promise<Tried<T>> {
  return new Promise((resolve) => {
    const controller = new AbortController()
    let waiting = true
    const timer = clock.timer(timeoutMs, () => giveUp({ kind: 'timeUp' }, new Error('The time limit is over.')), true)
    const onAbort = (): void => giveUp({ kind: 'lost' }, signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })

    function end(tried: Tried<T>): void {
      waiting = false
      timer.cancel()
      signal.removeEventListener('abort', onAbort)
      resolve(tried)
    }

    function giveUp(tried: Tried<T>, reason: unknown): void {
      end(tried)
      controller.abort(reason)
    }

    function threw(error: unknown): void {
      if (waiting) end({ kind: 'threw', error })
    }

    run(controller.signal).then((value) => (waiting ? end({ kind: 'ended', value }) : late(value)), threw)
  })
}
