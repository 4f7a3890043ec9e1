import type { Dialect } from './dialect.ts'

/**
 * A server that does not de-duplicate. An attempt is repeated only after "never delivered" or "refused without effect";
 * an ambiguous one ends unknown, for a person to settle (P1, F24). No key is sent, because none would be heard.
 */
export const none: Dialect = {
  name: 'none',
  deduplicates: false,
  methods: [],
  keyHeader: null,
  quoted: false,
  keyRules: {},
  retentionMs: null,
  marker: null,
  replayed: null,
  tellsAge: false,
  byKey: false,
  monitorHeaders: ['operation-location', 'location'],
  monitorMember: null,
  monitor: 'plain',
  codes: {},
  statuses: {},
}
