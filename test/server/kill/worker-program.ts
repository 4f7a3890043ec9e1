/** A worker as a process: dies, or stops, where it is told to. */
import { readSync, writeSync } from 'node:fs'
import pg from 'pg'
import { systemClock } from '../../../src/platform/clock.ts'
import type { Clock, Timer } from '../../../src/ports.ts'
import { CommitUnknownError, StoreUnavailableError } from '../../../src/server/errors.ts'
import { postgresServerStore } from '../../../src/server/postgres/index.ts'
import { workOnce } from '../../../src/server/tasks/work-once.ts'
import { startWorker } from '../../../src/server/tasks/worker.ts'
import { serveQuestions } from '../../support/questions.ts'
import { pointsOf, watchedPool } from './points.ts'
import { workHandler } from './work.ts'

export interface WorkerJob {
  readonly databaseUrl: string
  readonly providerUrl: string
  readonly name: string
  readonly leaseMs: number
  readonly transitMs: number
}

/**
 * Which of its clocks a process finds further on after it was stopped, by more than any lease and any transit. The
 * monotonic one stands still while a machine sleeps, and its timers with it; the other one can be set back.
 */
export type Jump = 'both' | 'wall' | 'monotonic' | 'none'

export type WorkerQuestion =
  /** Which of the points to come is the last one, and what happens there. Null: none is. */
  | { readonly arm: number | null; readonly how: 'SIGKILL' | 'SIGSTOP'; readonly jump: Jump }
  | { readonly reached: true }
  /** Takes what is due of this operation and does it. Answers with how much that was. */
  | { readonly work: string }
  /** Does all work of these operations from now on. */
  | { readonly start: readonly string[] }

serveQuestions<WorkerJob, null, WorkerQuestion>(async ({ databaseUrl, providerUrl, name, leaseMs, transitMs }) => {
  let how: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL'
  let jump: Jump = 'none'
  const ahead = { wall: 0, monotonic: 0 }
  const armed = new Set<{ readonly timer: Timer; readonly run: () => void; readonly ms: number }>()
  const points = pointsOf((label) => {
    writeSync(1, label)
    if (how === 'SIGKILL') process.kill(process.pid, how)
    // Nothing happens in this process any more: by now it is stopped from outside, and somebody else has its work.
    readSync(0, Buffer.alloc(1))
    if (jump === 'both' || jump === 'wall') ahead.wall += 2 * (leaseMs + transitMs)
    if (jump === 'both' || jump === 'monotonic') {
      ahead.monotonic += 2 * (leaseMs + transitMs)
      // What was due meanwhile is overdue: it comes before anything that the network has to say.
      setImmediate(() => {
        for (const { timer, run } of [...armed]) {
          timer.cancel()
          run()
        }
      })
    }
  })

  const clock: Clock = {
    now: () => systemClock.now() + ahead.wall,
    monotonic: () => systemClock.monotonic() + ahead.monotonic,
    timer(ms, run, hold) {
      const fire = (): void => {
        armed.delete(entry)
        run()
      }
      const timer = systemClock.timer(ms, fire, hold)
      const cancel = (): void => {
        armed.delete(entry)
        timer.cancel()
      }
      const entry = { timer: { cancel }, run: fire, ms }
      armed.add(entry)
      return { cancel }
    },
  }

  /** What still goes on: a worker that has lost its work lets go of it, and does not wait for what it began. */
  let goingOn = 0
  async function followed<T>(running: Promise<T>): Promise<T> {
    goingOn += 1
    try {
      return await running
    } finally {
      goingOn -= 1
    }
  }
  /** Until it was made or refused, or has failed. */
  async function renew(): Promise<void> {
    const before = goingOn
    // Nothing else waits for a third of the lease.
    for (const { timer, run, ms } of [...armed]) {
      if (Math.round(ms) !== leaseMs / 3) continue
      timer.cancel()
      run()
    }
    while (goingOn > before) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  async function untilQuiet(): Promise<void> {
    for (let quietTurns = 0; quietTurns < 5; quietTurns += 1) {
      if (goingOn > 0) quietTurns = 0
      await new Promise((resolve) => setTimeout(resolve, quietTurns === 0 ? 1 : 0))
    }
  }

  const pool = new pg.Pool({ connectionString: databaseUrl, application_name: name, max: 4 })
  pool.on('error', () => {})
  await pool.query('select 1')
  const { reach } = points
  const place = { providerUrl, transitMs, callTimeoutMs: transitMs / 2, reach, renew, followed }
  const handler = workHandler(place)
  const store = postgresServerStore(watchedPool(pool, reach))
  const followedStore: typeof store = { ...store, begin: (options, work) => followed(store.begin(options, work)) }

  const common = { store: followedStore, leaseMs, clock, retry: { baseMs: 1, capMs: 1 }, report: () => {} }

  async function work(operation: string): Promise<number> {
    try {
      return await workOnce({
        ...common,
        work: { [operation]: (task) => followed(Promise.resolve(handler(task))) },
      })
    } catch (error) {
      // It does not know of having taken anything: its connection was ended.
      if (error instanceof StoreUnavailableError || error instanceof CommitUnknownError) return 0
      throw error
    } finally {
      await untilQuiet()
    }
  }

  return {
    ready: null,
    answer(question) {
      if ('reached' in question) return points.reached()
      if ('work' in question) return work(question.work)
      if ('start' in question) {
        const handlers = Object.fromEntries(question.start.map((operation) => [operation, handler]))
        startWorker({ ...common, work: handlers, pollMs: 50, concurrency: 20 })
        return null
      }
      how = question.how
      jump = question.jump
      points.arm(question.arm)
      return null
    },
  }
})
