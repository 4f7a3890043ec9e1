import { connect, type PgPool, type PgQueryable } from './client.ts'
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
  const client = await connect(pool)
  let failed = true
  try {
    // Whoever waited for the lock has to see what was done meanwhile.
    await client.query('begin isolation level read committed')
    await client.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
    await refuseSecondHome(client)
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

/**
 * A schema that came to be before the tables' own in the search path, one named like the role for instance, would get an
 * empty set of tables: every key would be forgotten, and executed once more.
 */
async function refuseSecondHome(client: PgQueryable): Promise<void> {
  const { rows } = await client.query<{ home: string; current: string }>(`
    select n.nspname as home, current_schema() as current
    from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where c.relname = 'samekey_migrations' and n.nspname = any(current_schemas(false))
    order by array_position(current_schemas(false), n.nspname)`)
  const homes = rows.map(({ home }) => home)
  const [first] = rows
  if (first === undefined || homes.includes(first.current)) return
  throw new Error(
    `The tables of samekey are in the schema ${first.home}, and the search_path now begins with ${first.current}: ` +
      `put ${first.home} first, or name it in the connection (options: '-c search_path=${first.home}').`,
  )
}
