/**
 * The order within an aggregate (P66). Two promises make it:
 *
 * 1. **The order of numbers is the order of commits.** An identity is drawn at the insert, not at the commit: of two
 *    transactions, the one with the smaller number may commit later, and a relay that had delivered the other one by
 *    then would have turned them around. So writers of one aggregate wait for one another, from before the number is
 *    drawn until the commit ({@link LOCK_WRITERS}). Whoever draws a number then has seen every smaller one of its
 *    aggregate committed or rolled back, and whoever sees a message sees all those before it.
 *
 * 2. **Only the first one that is neither delivered nor skipped may be under way.** What is before a message can only
 *    become less: no smaller number is ever added, by 1, and an end is final. So a look that finds nothing before a
 *    message stays right however old it is, and no lock is needed for it: not across relays, tries, or crashes.
 *
 * A message that is due and not first is in the way of every later look. It is therefore put *behind* once (no due
 * time), and called when an end before it is written. A look that puts it behind and an end that calls would miss each
 * other; so both take {@link LOCK_ENDS}, which no business transaction ever waits for or holds. Looks only try it, so
 * that nobody waits for them but shortly, and no circle can close: ends lock this first and one row after it.
 *
 * Locks are by hash: two aggregates that share one wait for each other now and then, and nothing else.
 */
import type { PgQueryable } from './client.ts'
import type { Timed } from './time.ts'

/** The key of an advisory lock, released with the transaction or the savepoint that took it. */
const lockKey = (kind: string, aggregate: string): string =>
  `hashtextextended('samekey_outbox ${kind} ' || ${aggregate}, 0)`

/** `$1` is the aggregate. */
export const LOCK_WRITERS: string = `pg_advisory_xact_lock(${lockKey('writers', '$1::text')})`
const LOCK_ENDS = `select pg_advisory_xact_lock(${lockKey('ends', '$1::text')})`
const TRY_ENDS = `select aggregate from unnest($1::text[]) as a (aggregate)
where pg_try_advisory_xact_lock(${lockKey('ends', 'aggregate')})`

/** Whether something of its aggregate is before `o`. */
export const IS_BEHIND = `exists (
  select from samekey_outbox as before
  where before.aggregate = o.aggregate and before.id < o.id and before.settled_at is null)`

/**
 * `$2` are those that were seen behind just now; with them go others that the next looks would stumble over. By number,
 * as one array: joined or with an "or", PostgreSQL reads the whole aggregate.
 */
const PUT_BEHIND = `
with behind as (
  select o.id from samekey_outbox as o
  where o.id = any(array(
      (select id from samekey_outbox where due_at <= (select $NOW) order by due_at, id limit 1000)
      union select unnest($2::bigint[])))
    and o.aggregate = any($1::text[]) and o.state = 'waiting' and o.due_at is not null and ${IS_BEHIND}
  for update of o skip locked
)
update samekey_outbox as o set due_at = null
where o.id = any(array(select id from behind))`

/** Relays of other topics get a hint; whoever wrote the end looks again by itself. */
const CALL_NEXT = `
with called as (
  update samekey_outbox set due_at = $NOW
  where id = (select id from samekey_outbox where aggregate = $1 and settled_at is null order by id limit 1)
    and state = 'waiting' and due_at is null
  returning topic
) select pg_notify('samekey_outbox', '') from called where topic <> $2`

/** Before a row of this aggregate is locked and perhaps ended. */
export async function lockEnds(client: PgQueryable, aggregate: string | null): Promise<void> {
  if (aggregate !== null) await client.query(LOCK_ENDS, [aggregate])
}

/** After the end of a message, in the same transaction and under the lock: a statement of its own, which sees that end. */
export async function callNext(
  client: PgQueryable,
  timed: Timed,
  { aggregate, topic }: { readonly aggregate: string | null; readonly topic: string },
): Promise<void> {
  if (aggregate !== null) await client.query(...timed(CALL_NEXT, [aggregate, topic]))
}

/**
 * Puts behind what is due and not first, where no end is just being written.
 *
 * @param seen numbers and aggregates of locked rows that are not first.
 * @returns how many were put behind.
 */
export async function putBehind(
  client: PgQueryable,
  timed: Timed,
  seen: readonly { readonly number: string; readonly aggregate: string | null }[],
): Promise<number> {
  if (seen.length === 0) return 0
  const aggregates = [...new Set(seen.map(({ aggregate }) => aggregate))]
  const { rows } = await client.query<{ aggregate: string }>(TRY_ENDS, [aggregates])
  if (rows.length === 0) return 0
  const values = [rows.map(({ aggregate }) => aggregate), seen.map(({ number }) => number)]
  // A statement of its own: it sees the ends that were written before the lock was had.
  const { rowCount } = await client.query(...timed(PUT_BEHIND, values))
  return rowCount ?? 0
}
