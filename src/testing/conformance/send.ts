/** A case's request as fetch takes it. */
import { formatHttpDate } from '../../protocol/http-date.ts'
import { IDEMPOTENCY_AGE, IDEMPOTENCY_KEY, IDEMPOTENCY_SCOPE, IDEMPOTENCY_SINCE } from '../../protocol/wire.ts'
import { conformanceShop, type ShopCaller, type ShopOperation } from './shop.ts'
import type { Ask, Submission } from './steps.ts'

/** Where it goes, and what goes with it. */
export interface Outgoing {
  readonly path: string
  readonly init: RequestInit
  /** The body. */
  readonly sent: Uint8Array<ArrayBuffer>
}

/** The key that requests have by default. */
export const DEFAULT_KEY = 'k-1'

/** The operation that requests are about by default. */
export const DEFAULT_OPERATION: ShopOperation = 'orders.create'

/** Who asks by default. */
export const DEFAULT_CALLER: ShopCaller = 'acme.ann'

/** @param now epoch ms by the shop's clock. */
export function outgoing(ask: Ask, now: number): Outgoing {
  const { by = DEFAULT_CALLER, age, since, tag } = ask
  const headers = new Headers(ask.headers)
  if (by !== null) headers.set('Authorization', `Bearer ${by}`)
  if (age !== undefined) headers.set(IDEMPOTENCY_AGE, String(age))
  if (since !== undefined)
    headers.set(IDEMPOTENCY_SINCE, typeof since === 'string' ? since : formatHttpDate(now + since))
  if (tag !== undefined) headers.set(IDEMPOTENCY_SCOPE, tag)
  const nothing = new Uint8Array()
  switch (ask.kind) {
    case 'submit': {
      const { key = DEFAULT_KEY, operation = DEFAULT_OPERATION, type = 'application/json', query = '' } = ask
      const sent = bytesOf(ask.order)
      if (key !== null) headers.set(IDEMPOTENCY_KEY, key)
      if (ask.order !== null) headers.set('Content-Type', type)
      const path = conformanceShop.operations[operation] + query
      return { path, init: { method: 'POST', headers, body: ask.order === null ? null : sent }, sent }
    }
    case 'lookup':
    case 'void': {
      const { key = DEFAULT_KEY, operation = DEFAULT_OPERATION } = ask
      const path = `${conformanceShop.keysPath}/${encodeURIComponent(operation)}/${encodeURIComponent(key)}`
      return { path, init: { method: ask.kind === 'lookup' ? 'GET' : 'DELETE', headers }, sent: nothing }
    }
    case 'other':
      return { path: ask.path, init: { method: ask.method, headers }, sent: nothing }
  }
}

function bytesOf(order: Submission['order']): Uint8Array<ArrayBuffer> {
  if (order instanceof Uint8Array) return new Uint8Array(order)
  if (order === null) return new Uint8Array()
  return new TextEncoder().encode(typeof order === 'string' ? order : JSON.stringify(order))
}
