/** The process of a worker: when it dies or stands still, so do its timers, and its lease is not renewed any more. */
import type { Clock } from '../../src/ports.ts'

export interface WorkerProcess {
  /** What everything in it takes for time. */
  readonly clock: Clock
  die(): Promise<never>
  /** Resolves when it goes on. */
  sleep(ms: number): Promise<void>
}

export function workerProcess(clock: Clock): WorkerProcess {
  let dead = false
  let asleep: Promise<void> | null = null
  return {
    clock: {
      ...clock,
      timer: (ms, run) =>
        clock.timer(ms, () => {
          if (dead) return
          if (asleep === null) run()
          else void asleep.then(run)
        }),
    },
    die() {
      dead = true
      return new Promise(() => {})
    },
    async sleep(ms) {
      asleep = new Promise((resolve) => void clock.timer(ms, resolve))
      await asleep
      asleep = null
    },
  }
}
