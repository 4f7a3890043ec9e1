/**
 * What the server does with a key, as pure functions over what is known: the real server and the mock run these same
 * lines, so the mock cannot drift. Nothing here reads a clock, a store or a header by itself.
 *
 * A decision is asked for twice. Before the store was touched (`seen: 'unread'`) it either refuses or says `claim`;
 * with what the claim found, it says how the request ends.
 */
import {
  type Fingerprint,
  type FingerprintInput,
  FingerprintVersionError,
  sameFingerprint,
} from '../protocol/fingerprint.ts'
import { parseHttpDate } from '../protocol/http-date.ts'
import { checkKey, type KeyRules, readKeyHeader } from '../protocol/key.ts'
import { IDEMPOTENCY_AGE, IDEMPOTENCY_SINCE, type MonitorError, type MonitorStatus } from '../protocol/wire.ts'

/**
 * The body of a stored answer. `omitted`: it was sent once and not kept (P60). `reference`: it is kept elsewhere, and
 * read there again under the authorisation of the day (P60).
 */
export type StoredBody =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'omitted' }
  | { readonly kind: 'reference'; readonly reference: string }

/** An answer as the key row keeps it: what a replay gives back, byte for byte (P55). */
export interface StoredAnswer {
  readonly status: number
  /** In the order in which they were given; never `Set-Cookie` or a header of one connection. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: StoredBody
}

/** How far accepted work is (P64), as whoever does it may say; `voided` is nothing that can be said, only be asked for. */
export type TaskStatus = Exclude<MonitorStatus, 'voided'>

/** Accepted work, as its monitor tells it. */
export interface TaskView {
  readonly status: MonitorStatus
  /** The finished answer; null while there is none. */
  readonly result: StoredAnswer | null
  /** What went wrong, for people and programs; null when nothing did or nothing is said. */
  readonly error: MonitorError | null
  /** Whole seconds until it is worth asking again; null once it is finished. */
  readonly retryAfterSeconds: number | null
  /** Epoch ms until which the result is kept, at least as long as the key (P62). */
  readonly resultExpiresAt: number
}

/** What the store knows about one key. */
export interface KeyRow {
  /**
   * `running`: inserted, and no answer yet. In the one-transaction protocol nobody but the inserting transaction ever
   * sees it, so anybody else who does has found damage (F21). `accepted`: answered with 202, and the work is not at its
   * end. `finished`: there is a final answer. `voided`: it never took effect and never will.
   */
  readonly state: 'running' | 'accepted' | 'finished' | 'voided'
  /** Of the first request, with the rules of its time (P16); null where no request ever came (voided). */
  readonly fingerprint: Fingerprint | null
  /** SHA-256 of the first request's body bytes, lower-case hexadecimal; null where no request ever came. */
  readonly requestDigest: string | null
  /** What a replay gives; null where nothing was ever answered. */
  readonly answer: StoredAnswer | null
  /** Null unless the answer is a 202 whose work went on after it. */
  readonly task: TaskView | null
  /** Epoch ms by the store's clock. */
  readonly createdAt: number
  /** Epoch ms until which the key is promised to be remembered (P57); the row itself lives longer, by the grace. */
  readonly expiresAt: number
}

/** The server's promise about time (P57). All in ms. */
export interface Retention {
  /** How long a key is remembered, from its row's creation. */
  readonly retentionMs: number
  /** The longest time between computing a request's age and the look at the key. */
  readonly transitMs: number
}

/** The key of a request, read and checked. */
export type KeyReading =
  | { readonly ok: true; readonly key: string }
  | { readonly ok: false; readonly reason: 'missing' | 'invalid'; readonly detail: string }

/** The age that a request claims. */
export type AgeReading =
  | {
      readonly ok: true
      /** From `Idempotency-Age`, in ms; null where it was not sent. */
      readonly ageMs: number | null
      /** From `Idempotency-Since`, epoch ms by the server's clock; null where it was not sent. */
      readonly since: number | null
    }
  | { readonly ok: false; readonly detail: string }

/** Whether the account that the request names is the caller's. `unchecked`: a tag was sent, and the server has none. */
export type ScopeReading = 'not-asked' | 'same' | 'other' | 'unchecked'

/** What every request brings along. */
export interface Asked extends Retention {
  readonly key: KeyReading
  readonly age: AgeReading
  readonly scope: ScopeReading
}

/** Nothing was asked of the store yet. */
export interface Unread {
  readonly seen: 'unread'
}

/** The row was not there, and now it is ours, uncommitted. */
export interface Inserted {
  readonly seen: 'inserted'
  /** Epoch ms by the store's clock. */
  readonly now: number
  readonly expiresAt: number
}

/** A rival holds the key, and the wait for it ended before it did. */
export interface Busy {
  readonly seen: 'busy'
}

/** There is no row. After a claim that was refused: it was reaped in between (H11). */
export interface Gone {
  readonly seen: 'gone'
  readonly now: number
}

/** A committed row. */
export interface Found {
  readonly seen: 'row'
  readonly row: KeyRow
}

/** A request to execute. */
export interface SubmitView extends Asked {
  /** `request`: what today's request looks like, to compare with the first one's under the rules of its time (P16). */
  readonly store: Unread | Inserted | Busy | Gone | (Found & { readonly request: FingerprintInput })
}

/** A look-up by key, or a look at the monitor: the same question (P43). */
export interface LookupView extends Asked {
  readonly store: Unread | Gone | Found
}

/** A request that the key shall never be executed (P58). */
export interface VoidView extends Asked {
  /** The app can take back what it wrote when it accepted the work: only then can accepted work be voided. */
  readonly takesBack: boolean
  readonly store: Unread | Inserted | Busy | Gone | Found
}

/** The request is refused without having touched the key. */
export type EntryRefusal =
  | { readonly kind: 'keyMissing'; readonly detail: string }
  | { readonly kind: 'keyInvalid'; readonly detail: string }
  | { readonly kind: 'scopeMismatch'; readonly detail: string }

/** Nothing speaks against it so far: claim the key (or read it), and ask again. */
export interface ClaimIt {
  readonly kind: 'claim'
}

/** How a submit ends. Whatever is not `execute` rolls back: nothing may have been written. */
export type SubmitDecision =
  | EntryRefusal
  | ClaimIt
  | { readonly kind: 'execute'; readonly expiresAt: number }
  | { readonly kind: 'answer'; readonly answer: StoredAnswer; readonly expiresAt: number; readonly replayed: boolean }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'inProgress' }
  | { readonly kind: 'voided' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'inconsistent'; readonly detail: string }

