import {
  accepted,
  type ClaimedTask,
  canBeAsked,
  done,
  externalCall,
  finish,
  json,
  leaveUnknown,
  type MemoryTransaction,
  memoryServerStore,
  neither,
  resume,
  retry,
  type ServerEvent,
  type ServerStore,
  StoreUnavailableError,
  settle,
  startWorker,
  type TaskHandler,
  takesKeys,
  tellTask,
  type Worker,
  type WorkerOptions,
  workOnce,
} from 'samekey/server'
import { settled, type VirtualClock, virtualClock } from 'samekey/testing'
import { describe, expect, it, vi } from 'vitest'
import { gate, idOf, type Shop, shop } from '../world.ts'
import { killable, LEASE_MS, monitorOf, never, paymentService, withStore } from './fleet.ts'

const POLL_MS = 1000
const HOUR_MS = 3_600_000

interface Place {
  readonly clock: VirtualClock
  readonly store: ReturnType<typeof memoryServerStore>
  readonly shop: Shop
  readonly orders: string[]
  readonly events: ServerEvent[]
  kinds(): string[]
  /** Starts a worker; `work` is what it does. */
  start(work: TaskHandler<MemoryTransaction>, part?: Partial<WorkerOptions<MemoryTransaction>>): Worker
  /** Places an order and answers. */
  readonly fulfil: TaskHandler<MemoryTransaction>
}

/** One store, one clock, and as many workers as a test starts. */
function place(): Place {
  const clock = virtualClock()
  const store = memoryServerStore({ clock })
  const orders: string[] = []
  const events: ServerEvent[] = []
  const world = {
    store,
    place: (transaction: MemoryTransaction, item: string) => {
      transaction.onCommit(() => orders.push(item))
      return Promise.resolve(1)
    },
    orders: () => Promise.resolve(orders),
    now: clock.now,
    pass: clock.jump,
    after: <T>(_: number, promise: Promise<T>) => promise,
  }
  return {
    clock,
    store,
    orders,
    events,
    kinds: () => events.map(({ kind }) => kind),
    shop: shop(world, { execute: ({ key }) => accepted({ work: key }), onVoid: () => {} }),
    fulfil: (task) =>
      finish((transaction) => {
        transaction.onCommit(() => orders.push(task.key))
        return json(201, {})
      }),
    start: (work, part = {}) =>
      startWorker<MemoryTransaction>({
        store,
        work: { 'orders.create': work },
        pollMs: POLL_MS,
        leaseMs: LEASE_MS,
        clock,
        random: () => 0.5,
        report: (event) => events.push(event),
        ...part,
      }),
  }
}

/** The same store; its calls fail while `down`, and are counted. */
function flaky(store: ServerStore<MemoryTransaction>) {
  const wakers = new Set<() => void>()
  const state = { down: false, claims: 0, begins: 0 }
  const flakyStore = withStore(store, {
    async claimTasks(options) {
      state.claims += 1
      if (state.down) throw new StoreUnavailableError('The store is away.')
      return store.claimTasks(options)
    },
    async begin(options, work) {
      state.begins += 1
      if (state.down) throw new StoreUnavailableError('The store is away.')
      return store.begin(options, work)
    },
    onTask(wake) {
      wakers.add(wake)
      return () => wakers.delete(wake)
    },
  })
  return Object.assign(state, {
    store: flakyStore,
    wake: () => {
      for (const wake of wakers) wake()
    },
    wakers,
  })
}

/** Gives its work to the first who comes, and nothing afterwards. */
function once(store: ServerStore<MemoryTransaction>): ServerStore<MemoryTransaction>['claimTasks'] {
  let first = true
  return async (options) => {
    const taken: readonly ClaimedTask[] = first ? await store.claimTasks(options) : []
    first = false
    return taken
  }
}

