/** What is known about the service behind a call (P65): said by the app, because nothing can find it out. */
import { ConfigError } from '../../errors.ts'
import { wholeMs } from '../whole.ts'
import type { ServiceKind } from './call-row.ts'

/** Made by {@link takesKeys}. */
export type TakesKeys = Extract<ServiceKind, { readonly kind: 'takesKeys' }>
/** Made by {@link canBeAsked}. */
export type CanBeAsked = Extract<ServiceKind, { readonly kind: 'canBeAsked' }>
/** Made by {@link neither}. */
export type Neither = Extract<ServiceKind, { readonly kind: 'neither' }>

/** Longest time between writing a call down and its arrival: half of it for us, half for the network. */
const TRANSIT_MS = 120_000

/**
 * The service takes an operation id and does the same id once: send `operationId` as its key. A try that broke off is
 * sent again with the same id, as long as the service surely remembers it.
 *
 * @param options.retentionMs how long the service promises to remember an id, ms.
 * @param options.transitMs the longest time from writing a call down to its arrival, ms. Default 2 minutes.
 * @throws ConfigError
 */
export function takesKeys(options: { readonly retentionMs: number; readonly transitMs?: number }): TakesKeys {
  const { retentionMs, transitMs = TRANSIT_MS } = options
  wholeMs('transitMs', transitMs)
  if (!(retentionMs > transitMs)) {
    throw new ConfigError('retentionMs', `must be more than transitMs (${transitMs}), or no second try is ever safe`)
  }
  return { kind: 'takesKeys', retentionMs, transitMs }
}

/**
 * The service takes no key, but tells whether an operation happened: by our operation id, if it keeps one, or by the
 * business identity (order number). A try that broke off is asked about first, and not before `transitMs` after it was
 * made: until then it may still be on its way, and "no" would not mean no. A process that is frozen inside of `send`, just
 * before the bytes leave, sends when it wakes; nothing here can stop that, so let `transitMs` cover how long your machines
 * may stand still.
 *
 * @param options.transitMs the longest time from writing a call down to its arrival, ms. Default 2 minutes.
 * @throws ConfigError
 */
export function canBeAsked(options: { readonly transitMs?: number } = {}): CanBeAsked {
  return { kind: 'canBeAsked', transitMs: wholeMs('transitMs', options.transitMs ?? TRANSIT_MS) }
}

/**
 * The service neither takes keys nor tells: a try that broke off stays unknown until a person finds out, see `settle`.
 *
 * @param options.transitMs the longest time from writing a call down to its arrival, ms; a call that was held up for half
 * of it is not made. Default 2 minutes.
 * @throws ConfigError
 */
export function neither(options: { readonly transitMs?: number } = {}): Neither {
  return { kind: 'neither', transitMs: wholeMs('transitMs', options.transitMs ?? TRANSIT_MS) }
}