/** How a look-up ends. */
export type LookupDecision =
  | EntryRefusal
  | ClaimIt
  | { readonly kind: 'monitor'; readonly row: KeyRow }
  | { readonly kind: 'absent' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'inconsistent'; readonly detail: string }

/**
 * How a void ends. `void` keeps the inserted row: commit, then answer with it. `voidWork`: try to void the accepted
 * work, and where that is too late, decide again without it. Everything else rolls back.
 */
export type VoidDecision =
  | EntryRefusal
  | ClaimIt
  | { readonly kind: 'void'; readonly row: KeyRow }
  | { readonly kind: 'voidWork'; readonly row: KeyRow }
  | { readonly kind: 'monitor'; readonly row: KeyRow }
  | { readonly kind: 'inProgress' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'inconsistent'; readonly detail: string }

/** Section 12, steps 1 to 4, for a request to execute. */
export function decideSubmit(view: SubmitView): SubmitDecision {
  const { store } = view
  switch (store.seen) {
    case 'unread':
      return refusalAtEntry(view) ?? { kind: 'claim' }
    case 'inserted':
      // The row was gone: executed only while it cannot have been there before and been reaped (P57, H1, H8, H10).
      return isTooOld(view, store.now) ? { kind: 'expired' } : { kind: 'execute', expiresAt: store.expiresAt }
    case 'busy':
      return { kind: 'inProgress' }
    case 'gone':
      return { kind: 'expired' }
    case 'row':
      return onRow(store.row, store.request)
  }
}

/** P43, P57: what is there is told; what is not there is `absent` only while it cannot have been forgotten. */
export function decideLookup(view: LookupView): LookupDecision {
  const { store } = view
  switch (store.seen) {
    case 'unread':
      return refusalAtEntry(view) ?? { kind: 'claim' }
    case 'gone':
      return isTooOld(view, store.now) ? { kind: 'expired' } : { kind: 'absent' }
    case 'row':
      return damageOf(store.row) ?? { kind: 'monitor', row: store.row }
  }
}

/** P58: the first to insert the key wins; a void that loses learns what the winner answered. */
export function decideVoid(view: VoidView): VoidDecision {
  const { store } = view
  switch (store.seen) {
    case 'unread':
      return refusalAtEntry(view) ?? { kind: 'claim' }
    case 'inserted':
      // A free key that is too old may have been executed and forgotten: voiding it would be a lie (H1).
      return isTooOld(view, store.now) ? { kind: 'expired' } : { kind: 'void', row: voidedRow(store) }
    case 'busy':
      return { kind: 'inProgress' }
    case 'gone':
      return { kind: 'expired' }
    case 'row':
      return (
        damageOf(store.row) ?? { kind: view.takesBack && isOpen(store.row) ? 'voidWork' : 'monitor', row: store.row }
      )
  }
}

/** Whether its work may still be stopped; the row of the work decides, under its lock. */
function isOpen({ state, task }: KeyRow): boolean {
  return state === 'accepted' && task !== null && task.status !== 'unknown'
}

