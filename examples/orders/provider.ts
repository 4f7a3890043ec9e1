/**
 * The payment provider: another company's service, so a process of its own with tables of its own. It offers three
 * services, and can be told to misbehave.
 *
 *     POST /card/charges                     the same operation-id is done once
 *     POST /transfer/charges                 every request is done; GET /transfer/charges/{operation-id} tells
 *     POST /voucher/charges                  every request is done, and nobody is told
 *     GET  /statement?reference=ann/R-1      its book-keeping, for people
 *     POST /behaviour                        {"reference":"ann/R-1","next":["lose"]}: what becomes of the next requests
 *                                            for that one, or of anybody's where no reference is given
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { isPaymentMethod, type PaymentMethod } from './order.ts'
import type { ChargeRequest } from './payments.ts'
import { atTheEnd, closed, listen, numberSetting, openPool, setting } from './program.ts'
import { createMissing } from './tables.ts'

/**
 * - `answer`: as it should.
 * - `hang`: does nothing, and never answers.
 * - `lose`: does it, and closes the connection instead of answering.
 * - `late`: does it, and answers after `LATE_MS`.
 * - `twice`: as if something on the way had repeated the request.
 * - `decline`: 402.
 */
export type Behaviour = 'answer' | 'hang' | 'lose' | 'late' | 'twice' | 'decline'

/** What `POST /behaviour` takes. */
export interface BehaviourRequest {
  readonly reference?: string
  readonly next: readonly Behaviour[]
}

const program = setting('PROGRAM_NAME', 'provider')
const pool = openPool(program)
const lateMs = numberSetting('LATE_MS', 3000)
/** By reference; the empty one is anybody's. */
const coming = new Map<string, Behaviour[]>()

await createMissing(
  pool,
  `create table if not exists provider_charges (
    id bigint generated always as identity primary key,
    service text not null,
    operation_id text not null,
    order_id text not null,
    reference text not null,
    currency text not null,
    amount numeric not null,
    charged_at timestamptz not null default now()
  );
  create unique index if not exists provider_charges_once on provider_charges (operation_id) where service = 'card';
  create index if not exists provider_charges_by_order on provider_charges (order_id)`,
)

/** The customer's money moves here: one row is one charge. */
async function charge(service: PaymentMethod, operationId: string, wanted: ChargeRequest): Promise<string | null> {
  const { orderId, reference, currency, amount } = wanted
  // The other services have no such constraint, so there every request is a charge.
  await pool.query(
    `insert into provider_charges (service, operation_id, order_id, reference, currency, amount)
    values ($1, $2, $3, $4, $5, $6) on conflict (operation_id) where service = 'card' do nothing`,
    [service, operationId, orderId, reference, currency, amount],
  )
  return chargeOf(service, operationId)
}

async function chargeOf(service: PaymentMethod, operationId: string): Promise<string | null> {
  const { rows } = await pool.query<{ id: string }>(
    'select id from provider_charges where service = $1 and operation_id = $2 order by provider_charges.id limit 1',
    [service, operationId],
  )
  return rows[0]?.id ?? null
}

async function onCharge(service: PaymentMethod, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const operationId = incoming.headers['operation-id']
  if (typeof operationId !== 'string') return answer(outgoing, 400, { code: 'operation_id_missing' })
  const wanted = JSON.parse(await text(incoming)) as ChargeRequest
  const behaviour = coming.get(wanted.reference)?.shift() ?? coming.get('')?.shift() ?? 'answer'
  if (behaviour === 'hang') return
  if (behaviour === 'decline') return answer(outgoing, 402, { code: 'declined' })
  const id = await charge(service, operationId, wanted)
  if (behaviour === 'twice') await charge(service, operationId, wanted)
  if (behaviour === 'late') await sleep(lateMs)
  if (behaviour === 'lose') incoming.socket.destroy()
  else answer(outgoing, 201, { id })
}

async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://provider')
  const [first = '', second, operationId] = pathname.slice(1).split('/')
  if (incoming.method === 'POST' && first === 'behaviour') {
    const { reference = '', next } = JSON.parse(await text(incoming)) as BehaviourRequest
    coming.set(reference, [...next])
    return answer(outgoing, 200, { reference, next })
  }
  if (incoming.method === 'GET' && first === 'statement') {
    const { rows } = await pool.query('select * from provider_charges where reference = $1 order by id', [
      searchParams.get('reference'),
    ])
    return answer(outgoing, 200, rows)
  }
  if (second !== 'charges' || !isPaymentMethod(first)) return answer(outgoing, 404, { code: 'not_found' })
  if (incoming.method === 'POST') return onCharge(first, incoming, outgoing)
  const id = first === 'transfer' && operationId !== undefined ? await chargeOf(first, operationId) : null
  return id === null ? answer(outgoing, 404, { code: 'not_found' }) : answer(outgoing, 200, { id })
}

function answer(outgoing: ServerResponse, status: number, body: unknown): void {
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const server = createServer((incoming, outgoing) => {
  handle(incoming, outgoing).catch((error: unknown) => {
    console.error(`${program}:`, error)
    answer(outgoing, 500, { code: 'failed' })
  })
})
await listen(program, server, 3001)
atTheEnd(
  () => closed(server),
  () => pool.end(),
)
