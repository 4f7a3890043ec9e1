/** What an earlier run, or a clock that was wrong, left behind: found once per scope and step of the clock (P20, P21, P23, P35). */
import type { IntentStore, Platform } from '../ports.ts'
import { undatable } from '../protocol/window.ts'
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
  { options, store, platform, ledger, announcer, runner }: RecoveryParts,
): Promise<void> {
  let afterSeq = 0
  for (;;) {
    const rows = await store.list(options.name, { scope, open: true, afterSeq, limit: pageSize })
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
      if (record.state.name === 'sending') await runner.step(found, { type: 'recovered' })
      else if (record.seenAt !== undatable && record.seenAt > platform.clock.now())
        await runner.step(found, { type: 'clockSteppedBack' })
      else if (row.token !== null) await ledger.commit(found, record, false)
    }
    if (rows.length < pageSize) return
  }
}
