/** A worker is stopped at a point, another one takes over, and then the first one goes on as if nothing had been. */
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { until } from '../../support/until.ts'
import type { Member } from './fleet.ts'
import { acceptJob, settleByHand, type TaskPath, taskTruthOf, unlessOver, unlessSound, workItOff } from './tasks.ts'
import type { Complaints } from './truth.ts'
import type { Jump, WorkerQuestion } from './worker-program.ts'

export interface Stop {
  readonly point: string
  readonly index: number
  readonly key: string
  readonly operation: string
  /** What the stopped process finds its clocks have done. */
  readonly jump: Jump
}

export async function stopWorkerAt(
  { plan }: TaskPath,
  pool: pg.Pool,
  { old, heir }: { readonly old: Member<null>; readonly heir: Member<null> },
  { point, index, key, operation, jump }: Stop,
): Promise<Complaints> {
  const job = await acceptJob(pool, operation, key, plan)
  const saidBefore = old.said()
  await old.ask({ arm: index, how: 'SIGSTOP', jump } satisfies WorkerQuestion)
  const oldIsThrough = old.ask<number>({ work: operation } satisfies WorkerQuestion)
  await until(`${old.name} stops at ${point}`, () => old.said().length > saidBefore.length || old.isOver())
  const said = old.said().slice(saidBefore.length)
  if (said !== point) return [`it stopped at "${said}"`]

  old.stop()
  const complaints = [...unlessSound(job, await taskTruthOf(pool, key))]
  const status = await workItOff(pool, heir, job, () => endIdle(pool, old.name))
  const taken = await taskTruthOf(pool, key)
  complaints.push(...unlessSound(job, taken))

  old.goOn()
  await oldIsThrough
  const after = await taskTruthOf(pool, key)
  if (!isDeepStrictEqual(after, taken)) {
    complaints.push(`the old worker changed ${JSON.stringify(taken)} to ${JSON.stringify(after)}`)
  }
  if (status === 'unknown') {
    await settleByHand(pool, job)
    await workItOff(pool, heir, job)
  }
  return [...complaints, ...(await unlessOver(pool, job))]
}

/**
 * A process that was stopped within a transaction keeps its locks, and nobody can take over: neither twice nor at all.
 * Until the database ends its connection, as `idle_in_transaction_session_timeout` does.
 */
export async function endIdle(pool: pg.Pool, name: string): Promise<void> {
  await until('the connections of the stopped worker are at rest', async () => {
    await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = $1 and state like 'idle in transaction%'`,
      [name],
    )
    // What was on the wire when it was stopped is still carried out.
    const { rowCount } = await pool.query(
      `select from pg_stat_activity where application_name = $1 and state <> 'idle'`,
      [name],
    )
    return rowCount === 0
  })
}
