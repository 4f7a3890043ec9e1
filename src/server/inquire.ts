/** Look-up and void by key (P43, P44, P58): what a client in doubt asks, under the same checks as a replay (P55). */
import { type Caller, callerOf, refusal } from './caller.ts'
import { decideLookup, decideVoid, type LookupDecision, readKeySegment, type VoidDecision } from './decide.ts'
import type { Settings } from './options.ts'
import type { NewKey } from './store.ts'
import { idOf, seen, type Trail } from './trail.ts'

/**
 * Tells what the key knows. Waits for nobody: a request that still runs is not visible, and so is nothing to be proven.
 *
 * @throws EntryError, StoreUnavailableError
 */
export async function lookup<Transaction>(
  settings: Settings<Transaction>,
  request: Request,
  key: string,
  trail: Trail,
): Promise<Response> {
  const caller = await callerOf(settings, request, readKeySegment(key, settings.limits.key))
  if (!('asked' in caller)) return caller
  const { asked } = caller
  const entry = decideLookup({ ...asked, store: { seen: 'unread' } })
  if (entry.kind !== 'claim') return trail.end(entry)
  const refused = await refusal(settings, caller, { key, purpose: 'lookup', body: null, answer: null })
  if (refused !== null) return refused
  const id = trail.follow(idOf(settings, caller.scope, key))
  const decision = decideLookup({ ...asked, store: seen(await settings.store.find(id)) })
  return (await hidden(settings, caller, key, 'lookup', decision)) ?? trail.end(decision)
}

/**
 * Inserts the key as voided, or tells what is there. Waits for a rival, up to `limits.voidWaitMs`: while a request
 * runs, nobody can say that it never will have.
 *
 * @throws EntryError, StoreUnavailableError, CommitUnknownError
 */
export async function voidKey<Transaction>(
  settings: Settings<Transaction>,
  request: Request,
  key: string,
  trail: Trail,
): Promise<Response> {
  const caller = await callerOf(settings, request, readKeySegment(key, settings.limits.key))
  if (!('asked' in caller)) return caller
  const { asked } = caller
  const entry = decideVoid({ ...asked, store: { seen: 'unread' } })
  if (entry.kind !== 'claim') return trail.end(entry)
  const refused = await refusal(settings, caller, { key, purpose: 'void', body: null, answer: null })
  if (refused !== null) return refused
  const id = trail.follow(idOf(settings, caller.scope, key))
  const { retentionMs, graceMs, limits } = settings
  const newKey: NewKey = { state: 'voided', fingerprint: null, requestDigest: null, retentionMs, graceMs }
  const decision = await settings.store.begin({ waitMs: limits.voidWaitMs }, async (unit) => {
    const claim = await unit.claim(id, newKey)
    const value = decideVoid({ ...asked, store: claim.seen === 'taken' ? seen(await unit.read(id)) : claim })
    return { commit: value.kind === 'void', value }
  })
  return (await hidden(settings, caller, key, 'void', decision)) ?? trail.end(decision)
}

/** Refused because of what the answer would show; null if nothing is in the way. */
async function hidden<Transaction>(
  settings: Settings<Transaction>,
  caller: Caller,
  key: string,
  purpose: 'lookup' | 'void',
  decision: LookupDecision | VoidDecision,
): Promise<Response | null> {
  const answer = decision.kind === 'monitor' ? (decision.row.task?.result ?? decision.row.answer) : null
  return answer === null ? null : refusal(settings, caller, { key, purpose, body: null, answer })
}
