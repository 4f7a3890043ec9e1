/** The part of a unit that is about accepted work and its calls (sections 13 and 14). */
import { CommitUnknownError } from '../errors.ts'
import type { KeyId, Unit } from '../store.ts'
import { isSettled, keyStateOf } from '../tasks/task-row.ts'
import { NO_CONTROL, SWALLOWED } from './app-part.ts'
import { CALL_COLUMNS, callOf, callValues, type DbCall, SAVE_CALL } from './call-rows.ts'
import type { PgQueryable, PgResult } from './client.ts'
import { keyValues, WHERE_KEY } from './key-rows.ts'
import { failureOf, isAborted, isBusy, type OpenTransaction, own } from './session.ts'
import { type DbTask, SETTLE_TASK, TASK_COLUMNS, taskOf, taskValues, UPDATE_TASK } from './task-rows.ts'
import { epochMs, type Timed } from './time.ts'

/** `now` is read once the lock is there: a wait for it takes time. */
const LOCK = `select ${TASK_COLUMNS} from samekey_tasks where ${WHERE_KEY} for update`
const NOW = `select ${epochMs('$NOW')} as now`

const READ_CALL = `select ${CALL_COLUMNS} from samekey_calls where ${WHERE_KEY} and name = $5`
const FIND_CALL = 'select tenant, principal, operation, key, name from samekey_calls where operation_id = $1'
const OPEN_CALLS = `
select exists (select from samekey_calls where ${WHERE_KEY} and state in ('begun', 'unknown')) as open`

/** Locks, reads and saves work and calls. */
export function taskUnit(
  { client, mark }: OpenTransaction,
  timed: Timed,
): Pick<Unit<PgQueryable>, 'lockTask' | 'saveTask' | 'readCall' | 'findCall' | 'saveCall' | 'hasOpenCalls'> {
  /** A statement after the app's own ones. */
  async function write(what: string, sql: string, values: unknown[]): Promise<void> {
    let result: PgResult
    try {
      result = await client.query(...timed(sql, values))
    } catch (error) {
      if (isAborted(error)) throw new Error(SWALLOWED, { cause: error })
      throw failureOf(what, error)
    }
    if (result.rowCount !== 1) throw new CommitUnknownError(NO_CONTROL)
  }

  return {
    async lockTask(id) {
      let locked: PgResult<DbTask>
      try {
        locked = await client.query<DbTask>(LOCK, keyValues(id))
      } catch (error) {
        if (isBusy(error)) return { seen: 'busy' }
        throw failureOf('lock the work', error)
      }
      await mark()
      const { rows } = await own('read the time', () => client.query<{ now: number }>(...timed(NOW, [])))
      const [row] = locked.rows
      return { seen: 'task', row: row === undefined ? null : taskOf(row), now: rows[0]?.now ?? Number.NaN }
    },

    async saveTask(id, row) {
      const values = [...keyValues(id), ...taskValues(row)]
      if (isSettled(row)) await write('settle the work', SETTLE_TASK, [...values, keyStateOf(row)])
      else await write('save the work', UPDATE_TASK, values)
    },

    async readCall(id, name) {
      const { rows } = await own('read a call', () => client.query<DbCall>(READ_CALL, [...keyValues(id), name]))
      const [row] = rows
      return row === undefined ? null : callOf(row)
    },

    async findCall(operationId) {
      const { rows } = await own('find a call', () => client.query<KeyId & { name: string }>(FIND_CALL, [operationId]))
      const [row] = rows
      if (row === undefined) return null
      const { name, ...id } = row
      return { id, name }
    },

    saveCall: (id, name, row) => write('save a call', SAVE_CALL, [...keyValues(id), name, ...callValues(row)]),

    async hasOpenCalls(id) {
      const { rows } = await own('read the calls', () => client.query<{ open: boolean }>(OPEN_CALLS, keyValues(id)))
      return rows[0]?.open ?? true
    },
  }
}
