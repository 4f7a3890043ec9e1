/** A service behind the shop: it takes payments, in no transaction with the shop (P65). Its books are part of the truth. */
import {
  type CallDone,
  done,
  externalCall,
  json,
  type MemoryTransaction,
  neither,
  type Task,
  type TaskEnd,
  takesKeys,
} from 'samekey/server'
import type { Effect, Truth } from './truth.ts'

/** What becomes of a call, when the service has taken the payment. */
export type CallFault = 'loses-call' | 'dies-after-call'

export interface Outside {
  /** Pays, and answers with that. */
  pay(
    task: Task<MemoryTransaction>,
    what: Omit<Effect, 'at'>,
    fault: CallFault | undefined,
    die: () => Promise<never>,
  ): Promise<TaskEnd<MemoryTransaction>>
}

const day = 24 * 3_600_000

export function createOutside(truth: Truth, executed: () => void): Outside {
  const known = new Set<string>()
  return {
    async pay(task, what, fault, die) {
      const { intent } = what
      // Of payments named `pay-blind-…` the service keeps no ids, and nobody can ask it.
      const isBlind = intent.startsWith('pay-blind-')
      await externalCall(task, 'charge', {
        service: isBlind ? neither() : takesKeys({ retentionMs: day }),
        request: { intent },
        async send({ operationId }): Promise<CallDone<null>> {
          if (isBlind || !known.has(operationId)) {
            known.add(operationId)
            truth.record(what)
            executed()
          }
          if (fault === 'dies-after-call') return die()
          if (fault === 'loses-call') throw new Error('The answer of the service was lost.')
          return done(null)
        },
      })
      return json(201, { key: what.key, intent, content: what.content })
    },
  }
}