describe('startWorker: taking work', () => {
  it('does what is there at the start, and what is accepted later as soon as it hears of it', async () => {
    const { shop, start, fulfil, orders, clock } = place()
    await shop.submit('k-1', {})
    const worker = start(fulfil)
    await settled()
    expect(orders).toEqual(['k-1'])
    await shop.submit('k-2', {})
    await settled()
    expect(orders).toEqual(['k-1', 'k-2'])
    expect(clock.monotonic()).toBe(0)
    await worker.stop()
    expect(clock.pending()).toBe(0)
  })

  it("a lease that was renewed is no hint: a fleet must not look for each other's work", async () => {
    const { shop, store, clock, fulfil } = place()
    const hints = vi.fn()
    const end = store.onTask(hints)
    await shop.submit('k-1', {})
    expect(hints).toHaveBeenCalledTimes(1)
    await workOnce<MemoryTransaction>({
      store,
      clock,
      work: {
        'orders.create': async (task) => {
          await task.step(() => {})
          return fulfil(task)
        },
      },
    })
    expect(hints).toHaveBeenCalledTimes(1)
    end()
  })

  it('a hint that comes during a claim is not missed', async () => {
    const { shop, start, fulfil, store, orders, clock } = place()
    const claiming = gate()
    const answered = gate()
    const worker = start(fulfil, {
      store: withStore(store, {
        async claimTasks(options) {
          const taken = await store.claimTasks(options)
          claiming.open()
          await answered.opened
          return taken
        },
      }),
    })
    await claiming.opened
    await shop.submit('k-1', {})
    answered.open()
    await settled()
    expect(orders).toEqual(['k-1'])
    expect(clock.monotonic()).toBe(0)
    await worker.stop()
  })

  it('P62: a hint is only a hint: without any, work is found by polling', async () => {
    const { shop, start, fulfil, orders, store, clock } = place()
    const worker = start(fulfil, { store: withStore(store, { onTask: () => () => {} }) })
    await settled()
    await shop.submit('k-1', {})
    await clock.advance(POLL_MS - 1)
    expect(orders).toEqual([])
    await clock.advance(1)
    expect(orders).toEqual(['k-1'])
    await worker.stop()
  })

  it('polls with jitter, so that a fleet does not come all at once', async () => {
    for (const [random, at] of [
      [0, POLL_MS * 0.75],
      [0.999, 1250],
    ] as const) {
      const { start, fulfil, store, clock } = place()
      const counted = flaky(store)
      const worker = start(fulfil, { store: counted.store, random: () => random })
      await clock.advance(at - 1)
      expect(counted.claims).toBe(1)
      await clock.advance(1)
      expect(counted.claims).toBe(2)
      await worker.stop()
    }
  })

  it('P63: takes only as much as it has free hands, and goes on as soon as one is free', async () => {
    const { shop, start, store, clock } = place()
    for (let i = 0; i < 5; i += 1) await shop.submit(`k-${i}`, {})
    const limits: number[] = []
    const gates = new Map<string, ReturnType<typeof gate>>()
    const worker = start(
      async ({ key }) => {
        const mine = gate()
        gates.set(key, mine)
        await mine.opened
        return json(200, {})
      },
      {
        concurrency: 2,
        store: withStore(store, {
          claimTasks(options) {
            limits.push(options.limit)
            return store.claimTasks(options)
          },
        }),
      },
    )
    await clock.advance(3 * POLL_MS)
    expect([...gates.keys()]).toEqual(['k-0', 'k-1'])
    expect(worker.running()).toBe(2)
    gates.get('k-1')?.open()
    await clock.advance(0)
    expect([...gates.keys()]).toEqual(['k-0', 'k-1', 'k-2'])
    expect(limits).toEqual([2, 1])
    for (let i = 0; i < 5; i += 1) {
      gates.get(`k-${i}`)?.open()
      await clock.advance(0)
    }
    expect(worker.running()).toBe(0)
    await worker.stop()
  })

  it('P64: tries again by itself when the time has come', async () => {
    const { shop, start, clock } = place()
    await shop.submit('k-1', {})
    const runs: number[] = []
    const worker = start(
      ({ attempt }) => {
        runs.push(clock.monotonic())
        return attempt < 3 ? retry({ afterMs: 5000 }) : json(200, {})
      },
      { pollMs: 100 },
    )
    await clock.advance(20_000)
    expect(runs).toEqual([0, 5000, 10_000])
    expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
    await worker.stop()
  })

  it("P65: a person's word wakes it", async () => {
    const { shop, start, store, clock } = place()
    await shop.submit('k-1', {})
    const service = paymentService()
    const worker = start(async (task) => {
      const { value } = await externalCall(task, 'charge', {
        service: neither(),
        request: null,
        send: ({ operationId }) => Promise.reject(new Error(String(service.charge(operationId, null).charge))),
      })
      return value === null ? leaveUnknown() : json(200, value)
    })
    await settled()
    const [unknown] = await store.unknownTasks()
    expect(unknown).toMatchObject({ id: idOf('k-1') })
    await settle(store, unknown?.calls[0]?.row.operationId ?? '', 'done', 'seen')
    await settled()
    expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'unknown' })
    await resume(store, idOf('k-1'), 'again')
    await settled()
    expect(store.task(idOf('k-1'))?.row).toMatchObject({ status: 'unknown', epoch: 5, note: 'again' })
    expect(clock.monotonic()).toBe(0)
    await worker.stop()
  })

  it('uses the system clock where it is given none, and the console', async () => {
    const store = memoryServerStore()
    const said = vi.spyOn(console, 'error').mockImplementation(() => {})
    const failing = withStore(store, { claimTasks: () => Promise.reject(new StoreUnavailableError('away')) })
    const worker = startWorker({ store: failing, work: { 'orders.create': () => json(200, {}) } })
    await settled()
    await worker.stop()
    expect(said).toHaveBeenCalledWith(
      expect.stringMatching(/^samekey: workerTrouble in orders.create: No work could be taken, .* away$/),
      expect.any(StoreUnavailableError),
    )
    expect(await workOnce({ store, work: { 'orders.create': () => json(200, {}) } })).toBe(0)
  })
})

