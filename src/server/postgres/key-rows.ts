/** Key rows as PostgreSQL keeps them, and back. */
import type { Fingerprint } from '../protocol/fingerprint.ts'
import type { MonitorError } from '../protocol/wire.ts'
import type { KeyRow, StoredAnswer, TaskStatus, TaskView } from './decide.ts'
import type { KeyId } from './store.ts'

/** A row of {@link SELECT_ROW}. `now` is always there, everything else only where there is a row. */
export interface DbRow {
  readonly now: number
  readonly state: KeyRow['state'] | null
  readonly fingerprint: string | null
  readonly request_digest: string | null
  readonly answer_status: number | null
  readonly answer_headers: string | null
  readonly answer_body: Uint8Array | null
  readonly task_status: TaskStatus | null
  readonly task_error: string | null
  readonly task_retry_after: number | null
  readonly result_status: number | null
  readonly result_headers: string | null
  readonly result_body: Uint8Array | null
  readonly result_expires_at: number | null
  readonly created_at: number | null
  readonly expires_at: number | null
}

/** Epoch ms as a number that `pg` hands over as one. */
export function epochMs(timestamp: string): string {
  return `floor(extract(epoch from ${timestamp}) * 1000)::float8`
}

/** `$1` to `$4` of every statement about one key. */
export const WHERE_KEY = 'tenant = $1 and principal = $2 and operation = $3 and key = $4'

/** The values for {@link WHERE_KEY}. */
export function keyValues({ tenant, principal, operation, key }: KeyId): [string, string, string, string] {
  return [tenant, principal, operation, key]
}

/** Reads one row with the database's time, or the time alone. */
export const SELECT_ROW: string = `
select ${epochMs('clock_timestamp()')} as now, state, fingerprint, request_digest,
  answer_status, answer_headers, answer_body, task_status, task_error, task_retry_after,
  result_status, result_headers, result_body, ${epochMs('result_expires_at')} as result_expires_at,
  ${epochMs('created_at')} as created_at, ${epochMs('expires_at')} as expires_at
from (select) as always left join samekey_keys on ${WHERE_KEY}`

/** @returns null where there is no row. */
export function rowOf(db: DbRow): KeyRow | null {
  if (db.state === null) return null
  const expiresAt = db.expires_at ?? 0
  return {
    state: db.state,
    fingerprint: db.fingerprint === null ? null : (JSON.parse(db.fingerprint) as Fingerprint),
    requestDigest: db.request_digest,
    answer: answerOf(db.answer_status, db.answer_headers, db.answer_body),
    task: taskOf(db, expiresAt),
    createdAt: db.created_at ?? 0,
    expiresAt,
  }
}

function answerOf(status: number | null, headers: string | null, body: Uint8Array | null): StoredAnswer | null {
  if (status === null || headers === null) return null
  const pairs = JSON.parse(headers) as [string, string][]
  // A copy: `pg` cuts its values out of a buffer that it shares.
  return {
    status,
    headers: pairs,
    body: body === null ? { kind: 'omitted' } : { kind: 'bytes', bytes: new Uint8Array(body) },
  }
}

function taskOf(db: DbRow, expiresAt: number): TaskView | null {
  if (db.task_status === null) return null
  return {
    status: db.task_status,
    result: answerOf(db.result_status, db.result_headers, db.result_body),
    error: db.task_error === null ? null : (JSON.parse(db.task_error) as MonitorError),
    retryAfterSeconds: db.task_retry_after,
    resultExpiresAt: db.result_expires_at ?? expiresAt,
  }
}

/** Status, headers and body as three columns. */
export function answerValues(answer: StoredAnswer | null): [number | null, string | null, Uint8Array | null] {
  if (answer === null) return [null, null, null]
  const { body } = answer
  return [answer.status, JSON.stringify(answer.headers), body.kind === 'omitted' ? null : body.bytes]
}
