import type { PgPool } from './client.ts'
import { migrations } from './migrations.ts'

/** An arbitrary number, the same in every release: two processes that start at once migrate one after the other. */
const MIGRATION_LOCK = 7_263_533_821

/**
 * Brings the schema up to date: creates what is missing, in the first schema of the connection's
 * `search_path`. Safe to call at every start, from several processes at once.
 *
 * @returns the versions that were applied now.
 * @throws the database's error; the step that failed was rolled back whole.
 */
export async function migrate(pool: PgPool): Promise<readonly number[]> {
  const client = await pool.connect()
  let failed = true
  try {
    await client.query('begin')
    await client.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
    await client.query(
      'create table if not exists samekey_migrations (version integer primary key, name text not null, applied_at timestamptz not null default now())',
    )
    const { rows } = await client.query<{ version: number }>('select version from samekey_migrations')
    const done = new Set(rows.map(({ version }) => version))
    const missing = migrations.filter(({ version }) => !done.has(version))
    for (const { version, name, sql } of missing) {
      await client.query(sql)
      await client.query('insert into samekey_migrations (version, name) values ($1, $2)', [version, name])
    }
    await client.query('commit')
    failed = false
    return missing.map(({ version }) => version)
  } finally {
    // Closing the connection rolls back whatever is left of a step that failed.
    client.release(failed)
  }
}
