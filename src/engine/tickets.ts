/**
 * What is fixed in the tick of a call, for layers that reach fetch some ticks later (P3, P6): whose intent it is, when,
 * and its turn among the submits of the same name.
 */
import type { IntentHandle } from './handle.ts'

/** A claim on a name, until the submit takes it or it turns out not to be needed. */
export interface Ticket {
  readonly scope: string | null
  /** Epoch ms. */
  readonly calledAt: number
  readonly calledAtMonotonic: number
  /** Resolves when it is this ticket's turn. */
  readonly turn: Promise<void>
  /** Resolves with the handle once the submit began. */
  readonly handle: Promise<IntentHandle>
  /** The submit began; the next ticket of the same name comes after `end`. */
  used(handle: IntentHandle, end: Promise<unknown>): void
  /** Nothing was submitted with it, for this reason. Harmless after `used`. */
  unused(error: unknown): void
  /** Somebody took the answer, or will take it: what nobody took was not delivered, and stays in the inbox (P22). */
  take(): void
  /** Resolves once somebody did. */
  readonly wasTaken: Promise<void>
}

export interface TicketParts {
  readonly scope: () => string | null
  readonly now: () => number
  readonly monotonic: () => number
}

/** Hands out tickets: one queue per scope and name. */
export function createTickets({ scope, now, monotonic }: TicketParts): (intent: string) => Ticket {
  const queues = new Map<string, Promise<unknown>>()

  return (intent) => {
    const whose = scope()
    const slot = JSON.stringify([whose, intent])
    const before = queues.get(slot) ?? Promise.resolve()
    let free: () => void = () => {}
    const mine = new Promise<void>((resolve) => {
      free = resolve
    })
    queues.set(slot, mine)
    // A submit that is refused before its turn must not let the next one past those before it.
    const release = (): void =>
      void before.then(() => {
        free()
        if (queues.get(slot) === mine) queues.delete(slot)
      })
    let taken = false
    let begun: (handle: IntentHandle) => void = () => {}
    let failed: (error: unknown) => void = () => {}
    const handle = new Promise<IntentHandle>((resolve, reject) => {
      begun = resolve
      failed = reject
    })
    handle.catch(() => {})
    let take: () => void = () => {}
    const wasTaken = new Promise<void>((resolve) => {
      take = resolve
    })
    return {
      scope: whose,
      calledAt: now(),
      calledAtMonotonic: monotonic(),
      turn: before.then(() => {}),
      handle,
      used(inner, end) {
        taken = true
        begun(inner)
        end.then(release, release)
      },
      unused(error) {
        if (taken) return
        taken = true
        failed(error)
        release()
      },
      take: () => take(),
      wasTaken,
    }
  }
}
