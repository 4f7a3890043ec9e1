/** What a relay is told, checked once when it starts. */
import { ConfigError } from '../../errors.ts'
import { systemClock } from '../../platform/clock.ts'
import { systemIds } from '../../platform/ids.ts'
import type { Clock } from '../../ports.ts'
import { whole, wholeMs, wholeRetry } from '../whole.ts'
import type { Deliver } from './deliver.ts'
import { type RelayReport, relayReportToConsole, safeRelayReport } from './events.ts'
import type { DeliveryPolicy } from './outbox-row.ts'

/** How messages are delivered. */
export interface RelayTerms {
  /** Hands one message over. */
  readonly deliver: Deliver
  /** Most deliveries at a time. Default 4. */
  readonly concurrency?: number
  /**
   * How long a message is taken for, ms; `deliver` has four fifths of it, the rest is for writing down how it went. A
   * relay that died holds its messages up for no longer. Default 1 minute.
   */
  readonly leaseMs?: number
  /** How often it looks for messages that no hint told it of, ms, give or take a quarter. Default 1 second. */
  readonly pollMs?: number
  /**
   * Full-jitter back-off of a message that failed. Defaults: `baseMs` 1 second, `capMs` 5 minutes, `maxAttempts`
   * `Infinity`: a receiver that is away for a day then costs no person's work, every message goes out when it is back.
   * With a number, an outage parks all messages that it touches. Either way a message that nobody takes holds its
   * aggregate up, and only that; `deliver` can `park` what is hopeless.
   */
  readonly retry?: Partial<DeliveryPolicy>
  /** Time, for tests that own it. Default: the system's. */
  readonly clock?: Clock
  /** Chance for jitter, from 0 to 1. Default: `Math.random`. */
  readonly random?: () => number
  /** Default: one line on the console. */
  readonly report?: RelayReport
}

/** All of it, defaults filled in. */
export type RelaySettings = Required<Omit<RelayTerms, 'retry'>> & { readonly retry: DeliveryPolicy }

/** @throws ConfigError naming the option. */
export function relaySettings(terms: RelayTerms): RelaySettings {
  const { concurrency = 4, leaseMs = 60_000, pollMs = 1000, retry = {} } = terms
  const { baseMs = 1000, capMs = 300_000, maxAttempts = Number.POSITIVE_INFINITY } = retry
  if (typeof terms.deliver !== 'function') throw new ConfigError('deliver', 'must be a function')
  whole('concurrency', concurrency)
  wholeMs('leaseMs', leaseMs)
  wholeMs('pollMs', pollMs)
  return {
    deliver: terms.deliver,
    concurrency,
    leaseMs,
    pollMs,
    retry: wholeRetry({ baseMs, capMs, maxAttempts }),
    clock: terms.clock ?? systemClock,
    random: terms.random ?? systemIds().random,
    report: safeRelayReport(terms.report ?? relayReportToConsole),
  }
}
