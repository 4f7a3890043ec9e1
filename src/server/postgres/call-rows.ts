/** Call rows as PostgreSQL keeps them, and back. */
import type { CallRow } from '../tasks/call-row.ts'
import { epochMs, timestampOf } from './time.ts'

/** What {@link CALL_COLUMNS} gives. */
export interface DbCall {
  readonly name: string
  readonly operation_id: string
  readonly kind: CallRow['kind']
  readonly state: CallRow['state']
  readonly request: string
  readonly value: string | null
  readonly epoch: number
  readonly attempts: number
  readonly begun_at: number
  readonly last_begun_at: number
  readonly error: string | null
  readonly late_answer: string | null
  readonly note: string | null
}

export const CALL_COLUMNS: string = `name, operation_id, kind, state, request, value, epoch, attempts,
  ${epochMs('begun_at')} as begun_at, ${epochMs('last_begun_at')} as last_begun_at, error, late_answer, note`

export function callOf(db: DbCall): CallRow {
  return {
    operationId: db.operation_id,
    kind: db.kind,
    state: db.state,
    request: db.request,
    value: db.value,
    epoch: db.epoch,
    attempts: db.attempts,
    begunAt: db.begun_at,
    lastBegunAt: db.last_begun_at,
    error: db.error,
    lateAnswer: db.late_answer,
    note: db.note,
  }
}

/** `$1` to `$4` are the task's key, `$5` the name, then these. What identifies the call and its request stays as it was. */
export const SAVE_CALL = `
insert into samekey_calls (tenant, principal, operation, key, name,
  operation_id, kind, state, request, value, epoch, attempts, begun_at, last_begun_at, error, late_answer, note)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
on conflict (tenant, principal, operation, key, name) do update
set kind = $7, state = $8, value = $10, epoch = $11, attempts = $12, begun_at = $13, last_begun_at = $14,
  error = $15, late_answer = $16, note = $17`

export function callValues(row: CallRow): unknown[] {
  const { operationId, kind, state, request, value, epoch, attempts } = row
  const times = [timestampOf(row.begunAt), timestampOf(row.lastBegunAt)]
  return [operationId, kind, state, request, value, epoch, attempts, ...times, row.error, row.lateAnswer, row.note]
}
