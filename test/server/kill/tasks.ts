/** Ways through accepted work, and what is true about them. */
import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { settle } from '../../../src/server/index.ts'
import { postgresServerStore } from '../../../src/server/postgres/index.ts'
import { until } from '../../support/until.ts'
import type { Member } from './fleet.ts'
import { AMOUNT, byKey, type Heard, type Send, submit, within } from './shop.ts'
import { OPENING_BALANCE, openAccount } from './tables.ts'
import type { Complaints } from './truth.ts'
import { acceptingShop, type WorkPlan } from './work.ts'
import type { WorkerQuestion } from './worker-program.ts'

export interface TaskPath {
  readonly title: string
  readonly plan: WorkPlan
  /** Statements and moments without which the list of points cannot be right, in their order. */
  readonly shows: readonly string[]
  /** First of the points that are looked at; default: the first of all. What comes before is that of another path. */
  readonly from?: string
  /** Status of the work after its first execution, where nobody dies. */
  readonly firstStatus: string
}

const CLAIM = ['begin', 'select tenant, principal, operation, key', 'update samekey_tasks', 'commit'] as const
const LOCKED = ['begin', 'select status, input, epoch', 'set local lock_timeout', 'select floor('] as const
const STEP = [...LOCKED, 'update orders set packed', 'update samekey_tasks', 'commit'] as const
const RENEWAL = [...LOCKED, 'update samekey_tasks', 'commit'] as const
const CALL_BEGINS = [
  ...LOCKED,
  'select name, operation_id',
  'insert into samekey_calls',
  'update samekey_tasks',
  'commit',
]
const CALL = ['the call is made', 'the call is on the wire', 'the call is answered'] as const
const CALL_ENDS = [...LOCKED, 'select name, operation_id', 'insert into samekey_calls', 'commit'] as const
const FINISH = [
  ...LOCKED,
  'select exists',
  'insert into journal',
  'update accounts',
  'with settled as',
  'commit',
] as const
const RETRY = [...LOCKED, 'update samekey_tasks', 'commit'] as const

const FROM_THE_CALL = { from: 'sent: select name, operation_id' } as const
const FROM_ITS_ANSWER = { from: 'the call is on the wire' } as const
const plain = { packs: false, fails: false, isRefused: false } as const

export const taskPaths: readonly TaskPath[] = [
  {
    title: 'P62, P63, P65: work with a step, a renewal, and a call to a service that takes keys',
    plan: { ...plain, provider: 'takesKeys', packs: true },
    shows: [...CLAIM, ...STEP, ...RENEWAL, ...CALL_BEGINS, ...CALL, ...CALL_ENDS, ...FINISH],
    firstStatus: 'succeeded',
  },
  {
    title: 'P65, F11: a call that is carried out and answered with an error, and is tried again',
    plan: { ...plain, provider: 'takesKeys', fails: true },
    ...FROM_ITS_ANSWER,
    shows: [...CLAIM, ...CALL_BEGINS, ...CALL, ...CALL_ENDS, ...RETRY],
    firstStatus: 'failed_retryable',
  },
  {
    title: 'P65, F11: a call to a service that takes no keys, and can be asked',
    plan: { ...plain, provider: 'canBeAsked' },
    ...FROM_THE_CALL,
    shows: [...CLAIM, ...CALL_BEGINS, ...CALL, ...CALL_ENDS, ...FINISH],
    firstStatus: 'succeeded',
  },
  {
    title: 'P65, F11: a call to a service that neither takes keys nor can be asked',
    plan: { ...plain, provider: 'neither' },
    ...FROM_THE_CALL,
    shows: [...CLAIM, ...CALL_BEGINS, ...CALL, ...CALL_ENDS, ...FINISH],
    firstStatus: 'succeeded',
  },
  {
    title: 'P56, P65: a call that is refused, after which everything is taken back',
    plan: { ...plain, provider: 'takesKeys', isRefused: true },
    ...FROM_ITS_ANSWER,
    shows: [
      ...CLAIM,
      ...CALL_BEGINS,
      ...CALL,
      ...CALL_ENDS,
      ...FINISH.slice(0, -2),
      'rollback to',
      ...FINISH.slice(-2),
    ],
    firstStatus: 'failed',
  },
]

/** The points of a path at which something is to happen, by their place on the list. */
export function indicesOf({ from }: TaskPath, points: readonly string[]): number[] {
  const first = from === undefined ? 0 : points.findIndex((point) => point.startsWith(from))
  if (first < 0) throw new Error(`${from} is not on the list:\n${points.join('\n')}`)
  return [...points.keys()].slice(first)
}

/** Everything that both databases know about one piece of work. */
export interface TaskTruth {
  readonly orders: number
  readonly packed: number
  readonly journal: number
  readonly balance: number
  readonly keys: readonly string[]
  readonly status: string
  readonly charges: readonly number[]
  /** Operation ids that the provider was ever sent. */
  readonly operationIds: readonly string[]
}

