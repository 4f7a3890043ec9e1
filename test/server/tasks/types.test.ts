import {
  absent,
  type CallResult,
  canBeAsked,
  done,
  externalCall,
  finish,
  json,
  type MemoryTransaction,
  memoryServerStore,
  neither,
  refuse,
  refused,
  retry,
  startWorker,
  type Task,
  type TaskHandler,
  takesKeys,
} from 'samekey/server'
import { describe, expectTypeOf, it } from 'vitest'

declare const task: Task<MemoryTransaction>
const day = 86_400_000
const request = { amount: 1 }

/** Never called: the compiler reads it. */
async function calls() {
  const charge = await externalCall(task, 'charge', {
    service: takesKeys({ retentionMs: day }),
    request,
    async send({ request: { amount } }) {
      if (amount > 1) return refused({ code: 'too_much' })
      return done({ id: 'c-1' })
    },
  })
  const asked = await externalCall(task, 'ship', {
    service: canBeAsked(),
    request,
    send: async () => done({ parcel: 7 }),
    ask: async ({ operationId }) => (operationId === '' ? absent() : done({ parcel: 8 })),
  })
  const bare = await externalCall(task, 'ping', { service: neither(), request: null, send: async () => done() })
  // @ts-expect-error a service that can be asked needs an ask
  void externalCall(task, 'x', { service: canBeAsked(), request, send: async () => done() })
  // @ts-expect-error a service that takes keys is not asked
  void externalCall(task, 'x', {
    service: takesKeys({ retentionMs: day }),
    request,
    send: async () => done(),
    ask: async () => absent(),
  })
  // @ts-expect-error nor is one of which nothing is known
  void externalCall(task, 'x', { service: neither(), request, send: async () => done(), ask: async () => absent() })
  // @ts-expect-error absent is an answer to a question, not to a call
  void externalCall(task, 'x', { service: neither(), request, send: async () => absent() })
  // @ts-expect-error a call ends in one of the four words
  void externalCall(task, 'x', { service: neither(), request, send: async () => 7 })
  return { charge, asked, bare }
}

describe('types', () => {
  it('P65: what send resolves with is what the handler gets', () => {
    type Calls = Awaited<ReturnType<typeof calls>>
    expectTypeOf<Calls['charge']>().toEqualTypeOf<CallResult<{ amount: number }, { id: string }, { code: string }>>()
    expectTypeOf<Calls['asked']>().toExtend<CallResult<{ amount: number }, { parcel: number }, unknown>>()
    expectTypeOf<Extract<Calls['bare'], { outcome: 'done' }>['value']>().toEqualTypeOf<null>()
  })

  it('a handler knows the transaction of its store, and what it may return', () => {
    const start = () =>
      startWorker({
        store: memoryServerStore(),
        work: {
          'orders.create': async (task) => {
            if (task.attempt > 3) return retry({ afterMs: 10 })
            if (task.attempt > 2) return refuse(402, {})
            const value = await task.step('reserve', (transaction) => {
              expectTypeOf(transaction).toEqualTypeOf<MemoryTransaction>()
              return 7
            })
            expectTypeOf(value).toEqualTypeOf<number>()
            return finish((transaction) => {
              transaction.onCommit(() => {})
              return json(200, {})
            })
          },
        },
      })
    expectTypeOf(start).toBeFunction()
    // @ts-expect-error what is not remembered is no end of work
    const wrong: TaskHandler<MemoryTransaction> = () => ({ outcome: 'declined', status: 400 })
    expectTypeOf(wrong).toBeFunction()
  })
})
