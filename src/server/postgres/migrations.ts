// Generated from the files in ./sql by `npm run generate`: change those.

/** One step of the schema. Never changed once published; later steps are added behind it. */
export interface Migration {
  readonly version: number
  readonly name: string
  /** Plain SQL, one or more statements, to be run in one transaction. */
  readonly sql: string
}

/** All steps in order, for those who run migrations with a tool of their own; the same texts are published as files. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: '001-keys',
    sql: `-- The key rows (PROTOCOL.md section 12).
--
-- The primary key is P53. It is what makes a rival wait, so nothing else may ever decide who goes first.
-- Answers are bytes and text, never jsonb: that would drop duplicate members, change numbers and refuse NUL.
-- Times are fixed at insert: a row outlives a later, shorter retention, and a later, longer one finds old rows gone.

create table samekey_keys (
  tenant text collate "C" not null,
  principal text collate "C" not null,
  operation text collate "C" not null,
  key text collate "C" not null,

  -- running: inserted, no answer yet. Committed like that, it is damage: an operator looks (F21).
  -- accepted: answered with 202, and the work of samekey_tasks is not at its end.
  -- finished, voided: nothing will change any more.
  state text not null check (state in ('running', 'accepted', 'finished', 'voided')),
  -- JSON text: version, digest, rules (P16). Null where no request ever came.
  fingerprint text,
  -- SHA-256 of the first request's body bytes, in hexadecimal.
  request_digest text,

  -- What a replay gives back. Headers: JSON text, an array of [name, value].
  answer_status integer,
  answer_headers text,
  -- Both null: the body was sent once and not kept. A reference is read again for whoever asks (P60).
  answer_body bytea,
  answer_reference text,

  created_at timestamptz not null,
  -- The end of the promise to remember, and the end of the row: the grace lies between (P57).
  expires_at timestamptz not null,
  reap_at timestamptz not null,

  primary key (tenant, principal, operation, key),
  check (state not in ('accepted', 'finished') or (answer_status is not null and answer_headers is not null)),
  check (answer_body is null or answer_reference is null)
);

-- The reaper's list: neither unfinished rows nor unfinished or unknown work are on it.
create index samekey_keys_reap on samekey_keys (reap_at) where state in ('finished', 'voided');
`,
  },
  {
    version: 2,
    name: '002-tasks',
    sql: `-- Accepted work (PROTOCOL.md section 13), one row per key, and its calls to other services (section 14).

create table samekey_tasks (
  tenant text collate "C" not null,
  principal text collate "C" not null,
  operation text collate "C" not null,
  key text collate "C" not null,

  status text not null
    check (status in ('processing', 'failed_retryable', 'unknown', 'succeeded', 'failed', 'voided')),
  -- JSON text for the worker. Null: the app does the work by itself.
  input text,
  -- Grows with every takeover: whoever writes with an older one is refused (P63).
  epoch integer not null,
  attempts integer not null,
  -- From when a worker may take it; while one has it, the end of its lease. Null: nobody may.
  due_at timestamptz,
  -- Something may have happened that a void cannot take back (P58).
  effects_begun boolean not null,
  -- JSON text: what last went wrong.
  error text,
  retry_after integer not null,

  -- The finished answer, as in samekey_keys.
  result_status integer,
  result_headers text,
  result_body bytea,
  result_reference text,
  -- Until when it is kept, at least as long as the key (P62). Null while there is none.
  result_expires_at timestamptz,

  -- What the person who settled it wrote.
  note text,
  accepted_at timestamptz not null,
  changed_at timestamptz not null,

  primary key (tenant, principal, operation, key),
  foreign key (tenant, principal, operation, key) references samekey_keys on delete cascade,
  check (status not in ('succeeded', 'failed') or (result_status is not null and result_headers is not null)),
  check (due_at is null or status in ('processing', 'failed_retryable'))
);

-- What workers look for.
create index samekey_tasks_due on samekey_tasks (operation, due_at) where due_at is not null;
-- What people look for.
create index samekey_tasks_unknown on samekey_tasks (accepted_at) where status = 'unknown';

create table samekey_calls (
  tenant text collate "C" not null,
  principal text collate "C" not null,
  operation text collate "C" not null,
  key text collate "C" not null,
  name text collate "C" not null,

  -- What the other service is told, the same on every try.
  operation_id text collate "C" not null unique,
  kind text not null check (kind in ('takesKeys', 'canBeAsked', 'neither')),
  -- begun: it may have taken effect. undelivered: surely not. unknown: only a person can find out.
  state text not null check (state in ('begun', 'undelivered', 'done', 'refused', 'unknown')),
  -- JSON text: what was asked for, and what the service said.
  request text not null,
  value text,
  epoch integer not null,
  attempts integer not null,
  begun_at timestamptz not null,
  last_begun_at timestamptz not null,
  error text,
  -- What a worker that had lost the work heard all the same: evidence for a person (P63).
  late_answer text,
  note text,

  primary key (tenant, principal, operation, key, name),
  foreign key (tenant, principal, operation, key) references samekey_tasks on delete cascade
);
`,
  },
  {
    version: 3,
    name: '003-outbox',
    sql: `-- Messages to other services (PROTOCOL.md P66): written in the business transaction, delivered by relays.
--
-- Order within an aggregate is the order of id. That it is the order of commits too is the work of whoever writes, see
-- writeOutbox: the lock first, the number after it. So the identity keeps its cache of 1: a larger one hands every
-- session numbers that are older than its lock.

create table samekey_outbox (
  id bigint generated always as identity (cache 1) primary key,
  -- What the receiver de-duplicates by. The same on every delivery.
  message_id uuid not null unique,
  topic text collate "C" not null,
  -- Whose messages keep their order: order:7. Null: no order.
  aggregate text collate "C",
  -- Bytes, the same on every delivery; never jsonb, which would change them, nor text, which refuses NUL.
  -- To read them: convert_from(payload, 'UTF8').
  payload bytea not null,
  created_at timestamptz not null,

  -- waiting: for a relay. delivering: a relay has it. parked: waits for a person, and its aggregate with it.
  -- delivered, skipped: nothing will change any more.
  state text not null check (state in ('waiting', 'delivering', 'parked', 'delivered', 'skipped')),
  -- From when a relay may take it; while one has it, the end of its lease.
  -- Null while waiting: it was seen behind an earlier one of its aggregate, and is called when its turn comes.
  due_at timestamptz,
  -- Grows with every takeover: a mark with an older one is refused.
  epoch integer not null,
  attempts integer not null,
  -- What last went wrong: the message of the error and no more.
  error text,
  -- JSON text: what people did and wrote, [{ at, action, note }].
  notes text not null,
  -- When it was delivered or skipped. Null: it is still to come, and those behind it wait.
  settled_at timestamptz,

  check ((state in ('delivered', 'skipped')) = (settled_at is not null)),
  check (due_at is null or state in ('waiting', 'delivering')),
  check (due_at is not null or state <> 'delivering')
);

-- What relays of all topics look for, and those of some.
create index samekey_outbox_due on samekey_outbox (due_at, id) where due_at is not null;
create index samekey_outbox_topic_due on samekey_outbox (topic, due_at, id) where due_at is not null;
-- Who is first in an aggregate, and what is before a message.
create index samekey_outbox_order on samekey_outbox (aggregate, id) where settled_at is null and aggregate is not null;
-- What people look for.
create index samekey_outbox_parked on samekey_outbox (id) where state = 'parked';
-- The reaper's list: neither what is to come nor what is parked is on it.
create index samekey_outbox_settled on samekey_outbox (settled_at) where settled_at is not null;

-- What was received: one row per consumer and message, in the transaction of its effect. The primary key is what makes
-- a second delivery wait for the first.
create table samekey_inbox (
  consumer text collate "C" not null,
  message_id text collate "C" not null,
  received_at timestamptz not null,
  primary key (consumer, message_id)
);

-- The reaper's list.
create index samekey_inbox_received on samekey_inbox (received_at);
`,
  },
]
