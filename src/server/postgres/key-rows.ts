/** Key rows as PostgreSQL keeps them, and back. */
import type { Fingerprint } from '../../protocol/fingerprint.ts'
import type { MonitorError, MonitorStatus } from '../../protocol/wire.ts'
import type { KeyRow, TaskView } from '../decide.ts'
import type { KeyId } from '../store.ts'
import { isSettled } from '../tasks/task-row.ts'
import { answerOf } from './answers.ts'
import { epochMs } from './time.ts'

/** A row of {@link SELECT_KEY}. `now` and `standby` are always there, everything else only where there is a row. */
export interface DbKey {
  readonly now: number
  readonly standby: boolean
  readonly state: KeyRow['state'] | null
  readonly fingerprint: string | null
  readonly request_digest: string | null
  readonly answer_status: number | null
  readonly answer_headers: string | null
  readonly answer_body: Uint8Array | null
  readonly answer_reference: string | null
  readonly created_at: number
  readonly expires_at: number
  readonly task_status: MonitorStatus | null
  readonly task_error: string | null
  readonly task_retry_after: number
  readonly result_status: number | null
  readonly result_headers: string | null
  readonly result_body: Uint8Array | null
  readonly result_reference: string | null
  readonly result_expires_at: number | null
}

/** `$1` to `$4` of every statement about one key. */
export const WHERE_KEY = 'tenant = $1 and principal = $2 and operation = $3 and key = $4'

/** The values for {@link WHERE_KEY}. */
export function keyValues({ tenant, principal, operation, key }: KeyId): [string, string, string, string] {
  return [tenant, principal, operation, key]
}

/** Reads one key with its work and the database's time, or the time alone. */
export const SELECT_KEY: string = `
select ${epochMs('clock_timestamp()')} as now, pg_is_in_recovery() as standby,
  k.state, k.fingerprint, k.request_digest,
  k.answer_status, k.answer_headers, k.answer_body, k.answer_reference,
  ${epochMs('k.created_at')} as created_at, ${epochMs('k.expires_at')} as expires_at,
  t.status as task_status, t.error as task_error, t.retry_after as task_retry_after,
  t.result_status, t.result_headers, t.result_body, t.result_reference,
  ${epochMs('t.result_expires_at')} as result_expires_at
from (select) as always
left join samekey_keys as k on ${WHERE_KEY}
left join samekey_tasks as t using (tenant, principal, operation, key)`

/** @returns null where there is no row. */
export function keyOf(db: DbKey): KeyRow | null {
  if (db.state === null) return null
  const { answer_status, answer_headers, answer_body, answer_reference } = db
  return {
    state: db.state,
    fingerprint: db.fingerprint === null ? null : (JSON.parse(db.fingerprint) as Fingerprint),
    requestDigest: db.request_digest,
    answer: answerOf({
      status: answer_status,
      headers: answer_headers,
      body: answer_body,
      reference: answer_reference,
    }),
    task: viewOf(db),
    createdAt: db.created_at,
    expiresAt: db.expires_at,
  }
}

function viewOf(db: DbKey): TaskView | null {
  const { task_status: status, result_status, result_headers, result_body, result_reference } = db
  if (status === null) return null
  return {
    status,
    result: answerOf({
      status: result_status,
      headers: result_headers,
      body: result_body,
      reference: result_reference,
    }),
    error: db.task_error === null ? null : (JSON.parse(db.task_error) as MonitorError),
    retryAfterSeconds: isSettled({ status }) ? null : db.task_retry_after,
    resultExpiresAt: db.result_expires_at ?? db.expires_at,
  }
}