describe('startWorker: a store that is away', () => {
  it('P62: is told of, backed off from, and never the end of the worker; it goes on by itself', async () => {
    const { shop, start, fulfil, store, orders, clock, kinds } = place()
    const away = flaky(store)
    away.down = true
    const worker = start(fulfil, { store: away.store })
    await shop.submit('k-1', {})
    await clock.advance(600_000)
    // Ever slower: 20 tries in ten minutes, not 600.
    expect(away.claims).toBeGreaterThan(10)
    expect(away.claims).toBeLessThan(60)
    expect(new Set(kinds())).toEqual(new Set(['workerTrouble']))
    expect(kinds()).toHaveLength(away.claims)
    away.down = false
    await clock.advance(30_000)
    expect(orders).toEqual(['k-1'])
    // And at its usual pace again.
    const { claims } = away
    await clock.advance(10 * POLL_MS)
    expect(away.claims).toBe(claims + 10)
    await worker.stop()
  })

  it('no hint makes it a hot loop', async () => {
    const { start, fulfil, store, clock } = place()
    const away = flaky(store)
    away.down = true
    const worker = start(fulfil, { store: away.store })
    await settled()
    for (let i = 0; i < 100; i += 1) {
      away.wake()
      await settled()
    }
    expect(away.claims).toBe(1)
    await clock.advance(0)
    await worker.stop()
    expect(away.wakers.size).toBe(0)
  })

  it('ends that cannot be written slow it down too, instead of burning through the queue', async () => {
    const { shop, start, fulfil, store, orders, clock, kinds } = place()
    const away = flaky(store)
    let runs = 0
    for (let i = 0; i < 20; i += 1) await shop.submit(`k-${i}`, {})
    const claims = withStore(away.store, { claimTasks: (options) => store.claimTasks(options) })
    away.down = true
    const worker = start(
      (task) => {
        runs += 1
        return fulfil(task)
      },
      { store: claims, concurrency: 1 },
    )
    await clock.advance(1000)
    expect(runs).toBe(1)
    expect(kinds()).toEqual(['workerTrouble'])
    await clock.advance(600_000)
    // Ever slower: claims that succeed prove nothing.
    expect(runs).toBeLessThan(60)
    away.down = false
    await clock.advance(10 * 60_000)
    expect(orders.sort()).toHaveLength(20)
    await worker.stop()
  })

  it('P63: away for less than the lease, it loses nothing: the renewal after that does it', async () => {
    const { shop, start, store, orders, clock, fulfil, events } = place()
    const away = flaky(store)
    await shop.submit('k-1', {})
    const slow = killable(fulfil)
    const worker = start(slow.handler, { store: withStore(away.store, { claimTasks: (o) => store.claimTasks(o) }) })
    await slow.reached
    away.down = true
    await clock.advance(LEASE_MS - 1)
    away.down = false
    // The last renewal was tried at two thirds; the lease is over now.
    await clock.advance(0)
    expect(events).toEqual([])
    slow.wake()
    await settled()
    expect(orders).toEqual(['k-1'])
    await worker.stop()
  })
})

