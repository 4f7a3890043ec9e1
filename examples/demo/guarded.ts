/** How a program that starts others comes to its end, whatever happens. */
import { setTimeout as sleep } from 'node:timers/promises'

/** What has to be put away at the end; the last one first. */
export type TidyUp = (() => Promise<unknown>)[]

export interface Guarded {
  /** Gives the exit code. */
  readonly work: () => Promise<number>
  readonly tidyUp: TidyUp
  /** What takes longer, hangs. */
  readonly timeLimitMs: number
  /** What is said then. */
  readonly overdue: () => string
}

/** Runs to the end, to Ctrl-C or to the time limit, and leaves nothing behind in any case. */
export async function guarded({ work, tidyUp, timeLimitMs, overdue }: Guarded): Promise<never> {
  let timer: NodeJS.Timeout | undefined
  const stopped = new Promise<number>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(130))
    process.on('uncaughtException', (error) => {
      console.error(error)
      resolve(1)
    })
    timer = setTimeout(() => {
      console.error(overdue())
      resolve(1)
    }, timeLimitMs)
  })
  const code = await Promise.race([work(), stopped]).catch((error: unknown) => {
    console.error(error)
    return 1
  })
  clearTimeout(timer)
  for (let step = tidyUp.pop(); step !== undefined; step = tidyUp.pop()) {
    await Promise.race([step(), sleep(5000)]).catch((error: unknown) => console.error(error))
  }
  // What was interrupted may still be waiting for something.
  process.exit(code)
}
