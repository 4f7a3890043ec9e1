/** Takes accepted work to its end, or to a point where its worker dies, and looks at what is true then. */
import { type Member, untilForgotten } from './fleet.ts'
import type { WorkStage } from './stage-of-work.ts'
import { acceptJob, settleByHand, type TaskPath, taskTruthOf, unlessOver, unlessSound, workItOff } from './tasks.ts'
import type { Complaints } from './truth.ts'
import type { WorkerQuestion } from './worker-program.ts'

/** The points of a path, as a first execution finds them in which nobody dies. */
export async function pointsOfTask(
  { plan, firstStatus }: TaskPath,
  { pool, workers }: WorkStage,
  operation: string,
): Promise<{ readonly points: readonly string[]; readonly complaints: Complaints }> {
  const worker = await workers.take()
  const job = await acceptJob(pool, operation, operation, plan)
  await worker.ask({ arm: null, how: 'SIGKILL', jump: 'none' } satisfies WorkerQuestion)
  const taken = await worker.ask<number>({ work: operation } satisfies WorkerQuestion)
  const points = await worker.ask<string[]>({ reached: true } satisfies WorkerQuestion)
  const truth = await taskTruthOf(pool, job.key)
  const complaints = [...unlessSound(job, truth)]
  if (taken !== 1 || truth.status !== firstStatus) complaints.push(`${taken} taken, and it is ${truth.status}`)
  await worker.kill()
  return { points, complaints }
}

/** One worker dies at one point; another one takes over. */
export async function killWorkerAt(
  { plan }: TaskPath,
  { pool }: WorkStage,
  { victim, heir }: { readonly victim: Member<null>; readonly heir: Member<null> },
  { point, index, key, operation }: { readonly point: string; readonly index: number; key: string; operation: string },
): Promise<Complaints> {
  const job = await acceptJob(pool, operation, key, plan)
  await victim.ask({ arm: index, how: 'SIGKILL', jump: 'none' } satisfies WorkerQuestion)
  await victim.ask({ work: operation } satisfies WorkerQuestion).catch(() => {})
  const { signal, said } = await victim.ended
  if (signal !== 'SIGKILL' || said !== point) return [`it ended with ${signal} at "${said}"`]
  await untilForgotten(pool, victim.name)
  const complaints = [...unlessSound(job, await taskTruthOf(pool, key))]
  if ((await workItOff(pool, heir, job)) === 'unknown') {
    complaints.push(...unlessSound(job, await taskTruthOf(pool, key)))
    await settleByHand(pool, job)
    await workItOff(pool, heir, job)
  }
  return [...complaints, ...(await unlessOver(pool, job))]
}
