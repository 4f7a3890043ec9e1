import { settled, type VirtualClock } from '../../src/testing/virtual-clock.ts'

/** Lets `ms` pass and gives what the promise came to by then; fails at once, and not by a timeout, where it came to nothing. */
export async function within<T>(clock: VirtualClock, ms: number, promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  await clock.advance(ms)
  const late = settled().then(() => Promise.reject(new Error(`nothing came of it within ${ms} ms of virtual time`)))
  return Promise.race([promise, late])
}

/** The error that a promise comes to within `ms`. */
export async function failure(clock: VirtualClock, ms: number, promise: Promise<unknown>): Promise<unknown> {
  const end = promise.then(
    (value) => Promise.reject(new Error(`it was expected to reject, and came to ${JSON.stringify(value)}`)),
    (error: unknown) => error,
  )
  return within(clock, ms, end)
}