describe('leases', () => {
  it('P63: renewals keep a slow worker, however long it takes', async () => {
    const { shop, start, fulfil, store, orders, clock, events } = place()
    await shop.submit('k-1', {})
    const slow = killable(fulfil)
    const first = start(slow.handler)
    await slow.reached
    const second = start(fulfil)
    await clock.advance(20 * LEASE_MS)
    expect(store.task(idOf('k-1'))?.row).toMatchObject({ epoch: 1, attempts: 1 })
    slow.wake()
    await settled()
    expect(orders).toEqual(['k-1'])
    expect(events).toEqual([])
    await Promise.all([first.stop(), second.stop()])
    expect(clock.pending()).toBe(0)
  })

  it('P63: the renewal that finds the work gone aborts the signal', async () => {
    const { shop, start, store, clock, events } = place()
    await shop.submit('k-1', {})
    const begun = gate()
    let reason: unknown
    const worker = start(({ signal }) => {
      signal.addEventListener('abort', () => {
        reason = signal.reason
      })
      begun.open()
      return never()
    })
    await begun.opened
    const word = { status: 'unknown', result: null, error: null, retryAfterSeconds: null } as const
    await tellTask(store, idOf('k-1'), word)
    await clock.advance(LEASE_MS / 3 - 1)
    expect(reason).toBeUndefined()
    await clock.advance(1)
    expect(reason).toMatchObject({ code: 'work_lost' })
    expect(events).toMatchObject([{ kind: 'workLost', id: idOf('k-1') }])
    // The hand is free again, although the handler hangs.
    expect(worker.running()).toBe(0)
    await worker.stop()
  })

  it('P63: a lease that could not be renewed aborts the signal when it is over; then nothing is written any more', async () => {
    const { shop, start, store, orders, clock, events, fulfil } = place()
    const away = flaky(store)
    await shop.submit('k-1', {})
    const codes: unknown[] = []
    let at = 0
    const slow = killable<MemoryTransaction>(async (task) => {
      at = clock.monotonic()
      codes.push(await task.step((t) => t.onCommit(() => orders.push('late'))).catch(({ code }) => code))
      return fulfil(task)
    })
    const worker = start(
      (task) => {
        task.signal.addEventListener('abort', slow.wake)
        return slow.handler(task)
      },
      { store: withStore(away.store, { claimTasks: once(store) }) },
    )
    await slow.reached
    away.down = true
    await clock.advance(LEASE_MS)
    away.down = false
    await slow.through
    expect([at, codes]).toEqual([LEASE_MS, ['work_lost']])
    expect(events[0]).toMatchObject({ kind: 'workLost', error: expect.any(StoreUnavailableError) })
    expect(orders).toEqual([])
    await worker.stop({ graceMs: 0 })
  })

  it('P63, P35: a machine that slept notices by its wall clock, one whose clock was set back by the other', async () => {
    for (const pass of [
      (clock: VirtualClock) => clock.jump(LEASE_MS),
      async (clock: VirtualClock) => {
        clock.jump(-24 * HOUR_MS)
        await clock.advance(LEASE_MS)
      },
    ]) {
      const { shop, store, orders, fulfil } = place()
      await shop.submit('k-1', {})
      const clock = virtualClock()
      const slow = killable(fulfil)
      const events: ServerEvent[] = []
      const round = workOnce<MemoryTransaction>({
        // Renewals hang, as they do on a dead line.
        store: withStore(store, { begin: never }),
        work: { 'orders.create': slow.handler },
        leaseMs: LEASE_MS,
        clock,
        report: (event) => events.push(event),
      })
      await slow.reached
      await pass(clock)
      slow.wake()
      await round
      expect(events).toMatchObject([{ kind: 'workLost' }])
      expect(orders).toEqual([])
    }
  })

  it('P63: a renewal that gets the row after the end was written does not call it lost', async () => {
    const { shop, start, fulfil, store, orders, clock, events } = place()
    await shop.submit('k-1', {})
    const slow = killable(fulfil)
    const connected = gate()
    let first = true
    const worker = start(slow.handler, {
      store: withStore(store, {
        async begin(options, work) {
          // The renewal's connection takes its time.
          const late = first
          first = false
          if (late) await connected.opened
          return store.begin(options, work)
        },
      }),
    })
    await slow.reached
    await clock.advance(LEASE_MS / 3)
    slow.wake()
    await settled()
    expect(orders).toEqual(['k-1'])
    connected.open()
    await settled()
    expect(events).toEqual([])
    await worker.stop()
  })

  it('P63: a row that somebody has locked at renewal is not lost work', async () => {
    const { shop, start, fulfil, store, orders, clock, events } = place()
    await shop.submit('k-1', {})
    const slow = killable(fulfil)
    const worker = start(slow.handler)
    await slow.reached
    const locked = gate()
    const holder = store.begin({ waitMs: 0 }, async (unit) => {
      await unit.lockTask(idOf('k-1'))
      await locked.opened
      return { commit: false, value: null }
    })
    // Two renewals run into it.
    await clock.advance(LEASE_MS - 2)
    locked.open()
    await holder
    expect(events).toEqual([])
    slow.wake()
    await settled()
    expect(orders).toEqual(['k-1'])
    await worker.stop()
  })

  it('P63: a step that takes longer than the lease keeps the work: nobody can take what is locked', async () => {
    const { shop, start, store, orders, clock, events, fulfil } = place()
    await shop.submit('k-1', {})
    const inStep = gate()
    const goOn = gate()
    const handler: TaskHandler<MemoryTransaction> = async (task) => {
      await task.step('slow', async (transaction) => {
        inStep.open()
        await goOn.opened
        transaction.onCommit(() => orders.push('step'))
      })
      return fulfil(task)
    }
    const counted = flaky(store)
    const first = start(handler, { store: counted.store })
    await inStep.opened
    const second = start(fulfil)
    await clock.advance(5 * LEASE_MS)
    // No renewal waits for our own lock, with a connection that somebody else may need.
    expect(counted.begins).toBe(1)
    goOn.open()
    await settled()
    expect(orders).toEqual(['step', 'k-1'])
    expect(events).toEqual([])
    expect(store.task(idOf('k-1'))?.row).toMatchObject({ epoch: 1 })
    await Promise.all([first.stop(), second.stop()])
  })

  it('P63: two steps at a time wait for each other; a step inside a step is an error, not a deadlock', async () => {
    const { shop, start, orders, clock, events } = place()
    await shop.submit('k-1', {})
    const worker = start(async (task) => {
      const add = (item: string) => task.step((transaction) => transaction.onCommit(() => orders.push(item)))
      await Promise.all([add('a'), add('b')])
      await task.step(() => add('inside'))
      return json(200, {})
    })
    await clock.advance(9999)
    expect(orders).toEqual(['a', 'b'])
    expect(events).toEqual([])
    await clock.advance(1)
    expect(events).toMatchObject([{ kind: 'taskFailed', error: { code: 'store_unavailable' } }])
    expect(orders).toEqual(['a', 'b'])
    await worker.stop({ graceMs: 0 })
  })

  it('P63: work whose claim took longer than its lease is not begun', async () => {
    const { shop, start, store, clock, events } = place()
    await shop.submit('k-1', {})
    const claimed = gate()
    let runs = 0
    let first = true
    const worker = start(
      () => {
        runs += 1
        return json(200, {})
      },
      {
        store: withStore(store, {
          async claimTasks(options) {
            const taken = await store.claimTasks(options)
            if (first) await claimed.opened
            first = false
            return taken
          },
        }),
      },
    )
    await clock.advance(LEASE_MS)
    claimed.open()
    await settled()
    expect(events).toMatchObject([{ kind: 'workLost' }])
    await clock.advance(2 * POLL_MS)
    expect(runs).toBe(1)
    expect(store.task(idOf('k-1'))?.row).toMatchObject({ status: 'succeeded', epoch: 2 })
    await worker.stop()
  })
})

