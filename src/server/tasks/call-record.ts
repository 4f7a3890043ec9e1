/** Writes down what a try of a call came to: fenced by the epoch, and kept as evidence where that is stale (P63). */
import { backoffMs } from '../../protocol/backoff.ts'
import { CommitUnknownError, StoreUnavailableError } from '../errors.ts'
import {
  afterTry,
  type CallReport,
  type CallRow,
  decideCall,
  heardLate,
  isThisTry,
  type WantedCall,
} from './call-row.ts'
import type { Held } from './held.ts'
import { isUntaken } from './task-row.ts'

/** A try that was handed over, or was about to be. */
export interface Try {
  readonly name: string
  /** The row as it was committed for it. */
  readonly sent: CallRow
  readonly wanted: WantedCall
  /** An earlier try may have taken effect. */
  readonly priorDoubt: boolean
}

/** What the row says now. */
export interface Recorded {
  /** Null where there is none any more. */
  readonly row: CallRow | null
  /** Somebody else took the work since: what was heard changed nothing. */
  readonly stale: boolean
  /** Epoch ms by the store's clock before which another try says nothing; null: any time. */
  readonly retryAt: number | null
}

/** @throws StoreUnavailableError, CommitUnknownError */
export function record<Transaction>(
  held: Held<Transaction>,
  { name, sent, wanted, priorDoubt }: Try,
  report: CallReport,
): Promise<Recorded> {
  const { id } = held
  return held.locked<Recorded>(async (unit, { row: task, now }) => {
    const row = task === null ? null : await unit.readCall(id, name)
    const mine = task !== null && isUntaken(task, sent.epoch)
    if (row !== null && mine && isThisTry(row, sent)) {
      const tried = afterTry(row, report, priorDoubt)
      const next = decideCall(tried, wanted, now)
      const saved = next.kind === 'unknown' ? next.row : tried
      await unit.saveCall(id, name, saved)
      return { commit: true, value: { row: saved, stale: false, retryAt: next.kind === 'later' ? next.at : null } }
    }
    const late = row === null ? null : heardLate(row, sent, report)
    if (late !== null) await unit.saveCall(id, name, late)
    return { commit: late !== null, value: { row, stale: !mine, retryAt: null } }
  })
}

/** A store that is away for a moment must not make a known outcome unknown. Pace of the tries, ms. */
const PACE = { baseMs: 200, capMs: 2000, minMs: 100 } as const

/** The same, again and again while the work is ours and the store is the only reason. */
export async function recordPatiently<Transaction>(
  held: Held<Transaction>,
  tried: Try,
  report: CallReport,
): Promise<Recorded> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await record(held, tried, report)
    } catch (error) {
      const store = error instanceof StoreUnavailableError || error instanceof CommitUnknownError
      if (!store || held.lost() !== null) throw error
      await pause(held, backoffMs(PACE, failures, 1))
    }
  }
}

function pause<Transaction>({ clock, over }: Held<Transaction>, ms: number): Promise<void> {
  let cancel = (): void => {}
  const later = new Promise<void>((resolve) => {
    cancel = clock.timer(ms, resolve, true).cancel
  })
  return Promise.race([later, over]).finally(() => cancel())
}
