/** What a relay tells operators. */
import { quietly } from '../quietly.ts'
import type { OutboxMessage } from './message.ts'

/** Something that an operator should know. Holds no payload; what `deliver` throws is the app's. */
export interface RelayEvent {
  /**
   * - `deliveryFailed`: `deliver` threw or took too long; it is tried again after back-off.
   * - `messageParked`: it is not tried any more, and its aggregate waits; see `parkedMessages`.
   * - `deliveryLate`: somebody else has taken the message meanwhile, and nothing was marked: it is delivered twice (F12).
   * - `relayTrouble`: the database failed; nothing is lost.
   */
  readonly kind: 'deliveryFailed' | 'messageParked' | 'deliveryLate' | 'relayTrouble'
  /** Null where it is not about one message. */
  readonly message: Pick<OutboxMessage, 'id' | 'topic' | 'aggregate'> | null
  /** Which delivery it was, from 1; null where it is not about one. */
  readonly attempt: number | null
  /** What happened, for a person. */
  readonly detail: string
  /** What was thrown, or undefined. */
  readonly error: unknown
}

/** Receives events. What it throws is ignored: telling about a delivery must not change it (P28). */
export type RelayReport = (event: RelayEvent) => void

/** One line per event on the console. */
export const relayReportToConsole: RelayReport = ({ kind, message, detail, error }) => {
  const which = message === null ? '' : ` of ${message.id} (${message.topic})`
  // biome-ignore lint/suspicious/noConsole: the default where the app gives no `report`; a server has a console.
  console.error(`samekey: ${kind}${which}: ${detail}`, ...(error === undefined ? [] : [error]))
}

/** A report that cannot throw. */
export function safeRelayReport(report: RelayReport): RelayReport {
  return (event) => quietly(() => report(event))
}
