/** A worker: takes accepted work and does it, for ever, in any Node process. A fleet is several on one store (P62). */
import { errorText } from '../error-text.ts'
import { startLoop } from '../loop.ts'
import { wholeMs } from '../whole.ts'
import type { Held } from './held.ts'
import { giveBack, runJob } from './job.ts'
import { type WorkerOptions, workSettings } from './options.ts'
import { takeDue } from './work-once.ts'

/** A running worker. */
export interface Worker {
  /** How many tasks are in hand at this moment. */
  running(): number
  /**
   * Takes no more work, waits for what is in hand, then aborts the signals of what is left and gives it back, so that
   * the next worker need not wait for the lease. Resolves when all is still; calling it again waits for the same.
   *
   * @param options.graceMs how long it waits before it aborts, ms. Default 10 seconds. A call to a service that neither
   * takes keys nor can be asked becomes unknown when it is aborted: give it the time that such calls take.
   */
  stop(options?: { readonly graceMs?: number }): Promise<void>
}

/** Longest pause while the store is away, ms. */
const TROUBLE_CAP_MS = 30_000

/**
 * Starts doing the work that operations `accepted`. It keeps the process alive until it is stopped.
 *
 * @throws ConfigError for an option that cannot be meant.
 * @example
 * ```ts
 * import pg from 'pg'
 * import { finish, json, startWorker } from 'samekey/server'
 * import { postgresServerStore } from 'samekey/server/postgres'
 *
 * const pool = new pg.Pool()
 * pool.on('error', console.error)
 *
 * const worker = startWorker({
 *   store: postgresServerStore(pool),
 *   work: {
 *     'orders.fulfil': async (task) => {
 *       const { orderId } = task.work as { orderId: number }
 *       return finish(async (transaction) => {
 *         await transaction.query('update orders set packed = now() where id = $1', [orderId])
 *         return json(200, { orderId, packed: true })
 *       })
 *     },
 *   },
 * })
 *
 * process.once('SIGTERM', async () => {
 *   await worker.stop()
 *   await pool.end()
 * })
 * ```
 */
export function startWorker<Transaction>(options: WorkerOptions<Transaction>): Worker {
  const settings = workSettings(options)
  const pollMs = wholeMs('pollMs', options.pollMs ?? 1000)
  const { store, clock, random, concurrency, report, work } = settings

  function tell(detail: string, error?: unknown): void {
    report({ kind: 'workerTrouble', operation: [...work.keys()].join(', '), id: null, detail, error })
  }

  const loop = startLoop<Held<Transaction>>({
    concurrency,
    pollMs,
    backoff: { baseMs: pollMs * 2, capMs: Math.max(TROUBLE_CAP_MS, pollMs), minMs: pollMs },
    clock,
    random,
    take: async (free) => ({ jobs: await takeDue(settings, free), more: false, nextInMs: null }),
    run(held, over) {
      over.addEventListener('abort', held.dismiss, { once: true })
      return runJob(settings, held).finally(() => over.removeEventListener('abort', held.dismiss))
    },
    giveBack,
    failed: (error, waitMs) => tell(`No work could be taken, once more in ${waitMs} ms: ${errorText(error)}`, error),
  })
  const unsubscribe = store.onTask(loop.wake)
  let stopping: Promise<void> | null = null

  async function stop(graceMs: number): Promise<void> {
    unsubscribe()
    const left = await loop.stop({ graceMs })
    if (left > 0) tell(`Stopped, although ${left} tasks would not let go.`)
  }

  return {
    running: loop.running,
    stop({ graceMs = 10_000 } = {}) {
      stopping ??= stop(graceMs)
      return stopping
    },
  }
}
