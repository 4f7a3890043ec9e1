/** What an earlier run, or a clock that was wrong, left behind: found once per scope and step of the clock (P20, P21, P23, P35). */
import type { IntentStore, Platform, StoredRow } from '../ports.ts'
import { clockSteppedBack, undatable } from '../protocol/window.ts'
import type { Announcer } from './announcer.ts'
import { isSetAside, type Ledger, type Loaded } from './ledger.ts'
import type { Resolved } from './options.ts'
import type { Runner } from './runner.ts'

const pageSize = 100

export interface RecoveryParts {
  readonly options: Resolved
  readonly store: IntentStore
  readonly platform: Platform
  readonly ledger: Ledger
  readonly announcer: Announcer
  readonly runner: Pick<Runner, 'step'>
}

/**
 * Goes through the open rows of a scope: what a dead holder was sending becomes in doubt at once instead of after its
 * lease, what an impossible clock made due in years is judged now, what cannot be read is reported.
 */
export async function recover(scope: string, isActive: (key: string) => boolean, parts: RecoveryParts): Promise<void> {
  const { platform, ledger, announcer, runner } = parts
  for await (const row of openRows(parts, { scope })) {
    const found = ledger.read(row)
    if (isSetAside(found)) {
      announcer.warnOnce(row.key, {
        code: 'record_set_aside',
        message: `The record of ${row.id} is ${found.reason === 'newer' ? 'from a newer version of samekey' : 'damaged'}. It is kept, and its id stays taken until somebody resolves or abandons it.`,
        intentId: row.id,
        key: row.key,
      })
      continue
    }
    if (isActive(row.key) || !(await ledger.isFree(row))) continue
    const { record } = found
    // By the clock of this moment: the store may have taken its time.
    const times = { now: platform.clock.now(), serverNow: null }
    if (record.state.name === 'sending') await runner.step(found, { type: 'recovered' })
    else if (clockSteppedBack(record, times)) await loseClock(found, parts)
    else if (row.token !== null) await ledger.commit(found, record, false)
  }
}

/**
 * The device's clock was set back. That concerns everybody who used it, whoever is signed in: they may be back only when
 * it has caught up, and nothing would tell then (P35). Nothing of theirs is sent or told (P50).
 */
export async function recoverFromStep(isActive: (key: string) => boolean, parts: RecoveryParts): Promise<void> {
  const { ledger } = parts
  for await (const row of openRows(parts)) {
    const found = ledger.read(row)
    if (!isSetAside(found) && !isActive(row.key) && (await ledger.isFree(row))) await loseClock(found, parts)
  }
}

/** Once is enough: it changes nothing any more. */
async function loseClock(found: Loaded, { runner }: RecoveryParts): Promise<void> {
  if (found.record.seenAt !== undatable) await runner.step(found, { type: 'clockSteppedBack' })
}

async function* openRows(
  { store, options }: RecoveryParts,
  whose: { readonly scope?: string } = {},
): AsyncGenerator<StoredRow> {
  let afterSeq = 0
  for (;;) {
    const rows = await store.list(options.name, { ...whose, open: true, afterSeq, limit: pageSize })
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageSize) return
    afterSeq = last.seq
  }
}
