import type { Clock } from '../ports.ts'

/**
 * Asks code of the app's (`auth`, `accept`, `reconcile`) and waits for its answer, at most `ms` where that is given. One
 * that does not answer must hold neither an attempt beyond its lease (P47), nor a place among those under way (P33), nor
 * a client that stops.
 *
 * Rejects with what the code throws; with a `TimeoutError` or an `AbortError` when it is not waited for any longer.
 */
export type AskApp = <T>(ask: () => T | Promise<T>, ms?: number) => Promise<T>

/** @param stopSignal ends all waiting when the client stops. */
export function appAsker(clock: Clock, stopSignal: AbortSignal): AskApp {
  return async (ask, ms) => {
    let end: (name: string) => void = () => {}
    const ended = new Promise<never>((_resolve, reject) => {
      end = (name) => reject(new DOMException('The app’s own code did not answer in time.', name))
    })
    ended.catch(() => {})
    const stop = (): void => end('AbortError')
    if (stopSignal.aborted) stop()
    stopSignal.addEventListener('abort', stop, { once: true })
    const timer = ms === undefined ? null : clock.timer(ms, () => end('TimeoutError'), true)
    try {
      return await Promise.race([ask(), ended])
    } finally {
      timer?.cancel()
      stopSignal.removeEventListener('abort', stop)
    }
  }
}
