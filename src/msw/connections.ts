/**
 * The requests under way: what waits in them, and what ends them. The client hanging up ends its wait and nothing else,
 * as with a real server: what reached the server goes on there.
 */
import type { Clock, Timer } from '../ports.ts'
import { connectionReset } from './network-error.ts'

/** One request under way. */
export interface Connection {
  /** Rejects when the client hung up (with the reason of its signal) or the mock closed the connection. Never resolves. */
  readonly lost: Promise<never>
  /** Lets `ms` pass on the server; rejects when the mock is closed meanwhile. */
  pause(ms: number): Promise<void>
  /** Waits for ever; rejects when the mock is closed. */
  hang(): Promise<never>
  /** The client has its answer, or went away. */
  release(): void
}

/** All requests under way. */
export interface Connections {
  open(signal: AbortSignal): Connection
  /** Ends them all, with a network error for whoever still waits. */
  closeAll(): void
}

/** Keeps account of connections. */
export function connectionsOn(clock: Pick<Clock, 'timer'>): Connections {
  const closers = new Set<(error: Error) => void>()

  /** A promise that `closeAll` rejects, and how to forget it. */
  function untilClosed(): { closed: Promise<never>; end: (error: Error) => void; forget: () => void } {
    let end = (_error: Error): void => {}
    const closed = new Promise<never>((_resolve, reject) => {
      end = reject
    })
    // Nobody may be waiting for it.
    closed.catch(() => {})
    closers.add(end)
    return { closed, end, forget: () => closers.delete(end) }
  }

  return {
    open(signal) {
      const { closed: lost, end, forget } = untilClosed()
      const hangUp = (): void => end(signal.reason as Error)
      signal.addEventListener('abort', hangUp, { once: true })
      return {
        lost,

        async pause(ms) {
          if (ms <= 0) return
          const { closed, forget } = untilClosed()
          let timer: Timer | undefined
          const passed = new Promise<void>((resolve) => {
            // It holds the process: a scripted delay is something that a test waits for.
            timer = clock.timer(ms, resolve, true)
          })
          try {
            await Promise.race([passed, closed])
          } finally {
            timer?.cancel()
            forget()
          }
        },

        hang: () => untilClosed().closed,

        release() {
          forget()
          signal.removeEventListener('abort', hangUp)
        },
      }
    },

    closeAll() {
      const ending = [...closers]
      closers.clear()
      for (const end of ending) end(connectionReset())
    },
  }
}
