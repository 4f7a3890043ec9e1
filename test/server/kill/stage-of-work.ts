/** A database, a provider, and workers that are ready to be killed or stopped. */
import pg from 'pg'
import { migrate } from '../../../src/server/postgres/index.ts'
import { startPostgres } from '../../support/postgres.ts'
import { programOf, type Running, type StartOptions } from '../../support/processes.ts'
import { type Fleet, fleetOf } from './fleet.ts'
import { PROVIDER_TABLES } from './provider.ts'
import type { ProviderJob, ProviderReady } from './provider-program.ts'
import { TABLES } from './tables.ts'
import type { WorkerJob } from './worker-program.ts'

export interface WorkStage {
  readonly pool: pg.Pool
  readonly provider: Running<ProviderReady>
  readonly workers: Fleet<null>
  /** Workers of other terms. */
  fleet(terms: Terms, spares: number, options?: StartOptions): Fleet<null>
  end(): Promise<void>
}

export type Terms = Pick<WorkerJob, 'leaseMs' | 'transitMs'>

/** Longer than any test: no lease and no call is over by itself. */
export const LONG: Terms = { leaseMs: 600_000, transitMs: 600_000 }

export async function setWorkStage(spares: number): Promise<WorkStage> {
  const postgres = await startPostgres()
  const pool = new pg.Pool({ connectionString: postgres.url, max: 20 })
  await migrate(pool)
  await pool.query(`${TABLES}; ${PROVIDER_TABLES}`)
  const providers = programOf<ProviderJob, ProviderReady>(new URL('provider-program.ts', import.meta.url))
  const provider = await providers.start({ databaseUrl: postgres.url })
  const fleets: Fleet<null>[] = []
  const fleet: WorkStage['fleet'] = (terms, count, options) => {
    const job = { databaseUrl: postgres.url, providerUrl: provider.ready.url, ...terms }
    const made = fleetOf<WorkerJob, null>(new URL('worker-program.ts', import.meta.url), job, count, options)
    fleets.push(made)
    return made
  }
  return {
    pool,
    provider,
    workers: fleet(LONG, spares),
    fleet,
    async end() {
      for (const made of fleets) await made.end()
      await providers.end()
      await pool.end()
      await postgres.stop()
    },
  }
}
