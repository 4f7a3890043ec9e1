/** What an earlier run, or a clock that was wrong, left behind: found once per scope and step of the clock (P20, P21, P23, P35). */
import type { IntentStore, Platform } from '../ports.ts'
import type { IntentRecord } from '../protocol/record.ts'
import { clockSteppedBack, undatable } from '../protocol/window.ts'
import type { Announcer } from './announcer.ts'
import { isSetAside, type Ledger } from './ledger.ts'
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
export async function recover(
  scope: string,
  isActive: (key: string) => boolean,
  steppedBack: boolean,
  { options, store, platform, ledger, announcer, runner }: RecoveryParts,
): Promise<void> {
  const times = { now: platform.clock.now(), serverNow: null }
  const losesItsClock = (record: IntentRecord): boolean =>
    record.seenAt !== undatable && (steppedBack || clockSteppedBack(record, times))

  let afterSeq = 0
  for (;;) {
    // A clock that was set back concerns everybody who used this device, whoever is signed in: they may be back only when it
    // has caught up. Nothing of theirs is sent or told (P50).
    const whose = steppedBack ? {} : { scope }
    const rows = await store.list(options.name, { ...whose, open: true, afterSeq, limit: pageSize })
    for (const row of rows) {
      afterSeq = row.seq
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
      if (row.scope === scope && record.state.name === 'sending') await runner.step(found, { type: 'recovered' })
      else if (losesItsClock(record)) await runner.step(found, { type: 'clockSteppedBack' })
      else if (row.token !== null) await ledger.commit(found, record, false)
    }
    if (rows.length < pageSize) return
  }
}
