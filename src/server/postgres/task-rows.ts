/** Task rows as PostgreSQL keeps them, and back. */
import type { MonitorError } from '../../protocol/wire.ts'
import type { TaskRow } from '../tasks/task-row.ts'
import { answerOf, answerValues } from './answers.ts'
import { WHERE_KEY } from './key-rows.ts'
import { epochMs, timestampOf } from './time.ts'

/** What {@link TASK_COLUMNS} gives. */
export interface DbTask {
  readonly status: TaskRow['status']
  readonly input: string | null
  readonly epoch: number
  readonly attempts: number
  readonly due_at: number | null
  readonly effects_begun: boolean
  readonly error: string | null
  readonly retry_after: number
  readonly result_status: number | null
  readonly result_headers: string | null
  readonly result_body: Uint8Array | null
  readonly result_reference: string | null
  readonly note: string | null
}

export const TASK_COLUMNS: string = `status, input, epoch, attempts, ${epochMs('due_at')} as due_at, effects_begun, error,
  retry_after, result_status, result_headers, result_body, result_reference, note`

export function taskOf(db: DbTask): TaskRow {
  return {
    status: db.status,
    input: db.input,
    epoch: db.epoch,
    attempts: db.attempts,
    dueAt: db.due_at,
    effectsBegun: db.effects_begun,
    error: db.error === null ? null : (JSON.parse(db.error) as MonitorError),
    retryAfterSeconds: db.retry_after,
    result: answerOf({
      status: db.result_status,
      headers: db.result_headers,
      body: db.result_body,
      reference: db.result_reference,
    }),
    note: db.note,
  }
}

/** `$5` to `$17`, in the order of {@link COLUMNS}. */
export function taskValues(row: TaskRow): unknown[] {
  return [
    row.status,
    row.input,
    row.epoch,
    row.attempts,
    timestampOf(row.dueAt),
    row.effectsBegun,
    row.error === null ? null : JSON.stringify(row.error),
    row.retryAfterSeconds,
    ...answerValues(row.result),
    row.note,
  ]
}

const COLUMNS = [
  'status',
  'input',
  'epoch',
  'attempts',
  'due_at',
  'effects_begun',
  'error',
  'retry_after',
  'result_status',
  'result_headers',
  'result_body',
  'result_reference',
  'note',
]

const PLACES = COLUMNS.map((_, index) => `$${index + 5}`)
const ASSIGNMENTS = COLUMNS.map((column, index) => `${column} = ${PLACES[index]}`).join(', ')
/** The end of the promise to keep a result that comes at this moment (P62). */
const RESULT_EXPIRES = 'greatest(expires_at, $NOW + (expires_at - created_at))'

/** With the hint for workers that listen; it is sent at the commit. */
export const INSERT_TASK: string = `
with task as (
  insert into samekey_tasks (tenant, principal, operation, key, ${COLUMNS.join(', ')}, accepted_at, changed_at)
  values ($1, $2, $3, $4, ${PLACES.join(', ')}, $NOW, $NOW) returning 1
) select pg_notify('samekey_tasks', '') from task`

/** Saves a locked row. */
export const UPDATE_TASK: string = `update samekey_tasks set ${ASSIGNMENTS}, changed_at = $NOW where ${WHERE_KEY}`

/** The same for an end: the key ends with it, as `$18` says, and may be reaped once the result has been kept. */
export const SETTLE_TASK: string = `
with settled as (
  update samekey_keys
  set state = $18, reap_at = greatest(reap_at, ${RESULT_EXPIRES} + (reap_at - expires_at))
  where ${WHERE_KEY} returning ${RESULT_EXPIRES} as result_expires_at
)
update samekey_tasks set ${ASSIGNMENTS}, changed_at = $NOW, result_expires_at = settled.result_expires_at
from settled where ${WHERE_KEY}`
