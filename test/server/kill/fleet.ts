/** Processes that are ready before they are needed: starting one takes longer than everything else here. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type Program, programOf, type Running, type StartOptions } from '../../support/processes.ts'
import { until } from '../../support/until.ts'

/** A process, and its name in PostgreSQL's list of connections. */
export interface Member<Ready> extends Running<Ready> {
  readonly name: string
}

export interface Fleet<Ready> {
  /** A fresh one. */
  take(): Promise<Member<Ready>>
  end(): Promise<void>
}

/**
 * @param spares how many are kept ready; with each one that is taken, another one starts.
 * @param options see `StartOptions`.
 */
export function fleetOf<Job extends { readonly name: string }, Ready>(
  source: URL,
  job: Omit<Job, 'name'>,
  spares: number,
  options?: StartOptions,
): Fleet<Ready> {
  const program: Program<Job, Ready> = programOf(source)
  const waiting: Promise<Member<Ready>>[] = []
  // Others have members too, and the database sees nothing but names.
  const fleet = randomUUID().slice(0, 8)
  let started = 0
  const start = async (): Promise<Member<Ready>> => {
    started += 1
    const name = `${fleet}-${started}`
    return { ...(await program.start({ ...job, name } as Job, options)), name }
  }
  const refill = (): void => {
    while (waiting.length < spares) {
      const member = start()
      // Whoever takes it hears of it.
      member.catch(() => {})
      waiting.push(member)
    }
  }
  refill()
  return {
    take() {
      const member = waiting.shift() ?? start()
      refill()
      return member
    },
    async end() {
      await Promise.allSettled(waiting)
      await program.end()
    },
  }
}

/** Waits until the database has noticed that a process is gone, and has undone what it left open. */
export function untilForgotten(pool: pg.Pool, name: string): Promise<void> {
  return until(`the connections of ${name} are closed`, async () => {
    const { rowCount } = await pool.query('select from pg_stat_activity where application_name = $1', [name])
    return rowCount === 0
  })
}

/** True while a connection of a process waits for a lock. */
export async function isWaiting(pool: pg.Pool, name: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'`,
    [name],
  )
  return rowCount !== 0
}
