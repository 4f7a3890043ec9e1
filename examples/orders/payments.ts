/**
 * The payment provider's three services, and what is known about each. Nobody can find that out but from the contract
 * with the provider, so it is said here, once, and the kit acts by it when a call breaks off.
 */
import {
  absent,
  type CallContext,
  canBeAsked,
  done,
  type ExternalCall,
  neither,
  refused,
  takesKeys,
  undelivered,
} from 'samekey/server'
import type { PaymentMethod } from './order.ts'

/** What is asked for. */
export interface ChargeRequest {
  readonly orderId: string
  /** For people who look for it on both sides. */
  readonly reference: string
  readonly currency: string
  readonly amount: string
}

/** What the provider did. */
export interface Charge {
  readonly id: string
}

/** Why the provider did not. */
export interface Declined {
  readonly code: string
}

export interface ProviderOptions {
  readonly url: string
  /** Time limit of one request, ms. */
  readonly timeoutMs: number
  /** The longest time from writing a call down to its arrival there, ms. */
  readonly transitMs: number
}

/** The provider's contract: "operation ids are remembered for a day". */
const dayMs = 86_400_000

type Call = ExternalCall<ChargeRequest, Charge, Declined>

/** The call that charges a customer once. */
export function chargeCall(provider: ProviderOptions, method: PaymentMethod, request: ChargeRequest): Call {
  const { url, timeoutMs, transitMs } = provider
  const charges = `${url}/${method}/charges`
  const common = { request, timeoutMs, send: (context: CallContext<ChargeRequest>) => send(charges, context) }
  switch (method) {
    case 'card':
      return { ...common, service: takesKeys({ retentionMs: dayMs, transitMs }) }
    case 'transfer':
      return { ...common, service: canBeAsked({ transitMs }), ask: (context) => ask(charges, context) }
    case 'voucher':
      return { ...common, service: neither({ transitMs }) }
  }
}

/** Whatever is not known to be done, refused or undelivered is thrown: then it may have happened, and the kit says so. */
async function send(charges: string, { request, operationId, signal }: CallContext<ChargeRequest>) {
  let response: Response
  try {
    response = await fetch(charges, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'operation-id': operationId },
      body: JSON.stringify(request),
      signal,
    })
  } catch (error) {
    if (isRefusedConnection(error)) return undelivered(error)
    throw error
  }
  if (response.status === 201) return done((await response.json()) as Charge)
  if (response.status === 402) return refused((await response.json()) as Declined)
  throw new Error(`The provider answered ${response.status}.`)
}

async function ask(charges: string, { operationId, signal }: CallContext<ChargeRequest>) {
  const response = await fetch(`${charges}/${operationId}`, { signal })
  if (response.status === 200) return done((await response.json()) as Charge)
  if (response.status === 404) return absent()
  throw new Error(`The provider answered ${response.status}.`)
}

function isRefusedConnection(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : null
  return typeof cause === 'object' && cause !== null && 'code' in cause && cause.code === 'ECONNREFUSED'
}
