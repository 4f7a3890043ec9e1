/** What was wanted, and what callers were told of it: kept outside of everything that is killed. */
import type { ClientReport, Order } from './words.ts'

export interface Wanted {
  readonly account: string
  readonly order: Order
  /** Somebody asked to cancel it. */
  isCancelled: boolean
}

/** A word of a client process, as it was heard. */
export interface Told {
  readonly at: number
  readonly from: string
  readonly report: ClientReport
}

export interface Book {
  readonly wanted: ReadonlyMap<string, Wanted>
  readonly told: readonly Told[]
  want(wanted: Wanted): void
  hear(from: string, report: ClientReport): void
  /** Of which nobody was told yet that they are stored. */
  notStored(account: string): Wanted[]
  /** Of which nobody was told an end yet. */
  notEnded(account: string): Wanted[]
  /** How many were told to have ended in which state. */
  readonly outcomes: Readonly<Record<string, number>>
}

export function openBook(): Book {
  const wanted = new Map<string, Wanted>()
  const told: Told[] = []
  const stored = new Set<string>()
  const outcomes: Record<string, number> = {}
  /** By account. Small, while all of `wanted` grows. */
  const open = new Map<string, Map<string, Wanted>>()

  return {
    wanted,
    told,
    outcomes,
    want(one) {
      const { intent } = one.order
      wanted.set(intent, one)
      const ofAccount = open.get(one.account) ?? new Map()
      open.set(one.account, ofAccount.set(intent, one))
    },
    hear(from, report) {
      told.push({ at: Date.now(), from, report })
      const { type, intent } = report
      if (type === 'stored') stored.add(intent)
      if (type !== 'ended') return
      const wasOpen = open.get(wanted.get(intent)?.account ?? '')?.delete(intent) ?? false
      if (wasOpen) outcomes[report.state] = (outcomes[report.state] ?? 0) + 1
    },
    notStored: (account) => [...(open.get(account)?.values() ?? [])].filter(({ order }) => !stored.has(order.intent)),
    notEnded: (account) => [...(open.get(account)?.values() ?? [])],
  }
}