function refusalAtEntry({ key, age, scope }: Asked): EntryRefusal | null {
  // Scope first: to somebody else's request, nothing more is said (H5).
  if (scope === 'other') return { kind: 'scopeMismatch', detail: 'Idempotency-Scope is not the tag of the caller.' }
  if (scope === 'unchecked') {
    // Ignoring it would promise a check that nobody makes.
    return {
      kind: 'scopeMismatch',
      detail: 'This server has no tag for the caller, so Idempotency-Scope cannot be checked.',
    }
  }
  if (!key.ok) return { kind: key.reason === 'missing' ? 'keyMissing' : 'keyInvalid', detail: key.detail }
  if (!age.ok) return { kind: 'keyInvalid', detail: age.detail }
  return null
}

function onRow(row: KeyRow, request: FingerprintInput): SubmitDecision {
  if (row.state === 'voided') return { kind: 'voided' }
  if (row.fingerprint === null) return { kind: 'inconsistent', detail: 'The key row has no fingerprint.' }
  try {
    if (!sameFingerprint(row.fingerprint, request)) return { kind: 'conflict' }
  } catch (error) {
    if (!(error instanceof FingerprintVersionError)) throw error
    // Neither equal nor different: "conflict" would be for good, and perhaps a lie (H22).
    return { kind: 'inconsistent', detail: error.message }
  }
  if (row.state === 'running' || row.answer === null) return unfinished
  return { kind: 'answer', answer: row.answer, expiresAt: row.expiresAt, replayed: true }
}

const unfinished: { readonly kind: 'inconsistent'; readonly detail: string } = {
  kind: 'inconsistent',
  detail: 'The key row was committed without a finished answer.',
}

function damageOf(row: KeyRow): typeof unfinished | null {
  return row.state === 'running' || (row.state !== 'voided' && row.answer === null) ? unfinished : null
}

function voidedRow({ now, expiresAt }: Inserted): KeyRow {
  return {
    state: 'voided',
    fingerprint: null,
    requestDigest: null,
    answer: null,
    task: null,
    createdAt: now,
    expiresAt,
  }
}

/**
 * P57: whether a row of this request, had there been one, may be gone by now. An age was computed up to the transit
 * ago; `Idempotency-Since` is compared with the clock of this very moment and needs no margin, and what two clocks of
 * one server differ by is covered by the grace. A `since` in the future says nothing.
 */
function isTooOld({ age, retentionMs, transitMs }: Asked, now: number): boolean {
  if (!age.ok) return true
  const byAge = age.ageMs !== null && age.ageMs + transitMs >= retentionMs
  const bySince = age.since !== null && now - age.since >= retentionMs
  return byAge || bySince
}

/**
 * Reads and checks an `Idempotency-Key` header.
 *
 * @param value null where there is no such header.
 * @param rules the operation's limits (P12, P60). Default: those that every key has to meet.
 */
export function readKey(value: string | null, rules: KeyRules = {}): KeyReading {
  const header = readKeyHeader(value)
  if (header.ok) return readKeySegment(header.key, rules)
  if (header.reason === 'missing') {
    return { ok: false, reason: 'missing', detail: "Send the intent's key as Idempotency-Key." }
  }
  const detail =
    header.reason === 'multiple'
      ? 'There is more than one Idempotency-Key, and nothing says which is meant.'
      : 'The Idempotency-Key is neither a raw token nor a quoted string of printable ASCII.'
  return { ok: false, reason: 'invalid', detail }
}

/** Checks a key that came as a path segment, decoded, of a look-up or a void. */
export function readKeySegment(key: string, rules: KeyRules = {}): KeyReading {
  const detail = checkKey(key, rules)
  return detail === null ? { ok: true, key } : { ok: false, reason: 'invalid', detail }
}

/**
 * Reads `Idempotency-Age` and `Idempotency-Since`. Both absent is fine: the request is executed, unprotected by P57. A
 * malformed one is refused (400 `idempotency_key_invalid`), not ignored: it was meant as a protection, and reading it
 * as "no age" would execute what the client did not want executed.
 *
 * @param age value of `Idempotency-Age`, null where it was not sent. Whole seconds, digits only.
 * @param since value of `Idempotency-Since`, null where it was not sent. An HTTP date.
 */
export function readAge(age: string | null, since: string | null): AgeReading {
  const seconds = age?.trim() ?? null
  if (seconds !== null && !/^\d+$/.test(seconds)) {
    return { ok: false, detail: `${IDEMPOTENCY_AGE} must be one number of whole seconds.` }
  }
  const sinceAt = since === null ? null : parseHttpDate(since.trim())
  if (since !== null && sinceAt === null) return { ok: false, detail: `${IDEMPOTENCY_SINCE} must be one HTTP date.` }
  // More digits than a double holds become Infinity: older than anything.
  return { ok: true, ageMs: seconds === null ? null : Number(seconds) * 1000, since: sinceAt }
}

/**
 * Compares `Idempotency-Scope` with the caller's tag (section 16).
 *
 * @param asked value of the header, null where it was not sent.
 * @param tag the caller's tag, undefined where the server has no rule for it.
 */
export function readScopeTag(asked: string | null, tag: string | undefined): ScopeReading {
  if (asked === null) return 'not-asked'
  if (tag === undefined) return 'unchecked'
  return asked.trim() === tag ? 'same' : 'other'
}
