/** Workers that are stopped for real, for as long as another one needs to take over and to finish. */
import { until } from '../../support/until.ts'
import type { Fleet, Member } from './fleet.ts'
import type { WorkStage } from './stage-of-work.ts'
import { acceptJob, type Job, settleByHand, taskTruthOf, unlessOver, unlessSound } from './tasks.ts'
import type { Complaints } from './truth.ts'
import type { Provider } from './work.ts'
import type { WorkerQuestion } from './worker-program.ts'

/** Where a worker is stopped: names of moments, and where they are found on the list of points. */
export const moments = {
  'has claimed the work': (points) => points.indexOf('answered: commit'),
  'has written the call down': (points) => points.indexOf('the call is made') - 1,
  'is about to make the call': (points) => points.indexOf('the call is made'),
  'has made the call': (points) => points.indexOf('the call is on the wire'),
} satisfies Record<string, (points: readonly string[]) => number>

export interface RealStop {
  readonly provider: Provider
  readonly moment: keyof typeof moments
  /** Of which only this work is. */
  readonly operation: string
  readonly points: readonly string[]
}

/** The old worker goes on after others have finished its work, without having waited for more than the leases. */
export async function goOnTooLate(
  { job, old, isThrough }: Stopped,
  { provider, moment }: RealStop,
  { pool }: WorkStage,
): Promise<Complaints> {
  const status = await over(pool, job)
  const complaints = [...unlessSound(job, await taskTruthOf(pool, job.key))]
  old.goOn()
  await isThrough
  complaints.push(...unlessSound(job, await taskTruthOf(pool, job.key)))
  if (status === 'unknown') {
    await settleByHand(pool, job)
    await over(pool, job)
  }
  complaints.push(...(await unlessOver(pool, job)))
  return complaints.map((complaint) => `${provider}, ${moment}: ${complaint}`)
}

/** A worker that stands still, with work in its hands. */
export interface Stopped {
  readonly job: Job
  readonly old: Member<null>
  readonly isThrough: Promise<unknown>
}

/**
 * On a machine that is too slow for the leases, the worker may give up before it comes so far: then another one tries.
 */
export async function stopForReal(
  stop: RealStop,
  stage: WorkStage,
  oldOnes: Fleet<null>,
  attempt = 1,
): Promise<Stopped> {
  const { provider, moment, operation, points } = stop
  const { pool } = stage
  const key = `${operation}-${attempt}`
  const job = await acceptJob(pool, operation, key, { provider, packs: false, fails: false, isRefused: false })
  const old = await oldOnes.take()
  const index = moments[moment](points)
  await old.ask({ arm: index, how: 'SIGSTOP', jump: 'none' } satisfies WorkerQuestion)
  let gaveUp = false
  const isThrough = old.ask({ work: operation } satisfies WorkerQuestion)
  isThrough.then(
    () => {
      gaveUp = true
    },
    () => {},
  )
  await until(`${operation} is stopped`, () => old.said() !== '' || gaveUp || old.isOver())
  if (gaveUp) return stopForReal(stop, stage, oldOnes, attempt + 1)
  if (old.said() !== points[index]) throw new Error(`it stopped at ${old.said()}`)
  old.stop()
  if (moment === 'has made the call') {
    await until('the provider has done it', async () => (await taskTruthOf(pool, key)).charges.length > 0)
  }
  return { job, old, isThrough }
}

async function over(pool: WorkStage['pool'], { key }: Job): Promise<string> {
  let status = ''
  await until(`${key} comes to an end`, async () => {
    status = (await taskTruthOf(pool, key)).status
    return status !== 'processing' && status !== 'failed_retryable'
  })
  return status
}
