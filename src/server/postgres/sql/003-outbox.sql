-- Messages to other services (PROTOCOL.md P66): written in the business transaction, delivered by relays.
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
