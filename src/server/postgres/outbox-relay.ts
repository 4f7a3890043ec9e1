import { ConfigError } from '../../errors.ts'
import { systemClock } from '../../platform/clock.ts'
import { checkName } from '../outbox/message.ts'
import type { RelayTerms } from '../outbox/options.ts'
import { type Relay, relayOver } from '../outbox/relay.ts'
import type { PgPool } from './client.ts'
import { outboxStore } from './outbox-store.ts'

/** What {@link startRelay} is told. */
export interface RelayOptions extends RelayTerms {
  /**
   * On the primary. One of its connections is kept for hints (LISTEN), and one more at least is needed; give it a
   * `connectionTimeoutMillis` and an `error` listener.
   */
  readonly pool: PgPool
  /**
   * The topics that are this relay's. Each topic needs a relay: messages that nobody takes hold up the rest of their
   * aggregate, whatever its topic. Default: all.
   */
  readonly topics?: readonly string[]
  /** Epoch ms, for tests that own time. Default: the database's clock, which all relays share. */
  readonly now?: () => number
}

/**
 * Starts delivering what {@link writeOutbox} wrote: at least once each, and the messages of one aggregate one after the
 * other, in the order of their commits (P66). Start as many on one database as you like, in any processes.
 *
 * - A message is marked after `deliver` resolved. A relay that dies in between leaves it to the next one, which delivers
 *   it again (F12): the receiver de-duplicates by `message.id`, with {@link receiveOnce} or, where it is a samekey
 *   server, by taking it as `Idempotency-Key`.
 * - A failed delivery comes again after full-jitter back-off, however often it takes; meanwhile its aggregate waits,
 *   and no other one. See `retry` for why nothing is given up by itself.
 * - A database that is away is reported, and asked again after a back-off.
 *
 * It keeps the process alive until it is stopped.
 *
 * @throws ConfigError for an option that cannot be meant.
 * @example
 * ```ts
 * import pg from 'pg'
 * import { startRelay } from 'samekey/server/postgres'
 *
 * const pool = new pg.Pool({ connectionTimeoutMillis: 5000 })
 * pool.on('error', console.error)
 *
 * const relay = startRelay({
 *   pool,
 *   async deliver(message, { signal }) {
 *     const response = await fetch('https://billing.example/events', {
 *       method: 'POST',
 *       headers: { 'Idempotency-Key': message.id, 'Content-Type': 'application/json' },
 *       body: message.payload,
 *       signal,
 *     })
 *     if (!response.ok) throw new Error(`billing answered ${response.status}`)
 *   },
 * })
 *
 * process.once('SIGTERM', async () => {
 *   await relay.stop()
 *   await pool.end()
 * })
 * ```
 */
export function startRelay(options: RelayOptions): Relay {
  const { pool, topics = null, now, clock = systemClock } = options
  if (topics !== null && topics.length === 0) throw new ConfigError('topics', 'name at least one, or leave it out')
  for (const topic of topics ?? []) checkName('topics', topic)
  return relayOver(outboxStore(pool, { topics: topics && [...new Set(topics)], now, clock }), options)
}
