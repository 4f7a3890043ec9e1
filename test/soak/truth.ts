/** What is true, by SQL. Everything is counted, without a limit and without a condition that could hide a second one. */
import type { Pool } from 'pg'

export interface OrderRow {
  readonly id: string
  readonly intent: string
  readonly key: string
  readonly account: string
  readonly status: string
  readonly made_by: string
}

export interface EffectRow {
  readonly intent: string
  readonly key: string
  readonly order_id: string
  readonly epoch: number
  readonly made_by: string
}

export interface KeyRow {
  readonly key: string
  readonly account: string
  readonly operation: string
  readonly state: string
  readonly answer_status: number | null
  /** Of accepted work; null where there is none. */
  readonly task: string | null
  readonly attempts: number | null
}

/** What the servers' log says of a key. */
export interface LogRow {
  readonly key: string
  readonly requests: number
  /** Different bodies that came with it. */
  readonly bodies: number
}

export interface Truth {
  readonly orders: readonly OrderRow[]
  readonly effects: readonly EffectRow[]
  readonly keys: readonly KeyRow[]
  readonly log: readonly LogRow[]
}

export async function readTruth(pool: Pool): Promise<Truth> {
  const rows = async <Row extends object>(sql: string): Promise<Row[]> => (await pool.query<Row>(sql)).rows
  return {
    orders: await rows<OrderRow>('select id, intent, key, account, status, made_by from orders order by id'),
    effects: await rows<EffectRow>('select intent, key, order_id, epoch, made_by from effects order by id'),
    keys: await rows<KeyRow>(
      `select k.key, k.principal as account, k.operation, k.state, k.answer_status, t.status as task, t.attempts
      from samekey_keys k left join samekey_tasks t using (tenant, principal, operation, key)`,
    ),
    log: await rows<LogRow>(
      `select key, count(*)::integer as requests, count(distinct body_digest)::integer as bodies
      from requests group by key`,
    ),
  }
}

/** The servers' log of one key, for people. */
export async function logOf(pool: Pool, key: string): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>(
    `select concat_ws(' ', to_char(at, 'HH24:MI:SS.MS'), server, method, coalesce(status::text, 'no answer'),
      left(body_digest, 8)) as line
    from requests where key = $1 order by id`,
    [key],
  )
  return rows.map(({ line }) => line)
}
