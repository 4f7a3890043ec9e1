/**
 * How a server speaks safe retries: a table row and, at most, one small function. Nothing else in samekey knows which
 * provider it talks to.
 */
import type { KeyRules } from '../key.ts'

/** An answer as classification sees it. */
export interface HeardAnswer {
  /** HTTP status. */
  readonly status: number
  /** A header's value, or null; names compare without regard to case. */
  readonly header: (name: string) => string | null
  /** The body as text; empty when it is absent or not text. */
  readonly text: string
}

/** What a status, an error code or a dialect's own function says that an answer means (PROTOCOL.md section 6). */
export type Meaning =
  | 'ambiguous'
  | 'refusedWithoutEffect'
  | 'needsCredentials'
  | 'scopeMismatch'
  | 'inProgress'
  | 'conflict'
  | 'expired'
  | 'voided'
  | 'storedFailure'
  | 'refused'

/** How a server de-duplicates (P1). Give it to a client, or to one operation. */
export interface Dialect {
  /** For messages and logs. */
  readonly name: string
  /** False: the server does not de-duplicate, and an ambiguous attempt is never repeated (F24). */
  readonly deduplicates: boolean
  /** Methods for which the key counts, in upper case. For others the server is taken not to de-duplicate. */
  readonly methods: readonly string[]
  /** Request header that carries the key, or null when none does. */
  readonly keyHeader: string | null
  /** Send the key as a quoted structured-field string (RFC 9651) instead of a raw token. */
  readonly quoted: boolean
  /** The server's limits on keys (P12). */
  readonly keyRules: KeyRules
  /** How long the server promises to remember a key, in ms; null when that is not known, and then none is assumed (P35). */
  readonly retentionMs: number | null
  /** Answer header whose presence proves that an answer comes from behind the key, or null when the server has none. */
  readonly marker: string | null
  /** Answer header and value of a replayed answer, or null. A replay is proof too. */
  readonly replayed: { readonly header: string; readonly value: string } | null
  /** Send `Idempotency-Age`, `Idempotency-Since` and `Idempotency-Scope` (section 16). */
  readonly tellsAge: boolean
  /** Look-up (GET) and void (DELETE) by key under the client's `keysUrl` (P43, P44). */
  readonly byKey: boolean
  /** Headers that may name the monitor of a 202, the first present one wins (P37). */
  readonly monitorHeaders: readonly string[]
  /** Body member that may name it where no header does, or null. */
  readonly monitorMember: string | null
  /** `document`: monitors speak section 16's shape. `plain`: 202 while running, then the result itself. */
  readonly monitor: 'document' | 'plain'
  /** What an error code in the body means. Comes before `statuses`. */
  readonly codes: Readonly<Record<string, Meaning>>
  /** What a status means where no code says more. */
  readonly statuses: Readonly<Record<number, Meaning>>
  /** The server's own hints, which come first (P25). Null leaves it to the tables. Pure. */
  readonly hint?: (answer: HeardAnswer) => Meaning | null
  /** Address of what an earlier attempt made, where the answer says "already done" and points to it. Pure. */
  readonly pointer?: (answer: HeardAnswer) => string | null
}
