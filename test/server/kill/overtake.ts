/** A worker is stopped, another one takes its work, and both go on at the same time: only the epoch tells them apart. */
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { until } from '../../support/until.ts'
import type { Member } from './fleet.ts'
import { endIdle } from './stop-task.ts'
import {
  acceptJob,
  letTimePass,
  type TaskPath,
  type TaskTruth,
  taskTruthOf,
  unlessOver,
  unlessSound,
  workItOff,
} from './tasks.ts'
import type { Complaints } from './truth.ts'
import type { WorkerQuestion } from './worker-program.ts'

export async function overtakeAt(
  { plan }: TaskPath,
  pool: pg.Pool,
  { old, heir }: { readonly old: Member<null>; readonly heir: Member<null> },
  at: {
    readonly points: readonly string[]
    readonly index: number
    readonly key: string
    readonly operation: string
  },
): Promise<Complaints> {
  const { points, index, key, operation } = at
  const job = await acceptJob(pool, operation, key, plan)
  const oldOne = await workUpTo(old, operation, index)
  old.stop()
  await endIdle(pool, old.name)
  await letTimePass(pool, job)
  // It has claimed the work, and no more than that.
  const heirs = await workUpTo(heir, operation, points.indexOf('answered: commit'))
  const taken = await taskTruthOf(pool, key)

  // By its clocks, the old one still has its lease.
  await oldOne.goOn()
  const after = await taskTruthOf(pool, key)
  const complaints = [...unlessSound(job, after)]
  if (!isDeepStrictEqual(ofTheShop(after), ofTheShop(taken))) {
    complaints.push(`the old worker changed ${JSON.stringify(taken)} to ${JSON.stringify(after)}`)
  }
  await heirs.goOn()
  await heir.ask({ arm: null, how: 'SIGSTOP', jump: 'none' } satisfies WorkerQuestion)
  await workItOff(pool, heir, job)
  return [...complaints, ...(await unlessOver(pool, job))]
}

/** A worker that stands at a point, or has nothing more to do. */
interface Standing {
  /** Resolves when it is through. */
  goOn(): Promise<unknown>
}

async function workUpTo(worker: Member<null>, operation: string, index: number): Promise<Standing> {
  const saidBefore = worker.said().length
  await worker.ask({ arm: index, how: 'SIGSTOP', jump: 'none' } satisfies WorkerQuestion)
  let isOver = false
  const isThrough = worker.ask<number>({ work: operation } satisfies WorkerQuestion)
  isThrough.then(
    () => {
      isOver = true
    },
    () => {},
  )
  await until(`${worker.name} is at its point`, () => worker.said().length > saidBefore || isOver || worker.isOver())
  return {
    goOn() {
      if (!isOver) worker.goOn()
      return isThrough
    },
  }
}

/** A service with keys may be called by both: that is what its keys are for. */
function ofTheShop({ charges, operationIds, ...rest }: TaskTruth): object {
  return rest
}