describe('calls, on time', () => {
  /** A round on clocks of its own, with a handler that makes one call. */
  function calling(
    part: Partial<Parameters<typeof externalCall<MemoryTransaction, unknown, unknown, unknown>>[2]> = {},
  ) {
    const it = place()
    const clock = virtualClock()
    const service = paymentService()
    const errors: unknown[] = []
    const signals: AbortSignal[] = []
    const handler: TaskHandler<MemoryTransaction> = async (task) => {
      try {
        const { value } = await externalCall(task, 'charge', {
          service: takesKeys({ retentionMs: 24 * HOUR_MS }),
          request: { amount: 1 },
          send: ({ operationId, request, signal }: { operationId: string; request: unknown; signal: AbortSignal }) => {
            signals.push(signal)
            return Promise.resolve(done(service.chargeOnce(operationId, request)))
          },
          ...part,
        } as never)
        return json(200, value)
      } catch (error) {
        errors.push(error)
        throw error
      }
    }
    const round = (store: ServerStore<MemoryTransaction> = it.store) =>
      workOnce<MemoryTransaction>({
        store,
        work: { 'orders.create': handler },
        leaseMs: LEASE_MS,
        clock,
        random: () => 1,
        report: (event) => it.events.push(event),
      })
    const call = () => it.store.task(idOf('k-1'))?.calls.get('charge')
    return { ...it, clock, service, errors, signals, handler, round, call }
  }

  /** What happens between the commit of the call's row and its sending. */
  function between(store: ServerStore<MemoryTransaction>, happens: () => void): ServerStore<MemoryTransaction> {
    let first = true
    return withStore(store, {
      async begin(options, work) {
        const value = await store.begin(options, work)
        if (first) happens()
        first = false
        return value
      },
    })
  }

  it.each([
    ['held up for half of the transit', 60_000, takesKeys({ retentionMs: 24 * HOUR_MS }), 10 * HOUR_MS],
    ['held up, where nobody can ask', 60_000, neither(), 10 * HOUR_MS],
  ] as const)('P65, P35: %s: not sent, and surely without effect', async (_, ms, service, leaseMs) => {
    for (const freeze of ['wall', 'monotonic'] as const) {
      const { shop, round, store, clock, service: payments, errors, call, handler } = calling({ service })
      await shop.submit('k-1', {})
      // A clock that only one of its hands shows.
      const frozen = {
        now: () => clock.now() + (freeze === 'wall' ? held : 0),
        monotonic: () => clock.monotonic() + (freeze === 'monotonic' ? held : 0),
        timer: clock.timer,
      }
      let held = 0
      const options = { work: { 'orders.create': handler }, leaseMs, clock: frozen, report: () => {} }
      await workOnce({
        ...options,
        store: between(store, () => {
          held = ms
        }),
      })
      expect(payments.requests).toEqual([])
      expect(errors).toMatchObject([{ code: 'call_undelivered', call: 'charge' }])
      expect(call()).toMatchObject({ state: 'undelivered', error: expect.stringContaining('held up') })
      expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
      void round
    }
  })

  it('P65: one millisecond less is sent', async () => {
    const { shop, store, clock, service, handler } = calling()
    await shop.submit('k-1', {})
    const options = { work: { 'orders.create': handler }, leaseMs: 10 * HOUR_MS, clock, report: () => {} }
    await workOnce({ ...options, store: between(store, () => clock.jump(59_999)) })
    expect(service.charges).toHaveLength(1)
  })

  it('P63: a worker whose lease ended before the hand-over does not send', async () => {
    const { shop, round, store, clock, service, errors, call, kinds } = calling()
    await shop.submit('k-1', {})
    await round(between(store, () => clock.jump(LEASE_MS)))
    await settled()
    expect(service.requests).toEqual([])
    // Nobody took it meanwhile, so that it can still be written down that nothing was sent.
    expect(call()).toMatchObject({ state: 'undelivered', error: expect.stringContaining('before it was sent') })
    expect(errors).toMatchObject([{ code: 'call_undelivered' }])
    expect(kinds()).toEqual(['workLost'])
  })

  it('P65: a worker that was told to stop before the hand-over does not send', async () => {
    const { shop, start, store, service, handler, call, clock } = calling()
    await shop.submit('k-1', {})
    const committed = gate()
    const goOn = gate()
    const worker = start(handler, {
      clock,
      store: withStore(store, {
        async begin(options, work) {
          const value = await store.begin(options, work)
          committed.open()
          await goOn.opened
          return value
        },
      }),
    })
    await committed.opened
    const stopping = worker.stop({ graceMs: 0 })
    await clock.advance(0)
    goOn.open()
    await stopping
    await settled()
    expect(service.requests).toEqual([])
    expect(call()).toMatchObject({ state: 'undelivered' })
  })

  it('P65: the time limit aborts the call; what it still brings is kept as evidence', async () => {
    const late = gate()
    const service = paymentService()
    const signals: AbortSignal[] = []
    const sent = gate()
    const { shop, round, clock, call, errors, kinds } = calling({
      service: neither(),
      timeoutMs: 5000,
      async send({ operationId, request, signal }) {
        signals.push(signal)
        sent.open()
        await late.opened
        return done(service.charge(operationId, request))
      },
    })
    await shop.submit('k-1', {})
    const running = round()
    await sent.opened
    await clock.advance(4999)
    expect(signals[0]?.aborted).toBe(false)
    await clock.advance(1)
    await running
    expect(signals[0]?.aborted).toBe(true)
    expect(errors).toMatchObject([{ code: 'call_unknown', operationId: call()?.operationId }])
    expect(call()).toMatchObject({ state: 'unknown', error: 'There was no answer within 5000 ms.', lateAnswer: null })
    late.open()
    await settled()
    expect(call()).toMatchObject({ state: 'unknown', lateAnswer: expect.stringContaining('"charge":1') })
    expect(kinds()).toEqual(['taskUnknown'])
  })

  it('P65: an answer behind the time limit still counts while the work is in the same hands', async () => {
    const late = gate()
    const goOn = gate()
    const { shop, store, clock, call } = calling()
    await shop.submit('k-1', {})
    const sent = gate()
    const running = workOnce<MemoryTransaction>({
      store,
      work: {
        'orders.create': async (task) => {
          const charge = (send: () => Promise<ReturnType<typeof done<number>>>) =>
            externalCall(task, 'charge', {
              service: takesKeys({ retentionMs: HOUR_MS }),
              request: 1,
              timeoutMs: 10,
              send,
            })
          await charge(() => {
            sent.open()
            return late.opened.then(() => done(7))
          }).catch(() => {})
          await goOn.opened
          return json(200, (await charge(() => Promise.reject(new Error('not again')))).value)
        },
      },
      clock,
    })
    await sent.opened
    await clock.advance(10)
    late.open()
    await settled()
    expect(call()).toMatchObject({ state: 'done', value: '7' })
    goOn.open()
    await running
    expect(store.task(idOf('k-1'))?.row).toMatchObject({ status: 'succeeded' })
  })

  it('P63: evidence that cannot be kept is told', async () => {
    const late = gate()
    const sent = gate()
    const { shop, round, store, clock, kinds } = calling({
      timeoutMs: 10,
      send() {
        sent.open()
        return late.opened.then(() => done(7))
      },
    })
    await shop.submit('k-1', {})
    const away = flaky(store)
    const running = round(away.store)
    await sent.opened
    await clock.advance(10)
    await running
    away.down = true
    late.open()
    await settled()
    expect(kinds()).toEqual(['taskFailed', 'workerTrouble'])
  })

  it('P63: a lost lease ends the waiting for a call, and its signal', async () => {
    const sent = gate()
    const signals: AbortSignal[] = []
    const { shop, round, store, clock, errors, call } = calling({
      send({ signal }) {
        signals.push(signal)
        sent.open()
        return never()
      },
    })
    await shop.submit('k-1', {})
    const running = round()
    await sent.opened
    const word = { status: 'unknown', result: null, error: null, retryAfterSeconds: null } as const
    await tellTask(store, idOf('k-1'), word)
    await clock.advance(LEASE_MS / 3)
    await running
    await settled()
    expect(errors).toMatchObject([{ code: 'work_lost' }])
    expect(signals[0]?.aborted).toBe(true)
    expect(call()).toMatchObject({ state: 'begun', value: null, error: null })
  })

  it('P65: a store that is away while the answer comes in does not make it unknown', async () => {
    const { shop, round, store, clock, call, errors } = calling({ service: neither() })
    await shop.submit('k-1', {})
    const away = flaky(store)
    const running = round(
      between(away.store, () => {
        away.down = true
      }),
    )
    await clock.advance(5000)
    expect(call()).toMatchObject({ state: 'begun' })
    away.down = false
    await clock.advance(2000)
    await running
    expect(call()).toMatchObject({ state: 'done', value: '{"charge":1}' })
    expect(errors).toEqual([])
    expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'succeeded' })
  })

  it('P65: but not for longer than the lease', async () => {
    const { shop, round, store, clock, call, errors } = calling({ service: neither() })
    await shop.submit('k-1', {})
    const away = flaky(store)
    const running = round(
      between(away.store, () => {
        away.down = true
      }),
    )
    await clock.advance(2 * LEASE_MS)
    await running
    await settled()
    expect(errors).toMatchObject([{ code: 'store_unavailable' }])
    expect(call()).toMatchObject({ state: 'begun' })
  })

  it('P65: a call that a send function spoils by throwing at once, or by saying nothing, is open', async () => {
    for (const send of [
      () => {
        throw new Error('at once')
      },
      () => undefined as never,
      () => Promise.resolve({ outcome: 'maybe' } as never),
    ]) {
      const { shop, round, errors, call } = calling({ send })
      await shop.submit('k-1', {})
      await round()
      expect(errors).toMatchObject([{ code: 'call_open', retryAt: null }])
      expect(call()).toMatchObject({ state: 'begun' })
    }
  })

  it('P65: an ask has the same time limit', async () => {
    const asked = gate()
    const { shop, round, clock, store, call } = calling({
      service: canBeAsked({ transitMs: 60_000 }),
      send: () => Promise.reject(new Error('reset')),
      ask() {
        asked.open()
        return never()
      },
    })
    await shop.submit('k-1', {})
    await round()
    await place().clock.advance(0)
    const now = call()?.lastBegunAt ?? 0
    // The store's time alone says when.
    expect(store.task(idOf('k-1'))?.row.dueAt).toBe(now + 60_000)
    void clock
  })

  it('is told what cannot be meant', async () => {
    const { shop, store, clock } = place()
    await shop.submit('k-1', {})
    const said: unknown[] = []
    await workOnce<MemoryTransaction>({
      store,
      clock,
      report: () => {},
      work: {
        'orders.create': async (task) => {
          const base = { request: 1, send: () => Promise.resolve(done()) }
          for (const call of [
            { ...base, service: neither({ transitMs: 1000 }), timeoutMs: 501 },
            { ...base, service: neither(), timeoutMs: 0 },
            { ...base, service: neither(), request: undefined },
            { ...base, service: { kind: 'canBeAsked', transitMs: 1000 } as never },
          ]) {
            said.push(await externalCall(task, 'charge', call).then(String, ({ message }: Error) => message))
          }
          return json(200, {})
        },
      },
    })
    expect(said).toEqual([
      expect.stringMatching(/timeoutMs: must be at most half/),
      expect.stringMatching(/timeoutMs: must be a whole number/),
      expect.stringMatching(/request of a call/),
      expect.stringMatching(/^ask: /),
    ])
    expect(() => takesKeys({ retentionMs: 120_000 })).toThrow(/retentionMs/)
    expect(() => canBeAsked({ transitMs: 0 })).toThrow(/transitMs/)
    expect(() => neither({ transitMs: 1.5 })).toThrow(/transitMs/)
  })
})

