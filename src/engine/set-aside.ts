/** Records that cannot be read, and what a person decides about them (P23, F22). */
import { type ActionLine, type IntentRecord, untouched } from '../protocol/record.ts'
import type { State } from '../protocol/states.ts'
import type { SetAside } from './ledger.ts'

/**
 * What can be saved of an unreadable record, its names from the row, in the state that a person gave it. Its id stays
 * taken by that.
 */
export function salvaged({ row, reason }: SetAside, state: State, decision: ActionLine): IntentRecord {
  const now = decision.at
  return {
    ...untouched,
    client: row.client,
    scope: row.scope,
    id: row.id,
    key: row.key,
    keyOrigin: 'given',
    operation: '',
    registered: false,
    fingerprint: { version: '1', digest: '', rules: {} },
    request: {
      method: 'POST',
      url: 'about:blank',
      headers: [],
      hasBody: false,
      bodyDigest: '',
      credentials: 'omit',
      mode: 'cors',
      referrerPolicy: '',
    },
    lane: null,
    createdAt: now,
    since: null,
    sendBefore: null,
    state,
    dueAt: null,
    handedOver: true,
    seenAt: now,
    settledAt: now,
    laneReleased: true,
    history: [{ at: now, event: 'set_aside', detail: reason }],
    actions: [decision],
  }
}
