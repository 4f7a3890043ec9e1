import { ConfigError } from '../../errors.ts'
import type { ClaimedTask, KeyId, ServerStore, UnknownTask } from '../store.ts'
import { claimed } from '../tasks/task-row.ts'
import { CALL_COLUMNS, callOf, type DbCall } from './call-rows.ts'
import type { PgPool, PgQueryable } from './client.ts'
import { keyValues, WHERE_KEY } from './key-rows.ts'
import { keyUnit, readerOf } from './keys.ts'
import { listen } from './listen.ts'
import { IDLE_MS, inTransaction, own } from './session.ts'
import { type DbTask, TASK_COLUMNS, taskOf, taskValues, UPDATE_TASK } from './task-rows.ts'
import { taskUnit } from './tasks.ts'
import { epochMs, timedBy } from './time.ts'

/** What {@link postgresServerStore} can be told. */
export interface PostgresServerStoreOptions {
  /** Epoch ms; for tests that own time. Default: the database's clock, which all servers share. */
  readonly now?: () => number
  /**
   * How long a transaction may stand still between two statements before the database ends it, ms: a server that is
   * frozen, or cut off from the database, then no longer holds its key or its work (B115). More than `execute` ever
   * takes between two statements. Default 1 minute; where the database has an `idle_in_transaction_session_timeout`,
   * that one counts.
   */
  readonly idleMs?: number
}

/**
 * Keeps keys and accepted work in the tables `samekey_keys`, `samekey_tasks` and `samekey_calls` of this pool's
 * database; see `migrate`. `execute` gets the transaction's client, cut down to `query`, and writes its business rows
 * through it.
 *
 * Give the pool an `error` listener, as `pg` asks for, and a `connectionTimeoutMillis`: a request that finds no free
 * connection is then told so (503) instead of waiting for ever. A request that waits for a rival holds a connection.
 *
 * @param pool on the primary of PostgreSQL 13 or later: a standby knows too little, too late (P61).
 * @example
 * ```ts
 * import pg from 'pg'
 * import { startReaper } from 'samekey/server'
 * import { migrate, postgresServerStore } from 'samekey/server/postgres'
 *
 * const pool = new pg.Pool({ connectionTimeoutMillis: 5000 })
 * pool.on('error', console.error)
 * await migrate(pool)
 * const store = postgresServerStore(pool)
 * startReaper(store, { onError: console.error })
 * ```
 */
export function postgresServerStore(pool: PgPool, options: PostgresServerStoreOptions = {}): ServerStore<PgQueryable> {
  const timed = timedBy(options.now)
  const readWith = readerOf(options.now)
  const { idleMs = IDLE_MS } = options
  if (!(idleMs >= 1)) throw new ConfigError('idleMs', `must be a number of at least 1, not ${idleMs}`)

  return {
    begin: ({ waitMs }, work) =>
      inTransaction(
        pool,
        waitMs,
        (open) => work({ ...keyUnit(open, { timed, readWith }), ...taskUnit(open, timed) }),
        idleMs,
      ),

    find: (id) => own('read', () => readWith(pool, id)),

    claimTasks: ({ operations, limit, leaseMs }) =>
      inTransaction(pool, Number.POSITIVE_INFINITY, async ({ client }) => {
        const { rows } = await own('find work', () =>
          client.query<DbTask & KeyId & { now: number }>(...timed(DUE, [operations, limit])),
        )
        const taken: ClaimedTask[] = []
        for (const { tenant, principal, operation, key, now, ...db } of rows) {
          const row = claimed(taskOf(db), now, leaseMs)
          if (row === null) continue
          const id = { tenant, principal, operation, key }
          await own('take work', () => client.query(...timed(UPDATE_TASK, [...keyValues(id), ...taskValues(row)])))
          taken.push({ id, row })
        }
        return { commit: taken.length > 0, value: taken }
      }),

    async unknownTasks(limit = 100) {
      const { rows } = await own('find unknown work', () =>
        pool.query<DbTask & KeyId & { accepted_at: number }>(UNKNOWN, [limit]),
      )
      const unknown: UnknownTask[] = []
      // One after the other: a person waits, and requests want the connections.
      for (const { tenant, principal, operation, key, accepted_at, ...db } of rows) {
        const id = { tenant, principal, operation, key }
        const calls = await own('read the calls', () => pool.query<DbCall>(OPEN_CALLS, keyValues(id)))
        unknown.push({
          id,
          row: taskOf(db),
          calls: calls.rows.map((call) => ({ name: call.name, row: callOf(call) })),
          acceptedAt: accepted_at,
        })
      }
      return unknown
    },

    onTask: (wake) => listen(pool, 'samekey_tasks', wake),

    reap: (limit = 1000) =>
      // READ COMMITTED, said like everywhere: under a stricter default, two reapers that meet would fail.
      inTransaction(pool, Number.POSITIVE_INFINITY, async ({ client }) => {
        const { rowCount } = await own('reap', () => client.query(...timed(REAP, [limit])))
        return { commit: true, value: rowCount ?? 0 }
      }),
  }
}

/** `(select …)`: time is one value then, and an index can be searched by it. */
const DUE = `
select tenant, principal, operation, key, ${epochMs('$NOW')} as now, ${TASK_COLUMNS}
from samekey_tasks where operation = any($1) and due_at <= (select $NOW)
order by samekey_tasks.due_at limit $2 for update skip locked`

const UNKNOWN = `
select tenant, principal, operation, key, ${epochMs('accepted_at')} as accepted_at, ${TASK_COLUMNS}
from samekey_tasks where status = 'unknown' order by samekey_tasks.accepted_at limit $1`

const OPEN_CALLS = `
select ${CALL_COLUMNS} from samekey_calls where ${WHERE_KEY} and state in ('begun', 'unknown')
order by samekey_calls.begun_at`

/** Work and calls go with their key. */
const REAP = `
delete from samekey_keys where (tenant, principal, operation, key) in (
  select tenant, principal, operation, key from samekey_keys
  where reap_at <= (select $NOW) and state in ('finished', 'voided')
  order by reap_at limit $1 for update skip locked)`
