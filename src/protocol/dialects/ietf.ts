import type { KeyRules } from '../key.ts'
import { readProblem } from '../problem.ts'
import { IDEMPOTENCY_KEY } from '../wire.ts'
import type { Dialect, HeardAnswer, Meaning } from './dialect.ts'

/** What the draft leaves to each server. */
export interface IetfOptions {
  /** How long the server promises to remember a key, in ms. The draft states none: ask the server's documentation. */
  readonly retentionMs: number
  /** Send the key as a quoted string, as the draft says, instead of the raw token that servers in the field take. Default is false. */
  readonly quoted?: boolean
  /** Answer header that proves an answer to be from behind the key, where the server has one. Default is none. */
  readonly marker?: string
  /** The server's limits on keys. Default is up to 255 characters. */
  readonly keyRules?: KeyRules
}

const speaksOfKeys = /idempot/i

/**
 * The draft uses 400, 409 and 422 for its own errors, and so do applications (B76). A problem document tells them
 * apart where there is one; a bare 409 is read as "in progress", because reading it as refused could be a lie.
 */
function meaning(answer: HeardAnswer): Meaning | null {
  if (answer.status !== 409 && answer.status !== 422) return null
  const problem = readProblem(answer.header('content-type'), answer.text)
  const words = `${problem?.type ?? ''} ${problem?.code ?? ''} ${problem?.title ?? ''}`
  if (answer.status === 422) return speaksOfKeys.test(words) ? 'conflict' : 'refused'
  const named = (problem?.type !== undefined && problem.type !== 'about:blank') || problem?.code !== undefined
  return named && !speaksOfKeys.test(words) ? 'refused' : 'inProgress'
}

/**
 * draft-ietf-httpapi-idempotency-key-header: 409 while the first request runs, 422 for another payload.
 *
 * @example
 * ```ts
 * import { ietf } from 'samekey/dialects'
 *
 * const dialect = ietf({ retentionMs: 24 * 3600_000, marker: 'X-Request-Replayed' })
 * ```
 */
export function ietf(options: IetfOptions): Dialect {
  return {
    name: 'ietf',
    deduplicates: true,
    methods: ['POST', 'PATCH'],
    keyHeader: IDEMPOTENCY_KEY,
    quoted: options.quoted ?? false,
    keyRules: options.keyRules ?? {},
    retentionMs: options.retentionMs,
    marker: options.marker ?? null,
    replayed: { header: 'idempotent-replayed', value: 'true' },
    tellsAge: false,
    byKey: false,
    monitorHeaders: ['operation-location', 'location'],
    monitorMember: null,
    monitor: 'plain',
    codes: {},
    statuses: {},
    hint: meaning,
  }
}
