/** The shop of the conformance suite on this kit, over whatever keeps its rows. */
import {
  type AuthorizeContext,
  accepted,
  byReference,
  bytes,
  decline,
  type ExecuteContext,
  type ExecuteResult,
  empty,
  finish,
  type IdempotentOptions,
  json,
  leaveUnknown,
  omitBody,
  refuse,
  retry,
  type Scope,
  type Task,
  type TaskEnd,
} from 'samekey/server'
import {
  conformanceShop,
  type Hold,
  type ShopCaller,
  type ShopOperation,
  type ShopOrder,
  type ShopTry,
} from 'samekey/testing'
import { gate } from '../server/world.ts'

/** Where the shop keeps its business. */
export interface Rows<Transaction> {
  /** An effect; gives the order's number. */
  place(transaction: Transaction, item: string): Promise<number>
  /** An effect too. */
  cancel(transaction: Transaction, item: string): Promise<void>
  /** Orders of the item that are committed. */
  count(item: string): Promise<number>
}

/** The parts of one operation. */
export type ShopParts<Transaction> = Pick<
  IdempotentOptions<Transaction>,
  'authorize' | 'reread' | 'onVoid' | 'execute' | 'limits'
> & {
  readonly work: (task: Task<Transaction>) => Promise<TaskEnd<Transaction>>
}

/** A shop, and what its bench can do to it. */
export interface Shop<Transaction> {
  readonly operations: Readonly<Record<ShopOperation, ShopParts<Transaction>>>
  readonly revoke: (caller: ShopCaller) => void
  readonly grant: (caller: ShopCaller) => void
  readonly hold: () => Hold
}

export const { retentionMs, transitMs, graceMs, keysPath, origin, leaseMs } = conformanceShop

/** Whose request it is. */
export function scope(request: Request): Scope | Response {
  const [, tag, tenant, principal] =
    /^Bearer (([a-z]+)\.([a-z]+))$/.exec(request.headers.get('authorization') ?? '') ?? []
  if (tag === undefined || tenant === undefined || principal === undefined) return new Response('who?', { status: 401 })
  return { tenant, principal, ...(principal !== 'robot' && { tag }) }
}

export function identityOf(operation: ShopOperation, key: string, caller: ShopCaller) {
  const [tenant = '', principal = ''] = caller.split('.')
  return { tenant, principal, operation, key }
}

export function shopOver<Transaction>(rows: Rows<Transaction>): Shop<Transaction> {
  const revoked = new Set<string>()
  const seen = new Set<string>()
  let nextHold: { reach(): void; released: Promise<void> } | null = null

  async function place(
    { transaction }: Pick<ExecuteContext<Transaction>, 'transaction'>,
    item: string,
  ): Promise<number> {
    const id = await rows.place(transaction, item)
    const held = nextHold
    nextHold = null
    held?.reach()
    await held?.released
    return id
  }

  function firstTime(key: string): boolean {
    const isFirst = !seen.has(key)
    seen.add(key)
    return isFirst
  }

  async function execute(context: ExecuteContext<Transaction>): Promise<ExecuteResult> {
    const { item = 'nothing', outcome, tries } = orderOf(context)
    if (outcome === 'accept') return accepted(tries === undefined ? {} : { work: { item, tries } })
    const id = await place(context, item)
    const headers = [
      ['Location', `/orders/${id}`],
      ['ETag', `"${id}"`],
      ['X-Shop', 'conformance'],
      ['Set-Cookie', 'seen=1'],
    ] as const
    const placed = json(201, { id, item }, headers)
    switch (outcome) {
      case 'refuse':
        return refuse(402, { reason: 'declined' })
      case 'fail':
        return refuse(500, { reason: 'broken' })
      case 'decline-once':
        return firstTime(context.key) ? decline(422, { reason: 'not yet' }) : placed
      case 'throw-once':
        if (firstTime(context.key)) throw new Error('a secret detail')
        return placed
      case 'omit':
        return omitBody(placed)
      case 'refer': {
        const orders = (await rows.count(item)) + 1
        return byReference(json(201, { item, orders }), `items/${item}`)
      }
      case 'hide':
        return json(201, { item }, { 'X-Hidden': 'yes' })
      case 'empty':
        return empty()
      case 'binary':
        return bytes(200, Uint8Array.of(0, 255, 254, 0), 'application/octet-stream')
      case 'large':
        return json(200, { item, padding: 'x'.repeat(conformanceShop.answerBytes) })
      case undefined:
        return placed
      default:
        throw new Error(`There is no outcome ${String(outcome)}.`)
    }
  }

  async function reread({ reference }: { readonly reference: string }): Promise<string | null> {
    const item = reference.slice('items/'.length)
    const orders = await rows.count(item)
    return orders === 0 ? null : JSON.stringify({ item, orders })
  }

  async function work(task: Task<Transaction>): Promise<TaskEnd<Transaction>> {
    const { item, tries } = task.work as { item: string; tries: readonly ShopTry[] }
    switch (tries[Math.min(task.attempt, tries.length) - 1]) {
      case 'refuse':
        return finish(async (transaction) => {
          await rows.place(transaction, item)
          return refuse(422, { reason: 'no stock' })
        })
      case 'retry':
        return retry()
      case 'later':
        return retry({ afterMs: 20 * 3_600_000 })
      case 'begin':
        await task.step(() => {})
        return retry()
      case 'unknown':
        return leaveUnknown()
      default:
        return finish(async (transaction) => {
          await rows.place(transaction, item)
          return json(200, { item })
        })
    }
  }

  const { waitMs, voidWaitMs, requestBytes, answerBytes } = conformanceShop
  const common = {
    limits: { waitMs, voidWaitMs, requestBytes, answerBytes },
    authorize: ({ scope: { tenant, principal }, answer }: AuthorizeContext) =>
      !revoked.has(`${tenant}.${principal}`) && !(answer?.headers.some(([name]) => name === 'X-Hidden') ?? false),
    reread,
    work,
  }
  return {
    operations: {
      'orders.create': { ...common, execute },
      'orders.cancel': {
        ...common,
        async execute(context) {
          const { item = 'nothing' } = orderOf(context)
          await rows.cancel(context.transaction, item)
          return json(200, { item })
        },
      },
      // Accepting wrote nothing, so there is nothing to take back.
      'shipments.create': { ...common, execute, onVoid: () => {} },
    },
    revoke: (caller) => void revoked.add(caller),
    grant: (caller) => void revoked.delete(caller),
    hold() {
      const reached = gate()
      const released = gate()
      nextHold = { reach: reached.open, released: released.opened }
      return { reached: reached.opened, release: released.open }
    },
  }
}

function orderOf<Transaction>({ body }: ExecuteContext<Transaction>): ShopOrder {
  return body.kind === 'json' ? (body.value as ShopOrder) : {}
}