describe('stop', () => {
  it('F9: takes no more, waits for what is in hand, and is still', async () => {
    const { shop, start, fulfil, store, orders, clock, events } = place()
    await shop.submit('k-1', {})
    const slow = killable(fulfil)
    const worker = start(slow.handler)
    await slow.reached
    const stopping = worker.stop()
    expect(worker.stop({ graceMs: 0 })).toBe(stopping)
    await shop.submit('k-2', {})
    await clock.advance(9000)
    slow.wake()
    await stopping
    expect(orders).toEqual(['k-1'])
    expect(store.task(idOf('k-2'))?.row).toMatchObject({ status: 'processing', epoch: 0 })
    expect([events, clock.pending(), worker.running()]).toEqual([[], 0, 0])
  })

  it('F9, P63: after the grace it aborts, and gives back what was not begun: the next one need not wait', async () => {
    const { shop, start, fulfil, store, orders, clock, events } = place()
    await shop.submit('k-1', {})
    const slow = killable(fulfil)
    let aborted = false
    const worker = start((task) => {
      task.signal.addEventListener('abort', () => {
        aborted = true
      })
      return slow.handler(task)
    })
    await slow.reached
    const stopping = worker.stop()
    await clock.advance(9999)
    expect(aborted).toBe(false)
    await clock.advance(1)
    await stopping
    expect(aborted).toBe(true)
    // No attempt was spent.
    expect(store.task(idOf('k-1'))?.row).toMatchObject({
      status: 'processing',
      epoch: 1,
      attempts: 0,
      dueAt: clock.now(),
    })
    const next = start(fulfil)
    await settled()
    expect(orders).toEqual(['k-1'])
    slow.wake()
    await slow.through
    await settled()
    expect(orders).toEqual(['k-1'])
    expect(events).toEqual([])
    await next.stop()
    expect(clock.pending()).toBe(0)
  })

  it('P64: what was begun is given back as a try that failed', async () => {
    const { shop, start, store, orders, clock, events } = place()
    await shop.submit('k-1', {})
    const begun = gate()
    const worker = start(async (task) => {
      await task.step((transaction) => transaction.onCommit(() => orders.push('half')))
      begun.open()
      await new Promise((_, reject) => task.signal.addEventListener('abort', () => reject(task.signal.reason)))
      return json(200, {})
    })
    await begun.opened
    const stopping = worker.stop({ graceMs: 0 })
    await clock.advance(0)
    await stopping
    expect(store.task(idOf('k-1'))?.row).toMatchObject({
      status: 'failed_retryable',
      epoch: 1,
      attempts: 1,
      dueAt: clock.now(),
    })
    expect(events).toEqual([])
  })

  it('P65: a call that a stop cuts off is written down when its answer comes all the same', async () => {
    const { shop, start, store, clock } = place()
    await shop.submit('k-1', {})
    const sent = gate()
    const late = gate()
    const worker = start(async (task) => {
      const { value } = await externalCall(task, 'charge', {
        service: neither(),
        request: 1,
        send: () => {
          sent.open()
          return late.opened.then(() => done(7))
        },
      })
      return json(200, value)
    })
    await sent.opened
    const stopping = worker.stop({ graceMs: 0 })
    await clock.advance(0)
    await stopping
    expect(store.task(idOf('k-1'))?.calls.get('charge')).toMatchObject({ state: 'begun' })
    late.open()
    await settled()
    // Nobody has taken it since, so that it is known now, and nobody has to find out.
    expect(store.task(idOf('k-1'))?.calls.get('charge')).toMatchObject({ state: 'done', value: '7', lateAnswer: null })
  })

  it('F9: work that a claim brings while it stops is given back unseen', async () => {
    const { shop, start, store, clock } = place()
    await shop.submit('k-1', {})
    const claiming = gate()
    const answered = gate()
    let runs = 0
    const worker = start(
      () => {
        runs += 1
        return json(200, {})
      },
      {
        store: withStore(store, {
          async claimTasks(options) {
            const taken = await store.claimTasks(options)
            claiming.open()
            await answered.opened
            return taken
          },
        }),
      },
    )
    await claiming.opened
    const stopping = worker.stop()
    answered.open()
    await stopping
    expect(runs).toBe(0)
    expect(store.task(idOf('k-1'))?.row).toMatchObject({ attempts: 0, dueAt: clock.now() })
  })

  it('a claim that fails while it stops arms nothing', async () => {
    const { start, store, clock, kinds } = place()
    const claiming = gate()
    const answered = gate()
    const worker = start(() => json(200, {}), {
      store: withStore(store, {
        async claimTasks() {
          claiming.open()
          await answered.opened
          throw new StoreUnavailableError('away')
        },
      }),
    })
    await claiming.opened
    const stopping = worker.stop()
    answered.open()
    await stopping
    expect([kinds(), clock.pending()]).toEqual([['workerTrouble'], 0])
  })

  it('P62: what cannot be given back is told, and its lease ends by itself', async () => {
    const { shop, start, store, clock, kinds } = place()
    await shop.submit('k-1', {})
    const away = flaky(store)
    const slow = killable<MemoryTransaction>(() => json(200, {}))
    const worker = start(slow.handler, { store: withStore(away.store, { claimTasks: (o) => store.claimTasks(o) }) })
    await slow.reached
    away.down = true
    const stopping = worker.stop({ graceMs: 1 })
    await clock.advance(1)
    await stopping
    expect(kinds()).toEqual(['workerTrouble'])
    expect(clock.pending()).toBe(0)
  })

  it('does not wait for ever for what cannot be ended', async () => {
    const { shop, start, store, clock, events } = place()
    await shop.submit('k-1', {})
    const slow = killable<MemoryTransaction>(() => json(200, {}))
    const worker = start(slow.handler, { store: withStore(store, { begin: never, claimTasks: once(store) }) })
    await slow.reached
    const stopping = worker.stop({ graceMs: 1000 })
    await clock.advance(16_000)
    await stopping
    expect(events).toMatchObject([{ kind: 'workerTrouble', id: null, detail: expect.stringContaining('1 tasks') }])
  })
})

