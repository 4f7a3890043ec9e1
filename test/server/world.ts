import type {
  IdempotencyRoutesOptions,
  IdempotentHandler,
  IdempotentOptions,
  KeyId,
  ServerEvent,
  ServerStore,
} from 'samekey/server'
import { idempotencyRoutes, idempotent, json } from 'samekey/server'

/** A store with business rows beside it, as the promises see them: whatever keeps the keys keeps the orders too. */
export interface World<Transaction> {
  readonly store: ServerStore<Transaction>
  /** Writes an order in the transaction; resolves with its number. */
  place(transaction: Transaction, item: string): Promise<number>
  /** Items of the committed orders, oldest first. */
  orders(): Promise<string[]>
  /** Epoch ms, as the store sees it. */
  now(): number
  /** Lets time pass for the keys. */
  pass(ms: number): void
  /** Waits for what has a time limit of about this much, without sleeping where time is virtual. */
  after<T>(ms: number, promise: Promise<T>): Promise<T>
}

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** The caller, as the tests' only credential. */
export const scope = (request: Request): { tenant: string; principal: string; tag: string } | Response => {
  const user = request.headers.get('authorization')
  if (user === null) return new Response('who?', { status: 401 })
  return { tenant: 'acme', principal: user, tag: `tag-${user}` }
}

export interface Shop {
  readonly handler: IdempotentHandler
  readonly events: ServerEvent[]
  readonly runs: () => number
  submit(key: string | null, order: unknown, headers?: Record<string, string>): Promise<Response>
  lookup(key: string, headers?: Record<string, string>): Promise<Response>
  void(key: string, headers?: Record<string, string>): Promise<Response>
}

/** An order server over a world. What `part` leaves out is the plain case: place the order, answer 201. */
export function shop<Transaction>(
  world: World<Transaction>,
  part: Partial<IdempotentOptions<Transaction>> = {},
  routes: Partial<IdempotencyRoutesOptions> = {},
): Shop {
  const events: ServerEvent[] = []
  let runs = 0
  const { execute = placeIt(world), ...rest } = part
  const handler = idempotent<Transaction>({
    store: world.store,
    operation: 'orders.create',
    scope,
    keysUrl: '/keys',
    report: (event) => events.push(event),
    ...rest,
    execute(context) {
      runs += 1
      return execute(context)
    },
  })
  const keys = idempotencyRoutes({ keysUrl: '/keys', operations: [handler], ...routes })
  const byKey = async (method: string, key: string, headers: Record<string, string>) => {
    const url = `https://shop.test/keys/${encodeURIComponent(handler.operation)}/${encodeURIComponent(key)}`
    const response = await keys(new Request(url, { method, headers: { authorization: 'ann', ...headers } }))
    if (response === null) throw new Error('not routed')
    return response
  }
  return {
    handler,
    events,
    runs: () => runs,
    submit: (key, order, headers = {}) => handler(post(key, order, headers)),
    lookup: (key, headers = {}) => byKey('GET', key, headers),
    void: (key, headers = {}) => byKey('DELETE', key, headers),
  }
}

/** A text counts as JSON that is already written. */
export function post(key: string | null, order: unknown, headers: Record<string, string> = {}): Request {
  return new Request('https://shop.test/orders', {
    method: 'POST',
    body: typeof order === 'string' ? order : JSON.stringify(order),
    headers: {
      authorization: 'ann',
      'content-type': 'application/json',
      ...(key !== null && { 'idempotency-key': key }),
      ...headers,
    },
  })
}

export function placeIt<Transaction>(world: World<Transaction>): IdempotentOptions<Transaction>['execute'] {
  return async ({ transaction, body }) => {
    const { item } = body.kind === 'json' ? (body.value as { item: string }) : { item: 'nothing' }
    const id = await world.place(transaction, item)
    return json(201, { id, item }, { Location: `/orders/${id}`, ETag: `"${id}"` })
  }
}

export const idOf = (key: string, principal = 'ann'): KeyId => ({
  tenant: 'acme',
  principal,
  operation: 'orders.create',
  key,
})

/** A promise with its switch. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

export async function codeOf(response: Response): Promise<unknown> {
  const { code } = (await response.json()) as { code?: unknown }
  return code
}
