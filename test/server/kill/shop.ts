/** The shop that is killed: an operation for each way that a request can end. */
import { Agent, request } from 'node:http'

import { type ExecuteContext, type IdempotentOptions, idempotent } from '../../../src/server/index.ts'
import { type PgPool, type PgQueryable, postgresServerStore } from '../../../src/server/postgres/index.ts'
import { accepted, decline, json, refuse } from '../../../src/server/results.ts'
import { idempotencyRoutes } from '../../../src/server/routes.ts'
import { placeOrder, takeBack } from './tables.ts'

/** Answers requests. */
export type Shop = (request: Request) => Promise<Response>

export interface ShopOptions {
  /** Called in `execute`, after the business change. */
  readonly during?: (context: ExecuteContext<PgQueryable>) => Promise<void>
  readonly part?: Partial<IdempotentOptions<PgQueryable>>
}

/** Operations, by the path that they are posted to. */
export type OperationName = 'create' | 'refuse' | 'decline' | 'later' | 'hasty'

export const AMOUNT = 7

export function shopOf(pool: PgPool, { during, part = {} }: ShopOptions = {}): Shop {
  const common = {
    store: postgresServerStore(pool),
    scope: () => ({ tenant: 'acme', principal: 'ann' }),
    // Each process has a port of its own, which must not change what a request means.
    publicOrigin: 'https://shop.test',
    keysUrl: '/keys',
    report: () => {},
    ...part,
  }
  const place = async (context: ExecuteContext<PgQueryable>): Promise<number> => {
    const id = await placeOrder(context.transaction, context.key, AMOUNT)
    const { dwellMs } = (context.body.kind === 'json' ? context.body.value : {}) as { readonly dwellMs?: number }
    if (dwellMs !== undefined) await context.transaction.query('select pg_sleep($1)', [dwellMs / 1000])
    await during?.(context)
    return id
  }
  const create: IdempotentOptions<PgQueryable>['execute'] = async (context) => {
    const id = await place(context)
    return json(201, { id }, { Location: `/orders/${id}`, ETag: `"${id}"` })
  }
  const handlers = {
    create: idempotent({ ...common, operation: 'create', execute: create }),
    refuse: idempotent({
      ...common,
      operation: 'refuse',
      async execute(context) {
        await place(context)
        return refuse(402, { reason: 'declined' })
      },
    }),
    decline: idempotent({
      ...common,
      operation: 'decline',
      async execute(context) {
        await place(context)
        return decline(422, { reason: 'not today' })
      },
    }),
    later: idempotent({
      ...common,
      operation: 'later',
      async execute(context) {
        return accepted({ work: { orderId: await place(context), key: context.key } })
      },
      async onVoid({ transaction, work }) {
        await takeBack(transaction, (work as { orderId: number }).orderId)
      },
    }),
    /** Waits for nobody for long. */
    hasty: idempotent({ ...common, operation: 'create', limits: { waitMs: 20 }, execute: create }),
  } satisfies Record<OperationName, unknown>
  const { hasty, ...named } = handlers
  const keys = idempotencyRoutes({ keysUrl: '/keys', operations: Object.values(named) })

  return async (request) => {
    const name = new URL(request.url).pathname.slice(1)
    if (request.method === 'POST' && Object.hasOwn(handlers, name)) return handlers[name as OperationName](request)
    return (await keys(request)) ?? new Response(null, { status: 404 })
  }
}

/** A way to the shop: over HTTP to some process, or within this one. */
export type Send = (path: string, init: RequestInit) => Promise<Response>

/** Keeps its connections, and is lighter than `fetch`: there are thousands of requests. */
export function overHttp(base: string): Send {
  const agent = new Agent({ keepAlive: true })
  return (path, { method = 'GET', headers = {}, body = null }) =>
    new Promise((resolve, reject) => {
      const sent = request(base + path, { agent, method, headers: headers as Record<string, string> }, (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('error', reject)
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('end', () => {
          const { statusCode = 0, headers } = incoming
          resolve(new Response(Buffer.concat(chunks), { status: statusCode, headers: headers as HeadersInit }))
        })
      })
      sent.on('error', reject)
      sent.end(body)
    })
}

export const within =
  (shop: Shop): Send =>
  (path, init) =>
    shop(new Request(`https://shop.test${path}`, init))

/**
 * What a sender sends, every time.
 *
 * @param order `dwellMs`: the operation takes its time. Default: it does not.
 */
export function submit(
  send: Send,
  operation: OperationName,
  key: string,
  order: { readonly dwellMs?: number } = {},
): Promise<Heard> {
  return hear(
    send(`/${operation}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key, 'idempotency-age': '0' },
      body: JSON.stringify(order),
    }),
  )
}

export function byKey(send: Send, method: 'GET' | 'DELETE', operation: string, key: string): Promise<Heard> {
  return hear(send(`/keys/${operation}/${key}`, { method }))
}

/** What a sender heard. */
export type Heard =
  | {
      readonly status: number
      /** Without those of one connection and one moment. */
      readonly headers: Readonly<Record<string, string>>
      readonly replayed: boolean
      readonly body: string
    }
  | 'nothing'

async function hear(answer: Promise<Response>): Promise<Heard> {
  try {
    const response = await answer
    const {
      date,
      connection,
      'keep-alive': alive,
      'idempotent-replayed': marker,
      ...headers
    } = Object.fromEntries(response.headers)
    return { status: response.status, headers, replayed: marker === 'true', body: await response.text() }
  } catch {
    return 'nothing'
  }
}
