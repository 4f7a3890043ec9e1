/**
 * `samekey/server/postgres`: keys, accepted work, calls and outbox in PostgreSQL, in the same database and transactions
 * as the business rows.
 */
export { type Deliver, type DeliverContext, type Park, park } from '../outbox/deliver.ts'
export type { RelayEvent, RelayReport } from '../outbox/events.ts'
export type { NewMessage, OutboxMessage } from '../outbox/message.ts'
export type { RelayTerms } from '../outbox/options.ts'
export type { DeliveryPolicy, NotNow, OutboxNote } from '../outbox/outbox-row.ts'
export type { Relay } from '../outbox/relay.ts'
export type { PgClient, PgPool, PgQueryable, PgResult } from './client.ts'
export {
  type Arrival,
  type Received,
  type ReceiveOptions,
  receiveInTransaction,
  receiveOnce,
} from './inbox.ts'
export { migrate } from './migrate.ts'
export { type Migration, migrations } from './migrations.ts'
export { type OutboxTime, writeOutbox } from './outbox.ts'
export { type ParkedMessage, type PersonsWord, parkedMessages, retryMessage, skipMessage } from './outbox-people.ts'
export { type ReapOptions, reapInbox, reapOutbox } from './outbox-reap.ts'
export { type RelayOptions, startRelay } from './outbox-relay.ts'
export { type PostgresServerStoreOptions, postgresServerStore } from './store.ts'
