/** The work that a shop accepts: pack, charge, book. */
import { accepted, idempotencyRoutes, idempotent, json, refuse } from '../../../src/server/index.ts'
import type { PgPool, PgQueryable } from '../../../src/server/postgres/index.ts'
import { postgresServerStore } from '../../../src/server/postgres/index.ts'
import { absent, done, refused } from '../../../src/server/tasks/call-ends.ts'
import { finish } from '../../../src/server/tasks/ends.ts'
import { externalCall } from '../../../src/server/tasks/external-call.ts'
import { canBeAsked, neither, takesKeys } from '../../../src/server/tasks/services.ts'
import type { Task, TaskHandler } from '../../../src/server/tasks/task.ts'
import { askForCharge, postCharge } from './provider.ts'
import { AMOUNT, type Shop } from './shop.ts'

/** What the provider behind the work is. */
export type Provider = 'takesKeys' | 'canBeAsked' | 'neither'

/** What is to be done for an order. */
export interface Work {
  readonly orderId: number
  readonly account: string
  readonly provider: Provider
  /** Writes business rows in a step of its own first, and then has its lease renewed. */
  readonly packs: boolean
  /** The first call is carried out, and answered with an error. */
  readonly fails: boolean
  readonly isRefused: boolean
}

export type WorkPlan = Omit<Work, 'orderId' | 'account'>

/** An operation that accepts such work. Its name is its own, so that others' workers leave its work alone. */
export function acceptingShop(pool: PgPool, operation: string, plan: WorkPlan): Shop {
  const handler = idempotent<PgQueryable>({
    store: postgresServerStore(pool),
    operation,
    scope: () => ({ tenant: 'acme', principal: 'ann' }),
    keysUrl: '/keys',
    report: () => {},
    async execute({ transaction, key }) {
      const { rows } = await transaction.query<{ id: number }>(
        `insert into orders (account, item) values ($1, 'tea') returning id`,
        [key],
      )
      return accepted({ work: { ...plan, orderId: rows[0]?.id ?? 0, account: key } satisfies Work })
    },
  })
  const keys = idempotencyRoutes({ keysUrl: '/keys', operations: [handler] })
  return async (request) => (await keys(request)) ?? handler(request)
}

/** What a handler needs of the process that it runs in. */
export interface WorkPlace {
  readonly providerUrl: string
  /** Longest time of a call on its way, ms. */
  readonly transitMs: number
  readonly callTimeoutMs: number
  readonly reach: (label: string) => void
  /** Told about what may go on after the work is lost. */
  readonly followed: <T>(running: Promise<T>) => Promise<T>
  /** Has the lease renewed now. */
  readonly renew: () => Promise<void>
}

const DAY_MS = 24 * 60 * 60 * 1000

export function workHandler(place: WorkPlace): TaskHandler<PgQueryable> {
  return async (task) => {
    const { orderId, account, packs } = task.work as Work
    if (packs) {
      await task.step('pack', (transaction) =>
        transaction.query('update orders set packed = true where id = $1', [orderId]),
      )
      await place.renew()
    }
    const charge = await chargeFor(task, place)
    return finish<PgQueryable>(async (transaction) => {
      await transaction.query('insert into journal values ($1, $2)', [orderId, AMOUNT])
      await transaction.query('update accounts set balance = balance - $2 where name = $1', [account, AMOUNT])
      if (charge.outcome === 'refused') return refuse(402, { reason: 'declined' })
      return json(200, { orderId, charge: charge.value.id })
    })
  }
}

function chargeFor(task: Task<PgQueryable>, { providerUrl, transitMs, callTimeoutMs, reach, followed }: WorkPlace) {
  const { account, provider, fails, isRefused } = task.work as Work
  const common = {
    request: { account, amount: AMOUNT },
    timeoutMs: callTimeoutMs,
    async send({ operationId, attempt, signal }: { operationId: string; attempt: number; signal: AbortSignal }) {
      const order = { account, takesKeys: provider === 'takesKeys', fails: fails && attempt === 1, isRefused }
      const { status, id } = await followed(postCharge(providerUrl, operationId, order, { signal, reach }))
      if (status === 201) return done({ id })
      if (status === 402) return refused()
      throw new Error(`The provider answered ${status}.`)
    },
  }
  switch (provider) {
    case 'takesKeys':
      return externalCall(task, 'charge', { ...common, service: takesKeys({ retentionMs: DAY_MS, transitMs }) })
    case 'canBeAsked':
      return externalCall(task, 'charge', {
        ...common,
        service: canBeAsked({ transitMs }),
        async ask({ operationId }) {
          const id = await askForCharge(providerUrl, operationId)
          return id === null ? absent() : done({ id })
        },
      })
    case 'neither':
      return externalCall(task, 'charge', { ...common, service: neither({ transitMs }) })
  }
}
