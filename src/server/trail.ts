/** What is known about a request while it is handled, so that whatever happens, the right thing is told about it. */
import { answerFor, type FinalDecision } from './answer-for.ts'
import type { Found, Gone } from './decide.ts'
import type { Scope, Settings } from './options.ts'
import type { ServerEvent } from './report.ts'
import { toResponse } from './respond.ts'
import type { KeyId, Reading } from './store.ts'

/**
 * Follows one request. What may be said after a failure depends on how far it was: `inside` the transaction everything
 * has been rolled back, before and after it nothing of the kind may be claimed.
 */
export interface Trail {
  /** Runs the transaction. */
  inside<T>(run: () => Promise<T>): Promise<T>
  /** True while it runs, and after it failed. */
  isInside(): boolean
  /** From now on, events name this key. */
  follow(id: KeyId): KeyId
  tell(kind: ServerEvent['kind'], detail: string, error?: unknown): void
  /** The answer to a decision; tells an operator where there is damage (F21). */
  end(decision: FinalDecision | { readonly kind: 'claim' | 'execute' | 'voidWork' }): Response
}

/** A trail for one request. */
export function trailOf<Transaction>({ operation, report }: Settings<Transaction>): Trail {
  let id: KeyId | null = null
  let inside = false
  const tell: Trail['tell'] = (kind, detail, error) => report({ kind, operation, id, detail, error })
  return {
    async inside(run) {
      inside = true
      const value = await run()
      inside = false
      return value
    },
    isInside: () => inside,
    follow(known) {
      id = known
      return known
    },
    tell,
    end(decision) {
      switch (decision.kind) {
        case 'claim':
        case 'execute':
        case 'voidWork':
          throw new Error(`${decision.kind} is no end.`)
        default:
      }
      if (decision.kind === 'inconsistent') tell('inconsistent', decision.detail)
      return toResponse(answerFor(decision, id?.key ?? ''))
    },
  }
}

/** The identity of a key (P53). */
export function idOf<Transaction>(settings: Settings<Transaction>, { tenant, principal }: Scope, key: string): KeyId {
  return { tenant, principal, operation: settings.operation, key }
}

/** A reading, as decisions take it. */
export function seen({ row, now }: Reading): Found | Gone {
  return row === null ? { seen: 'gone', now } : { seen: 'row', row }
}
