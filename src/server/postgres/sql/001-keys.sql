-- The key rows (PROTOCOL.md section 12).
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
