/** Section 12 for a request to execute, step by step. */
import { type FingerprintInput, fingerprint } from '../protocol/fingerprint.ts'
import { sha256Hex } from '../protocol/sha256.ts'
import { IDEMPOTENCY_KEY } from '../protocol/wire.ts'
import { callerOf, refusal } from './caller.ts'
import { decideSubmit, readKey, type SubmitDecision } from './decide.ts'
import { type Executed, run } from './execute.ts'
import type { Settings } from './options.ts'
import { readBody } from './request-body.ts'
import { reread } from './reread.ts'
import { methodNotAllowed, toResponse } from './respond.ts'
import type { Ending, NewKey, Unit } from './store.ts'
import { idOf, seen, type Trail } from './trail.ts'

/**
 * Executes once per key, or answers what the key already knows.
 *
 * @throws EntryError, StoreUnavailableError, CommitUnknownError, and what `execute` throws.
 */
export async function submit<Transaction>(
  settings: Settings<Transaction>,
  request: Request,
  trail: Trail,
): Promise<Response> {
  if (SAFE.has(request.method)) return toResponse(methodNotAllowed())
  // Step 1: nothing is touched before all of this is known.
  const caller = await callerOf(settings, request, readKey(request.headers.get(IDEMPOTENCY_KEY), settings.limits.key))
  if (!('asked' in caller)) return caller
  const { asked } = caller
  const entry = decideSubmit({ ...asked, store: { seen: 'unread' } })
  if (entry.kind !== 'claim' || !asked.key.ok) return trail.end(entry)
  const { key } = asked.key
  const reading = await readBody(request, settings.limits)
  if (!reading.ok) return toResponse(reading.answer)
  const { body } = reading
  const refused = await refusal(settings, caller, { key, purpose: 'submit', body, answer: null })
  if (refused !== null) return refused
  const input: FingerprintInput = {
    method: request.method,
    url: publicUrl(settings, request),
    operation: settings.operation,
    headers: [...request.headers],
    body: reading.print,
  }
  const newKey: NewKey = {
    state: 'running',
    fingerprint: fingerprint(input, settings.fingerprint),
    requestDigest: sha256Hex(body.bytes),
    retentionMs: settings.retentionMs,
    graceMs: settings.graceMs,
  }

  // Steps 2 to 4.
  const id = trail.follow(idOf(settings, caller.scope, key))
  const work = async (unit: Unit<Transaction>): Promise<Ending<Ended>> => {
    const claim = await unit.claim(id, newKey)
    // A new statement: this one sees what the rival has just committed (P54).
    const store = claim.seen === 'taken' ? { ...seen(await unit.read(id)), request: input } : claim
    const decision = decideSubmit({ ...asked, store })
    if (decision.kind !== 'execute') return { commit: false, value: { decision, executed: null } }
    const { commit, value } = await run({ settings, unit, caller, id, body, expiresAt: decision.expiresAt })
    return { commit, value: { decision, executed: value } }
  }
  const { decision, executed } = await trail.inside(() =>
    settings.store.begin({ waitMs: settings.limits.waitMs }, work),
  )

  if (executed !== null) {
    if (executed.bodyNotStored)
      trail.tell('bodyNotStored', `The answer has more than ${settings.limits.answerBytes} bytes.`)
    return toResponse(executed.answer)
  }
  if (decision.kind === 'answer') {
    // What was allowed when it was executed may be forbidden today (P55).
    const refusedNow = await refusal(settings, caller, { key, purpose: 'replay', body, answer: decision.answer })
    if (refusedNow !== null) return refusedNow
    return trail.end({ ...decision, answer: await reread(settings, caller, key, decision.answer) })
  }
  return trail.end(decision)
}

/** Methods that ask for nothing to be done (RFC 9110, 9.2.1): whoever routed one here did not mean to execute it. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

interface Ended {
  readonly decision: SubmitDecision
  readonly executed: Executed | null
}

function publicUrl<Transaction>({ publicOrigin }: Settings<Transaction>, { url }: Request): string {
  if (publicOrigin === null) return url
  const { pathname, search } = new URL(url)
  return publicOrigin + pathname + search
}
