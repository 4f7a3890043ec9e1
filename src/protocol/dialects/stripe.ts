import { IDEMPOTENCY_KEY } from '../wire.ts'
import type { Dialect, HeardAnswer, Meaning } from './dialect.ts'

/** Stripe's own advice comes before the status; a failure that will be replayed is not asked for again (B75). */
function advice(answer: HeardAnswer): Meaning | null {
  const shouldRetry = answer.header('stripe-should-retry')
  if (answer.status >= 500 && shouldRetry === 'false') return 'storedFailure'
  const error = errorOf(answer.text)
  // The code is the narrower word: "in use" is no conflict, whatever type it comes with (B74).
  if (error.code === 'idempotency_key_in_use') return 'inProgress'
  if (error.code === 'lock_timeout') return 'refusedWithoutEffect'
  if (error.type === 'idempotency_error') return 'conflict'
  // What may be asked again is no final refusal; 401, 409 and 429 have a meaning of their own.
  const final = answer.status >= 400 && ![401, 409, 429].includes(answer.status)
  return shouldRetry === 'true' && final ? 'ambiguous' : null
}

function errorOf(text: string): { type?: unknown; code?: unknown } {
  try {
    const body: unknown = JSON.parse(text)
    const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : null
    return typeof error === 'object' && error !== null ? error : {}
  } catch {
    return {}
  }
}

/**
 * Stripe's v1 API: keys on POST, remembered for at least 24 hours, stored failures replayed. As of December 2026; state
 * another retention per operation where your account has one.
 */
export const stripe: Dialect = {
  name: 'stripe',
  deduplicates: true,
  methods: ['POST'],
  keyHeader: IDEMPOTENCY_KEY,
  quoted: false,
  keyRules: { maxLength: 255 },
  retentionMs: 24 * 3600 * 1000,
  marker: null,
  replayed: { header: 'idempotent-replayed', value: 'true' },
  tellsAge: false,
  byKey: false,
  monitorHeaders: [],
  monitorMember: null,
  monitor: 'plain',
  codes: {},
  statuses: { 409: 'inProgress' },
  hint: advice,
}
