/** Look-up and void by key (P43, P44, P58): what a client in doubt asks, under the same checks as a replay (P55). */
import { type Caller, callerOf, refusal } from './caller.ts'
import { decideLookup, decideVoid, type LookupDecision, readKeySegment, type VoidDecision } from './decide.ts'
import type { Settings } from './options.ts'
import { rereadRow } from './reread.ts'
import type { Ending, KeyId, NewKey, Unit } from './store.ts'
import { voidedTask } from './tasks/task-row.ts'
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
  const caller = await callerOf(settings, request, readKeySegment(key))
  if (!('asked' in caller)) return caller
  const { asked } = caller
  const entry = decideLookup({ ...asked, store: { seen: 'unread' } })
  if (entry.kind !== 'claim') return trail.end(entry)
  const refused = await refusal(settings, caller, { key, purpose: 'lookup', body: null, answer: null })
  if (refused !== null) return refused
  const id = trail.follow(idOf(settings, caller.scope, key))
  const decision = decideLookup({ ...asked, store: seen(await settings.store.find(id)) })
  return shown({ settings, caller, key, trail }, 'lookup', decision)
}

/**
 * Inserts the key as voided, voids accepted work that has not begun to take effect, or tells what is there. Waits for a
 * rival, up to `limits.voidWaitMs`: while a request runs, nobody can say that it never will have.
 *
 * @throws EntryError, StoreUnavailableError, CommitUnknownError, and what `onVoid` throws: then nothing was voided.
 */
export async function voidKey<Transaction>(
  settings: Settings<Transaction>,
  request: Request,
  key: string,
  trail: Trail,
): Promise<Response> {
  const caller = await callerOf(settings, request, readKeySegment(key))
  if (!('asked' in caller)) return caller
  const asked = { ...caller.asked, takesBack: settings.onVoid !== null }
  const entry = decideVoid({ ...asked, store: { seen: 'unread' } })
  if (entry.kind !== 'claim') return trail.end(entry)
  const refused = await refusal(settings, caller, { key, purpose: 'void', body: null, answer: null })
  if (refused !== null) return refused
  const id = trail.follow(idOf(settings, caller.scope, key))
  const { retentionMs, graceMs, limits } = settings
  const newKey: NewKey = { state: 'voided', fingerprint: null, requestDigest: null, retentionMs, graceMs }
  const work = async (unit: Unit<Transaction>): Promise<Ending<VoidDecision>> => {
    const claim = await unit.claim(id, newKey)
    const value = decideVoid({ ...asked, store: claim.seen === 'taken' ? seen(await unit.read(id)) : claim })
    if (value.kind !== 'voidWork') return { commit: value.kind === 'void', value }
    return voidWork({ settings, caller, unit, id })
  }
  const decision = await trail.inside(() => settings.store.begin({ waitMs: limits.voidWaitMs }, work))
  return shown({ settings, caller, key, trail }, 'void', decision)
}

interface Voiding<Transaction> {
  readonly settings: Settings<Transaction>
  readonly caller: Caller
  readonly unit: Unit<Transaction>
  readonly id: KeyId
}

/** Under the lock of the work, so that a worker has either begun before this, or never will (P58, H34). */
async function voidWork<Transaction>({
  settings,
  caller,
  unit,
  id,
}: Voiding<Transaction>): Promise<Ending<VoidDecision>> {
  const locked = await unit.lockTask(id)
  if (locked.seen === 'busy') return { commit: false, value: { kind: 'inProgress' } }
  // Work that the app does in its own way: nothing here says whether it has begun.
  const next = locked.row === null || locked.row.input === null ? null : voidedTask(locked.row)
  if (next !== null) {
    const { scope, request } = caller
    const work: unknown = JSON.parse(next.input ?? 'null')
    const { operation, key } = id
    await unit.run((transaction) => settings.onVoid?.({ transaction, work, request, scope, operation, key }))
    await unit.saveTask(id, next)
  }
  // Voided a moment ago, or too late: either way the row tells.
  const value = decideVoid({ ...caller.asked, takesBack: false, store: seen(await unit.read(id)) })
  return { commit: next !== null, value }
}

interface Telling<Transaction> {
  readonly settings: Settings<Transaction>
  readonly caller: Caller
  readonly key: string
  readonly trail: Trail
}

/** Tells it, unless what it would show is hidden from the caller today; then, and only then, with the body (P55, P60). */
async function shown<Transaction>(
  { settings, caller, key, trail }: Telling<Transaction>,
  purpose: 'lookup' | 'void',
  decision: LookupDecision | VoidDecision,
): Promise<Response> {
  // Of a voided key, nothing is shown.
  if (decision.kind !== 'monitor' || decision.row.state === 'voided') return trail.end(decision)
  const answer = decision.row.task?.result ?? decision.row.answer
  const refused = answer === null ? null : await refusal(settings, caller, { key, purpose, body: null, answer })
  return refused ?? trail.end({ kind: 'monitor', row: await rereadRow(settings, caller, key, decision.row) })
}
