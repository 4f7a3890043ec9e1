/**
 * Records to text and back (P23): versioned, checked field by field on the way in. A damaged or newer record is told
 * apart and never guessed at. The schema here is the format's definition.
 */
import * as v from 'valibot'
import { type IntentRecord, recordFormat } from './record.ts'

/** A record read, or why not. */
export type Decoded =
  | { readonly ok: true; readonly record: IntentRecord }
  | { readonly ok: false; readonly reason: 'damaged' | 'newer' }

const time = v.pipe(v.number(), v.finite())
const count = v.pipe(v.number(), v.integer(), v.minValue(0))
/** What no request or answer could be made of is damage, here and not when it is sent (P23). */
const token = v.pipe(v.string(), v.regex(/^[\w!#$%&'*+.^`|~-]+$/))
const method = v.pipe(token, v.regex(/^(?!(?:connect|trace|track)$)/i))
const headers = v.array(v.tuple([token, v.pipe(v.string(), v.regex(/^[^\0\r\n\u0100-\uffff]*$/))]))
const address = v.pipe(v.string(), v.url())
/** Of a request: one with a password in it is no address that fetch takes. */
const target = v.pipe(
  v.string(),
  v.check((text) => {
    const url = URL.parse(text)
    return url?.username === '' && url.password === ''
  }),
)
const maybe = <S extends v.GenericSchema>(schema: S): v.NullableSchema<S, undefined> => v.nullable(schema)

/** Kept as they are, members of later versions included: a fingerprint is compared under the rules of its time (P16). */
const rules = v.pipe(
  v.custom<object>((input) => typeof input === 'object' && input !== null && !Array.isArray(input)),
  v.looseObject({
    omit: v.exactOptional(v.array(v.string())),
    defaults: v.exactOptional(v.record(v.string(), v.unknown())),
    version: v.exactOptional(v.string()),
  }),
)

const attempt = v.object({ number: count, at: time, serverAt: maybe(time), exact: v.boolean() })

const state = v.variant('name', [
  v.object({ name: v.literal('queued') }),
  v.object({ name: v.literal('sending'), attempt }),
  v.object({ name: v.literal('waiting'), because: v.string() }),
  v.object({
    name: v.literal('processing'),
    monitor: v.object({
      url: v.union([v.literal(''), address]),
      since: time,
      resultExpiresAt: maybe(time),
      errors: count,
      phase: v.picklist(['running', 'retrying']),
    }),
  }),
  v.object({ name: v.literal('blocked'), on: v.picklist(['credentials', 'scope', 'operation', 'lane', 'attempts']) }),
  v.object({
    name: v.literal('cancelling'),
    purpose: v.picklist(['cancel', 'send_before', 'skip', 'resolve', 'abandon', 'refusal', 'absent', 'found']),
  }),
  v.object({ name: v.literal('unknown'), because: v.string() }),
  v.object({ name: v.literal('succeeded'), by: v.picklist(['answer', 'reconcile', 'person']) }),
  v.object({ name: v.literal('rejected') }),
  v.object({ name: v.literal('conflicted') }),
  v.object({
    name: v.literal('cancelled'),
    because: v.picklist(['by_app', 'voided', 'send_before_passed', 'reconciled_absent']),
  }),
  v.object({ name: v.literal('abandoned'), mayStillHappen: v.literal(true), freed: v.boolean() }),
])

const format1 = v.object({
  client: v.string(),
  scope: v.string(),
  id: v.string(),
  key: v.pipe(v.string(), v.minLength(1)),
  keyOrigin: v.picklist(['minted', 'derived', 'given']),
  operation: v.string(),
  registered: v.boolean(),
  fingerprint: v.object({ version: v.string(), digest: v.string(), rules }),
  request: v.object({
    method,
    url: target,
    headers,
    hasBody: v.boolean(),
    bodyDigest: v.string(),
    credentials: v.picklist(['omit', 'same-origin', 'include']),
    mode: v.picklist(['cors', 'same-origin', 'no-cors']),
    referrerPolicy: v.picklist([
      '',
      'no-referrer',
      'no-referrer-when-downgrade',
      'same-origin',
      'origin',
      'strict-origin',
      'origin-when-cross-origin',
      'strict-origin-when-cross-origin',
      'unsafe-url',
    ]),
  }),
  lane: maybe(v.object({ lane: v.string(), kind: v.picklist(['named', 'serial']) })),
  createdAt: time,
  since: maybe(time),
  sendBefore: maybe(time),
  state,
  dueAt: maybe(time),
  attempts: count,
  spent: v.pipe(v.number(), v.integer()),
  asked: count,
  handedOver: v.boolean(),
  doubt: maybe(v.object({ at: time, serverAt: maybe(time) })),
  lastHandOverAt: maybe(time),
  unmarked: count,
  seenAt: time,
  answer: maybe(
    v.object({
      status: v.pipe(count, v.minValue(200), v.maxValue(599)),
      headers,
      url: v.string(),
      body: v.picklist([
        'stored',
        'empty',
        'cut_off',
        'too_large',
        'not_stored_by_choice',
        'omitted_by_server',
        'not_given',
      ]),
      replayed: v.boolean(),
    }),
  ),
  settledAt: maybe(time),
  acknowledgedAt: maybe(time),
  laneReleased: v.boolean(),
  history: v.array(
    v.object({
      at: time,
      event: v.string(),
      attempt: v.exactOptional(count),
      status: v.exactOptional(count),
      detail: v.exactOptional(v.string()),
    }),
  ),
  actions: v.array(
    v.object({
      at: time,
      action: v.picklist(['check', 'retry', 'cancel', 'resolve', 'abandon', 'skip', 'resume']),
      note: v.exactOptional(v.string()),
    }),
  ),
})

/** The record as text. */
export function encodeRecord(record: IntentRecord): string {
  return JSON.stringify(record)
}

/**
 * Reads a record of any format up to this version's. Never throws.
 *
 * @param format the format's version, as stored beside the text.
 */
export function decodeRecord(format: number, text: string): Decoded {
  if (format > recordFormat) return { ok: false, reason: 'newer' }
  const checked = v.safeParse(format1, parsed(text))
  // Reasons are words that later versions may add to; all else is checked above.
  return checked.success
    ? { ok: true, record: checked.output as unknown as IntentRecord }
    : { ok: false, reason: 'damaged' }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}
