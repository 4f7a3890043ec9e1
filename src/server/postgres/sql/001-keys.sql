/**
 * Migration 1: the key rows (section 12). As a module and not as a file of its own, so that every bundler ships it.
 *
 * - The primary key is P53. It is what makes a rival wait, so nothing else may ever decide who goes first.
 * - Answers are bytes and text, never jsonb: that would drop duplicate members, change numbers and refuse NUL.
 * - `reap_at` is fixed at insert: a row outlives a later, shorter retention, and a later, longer one finds old rows gone.
 */
export const keysSql: string = `
create table samekey_keys (
  tenant text collate "C" not null,
  principal text collate "C" not null,
  operation text collate "C" not null,
  key text collate "C" not null,

  -- running: inserted, no answer yet. Committed like that, it is damage: an operator looks (F21).
  state text not null check (state in ('running', 'finished', 'voided')),
  -- JSON text: version, digest, rules (P16). Null where no request ever came.
  fingerprint text,
  -- SHA-256 of the first request's body bytes, in hexadecimal.
  request_digest text,

  -- What a replay gives back. Headers: JSON text, an array of [name, value]. Body null: sent once and not kept.
  answer_status integer,
  answer_headers text,
  answer_body bytea,

  -- Accepted work (202) as its monitor tells it; null for everything else.
  task_status text check (task_status in ('processing', 'failed_retryable', 'unknown', 'succeeded', 'failed')),
  task_error text,
  task_retry_after integer,
  result_status integer,
  result_headers text,
  result_body bytea,
  result_expires_at timestamptz,

  created_at timestamptz not null,
  -- The end of the promise to remember, and the end of the row: the grace lies between (P57).
  expires_at timestamptz not null,
  reap_at timestamptz not null,

  primary key (tenant, principal, operation, key),
  check (state <> 'finished' or (answer_status is not null and answer_headers is not null))
);

-- The reaper's list: unfinished rows and unfinished work are not on it.
create index samekey_keys_reap on samekey_keys (reap_at)
  where state <> 'running' and (task_status is null or task_status in ('succeeded', 'failed'));
`
