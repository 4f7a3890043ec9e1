/** From a submit to the record that is stored before anything is sent. */
import type { Fingerprint, FingerprintInput } from '../protocol/fingerprint.ts'
import { type IntentRecord, type KeyOrigin, type LanePlace, type StoredRequest, untouched } from '../protocol/record.ts'
import { sha256Hex } from '../protocol/sha256.ts'
import type { IntentCall } from './call.ts'
import { laneKey } from './view.ts'

/** Clocks of two machines differ by a little; a `since` that lies ahead by less is taken as now. */
const skewMs = 60_000

/** What a new record is made of. */
export interface Making {
  readonly client: string
  readonly scope: string
  readonly call: IntentCall
  readonly request: Request
  readonly key: string
  readonly keyOrigin: KeyOrigin
  readonly since: number | null
  readonly operation: { readonly name: string; readonly registered: boolean; readonly lane: string | undefined }
  readonly input: FingerprintInput
  readonly print: Fingerprint
  readonly bytes: Uint8Array | null
}

/** The record of a new intent: nothing was sent yet, and its first try is due (P9, P17). */
export function newRecord(making: Making, now: number): IntentRecord {
  const { client, scope, call, request, key, keyOrigin, since, operation, input, print, bytes } = making
  const storedRequest: StoredRequest = {
    method: request.method,
    url: request.url,
    headers: input.headers,
    hasBody: bytes !== null,
    bodyDigest: sha256Hex(bytes ?? new Uint8Array()),
    credentials: request.credentials,
    mode: request.mode === 'same-origin' ? 'same-origin' : 'cors',
    referrerPolicy: request.referrerPolicy,
  }
  return {
    ...untouched,
    client,
    scope,
    id: call.intent,
    key,
    keyOrigin,
    operation: operation.name,
    registered: operation.registered,
    fingerprint: print,
    request: storedRequest,
    lane: laneOf(scope, operation.lane, storedRequest),
    createdAt: now,
    since,
    sendBefore: call.sendBefore === undefined ? null : Number(call.sendBefore),
    state: { name: 'queued' },
    dueAt: now,
    // An earlier life of this device may have sent the key: in doubt from creation (P11, H8). `since` is true time.
    doubt: since === null ? null : { at: Math.min(since, now), serverAt: since },
    lastHandOverAt: since === null ? null : now,
    // A `since` that lies ahead shows that this device's clock is slow: then it knows no age (P35).
    seenAt: since !== null && since > now + skewMs ? since : now,
  }
}

function laneOf(scope: string, named: string | undefined, { method, url }: StoredRequest): LanePlace | null {
  if (named !== undefined) return { lane: laneKey(scope, 'named', named), kind: 'named' }
  if (method !== 'PUT' && method !== 'PATCH' && method !== 'DELETE') return null
  return { lane: laneKey(scope, 'serial', url), kind: 'serial' }
}