export async function taskTruthOf(pool: pg.Pool, key: string): Promise<TaskTruth> {
  const { rows } = await pool.query<TaskTruth>(
    `select
       (select count(*)::int from orders where account = $1) as orders,
       (select count(*)::int from orders where account = $1 and packed) as packed,
       (select count(*)::int from journal join orders on id = order_id where account = $1) as journal,
       (select balance from accounts where name = $1) as balance,
       array(select state from samekey_keys where key = $1) as keys,
       (select status from samekey_tasks where key = $1) as status,
       array(select id from charges where account = $1) as charges,
       array(select distinct operation_id from charge_requests where account = $1) as "operationIds"`,
    [key],
  )
  const [truth] = rows
  if (truth === undefined) throw new Error('no truth')
  return truth
}

/** One piece of accepted work, and how to look at it. */
export interface Job {
  readonly key: string
  readonly operation: string
  readonly plan: WorkPlan
  readonly send: Send
  readonly accepted: Heard
}

/** @param operation of which nobody else has work: workers take all that is due. */
export async function acceptJob(pool: pg.Pool, operation: string, key: string, plan: WorkPlan): Promise<Job> {
  const send = within(acceptingShop(pool, operation, plan))
  await openAccount(pool, key)
  return { key, operation, plan, send, accepted: await submit(send, 'later', key) }
}

/** As if everything that anybody waits for had passed: the lease, the pause after a failure, a call's time on its way. */
export async function letTimePass(pool: pg.Pool, { key }: Job): Promise<void> {
  await pool.query('update samekey_tasks set due_at = clock_timestamp() where key = $1 and due_at is not null', [key])
  await pool.query(
    `update samekey_calls set begun_at = begun_at - interval '1 hour', last_begun_at = last_begun_at - interval '1 hour'
     where key = $1`,
    [key],
  )
}

/**
 * Lets a worker work until nothing more will come of it; resolves with the work's status.
 *
 * @param before called before each try. Default: nothing.
 */
export async function workItOff(
  pool: pg.Pool,
  worker: Member<unknown>,
  job: Job,
  before?: () => Promise<unknown>,
): Promise<string> {
  let status = ''
  await until(`${job.key} comes to an end`, async () => {
    await before?.()
    await letTimePass(pool, job)
    await worker.ask<number>({ work: job.operation } satisfies WorkerQuestion)
    status = (await taskTruthOf(pool, job.key)).status
    return status !== 'processing' && status !== 'failed_retryable'
  })
  return status
}

/** A person looks at what the provider did, and says so. */
export async function settleByHand(pool: pg.Pool, { key }: Job): Promise<void> {
  const { charges } = await taskTruthOf(pool, key)
  const { rows } = await pool.query<{ operation_id: string }>('select operation_id from samekey_calls where key = $1', [
    key,
  ])
  const [charge] = charges
  const outcome = charge === undefined ? 'refused' : 'done'
  const store = postgresServerStore(pool)
  await settle(store, rows[0]?.operation_id ?? '', outcome, 'asked the provider', { id: charge })
}

/** What is wrong at any moment, whatever has died. */
export function unlessSound({ plan: { provider } }: Job, truth: TaskTruth): Complaints {
  const { charges, operationIds, journal, balance, status, orders, keys } = truth
  const complaints: string[] = []
  if (charges.length > 1) complaints.push(`${charges.length} charges`)
  if (operationIds.length > 1) complaints.push(`operation ids: ${operationIds}`)
  const isBooked = status === 'succeeded' ? 1 : 0
  if (journal !== isBooked || balance !== OPENING_BALANCE - isBooked * AMOUNT) complaints.push('half of the end')
  if (orders !== 1 || keys.length !== 1) complaints.push(`${orders} orders, ${keys.length} keys`)
  if (status === 'succeeded' && charges.length !== 1) complaints.push('succeeded without a charge')
  if (status === 'failed' && charges.length !== 0) complaints.push('"failed", although it was charged')
  if (status === 'unknown' && provider !== 'neither') complaints.push('unknown, although it can be found out')
  return complaints.map((complaint) => `${complaint}: ${JSON.stringify(truth)}`)
}

/** What is wrong when all is over: rows, monitor, and the answer to the first request. */
export async function unlessOver(pool: pg.Pool, job: Job): Promise<Complaints> {
  const truth = await taskTruthOf(pool, job.key)
  const complaints = [...unlessSound(job, truth)]
  const expected = job.plan.isRefused || truth.charges.length === 0 ? 'failed' : 'succeeded'
  if (truth.status !== expected) complaints.push(`it is ${truth.status} and not ${expected}`)
  if (truth.packed !== (job.plan.packs ? 1 : 0)) complaints.push(`packed: ${truth.packed}`)
  if (!isDeepStrictEqual(truth.keys, ['finished'])) complaints.push(`keys: ${truth.keys}`)
  if (job.plan.provider !== 'neither' && truth.charges.length !== (job.plan.isRefused ? 0 : 1)) {
    complaints.push(`charges: ${truth.charges}`)
  }
  const again = await submit(job.send, 'later', job.key)
  if (!isDeepStrictEqual(again, { ...(job.accepted as object), replayed: true })) {
    complaints.push(`the 202 became ${JSON.stringify(again)}`)
  }
  const monitor = await byKey(job.send, 'GET', job.operation, job.key)
  const told = monitor === 'nothing' ? monitor : (JSON.parse(monitor.body) as { status: string }).status
  if (told !== expected) complaints.push(`the monitor says ${told}`)
  return complaints
}
