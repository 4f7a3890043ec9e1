/** COMMITs that take their time: a check that is put off to the commit waits there for a lock, as long as a test holds it. */
import type pg from 'pg'
import { until } from '../../support/until.ts'

const LOCK = 4711

/** Every order's commit waits for the lock. */
export const HOLDING_UP = `
create function hold_up() returns trigger language plpgsql as
  'begin perform pg_advisory_xact_lock_shared(${LOCK}); return null; end';
create constraint trigger hold_up after insert on journal deferrable initially deferred
  for each row execute function hold_up()`

/** Holds up all commits of orders until they are released. */
export async function holdCommits(pool: pg.Pool): Promise<{ release(): void }> {
  const client = await pool.connect()
  client.on('error', () => {})
  await client.query('select pg_advisory_lock($1)', [LOCK])
  // The lock goes with the connection.
  return { release: () => client.release(true) }
}

/** Waits until a process is within its COMMIT. Gives the number of the database's own process for it. */
export async function untilCommitting(pool: pg.Pool, name: string): Promise<number> {
  let found: number | undefined
  await until(`${name} commits`, async () => {
    const { rows } = await pool.query<{ pid: number }>(
      `select pid from pg_stat_activity
       where application_name = $1 and query = 'commit' and wait_event_type = 'Lock'`,
      [name],
    )
    found = rows[0]?.pid
    return found !== undefined
  })
  return found ?? 0
}
