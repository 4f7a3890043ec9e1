-- Accepted work (PROTOCOL.md section 13), one row per key, and its calls to other services (section 14).

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
