import {
  absent,
  accepted,
  CommitUnknownError,
  canBeAsked,
  complete,
  done,
  externalCall,
  finish,
  json,
  leaveUnknown,
  neither,
  type PlainCall,
  refuse,
  refused,
  resume,
  retry,
  StoreUnavailableError,
  settle,
  type Task,
  type TaskHandler,
  takesKeys,
  tellTask,
  undelivered,
} from 'samekey/server'
import { beforeEach, describe, expect, it } from 'vitest'
import { shop as anyShop, codeOf, DAY_MS, gate, HOUR_MS, idOf, type World } from '../world.ts'
import {
  acceptingShop,
  callRow,
  itemOf,
  killable,
  LEASE_MS,
  monitorOf,
  never,
  paymentService,
  taskRow,
  type WorkerProcess,
  withStore,
  workerProcess,
} from './fleet.ts'

/** What accepted work and its workers promise, whatever keeps the rows. Run over each store (`setup` gives an empty one). */
export function taskPromises<Transaction>(name: string, setup: () => Promise<World<Transaction>>): void {
  let world: World<Transaction>
  let worker: WorkerProcess<Transaction>
  beforeEach(async () => {
    world = await setup()
    worker = workerProcess(world)
  })

  /** Places the order and answers, in one transaction. */
  const fulfil: TaskHandler<Transaction> = (task) =>
    finish(async (transaction) => json(201, { id: await world.place(transaction, itemOf(task)) }))

  const item = { item: 'tea' }

  describe(`${name}: work and its end`, () => {
    it('F9, P62, P64: accepted work is done by a worker; the monitor goes from processing to its result', async () => {
      const shop = acceptingShop(world)
      const first = await shop.submit('k-1', item)
      expect(await world.orders()).toEqual([])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'processing', retryAfter: 2 })
      expect(await worker.round(fulfil)).toBe(1)
      const told = await monitorOf(shop, 'k-1')
      expect(told).toMatchObject({ status: 'succeeded', response: { status: 201, body: '{"id":1}' } })
      expect(told).not.toHaveProperty('retryAfter')
      const replay = await shop.submit('k-1', item)
      expect([replay.status, await replay.text()]).toEqual([202, await first.text()])
      // There is nothing left to do.
      expect(await worker.round(fulfil)).toBe(0)
      expect(await world.orders()).toEqual(['tea'])
      expect(worker.events).toEqual([])
    })

    it('the handler gets the work, the key and its place in the line', async () => {
      const seen: unknown[] = []
      await acceptingShop(world).submit('k-1', { item: 'tea', count: [1, null] })
      await worker.round(({ id, key, operation, work, epoch, attempt, signal }) => {
        seen.push({ id, key, operation, work, epoch, attempt, aborted: signal.aborted })
        return json(200, {})
      })
      const work = { item: 'tea', count: [1, null] }
      const operation = 'orders.create'
      expect(seen).toEqual([{ id: idOf('k-1'), key: 'k-1', operation, work, epoch: 1, attempt: 1, aborted: false }])
    })

    it('only work of the operations it knows is taken, oldest first, and no more than there are hands', async () => {
      const shop = acceptingShop(world)
      const other = acceptingShop(world, { operation: 'orders.ship' })
      await other.submit('k-0', item)
      for (const key of ['k-1', 'k-2', 'k-3']) {
        await shop.submit(key, { item: key })
        world.pass(1)
      }
      expect(await worker.round(fulfil, { concurrency: 2 })).toBe(2)
      expect((await world.orders()).sort()).toEqual(['k-1', 'k-2'])
      expect(await worker.round(fulfil, { concurrency: 2 })).toBe(1)
      expect(await monitorOf(other, 'k-0')).toMatchObject({ status: 'processing' })
    })

    it('P54, P56: refuse takes the business writes back and is kept: failed, for good', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      await worker.round((task) =>
        finish(async (transaction) => {
          await world.place(transaction, itemOf(task))
          return refuse(422, { code: 'out_of_stock' })
        }),
      )
      expect(await world.orders()).toEqual([])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({
        status: 'failed',
        response: { status: 422, body: '{"code":"out_of_stock"}' },
      })
      expect(await worker.round(fulfil)).toBe(0)
      // An end without last writes.
      await shop.submit('k-2', item)
      await worker.round(() => refuse(402, {}))
      expect(await monitorOf(shop, 'k-2')).toMatchObject({ status: 'failed', response: { status: 402 } })
      expect(worker.events).toEqual([])
    })

    it('P64, H32: a throw is a retryable failure; meanwhile the POST replays the same 202, and later it succeeds', async () => {
      const shop = acceptingShop(world)
      const first = await (await shop.submit('k-1', item)).text()
      const waits = { retry: { baseMs: 60_000, capMs: 60_000 } }
      await worker.round(() => {
        throw new Error('carrier down: secret')
      }, waits)
      const told = await monitorOf(shop, 'k-1')
      expect(told).toMatchObject({ status: 'failed_retryable', error: { code: 'attempt_failed' }, retryAfter: 2 })
      expect(JSON.stringify(told)).not.toContain('secret')
      expect(worker.events).toMatchObject([
        { kind: 'taskFailed', id: idOf('k-1'), error: new Error('carrier down: secret') },
      ])
      const replay = await shop.submit('k-1', item)
      expect([replay.status, await replay.text()]).toEqual([202, first])

      world.pass(59_999)
      expect(await worker.round(fulfil, waits)).toBe(0)
      world.pass(1)
      expect(await worker.round(fulfil, waits)).toBe(1)
      const done = await monitorOf(shop, 'k-1')
      expect(done).toMatchObject({ status: 'succeeded' })
      expect(done).not.toHaveProperty('error')
      expect(await world.orders()).toEqual(['tea'])
      expect(await taskRow(world, 'k-1')).toMatchObject({ epoch: 2, attempts: 2 })
    })

    it('P64: retry says when, and what the monitor shows; leaveUnknown leaves it to a person', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const error = { code: 'not_ready', detail: 'tomorrow' }
      await worker.round(() => retry({ afterMs: HOUR_MS, error }))
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable', error })
      world.pass(HOUR_MS - 1)
      expect(await worker.round(() => retry())).toBe(0)
      world.pass(1)
      expect(await worker.round(() => leaveUnknown({ error }))).toBe(1)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'unknown', error })
      world.pass(DAY_MS)
      expect(await worker.round(fulfil)).toBe(0)
      expect(worker.kinds()).toEqual(['taskUnknown'])
    })

    it('P54: a failed end writes nothing: neither its rows nor its answer', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      await worker.round((task) =>
        finish(async (transaction) => {
          await world.place(transaction, itemOf(task))
          throw new Error('no')
        }),
      )
      expect(await world.orders()).toEqual([])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
    })

    it('a mistake in the answer is another try and a report, not lost work', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const mistakes = [
        () => json(99, {}),
        () => json(404, {}),
        () => refuse(200, {}),
        () => undefined as never,
        (task: Task<Transaction>) =>
          finish<Transaction>(async (transaction) => {
            await world.place(transaction, itemOf(task))
            return { status: 200, body: new Response('x') as never }
          }),
        () => retry({ afterMs: -1 }),
      ]
      for (const mistake of mistakes) {
        expect(await worker.round(mistake)).toBe(1)
        expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
        world.pass(1)
      }
      expect(worker.kinds()).toEqual(mistakes.map(() => 'taskFailed'))
      expect(await world.orders()).toEqual([])
      await worker.round(fulfil)
      expect(await world.orders()).toEqual(['tea'])
    })

    it('P60: a body over the limit is not kept, and somebody is told', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      await worker.round(() => json(200, 'x'.repeat(100)), { answerBytes: 100 })
      expect(await monitorOf(shop, 'k-1')).toMatchObject({
        status: 'succeeded',
        response: { body: '', headers: { 'Idempotency-Body': 'omitted' } },
      })
      expect(worker.kinds()).toEqual(['bodyNotStored'])
    })

    it('P62: the result is kept for a retention of its own; unfinished and unknown work is never reaped', async () => {
      const shop = acceptingShop(world, { retentionMs: DAY_MS, graceMs: HOUR_MS })
      for (const key of ['done', 'open', 'unknown']) await shop.submit(key, { item: key })
      await worker.round((task) => (task.key === 'unknown' ? leaveUnknown() : retry({ afterMs: 40 * DAY_MS })), {
        concurrency: 3,
      })
      world.pass(3 * DAY_MS)
      expect(await world.store.reap()).toBe(0)
      expect(await complete(world.store, idOf('done'), json(200, {}))).toBe(true)
      const { resultExpiresAt } = await monitorOf(shop, 'done')
      expect(Date.parse(String(resultExpiresAt))).toBe(world.now() + DAY_MS)
      world.pass(DAY_MS + HOUR_MS - 1)
      expect(await world.store.reap()).toBe(0)
      world.pass(1)
      expect(await world.store.reap()).toBe(1)
      expect(await monitorOf(shop, 'open')).toMatchObject({ status: 'failed_retryable' })
      expect(await monitorOf(shop, 'unknown')).toMatchObject({ status: 'unknown' })
    })

    it('P62: a result that comes early lives as long as its key', async () => {
      const shop = acceptingShop(world, { retentionMs: DAY_MS, graceMs: HOUR_MS })
      await shop.submit('k-1', item)
      const acceptedAt = world.now()
      await worker.round(fulfil)
      const { resultExpiresAt } = await monitorOf(shop, 'k-1')
      expect(Date.parse(String(resultExpiresAt))).toBeGreaterThanOrEqual(acceptedAt + DAY_MS)
    })
  })

  describe(`${name}: steps`, () => {
    it('P54, P63: a step is committed by itself, and stays although a later one fails', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const returned: unknown[] = []
      await worker.round(async (task) => {
        returned.push(await task.step((transaction) => world.place(transaction, 'first')))
        await task.step('second', async (transaction) => {
          await world.place(transaction, 'second')
          throw new Error('no')
        })
        return json(200, {})
      })
      expect(returned).toEqual([1])
      expect(await world.orders()).toEqual(['first'])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
      expect(await taskRow(world, 'k-1')).toMatchObject({ effectsBegun: true })
    })

    it('P58: a step that failed has begun nothing', async () => {
      await acceptingShop(world).submit('k-1', item)
      await worker.round((task) =>
        task.step(() => {
          throw new Error('no')
        }),
      )
      expect(await taskRow(world, 'k-1')).toMatchObject({ effectsBegun: false })
    })
  })

  describe(`${name}: takeovers`, () => {
    it('F9, P63, B115: a worker that died is taken over once its lease is over, with the next epoch; one effect', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const dying = killable(fulfil)
      const dead = worker.round(dying.handler)
      await dying.reached
      const next = workerProcess(world)
      world.pass(LEASE_MS - 1)
      expect(await next.round(fulfil)).toBe(0)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'processing' })
      expect((await shop.submit('k-1', item)).status).toBe(202)
      world.pass(1)
      expect(await next.round(fulfil)).toBe(1)
      expect(await taskRow(world, 'k-1')).toMatchObject({ status: 'succeeded', epoch: 2, attempts: 2 })
      expect(await world.orders()).toEqual(['tea'])

      // F10: the corpse wakes up, and its clocks have seen nothing.
      dying.wake()
      expect(await dead).toBe(1)
      expect(await world.orders()).toEqual(['tea'])
      expect(worker.kinds()).toEqual(['workLost'])
      expect(next.events).toEqual([])
    })

    it('F10, P63: whatever the old worker still writes is refused, and nothing of it remains', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      const refusals: unknown[] = []
      const errors: unknown[] = []
      const dying = killable<Transaction>(async (task) => {
        const tries = [
          // Not even begun.
          () => task.step('late', () => Promise.reject(new Error('must not run'))),
          () => externalCall(task, 'charge', chargeWith(service)),
          () => task.step((transaction) => world.place(transaction, 'from the grave')),
        ]
        for (const attempt of tries) {
          try {
            await attempt()
          } catch (error) {
            errors.push(error)
            refusals.push((error as { code?: unknown }).code)
          }
        }
        expect(task.signal.aborted).toBe(true)
        return finish(async (transaction) => json(200, { id: await world.place(transaction, 'from the grave') }))
      })
      const dead = worker.round(dying.handler)
      await dying.reached
      world.pass(LEASE_MS)
      const keeps = killable(fulfil)
      const next = workerProcess(world)
      const living = next.round(keeps.handler)
      await keeps.reached
      dying.wake()
      await dead
      await dying.through
      expect(refusals).toEqual(['work_lost', 'work_lost', 'work_lost'])
      expect(errors[0]).toMatchObject({ name: 'WorkLostError', message: expect.stringContaining('The step late') })
      expect(service.requests).toEqual([])
      expect(await world.orders()).toEqual([])
      expect(await taskRow(world, 'k-1')).toMatchObject({ status: 'processing', epoch: 2, effectsBegun: false })
      keeps.wake()
      await living
      expect(await world.orders()).toEqual(['tea'])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded', response: { status: 201 } })
    })

    it('P63: a failure that comes too late is not written either', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const dying = killable<Transaction>(() => {
        throw new Error('too late')
      })
      const dead = worker.round(dying.handler)
      await dying.reached
      world.pass(LEASE_MS)
      await workerProcess(world).round(fulfil)
      dying.wake()
      await dead
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
      expect(worker.kinds()).toEqual(['workLost'])
    })

    it('P63: 64 tasks and 4 workers: each is done once', async () => {
      const shop = acceptingShop(world)
      for (let i = 0; i < 64; i += 1) await shop.submit(`k-${i}`, { item: `item ${i}` })
      const inHand = new Set<string>()
      let most = 0
      const handler: TaskHandler<Transaction> = async (task) => {
        expect(inHand.has(task.key)).toBe(false)
        inHand.add(task.key)
        most = Math.max(most, inHand.size)
        await Promise.resolve()
        return finish(async (transaction) => {
          const id = await world.place(transaction, itemOf(task))
          inHand.delete(task.key)
          return json(201, { id })
        })
      }
      const fleet = Array.from({ length: 4 }, () => workerProcess(world))
      const taken = await Promise.all(
        fleet.map(async (each) => {
          let sum = 0
          for (let got = -1; got !== 0; sum += got) got = await each.round(handler, { concurrency: 4 })
          return sum
        }),
      )
      expect(taken.reduce((sum, count) => sum + count, 0)).toBe(64)
      expect(new Set(await world.orders()).size).toBe(64)
      expect(await world.orders()).toHaveLength(64)
      expect(most).toBeGreaterThan(1)
      expect(fleet.flatMap(({ events }) => events)).toEqual([])
    })

    it('P64: work that kills each worker is given up after so many takeovers, without being run once more', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      for (let i = 0; i < 3; i += 1) {
        const dying = killable(fulfil)
        void workerProcess(world).round(dying.handler)
        await dying.reached
        world.pass(LEASE_MS)
      }
      let ran = false
      await worker.round(
        () => {
          ran = true
          return json(200, {})
        },
        { retry: { baseMs: 1, capMs: 1, maxAttempts: 3 } },
      )
      expect(ran).toBe(false)
      // What a process did that never reported is not known: never "failed" (P27).
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'unknown' })
    })
  })

  describe(`${name}: voids`, () => {
    it('P58: work that nobody has taken is voided, and no worker finds it', async () => {
      const voided: unknown[] = []
      const shop = acceptingShop(world, { onVoid: ({ work, key }) => void voided.push([key, work]) })
      await shop.submit('k-1', item)
      expect(await (await shop.void('k-1')).json()).toMatchObject({ status: 'voided' })
      expect(voided).toEqual([['k-1', item]])
      expect(await worker.round(fulfil)).toBe(0)
      const late = await shop.submit('k-1', item)
      expect([late.status, await codeOf(late)]).toEqual([409, 'idempotency_voided'])
      expect(await world.orders()).toEqual([])
    })

    it('P58, H34: voided while a worker has it: nothing of what that worker writes remains', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      const codes: unknown[] = []
      const holding = killable<Transaction>(async (task) => {
        for (const attempt of [
          () => task.step((transaction) => world.place(transaction, 'step')),
          () => externalCall(task, 'charge', chargeWith(service)),
        ]) {
          codes.push(await attempt().catch(({ code }: { code: unknown }) => code))
        }
        return fulfil(task)
      })
      const round = worker.round(holding.handler)
      await holding.reached
      expect(await (await shop.void('k-1')).json()).toMatchObject({ status: 'voided' })
      holding.wake()
      await round
      await holding.through
      expect(codes).toEqual(['work_lost', 'work_lost'])
      expect(service.requests).toEqual([])
      expect(await world.orders()).toEqual([])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'voided' })
      // Nobody takes it up again.
      world.pass(LEASE_MS)
      expect(await worker.round(fulfil)).toBe(0)
    })

    it('P58, P44: a retryable failure that has begun nothing is voided too', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      await worker.round(() => retry())
      expect(await (await shop.void('k-1')).json()).toMatchObject({ status: 'voided' })
      world.pass(1)
      expect(await worker.round(fulfil)).toBe(0)
    })

    it('P58, H33: after a step or a call it cannot be taken back: processing, and then its end', async () => {
      const shop = acceptingShop(world)
      const service = paymentService()
      await shop.submit('step', { item: 'step' })
      await shop.submit('call', { item: 'call' })
      const begun = gate()
      const goOn = gate()
      let begins = 0
      const round = worker.round(
        async (task) => {
          if (task.key === 'step') await task.step((transaction) => world.place(transaction, 'reserved'))
          else await externalCall(task, 'charge', chargeWith(service))
          begins += 1
          if (begins === 2) begun.open()
          await goOn.opened
          return fulfil(task)
        },
        { concurrency: 2 },
      )
      await begun.opened
      for (const key of ['step', 'call']) {
        expect(await (await shop.void(key)).json()).toMatchObject({ status: 'processing', retryAfter: 2 })
      }
      goOn.open()
      await round
      expect(await (await shop.void('step')).json()).toMatchObject({ status: 'succeeded' })
      expect(await (await shop.void('call')).json()).toMatchObject({ status: 'succeeded' })
      expect((await world.orders()).sort()).toEqual(['call', 'reserved', 'step'])
    })

    it('P58: work that the app does in its own way is not voided: nothing here says how far it is', async () => {
      const shop = anyShop(world, { execute: () => accepted(), onVoid: () => {} })
      await shop.submit('k-1', item)
      expect(await (await shop.void('k-1')).json()).toMatchObject({ status: 'processing' })
      expect(await complete(world.store, idOf('k-1'), json(200, {}))).toBe(true)
      expect(await (await shop.void('k-1')).json()).toMatchObject({ status: 'succeeded' })
    })

    it('P58: without onVoid nobody can take the acceptance back: processing, with the monitor', async () => {
      const strict = anyShop(world, { execute: () => accepted({ work: item }) })
      await strict.submit('k-1', item)
      expect(await (await strict.void('k-1')).json()).toMatchObject({ status: 'processing' })
      await worker.round(fulfil)
      expect(await world.orders()).toEqual(['tea'])
    })

    it('P58: unknown work is told as unknown', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      await worker.round(() => leaveUnknown())
      expect(await (await shop.void('k-1')).json()).toMatchObject({ status: 'unknown' })
    })
  })

  describe(`${name}: calls to other services`, () => {
    const day = DAY_MS

    it('P65: the intent to call is committed before anything is sent, under one id for ever', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      const seen: unknown[] = []
      await worker.round(async (task) => {
        const call = await externalCall(task, 'charge', {
          service: takesKeys({ retentionMs: day }),
          request: { amount: '3.00' },
          async send({ request, operationId, epoch, key, attempt, signal }) {
            seen.push({ epoch, key, attempt, aborted: signal.aborted })
            expect(await callRow(world, 'k-1', 'charge')).toMatchObject({
              operationId,
              state: 'begun',
              request: '{"amount":"3.00"}',
              attempts: 1,
            })
            expect(await taskRow(world, 'k-1')).toMatchObject({ effectsBegun: true })
            return done(service.chargeOnce(operationId, request))
          },
        })
        expect(call).toEqual({ outcome: 'done', value: { charge: 1 }, request: { amount: '3.00' } })
        return json(200, call.value)
      })
      expect(seen).toEqual([{ epoch: 1, key: 'k-1', attempt: 1, aborted: false }])
      expect(service.requests).toMatchObject([{ request: { amount: '3.00' } }])
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({ state: 'done', value: '{"charge":1}' })
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
      expect(worker.events).toEqual([])
    })

    it('P65, H13: what is known is not asked for again when the handler runs again', async () => {
      await acceptingShop(world).submit('k-1', item)
      const service = paymentService()
      let runs = 0
      const handler: TaskHandler<Transaction> = async (task) => {
        runs += 1
        const charge = await externalCall(task, 'charge', chargeWith(service))
        const fee = await externalCall(task, 'fee', {
          service: neither(),
          request: null,
          send: () => Promise.resolve(refused({ code: 'no_fee' })),
        })
        // Twice in one execution is the same call.
        expect(await externalCall(task, 'charge', chargeWith(service))).toEqual(charge)
        if (runs === 1) throw new Error('rolled back here, charged there')
        return json(200, { charge, fee })
      }
      await worker.round(handler)
      world.pass(1)
      await worker.round(handler)
      expect(service.charges).toHaveLength(1)
      expect(service.requests).toHaveLength(1)
      const body = JSON.stringify({
        charge: { outcome: 'done', value: { charge: 1 }, request: { amount: 1 } },
        fee: { outcome: 'refused', value: { code: 'no_fee' }, request: null },
      })
      const { result } = (await taskRow(world, 'k-1')) ?? {}
      expect(result?.body.kind === 'bytes' && new TextDecoder().decode(result.body.bytes)).toBe(body)
    })

    it('F11, B120: with a key: a time limit is never "failed"; the next try sends the same id, and there is one charge', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      let runs = 0
      const handler: TaskHandler<Transaction> = async (task) => {
        runs += 1
        const sent = gate()
        const call = externalCall(task, 'charge', {
          service: takesKeys({ retentionMs: day }),
          request: { amount: 1 },
          timeoutMs: 2000,
          send: ({ operationId, request }) => {
            const value = service.chargeOnce(operationId, request)
            sent.open()
            return runs === 1 ? never<ReturnType<typeof done<typeof value>>>() : Promise.resolve(done(value))
          },
        })
        if (runs === 1) {
          call.catch(() => {})
          await sent.opened
          await worker.clock.advance(2000)
        }
        return json(200, (await call).value)
      }
      await worker.round(handler)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({
        state: 'begun',
        error: expect.stringMatching(/2000 ms/),
      })
      // The client sends its key again meanwhile, and causes nothing.
      expect((await shop.submit('k-1', item)).status).toBe(202)
      world.pass(1)
      await worker.round(handler)
      expect(new Set(service.requests.map(({ operationId }) => operationId)).size).toBe(1)
      expect(service.requests).toHaveLength(2)
      expect(service.charges).toHaveLength(1)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded', response: { body: '{"charge":1}' } })
    })

    it('P65, P35: with a key that the service may have forgotten: unknown, for a person', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      const handler = breaksOff(service, takesKeys({ retentionMs: HOUR_MS, transitMs: 60_000 }))
      await worker.round(handler)
      world.pass(HOUR_MS - 60_000)
      await worker.round(handler)
      expect(service.requests).toHaveLength(1)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'unknown', error: { code: 'work_unknown' } })
      expect(worker.kinds()).toEqual(['taskFailed', 'taskUnknown'])
    })

    it('F11, P65: where it can be asked: not before the transit, then found, and not sent again', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      const asks: unknown[] = []
      const handler = asking(service, asks, { breaksOff: 'after' })
      await worker.round(handler)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
      world.pass(59_999)
      expect(await worker.round(handler)).toBe(0)
      world.pass(1)
      expect(await worker.round(handler)).toBe(1)
      expect(asks).toEqual([{ attempt: 1, request: { amount: 1 } }])
      expect(service.charges).toHaveLength(1)
      expect(service.requests).toHaveLength(1)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
    })

    it('P65: absent after the transit: it is sent again', async () => {
      await acceptingShop(world).submit('k-1', item)
      const service = paymentService()
      const asks: unknown[] = []
      const handler = asking(service, asks, { breaksOff: 'before' })
      await worker.round(handler)
      expect(service.charges).toEqual([])
      world.pass(60_000)
      await worker.round(handler)
      expect(asks).toHaveLength(1)
      expect(service.charges).toHaveLength(1)
      expect(await taskRow(world, 'k-1')).toMatchObject({ status: 'succeeded' })
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({ attempts: 2, state: 'done' })
    })

    it('P65: a worker that comes early does not even ask', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      const asks: unknown[] = []
      const dying = paying(service, canBeAsked({ transitMs: 120_000 }), { asks, dies: 'after' })
      void worker.round(dying.handler)
      await dying.reached
      world.pass(LEASE_MS)
      const next = workerProcess(world)
      const living = paying(service, canBeAsked({ transitMs: 120_000 }), { asks })
      await next.round(living.handler)
      expect(asks).toEqual([])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
      world.pass(120_000 - LEASE_MS - 1)
      expect(await next.round(living.handler)).toBe(0)
      world.pass(1)
      await next.round(living.handler)
      expect(asks).toHaveLength(1)
      expect(service.charges).toHaveLength(1)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
    })

    it('P65: asking that fails is no answer: asked again later', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      const asks: unknown[] = []
      await worker.round(asking(service, asks, { breaksOff: 'after' }))
      for (const ask of [() => Promise.reject(new Error('no line')), () => Promise.resolve({} as never)]) {
        world.pass(60_000)
        await worker.round(async (task) => {
          await externalCall(task, 'charge', {
            ...chargeWith(service),
            service: canBeAsked({ transitMs: 60_000 }),
            ask,
          })
          return json(200, {})
        })
        expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
      }
      world.pass(60_000)
      await worker.round(async (task) => {
        const call = await externalCall(task, 'charge', {
          ...chargeWith(service),
          service: canBeAsked({ transitMs: 60_000 }),
          ask: () => Promise.resolve(refused({ code: 'declined' })),
        })
        return refuse(402, call.value)
      })
      expect(service.requests).toHaveLength(1)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({
        status: 'failed',
        response: { body: '{"code":"declined"}' },
      })
    })

    it('F11, P65: neither: what broke off is unknown, and nobody sends it again', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      const handler = breaksOff(service, neither())
      await worker.round(handler)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'unknown' })
      expect(worker.kinds()).toEqual(['taskUnknown'])
      world.pass(DAY_MS)
      expect(await worker.round(handler)).toBe(0)
      expect(service.requests).toHaveLength(1)
      expect(await world.store.unknownTasks()).toMatchObject([
        { id: idOf('k-1'), calls: [{ name: 'charge', row: { state: 'unknown', error: 'reset' } }] },
      ])
    })

    it.each(['before', 'after'] as const)(
      'H14, P65: killed %s the call took effect: a key sends the same id, an ask finds out, neither is unknown',
      async (dies) => {
        const effects = dies === 'after' ? 1 : 0
        const services = {
          keyed: takesKeys({ retentionMs: day }),
          asked: canBeAsked({ transitMs: LEASE_MS }),
          neither: neither(),
        }
        const ends = { keyed: 'succeeded', asked: 'succeeded', neither: 'unknown' } as const
        for (const kind of ['keyed', 'asked', 'neither'] as const) {
          const shop = acceptingShop(world)
          await shop.submit(kind, { item: kind })
          const service = paymentService()
          const dying = paying(service, services[kind], { dies })
          void workerProcess(world).round(dying.handler)
          await dying.reached
          expect(service.charges).toHaveLength(effects)
          world.pass(LEASE_MS)
          const next = workerProcess(world)
          expect(await next.round(paying(service, services[kind], {}).handler)).toBe(1)
          expect([kind, (await monitorOf(shop, kind)).status]).toEqual([kind, ends[kind]])
          expect([kind, service.charges.length]).toEqual([kind, kind === 'neither' ? effects : 1])
          expect(new Set(service.requests.map(({ operationId }) => operationId)).size).toBeLessThanOrEqual(1)
        }
      },
    )

    it('P63: what the old worker hears after it was taken over changes nothing, and is kept as evidence', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      const dying = paying(service, takesKeys({ retentionMs: day }), { dies: 'after' })
      const dead = worker.round(dying.handler)
      await dying.reached
      world.pass(LEASE_MS)
      const next = workerProcess(world)
      // The new worker is in the middle of it.
      const slow = paying(service, takesKeys({ retentionMs: day }), { dies: 'after' })
      const living = next.round(slow.handler)
      await slow.reached
      dying.wake()
      await dead
      expect(dying.codes).toEqual(['work_lost'])
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({
        state: 'begun',
        epoch: 2,
        value: null,
        lateAnswer: '{"epoch":1,"outcome":"done","value":{"charge":1}}',
      })
      slow.wake()
      await living
      expect(service.charges).toHaveLength(1)
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({ state: 'done', value: '{"charge":1}' })
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
    })

    it('P63: evidence reaches the person who has to find out', async () => {
      await acceptingShop(world).submit('k-1', item)
      const service = paymentService()
      const dying = paying(service, neither(), { dies: 'after' })
      const dead = worker.round(dying.handler)
      await dying.reached
      world.pass(LEASE_MS)
      await workerProcess(world).round(paying(service, neither(), {}).handler)
      dying.wake()
      await dead
      expect(await world.store.unknownTasks()).toMatchObject([
        { calls: [{ row: { state: 'unknown', lateAnswer: expect.stringContaining('"charge":1') } }] },
      ])
    })

    it('P65: undelivered is no effect: tried again, by whatever kind of service', async () => {
      for (const service of [takesKeys({ retentionMs: day }), canBeAsked(), neither()]) {
        const shop = acceptingShop(world)
        await shop.submit(service.kind, item)
        let sends = 0
        const codes: unknown[] = []
        const handler: TaskHandler<Transaction> = async (task) => {
          try {
            const base = {
              request: { amount: 1 },
              send: () => {
                sends += 1
                return Promise.resolve(sends === 1 ? undelivered(new Error('ECONNREFUSED')) : done('paid'))
              },
            }
            const ask = () => Promise.reject(new Error('not needed'))
            const call =
              service.kind === 'canBeAsked'
                ? externalCall(task, 'charge', { ...base, service, ask })
                : externalCall(task, 'charge', { ...base, service })
            return json(200, (await call).value)
          } catch (error) {
            codes.push((error as { code: unknown }).code)
            throw error
          }
        }
        await worker.round(handler)
        expect(await callRow(world, service.kind, 'charge')).toMatchObject({
          state: 'undelivered',
          error: 'ECONNREFUSED',
        })
        world.pass(1)
        await worker.round(handler)
        expect(codes).toEqual(['call_undelivered'])
        expect(sends).toBe(2)
        expect(await monitorOf(shop, service.kind)).toMatchObject({ status: 'succeeded' })
      }
    })

    it('P19: undelivered after a try that broke off leaves the doubt of that one', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      await worker.round(breaksOff(service, takesKeys({ retentionMs: day })))
      world.pass(1)
      await worker.round(async (task) => {
        await externalCall(task, 'charge', { ...chargeWith(service), send: () => Promise.resolve(undelivered()) })
        return json(200, {})
      })
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({ state: 'begun', attempts: 2 })
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
    })

    it('P65: one id never means two payloads: another request goes on with the first, and is told', async () => {
      await acceptingShop(world).submit('k-1', item)
      const service = paymentService()
      const handler = (amount: number): TaskHandler<Transaction> => {
        const plain = breaksOff(service, takesKeys({ retentionMs: day }), { amount, at: 'x' })
        return service.requests.length === 0
          ? plain
          : async (task) => {
              const call = await externalCall(task, 'charge', { ...chargeWith(service), request: { at: 'x', amount } })
              return json(200, call.request)
            }
      }
      await worker.round(handler(1))
      world.pass(1)
      await worker.round(handler(2))
      expect(service.requests.map(({ request }) => request)).toEqual([
        { amount: 1, at: 'x' },
        { amount: 1, at: 'x' },
      ])
      expect(worker.kinds()).toEqual(['taskFailed', 'requestChanged'])
      expect(JSON.stringify(worker.events)).not.toContain('amount')
    })

    it('P65: another order of members is the same request', async () => {
      await acceptingShop(world).submit('k-1', item)
      const service = paymentService()
      await worker.round(breaksOff(service, takesKeys({ retentionMs: day }), { amount: 0, a: 1, b: 2 }))
      world.pass(1)
      await worker.round(async (task) => {
        await externalCall(task, 'charge', {
          ...chargeWith(service),
          request: { b: 2, a: 1, amount: 0 } as { amount: number },
        })
        return json(200, {})
      })
      expect(worker.kinds()).toEqual(['taskFailed'])
    })

    it('P65: two different calls under one name, or one twice at a time, are a mistake', async () => {
      await acceptingShop(world).submit('k-1', item)
      const service = paymentService()
      const codes: unknown[] = []
      await worker.round(async (task) => {
        await externalCall(task, 'line', chargeWith(service))
        codes.push(
          await externalCall(task, 'line', { ...chargeWith(service), request: { amount: 2 } }).catch(
            ({ code }) => code,
          ),
        )
        const both = [
          externalCall(task, 'other', chargeWith(service)),
          externalCall(task, 'other', chargeWith(service)),
        ]
        const [first, second] = await Promise.allSettled(both)
        codes.push(first?.status, second?.status)
        codes.push(await externalCall(task, '', chargeWith(service)).catch(({ code }: { code: unknown }) => code))
        return json(200, {})
      })
      expect(codes).toEqual(['config', 'fulfilled', 'rejected', 'config'])
      expect(service.charges).toHaveLength(2)
    })

    it('P65, P27: a handler that swallows an open call ends in unknown: never succeeded, never failed', async () => {
      const shop = acceptingShop(world)
      const service = paymentService()
      const ends: Record<string, TaskHandler<Transaction>> = {
        refuse: () => refuse(402, { code: 'gave_up' }),
        answer: () => json(200, {}),
        finish: () => finish(async (transaction) => json(200, { id: await world.place(transaction, 'tea') })),
      }
      for (const key of Object.keys(ends)) {
        await shop.submit(key, item)
        await worker.round(async (task) => {
          await Promise.resolve(breaksOff(service, takesKeys({ retentionMs: day }))(task)).catch(() => {})
          return (ends[key] ?? fulfil)(task)
        })
        expect([key, (await monitorOf(shop, key)).status]).toEqual([key, 'unknown'])
      }
      expect(worker.kinds()).toEqual(['taskUnknown', 'taskUnknown', 'taskUnknown'])
      expect(await world.orders()).toEqual([])
    })

    it('P65: what cannot be kept as JSON leaves the call open', async () => {
      await acceptingShop(world).submit('k-1', item)
      await worker.round(async (task) => {
        const call = { ...chargeWith(paymentService()), send: () => Promise.resolve(done(1n)) }
        await externalCall(task, 'charge', call)
        return json(200, {})
      })
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({
        state: 'begun',
        error: expect.stringMatching(/BigInt/),
      })
    })

    it('a done or a refusal without a value is null', async () => {
      await acceptingShop(world).submit('k-1', item)
      const values: unknown[] = []
      await worker.round(async (task) => {
        for (const end of [done(), refused()]) {
          const call = { service: neither(), request: null, send: () => Promise.resolve(end) } as const
          values.push((await externalCall(task, end.outcome, call)).value)
        }
        return json(200, {})
      })
      expect(values).toEqual([null, null])
    })
  })

  describe(`${name}: attempts run out`, () => {
    const twice = { retry: { baseMs: 1, capMs: 1, maxAttempts: 2 } }

    it('P64: with nothing begun: failed, with an answer', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      for (let i = 0; i < 2; i += 1) {
        await worker.round(() => retry(), twice)
        world.pass(1)
      }
      expect(await monitorOf(shop, 'k-1')).toMatchObject({
        status: 'failed',
        response: { status: 500, body: expect.stringContaining('work_given_up') },
      })
      expect(await worker.round(fulfil)).toBe(0)
      expect(worker.kinds()).toEqual(['taskFailed'])
    })

    it('P27, P65: with a step or an open call behind it: unknown, for a person', async () => {
      const shop = acceptingShop(world)
      const service = paymentService()
      await shop.submit('step', item)
      await shop.submit('call', item)
      for (let i = 0; i < 2; i += 1) {
        await worker.round(
          async (task) => {
            if (task.key === 'call') return breaksOff(service, takesKeys({ retentionMs: DAY_MS }))(task)
            if (task.attempt === 1) await task.step((transaction) => world.place(transaction, 'half'))
            throw new Error('no')
          },
          { ...twice, concurrency: 2 },
        )
        world.pass(1)
      }
      expect(await monitorOf(shop, 'step')).toMatchObject({ status: 'unknown' })
      expect(await monitorOf(shop, 'call')).toMatchObject({ status: 'unknown' })
      expect(await world.orders()).toEqual(['half'])
      expect(worker.kinds().sort()).toEqual(['taskFailed', 'taskFailed', 'taskUnknown', 'taskUnknown'])
    })
  })

  describe(`${name}: what a person can do`, () => {
    /** Work that is unknown because of its call. */
    async function unknownCharge(key: string, call = 'charge'): Promise<string> {
      await acceptingShop(world).submit(key, item)
      await worker.round(breaksOff(paymentService(), neither(), { amount: 1 }, call))
      const found = (await world.store.unknownTasks()).find(({ id }) => id.key === key)
      return found?.calls.find(({ name }) => name === call)?.row.operationId ?? ''
    }

    it('P65: settles a call as done: the handler goes on and gets it, and nothing is sent', async () => {
      const operationId = await unknownCharge('k-1')
      expect(await settle(world.store, operationId, 'done', 'found in their books', { charge: 7 })).toBe(true)
      const shop = acceptingShop(world)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'processing' })
      expect(await world.store.unknownTasks()).toEqual([])
      const service = paymentService()
      await worker.round(async (task) => {
        const { value } = await externalCall(task, 'charge', chargeWith(service, neither()))
        return json(200, value)
      })
      expect(service.requests).toEqual([])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded', response: { body: '{"charge":7}' } })
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({ state: 'done', note: 'found in their books' })
      // It is settled: nothing is left to say.
      expect(await settle(world.store, operationId, 'refused', 'no, wait')).toBe(false)
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({ state: 'done', note: 'found in their books' })
    })

    it('P65: settles it as refused: the handler may fail the work now', async () => {
      const operationId = await unknownCharge('k-1')
      expect(await settle(world.store, operationId, 'refused', 'they never saw it')).toBe(true)
      await worker.round(async (task) => {
        const { outcome, value } = await externalCall(task, 'charge', chargeWith(paymentService(), neither()))
        return refuse(402, { outcome, value })
      })
      expect(await monitorOf(acceptingShop(world), 'k-1')).toMatchObject({
        status: 'failed',
        response: { body: '{"outcome":"refused","value":null}' },
      })
    })

    it('P65: settles it as never delivered: it is made once more, with the same id', async () => {
      const operationId = await unknownCharge('k-1')
      expect(await settle(world.store, operationId, 'undelivered', 'not in their books, line was down')).toBe(true)
      const service = paymentService()
      await worker.round(async (task) => {
        const { value } = await externalCall(task, 'charge', chargeWith(service, neither()))
        return json(200, value)
      })
      expect(service.charges).toEqual([operationId])
      expect(await monitorOf(acceptingShop(world), 'k-1')).toMatchObject({ status: 'succeeded' })
    })

    it('P65: nobody can say that a call did not happen while a worker is making it', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const sent = gate()
      const answered = gate()
      let operationId = ''
      const round = worker.round(async (task) => {
        const { outcome } = await externalCall(task, 'charge', {
          service: neither(),
          request: null,
          async send(context) {
            operationId = context.operationId
            sent.open()
            await answered.opened
            return done()
          },
        })
        return json(200, outcome)
      })
      await sent.opened
      for (const finding of ['refused', 'undelivered'] as const) {
        expect(await settle(world.store, operationId, finding, 'nothing there yet')).toBe(false)
      }
      answered.open()
      await round
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded', response: { body: '"done"' } })
    })

    it('what no database keeps does not stop a worker: errors, notes and what the monitor shows', async () => {
      const shop = acceptingShop(world)
      for (const key of ['throws', 'call', 'retry']) await shop.submit(key, item)
      const odd = 'a\0b\ud800'
      for (let i = 0; i < 3; i += 1) {
        await worker.round(async (task) => {
          if (task.key === 'throws') throw new Error(odd)
          if (task.key === 'retry') return retry({ error: { code: odd, title: odd } })
          return externalCall(task, 'charge', {
            service: neither(),
            request: null,
            send: () => Promise.reject(new Error(odd)),
          }).then(() => json(200, {}))
        })
      }
      expect(worker.kinds()).not.toContain('workerTrouble')
      expect(await monitorOf(shop, 'retry')).toMatchObject({ status: 'failed_retryable', error: { code: 'ab\uFFFD' } })
      const [unknown] = await world.store.unknownTasks()
      expect(unknown?.calls).toMatchObject([{ row: { state: 'unknown', error: 'ab\uFFFD' } }])
      expect(await resume(world.store, idOf('call'), odd)).toBe(true)
      await expect(settle(world.store, 'x', 'absent' as never, 'x')).rejects.toThrow(TypeError)
    })

    it('only an end, or that it is unknown, can be said of work that workers do: nothing is stranded', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const word = { result: null, error: null, retryAfterSeconds: 1 } as const
      for (const status of ['processing', 'failed_retryable'] as const) {
        expect(await tellTask(world.store, idOf('k-1'), { ...word, status })).toBe(false)
      }
      await expect(tellTask(world.store, idOf('k-1'), { ...word, status: 'succeeded' })).rejects.toThrow(TypeError)
      await expect(tellTask(world.store, idOf('k-1'), { ...word, status: 'voided' as never })).rejects.toThrow(
        TypeError,
      )
      expect(await worker.round(fulfil)).toBe(1)
      expect(await world.orders()).toEqual(['tea'])
    })

    it('P65: with several open calls the work goes on after the last one', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      await worker.round(async (task) => {
        const both = ['charge', 'ship'].map((call) => breaksOff(service, neither(), { amount: 1 }, call)(task))
        const [first] = await Promise.allSettled(both)
        if (first?.status === 'rejected') throw first.reason
        return json(200, {})
      })
      const [unknown] = await world.store.unknownTasks()
      expect(unknown?.calls.map(({ name }) => name).sort()).toEqual(['charge', 'ship'])
      const ids = unknown?.calls.map(({ row }) => row.operationId) ?? []
      expect(await settle(world.store, ids[0] ?? '', 'done', 'one')).toBe(true)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'unknown' })
      expect(await settle(world.store, ids[1] ?? '', 'done', 'two')).toBe(true)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'processing' })
    })

    it('P65: work that waits for another try goes on at once when its call is settled', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const service = paymentService()
      await worker.round(breaksOff(service, takesKeys({ retentionMs: DAY_MS })), {
        retry: { baseMs: HOUR_MS, capMs: HOUR_MS },
      })
      const { operationId = '' } = (await callRow(world, 'k-1', 'charge')) ?? {}
      expect(await settle(world.store, operationId, 'done', 'called them', { charge: 9 })).toBe(true)
      await worker.round(async (task) => json(200, (await externalCall(task, 'charge', chargeWith(service))).value))
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded', response: { body: '{"charge":9}' } })
      expect(service.requests).toHaveLength(1)
    })

    it('P65, P63: what a person settled while it was under way stands; the answer is evidence', async () => {
      await acceptingShop(world).submit('k-1', item)
      const service = paymentService()
      const slow = paying(service, takesKeys({ retentionMs: DAY_MS }), { dies: 'after' })
      const round = worker.round(slow.handler)
      await slow.reached
      const { operationId = '' } = (await callRow(world, 'k-1', 'charge')) ?? {}
      expect(await settle(world.store, operationId, 'done', 'seen', { charge: 99 })).toBe(true)
      // Whoever has the work keeps it.
      expect(await taskRow(world, 'k-1')).toMatchObject({ status: 'processing', epoch: 1 })
      slow.wake()
      await round
      expect(slow.values).toEqual([{ charge: 99 }])
      expect(await callRow(world, 'k-1', 'charge')).toMatchObject({
        state: 'done',
        value: '{"charge":99}',
        lateAnswer: expect.stringContaining('"charge":1'),
      })
    })

    it('P65: nothing to settle is said so', async () => {
      expect(await settle(world.store, '6f2c1f5e-0000-5000-8000-000000000000', 'done', 'x')).toBe(false)
      await expect(settle(world.store, 'x', 'done', 'x', undefined as never)).resolves.toBe(false)
      await expect(settle(world.store, 'x', 'done', 'x', () => {})).rejects.toThrow(TypeError)
    })

    it('P65: says "try again": the handler runs again, with all its attempts, and the note is kept', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      expect(await resume(world.store, idOf('k-1'), 'x')).toBe(false)
      await worker.round(() => leaveUnknown())
      expect(await resume(world.store, idOf('k-1'), 'looked into it')).toBe(true)
      expect(await resume(world.store, idOf('k-1'), 'again')).toBe(false)
      expect(await resume(world.store, idOf('k-2'), 'x')).toBe(false)
      const attempts: number[] = []
      await worker.round((task) => {
        attempts.push(task.attempt)
        return fulfil(task)
      })
      expect(attempts).toEqual([1])
      expect(await taskRow(world, 'k-1')).toMatchObject({ status: 'succeeded', note: 'looked into it' })
    })

    it('P65: what is unknown about a call stays so, however often somebody says "try again"', async () => {
      await unknownCharge('k-1')
      expect(await resume(world.store, idOf('k-1'), 'perhaps now')).toBe(true)
      const service = paymentService()
      await worker.round(breaksOff(service, neither()))
      expect(service.requests).toEqual([])
      expect(await monitorOf(acceptingShop(world), 'k-1')).toMatchObject({ status: 'unknown' })
    })

    it('P65, P63: ends the work by hand; a worker that still has it is out', async () => {
      const shop = acceptingShop(world)
      const operationId = await unknownCharge('k-1')
      expect(await complete(world.store, idOf('k-1'), json(200, { by: 'hand' }), 'phoned')).toBe(true)
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded', response: { body: '{"by":"hand"}' } })
      expect(await taskRow(world, 'k-1')).toMatchObject({ note: 'phoned' })
      // The call can still be settled, for the books; the work stays ended.
      expect(await settle(world.store, operationId, 'done', 'later')).toBe(true)
      expect(await worker.round(fulfil)).toBe(0)

      await shop.submit('k-2', item)
      const holding = killable(fulfil)
      const round = worker.round(holding.handler)
      await holding.reached
      expect(await complete(world.store, idOf('k-2'), refuse(410, {}), 'cancelled by phone')).toBe(true)
      holding.wake()
      await round
      expect(await world.orders()).toEqual([])
      expect(await monitorOf(shop, 'k-2')).toMatchObject({ status: 'failed', response: { status: 410 } })
    })

    it("work that the app does by itself is nobody's to try again", async () => {
      const shop = acceptingShop(world, { execute: () => accepted() })
      await shop.submit('k-1', item)
      expect(await worker.round(fulfil)).toBe(0)
      expect(await resume(world.store, idOf('k-1'), 'x')).toBe(false)
    })
  })

  describe(`${name}: a store that fails`, () => {
    it('P62: an end that could not be written is not lost: the next worker does it after the lease', async () => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      let down = false
      const broken = withStore(world.store, {
        async begin(options, work) {
          if (down) throw new StoreUnavailableError('away')
          return world.store.begin(options, work)
        },
      })
      const cut = workerProcess(world, broken)
      expect(
        await cut.round((task) => {
          down = true
          return fulfil(task)
        }),
      ).toBe(1)
      expect(cut.kinds()).toEqual(['workerTrouble'])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'processing' })
      world.pass(LEASE_MS)
      expect(await worker.round(fulfil)).toBe(1)
      expect(await world.orders()).toEqual(['tea'])
    })

    it('P62: a claim that fails takes nothing', async () => {
      await acceptingShop(world).submit('k-1', item)
      const broken = withStore(world.store, { claimTasks: () => Promise.reject(new StoreUnavailableError('away')) })
      await expect(workerProcess(world, broken).round(fulfil)).rejects.toThrow('away')
      expect(await worker.round(fulfil)).toBe(1)
    })

    /** The commit with this number is carried out or not, and the connection is lost while it is made. */
    function lossy(loseAt: number, carriedOut: boolean): WorkerProcess<Transaction> {
      let commits = 0
      const store = withStore<Transaction>(world.store, {
        async begin(options, work) {
          let lost = false
          const value = await world.store.begin(options, async (unit) => {
            const ending = await work(unit)
            if (ending.commit) commits += 1
            lost = ending.commit && commits === loseAt
            return { ...ending, commit: ending.commit && !(lost && !carriedOut) }
          })
          if (lost) throw new CommitUnknownError('The connection was lost.')
          return value
        },
      })
      return workerProcess(world, store)
    }

    it.each([true, false])('P61, F20: the last commit is lost (carried out: %s): one effect', async (carriedOut) => {
      const shop = acceptingShop(world)
      await shop.submit('k-1', item)
      const cut = lossy(1, carriedOut)
      await cut.round(fulfil)
      expect(cut.kinds()).toEqual(['commitUnknown'])
      world.pass(LEASE_MS)
      expect(await worker.round(fulfil)).toBe(carriedOut ? 0 : 1)
      expect(await world.orders()).toEqual(['tea'])
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
    })

    it.each([true, false])(
      'P61, P65: the commit before a call is lost (carried out: %s): it is not sent, and not unknown',
      async (carriedOut) => {
        const shop = acceptingShop(world)
        await shop.submit('k-1', item)
        const cut = lossy(1, carriedOut)
        const service = paymentService()
        const handler: TaskHandler<Transaction> = async (task) => {
          const { value } = await externalCall(task, 'charge', chargeWith(service, neither()))
          return json(200, value)
        }
        await cut.round(handler)
        expect(service.requests).toEqual([])
        expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
        world.pass(1)
        await cut.round(handler)
        expect(service.requests).toHaveLength(1)
        expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
      },
    )

    it.each([true, false])(
      'P61, P65: the commit of what a call came to is lost (carried out: %s): it is written again',
      async (carriedOut) => {
        const shop = acceptingShop(world)
        await shop.submit('k-1', item)
        const cut = lossy(2, carriedOut)
        const service = paymentService()
        const answered = gate()
        const round = cut.round(async (task) => {
          const call = externalCall(task, 'charge', {
            ...chargeWith(service, neither()),
            send: ({ operationId, request }) => {
              answered.open()
              return Promise.resolve(done(service.charge(operationId, request)))
            },
          })
          return json(200, (await call).value)
        })
        await answered.opened
        await keepMoving(cut, round)
        expect(service.requests).toHaveLength(1)
        expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
        expect(await callRow(world, 'k-1', 'charge')).toMatchObject({ state: 'done', lateAnswer: null })
        expect(cut.events).toEqual([])
      },
    )

    /** Lets the process's own time go on in small pieces until it is through. */
    async function keepMoving(process: WorkerProcess<Transaction>, round: Promise<unknown>): Promise<void> {
      let through = false
      void round.finally(() => {
        through = true
      })
      while (!through) {
        await process.clock.advance(process.clock.pending() > 1 ? 100 : 0)
      }
      await round
    }
  })

  /** A call to a service that does the same id once. */
  function chargeWith(
    service: ReturnType<typeof paymentService>,
    kind: PlainCall<unknown, unknown, unknown>['service'] = takesKeys({ retentionMs: DAY_MS }),
  ): PlainCall<{ amount: number }, { charge: number }, { code: string }> {
    return {
      service: kind,
      request: { amount: 1 },
      send: ({ operationId, request }) => Promise.resolve(done(service.chargeOnce(operationId, request))),
    }
  }

  /** The service does it, and the connection breaks before it says so. */
  function breaksOff(
    service: ReturnType<typeof paymentService>,
    kind: PlainCall<unknown, unknown, unknown>['service'],
    request: unknown = { amount: 1 },
    call = 'charge',
  ): TaskHandler<Transaction> {
    return async (task) => {
      const { value } = await externalCall(task, call, {
        service: kind,
        request,
        send: (context) => {
          service.chargeOnce(context.operationId, context.request)
          return Promise.reject(new Error('reset'))
        },
      })
      return json(200, value)
    }
  }

  /** A call to a service that can be asked; its first send breaks off before or after it took effect. */
  function asking(
    service: ReturnType<typeof paymentService>,
    asks: unknown[],
    { breaksOff: when }: { breaksOff: 'before' | 'after' },
  ): TaskHandler<Transaction> {
    return async (task) => {
      const { value } = await externalCall(task, 'charge', {
        service: canBeAsked({ transitMs: 60_000 }),
        request: { amount: 1 },
        send({ operationId, request, attempt }) {
          if (attempt > 1 || when === 'after') service.charge(operationId, request)
          return attempt > 1 ? Promise.resolve(done({ found: false })) : Promise.reject(new Error('reset'))
        },
        ask({ operationId, attempt, request }) {
          asks.push({ attempt, request })
          return Promise.resolve(service.happened(operationId) ? done({ found: true }) : absent())
        },
      })
      return json(200, value)
    }
  }

  interface Paying {
    readonly handler: TaskHandler<Transaction>
    readonly reached: Promise<void>
    readonly codes: unknown[]
    readonly values: unknown[]
    wake(): void
  }

  /** Pays, and may be killed in the middle of the call, before or after it took effect; `wake` is its late answer. */
  function paying(
    service: ReturnType<typeof paymentService>,
    kind: ReturnType<typeof takesKeys> | ReturnType<typeof canBeAsked> | ReturnType<typeof neither>,
    { dies, asks = [] }: { dies?: 'before' | 'after'; asks?: unknown[] },
  ): Paying {
    const reached = gate()
    const woken = gate()
    const codes: unknown[] = []
    const values: unknown[] = []
    const send: PlainCall<{ amount: number }, { charge: number }, never>['send'] = async ({ operationId, request }) => {
      const charge = (): { charge: number } =>
        kind.kind === 'takesKeys' ? service.chargeOnce(operationId, request) : service.charge(operationId, request)
      const value = dies === 'before' ? null : charge()
      reached.open()
      if (dies !== undefined) await woken.opened
      return done(value ?? charge())
    }
    return {
      codes,
      values,
      reached: reached.opened,
      wake: woken.open,
      async handler(task) {
        const base = { request: { amount: 1 }, send }
        const call =
          kind.kind === 'canBeAsked'
            ? externalCall(task, 'charge', {
                ...base,
                service: kind,
                ask: ({ operationId }) => {
                  asks.push(operationId)
                  return Promise.resolve(service.happened(operationId) ? done({ charge: 1 }) : absent())
                },
              })
            : externalCall(task, 'charge', { ...base, service: kind })
        try {
          const { value } = await call
          values.push(value)
          return json(200, value)
        } catch (error) {
          codes.push((error as { code: unknown }).code)
          throw error
        }
      },
    }
  }
}
