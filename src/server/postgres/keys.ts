/** The key part of a unit (section 12). What the SQL relies on was tried on real servers. */
import { CommitUnknownError } from '../errors.ts'
import type { Claim, KeyId, NewKey, Reading, Unit } from '../store.ts'
import { newTask } from '../tasks/task-row.ts'
import { answerValues } from './answers.ts'
import { MARK, NO_CONTROL, SWALLOWED } from './app-part.ts'
import type { PgQueryable, PgResult } from './client.ts'
import { type DbKey, keyOf, keyValues, SELECT_KEY, WHERE_KEY } from './key-rows.ts'
import { failureOf, isAborted, isBusy, type OpenTransaction, own } from './session.ts'
import { INSERT_TASK, taskValues } from './task-rows.ts'
import { epochMs, type Timed } from './time.ts'

const INSERT = `
insert into samekey_keys (tenant, principal, operation, key, state, fingerprint, request_digest, created_at, expires_at, reap_at)
select $1, $2, $3, $4, $5, $6, $7, t.now, t.now + $8 * interval '1 millisecond', t.now + $9 * interval '1 millisecond'
from (select date_trunc('milliseconds', $NOW) as now) as t
on conflict (tenant, principal, operation, key) do nothing
returning ${epochMs('created_at')} as created_at, ${epochMs('expires_at')} as expires_at`

/** `xmin`: the row was inserted by this very transaction, so `execute` has not ended it and begun another. */
const FINISH = `
update samekey_keys
set state = $5, answer_status = $6, answer_headers = $7, answer_body = $8, answer_reference = $9
where ${WHERE_KEY} and state = 'running' and xmin = pg_current_xact_id()::xid
returning ${epochMs('$NOW')} as now`

/** What this part of a unit needs. */
export interface KeyTools {
  readonly timed: Timed
  readonly readWith: (client: PgQueryable, id: KeyId) => Promise<Reading>
}

/** @param now for tests that own time, epoch ms. */
export function readerOf(now: (() => number) | undefined): KeyTools['readWith'] {
  return async (client, id) => {
    const { rows } = await client.query<DbKey>(SELECT_KEY, keyValues(id))
    const [row] = rows
    if (row === undefined) throw new Error('The key query gave no row at all.')
    // A standby may not have the row that was committed a moment ago, and "absent" would be a lie (P61).
    if (row.standby) throw new Error('This database is a standby: give the kit a pool on the primary.')
    return { row: keyOf(row), now: now?.() ?? row.now }
  }
}

/** Claims, reads and finishes keys. */
export function keyUnit(
  { client, run, mark }: OpenTransaction,
  { timed, readWith }: KeyTools,
): Pick<Unit<PgQueryable>, 'run' | 'claim' | 'read' | 'undo' | 'finish'> {
  async function claim(id: KeyId, key: NewKey): Promise<Claim> {
    const { state, requestDigest, retentionMs, graceMs } = key
    const fingerprint = key.fingerprint === null ? null : JSON.stringify(key.fingerprint)
    const values = [...keyValues(id), state, fingerprint, requestDigest, retentionMs, retentionMs + graceMs]
    let result: PgResult<{ created_at: number; expires_at: number }>
    try {
      result = await client.query(...timed(INSERT, values))
    } catch (error) {
      if (isBusy(error)) return { seen: 'busy' }
      throw failureOf('insert', error)
    }
    const [row] = result.rows
    if (row === undefined) return { seen: 'taken' }
    await mark()
    return { seen: 'inserted', now: row.created_at, expiresAt: row.expires_at }
  }

  return {
    run,
    claim,
    read: (id) => own('read', () => readWith(client, id)),

    async undo() {
      await own('rollback to savepoint', () => client.query(`rollback to savepoint ${MARK}`))
    },

    async finish(id, answer, task) {
      const state = task === null ? 'finished' : 'accepted'
      const values = [...keyValues(id), state, ...answerValues(answer)]
      let result: PgResult<{ now: number }>
      try {
        result = await client.query(...timed(FINISH, values))
      } catch (error) {
        if (isAborted(error)) throw new Error(SWALLOWED, { cause: error })
        throw failureOf('save the answer', error)
      }
      const [row] = result.rows
      if (row === undefined) throw new CommitUnknownError(NO_CONTROL)
      if (task === null) return
      const taskRow = newTask(task, row.now)
      await own('save the work', () => client.query(...timed(INSERT_TASK, [...keyValues(id), ...taskValues(taskRow)])))
    },
  }
}
