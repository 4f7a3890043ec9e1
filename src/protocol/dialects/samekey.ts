import { IDEMPOTENCY_EXPIRES, IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED } from '../wire.ts'
import type { Dialect } from './dialect.ts'

const DAY_MS = 24 * 3600 * 1000

/**
 * The wire profile of PROTOCOL.md section 16: what `samekey/server` and `samekey/msw` speak. The retention is that of
 * the server kit's default, 24 hours; where yours differs, say so per operation (`retentionMs`).
 */
export const samekey: Dialect = {
  name: 'samekey',
  deduplicates: true,
  methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
  keyHeader: IDEMPOTENCY_KEY,
  quoted: false,
  keyRules: {},
  retentionMs: DAY_MS,
  marker: IDEMPOTENCY_EXPIRES,
  replayed: { header: IDEMPOTENT_REPLAYED, value: 'true' },
  tellsAge: true,
  byKey: true,
  monitorHeaders: ['location'],
  monitorMember: 'monitor',
  monitor: 'document',
  codes: {
    idempotency_conflict: 'conflict',
    idempotency_in_progress: 'inProgress',
    idempotency_expired: 'expired',
    idempotency_voided: 'voided',
    idempotency_scope_mismatch: 'scopeMismatch',
    // Nothing was executed by this attempt, and the row may yet be mended: in doubt, with back-off (F21).
    idempotency_inconsistent: 'ambiguous',
    idempotency_unavailable: 'refusedWithoutEffect',
  },
  statuses: {},
}
