/** A relay: takes messages that are due and hands them over, for ever, in any process. A fleet is several on one store. */

import { errorText } from '../error-text.ts'
import { startLoop } from '../loop.ts'
import { moment } from '../tasks/moment.ts'
import { type Delivery, giveBack, runDelivery } from './delivery.ts'
import { type RelayTerms, relaySettings } from './options.ts'
import type { OutboxStore } from './store.ts'

/** A running relay. */
export interface Relay {
  /** How many deliveries are under way at this moment. */
  running(): number
  /**
   * Takes no more messages, waits for the deliveries that are under way, then aborts their signals and gives back what
   * is left, so that the next relay need not wait for the lease. Resolves when all is still; calling it again waits for
   * the same.
   *
   * @param options.graceMs how long it waits before it aborts, ms. Default 10 seconds.
   */
  stop(options?: { readonly graceMs?: number }): Promise<void>
}

/** Pace while the database is away. */
const TROUBLE = { baseMs: 500, capMs: 30_000, minMs: 100 }

/** @throws ConfigError for an option that cannot be meant. */
export function relayOver(store: OutboxStore, terms: RelayTerms): Relay {
  const settings = relaySettings(terms)
  const { clock, concurrency, leaseMs, pollMs, random, report } = settings
  const tell = (detail: string, error?: unknown): void =>
    report({ kind: 'relayTrouble', message: null, attempt: null, detail, error })

  const loop = startLoop<Delivery>({
    concurrency,
    pollMs,
    backoff: TROUBLE,
    clock,
    random,
    async take(free) {
      // Before the claim is sent: by our clocks, the lease ends early rather than late.
      const since = moment(clock)
      const { messages, more, nextInMs } = await store.claim(free, leaseMs)
      return { jobs: messages.map((claimed) => ({ claimed, since })), more, nextInMs }
    },
    run: (delivery, over) => runDelivery(settings, store, delivery, over),
    giveBack: (delivery) => giveBack(settings, store, delivery),
    failed: (error, waitMs) => tell(`No message could be taken, once more in ${waitMs} ms: ${errorText(error)}`, error),
  })
  const unsubscribe = store.onMessage(loop.wake)

  async function stop(graceMs: number): Promise<void> {
    unsubscribe()
    const left = await loop.stop({ graceMs })
    if (left > 0) tell(`Stopped, although ${left} deliveries would not let go.`)
  }
  let stopping: Promise<void> | null = null

  return {
    running: loop.running,
    stop({ graceMs = 10_000 } = {}) {
      stopping ??= stop(graceMs)
      return stopping
    },
  }
}