describe('options', () => {
  const work = { 'orders.create': () => json(200, {}) }

  it.each([
    ['work', { work: {} }],
    ['work.', { work: { '': () => json(200, {}) } }],
    ['work.orders.create', { work: { 'orders.create': 7 as never } }],
    ['concurrency', { concurrency: 0 }],
    ['concurrency', { concurrency: 1.5 }],
    ['leaseMs', { leaseMs: 0 }],
    ['leaseMs', { leaseMs: 2 ** 31 }],
    ['retry.baseMs', { retry: { baseMs: -1 } }],
    ['retry.capMs', { retry: { capMs: Number.NaN } }],
    ['retry.capMs', { retry: { baseMs: 10, capMs: 9 } }],
    ['retry.maxAttempts', { retry: { maxAttempts: 0 } }],
    ['answerBytes', { answerBytes: -1 }],
    ['pollMs', { pollMs: 0 }],
  ])('a wrong %s is a ConfigError when it starts', (option, part) => {
    const store = memoryServerStore()
    expect(() => startWorker({ store, work, ...part })).toThrow(expect.objectContaining({ code: 'config', option }))
  })

  it('never giving up is a choice', async () => {
    const { shop, store, clock } = place()
    await shop.submit('k-1', {})
    await workOnce({
      store,
      work: { 'orders.create': () => retry() },
      clock,
      retry: { maxAttempts: Number.POSITIVE_INFINITY },
    })
    expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
  })

  it('P28: a report that throws changes nothing', async () => {
    const { shop, store, clock } = place()
    await shop.submit('k-1', {})
    const taken = await workOnce({
      store,
      clock,
      work: {
        'orders.create': () => {
          throw new Error('no')
        },
      },
      report() {
        throw new Error('no log today')
      },
    })
    expect(taken).toBe(1)
    expect(await monitorOf(shop, 'k-1')).toMatchObject({ status: 'failed_retryable' })
  })
})
