import {
  accepted as acceptedFault,
  createMockServer,
  type MockOperation,
  type MockServer,
  type MockServerOptions,
  noFault,
  workerDies,
  workerSleeps,
} from 'samekey/msw'
import {
  accepted,
  decline,
  done,
  externalCall,
  finish,
  json,
  leaveUnknown,
  neither,
  refuse,
  resume,
  retry,
  settle,
  takesKeys,
} from 'samekey/server'
import { virtualClock } from 'samekey/testing'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { codeOf, look, send, statusOf, voidKey } from './send.ts'

afterEach(() => {
  vi.useRealTimers()
})

const MINUTE_MS = 60_000
const id = { tenant: 'mock', principal: 'anonymous', operation: 'orders.create', key: 'k-1' }

/** Accepts every order, and does it later. */
function working(
  work: MockOperation['work'],
  options: MockServerOptions & { operation?: Partial<MockOperation> } = {},
) {
  const clock = virtualClock()
  const { operation, ...rest } = options
  const execute: MockOperation['execute'] = ({ body }) =>
    accepted({ work: body.kind === 'json' ? body.value : null, retryAfterSeconds: 1 })
  const mock = createMockServer({
    clock,
    operations: { 'orders.create': { path: '/orders', execute, ...(work && { work }), ...operation } },
    ...rest,
  })
  return { clock, mock }
}

/** Does it, with one order. */
const place: MockOperation['work'] = (task, { createOrder }) =>
  finish((transaction) => json(200, { order: createOrder(transaction, task.work).id }))

const shown = async (mock: MockServer) => statusOf(await look(mock))

describe('P62: work of one’s own, on the mock’s clock', () => {
  it('is not begun before time passes, and ends with one effect and its answer', async () => {
    const { clock, mock } = working(place)
    expect((await send(mock)).status).toBe(202)
    expect([await shown(mock), mock.effects.total, mock.orders]).toEqual(['processing', 0, []])
    await clock.advance(0)
    expect(await (await look(mock)).json()).toMatchObject({
      status: 'succeeded',
      response: { status: 200, body: '{"order":1}' },
    })
    expect([mock.effects.total, mock.orders[0]?.value]).toEqual([1, { item: 'tea' }])
    expect((await send(mock)).headers.get('idempotent-replayed')).toBe('true')
    await clock.advance(60 * MINUTE_MS)
    expect([mock.effects.total, clock.pending()]).toEqual([1, 0])
  })

  it('under the system’s clock and fake timers too', async () => {
    vi.useFakeTimers()
    const { mock } = working(place, { clock: { now: () => Date.now(), timer: fakeTimer } })
    await send(mock)
    await vi.advanceTimersByTimeAsync(1)
    expect([await shown(mock), mock.effects.total]).toEqual(['succeeded', 1])
  })

  it('P64: is tried again after the whole back-off, and given up in the end', async () => {
    const attempts: number[] = []
    const { clock, mock } = working(
      (task) => {
        attempts.push(task.attempt)
        return retry({ error: { code: 'carrier_down' } })
      },
      { worker: { retry: { baseMs: 1000, maxAttempts: 3 } } },
    )
    await send(mock)
    await clock.advance(0)
    expect(await (await look(mock)).json()).toMatchObject({
      status: 'failed_retryable',
      error: { code: 'carrier_down' },
    })
    await clock.advance(999)
    expect(attempts).toEqual([1])
    await clock.advance(1)
    expect(attempts).toEqual([1, 2])
    await clock.advance(MINUTE_MS)
    expect([attempts, await shown(mock), mock.effects.total]).toEqual([[1, 2, 3], 'failed', 0])
  })

  it('P56: a refusal takes back what it created', async () => {
    const { clock, mock } = working((task, { createOrder }) =>
      finish((transaction) => {
        createOrder(transaction, task.work)
        return refuse(422, { reason: 'no stock' })
      }),
    )
    await send(mock)
    await clock.advance(0)
    expect([await shown(mock), mock.effects.total, mock.orders]).toEqual(['failed', 0, []])
  })

  it('P65: unknown work waits for a person, who resumes it', async () => {
    const { clock, mock } = working((task, extra) => (task.epoch === 1 ? leaveUnknown() : place(task, extra)))
    await send(mock)
    await clock.advance(60 * MINUTE_MS)
    expect([await shown(mock), (await mock.store.unknownTasks()).map((task) => task.id.key)]).toEqual([
      'unknown',
      ['k-1'],
    ])
    expect(await resume(mock.store, id, 'looked it up')).toBe(true)
    await clock.advance(0)
    expect([await shown(mock), mock.effects.total]).toEqual(['succeeded', 1])
  })

  it('many pieces of work are done, each once', async () => {
    const { clock, mock } = working(place)
    const keys = Array.from({ length: 20 }, (_, n) => `k-${n}`)
    await Promise.all(keys.map((key) => send(mock, key)))
    await clock.advance(0)
    expect(keys.map((key) => mock.effects.forKey(key))).toEqual(keys.map(() => 1))
  })

  it('a test may finish it by hand as well; the worker that has it writes nothing', async () => {
    const { clock, mock } = working(place)
    mock.faults.work.next(workerSleeps(1000))
    await send(mock)
    await clock.advance(0)
    expect(await mock.complete('k-1', json(200, { by: 'hand' }))).toBe(true)
    await clock.advance(MINUTE_MS)
    expect(await (await look(mock)).json()).toMatchObject({ response: { body: '{"by":"hand"}' } })
    expect([mock.effects.total, mock.orders]).toEqual([1, []])
  })

  it('without a handler it waits for the test', async () => {
    const { clock, mock } = working(undefined)
    await send(mock)
    await clock.advance(60 * MINUTE_MS)
    expect(await shown(mock)).toBe('processing')
    expect(await mock.fail('k-1')).toBe(true)
    expect([await shown(mock), mock.effects.total]).toEqual(['failed', 0])
  })

  it('a scripted 202 of the same operation goes by its script, not by the handler', async () => {
    const { clock, mock } = working(place)
    mock.faults.next(acceptedFault({ processing: 1, ends: 'unknown' }))
    await send(mock)
    await clock.advance(MINUTE_MS)
    expect([await shown(mock), await shown(mock), mock.effects.total]).toEqual(['processing', 'unknown', 0])
  })

  it('a mistake in a handler is told, once per attempt; what a script breaks is not', async () => {
    const told: string[] = []
    const report = ({ kind }: { kind: string }) => void told.push(kind)
    const { clock, mock } = working(
      () => {
        throw new Error('a mistake')
      },
      { report, worker: { retry: { maxAttempts: 2 } } },
    )
    mock.faults.work.next(workerDies())
    await send(mock)
    await clock.advance(60 * MINUTE_MS)
    expect([told, await shown(mock)]).toEqual([['taskFailed'], 'failed'])
  })
})

describe('F9, F10: workers that die and sleep', () => {
  it('F9: a dead worker blocks the work for one lease, and the next epoch does it once', async () => {
    const epochs: number[] = []
    const { clock, mock } = working(
      (task, extra) => {
        epochs.push(task.epoch)
        return place(task, extra)
      },
      { worker: { leaseMs: 10_000 } },
    )
    mock.faults.work.next(workerDies())
    await send(mock)
    await clock.advance(9999)
    expect([await shown(mock), epochs]).toEqual(['processing', []])
    await clock.advance(1)
    expect([await shown(mock), epochs, mock.effects.total]).toEqual(['succeeded', [2], 1])
  })

  it('F10: a worker that sleeps past its lease wakes up and writes nothing', async () => {
    const { clock, mock } = working(place, { worker: { leaseMs: 10_000 } })
    mock.faults.work.next(workerSleeps(60_000))
    await send(mock)
    await clock.advance(10_000)
    expect([await shown(mock), mock.effects.total]).toEqual(['succeeded', 1])
    await clock.advance(60_000)
    expect([await shown(mock), mock.effects.total, mock.orders.length]).toEqual(['succeeded', 1, 1])
  })

  it('one that wakes up in time goes on', async () => {
    const { clock, mock } = working(place, { worker: { leaseMs: 10_000 } })
    mock.faults.work.next(workerSleeps(9000))
    await send(mock)
    await clock.advance(8999)
    expect(await shown(mock)).toBe('processing')
    await clock.advance(1)
    expect([await shown(mock), mock.store.task(id)?.row.epoch]).toEqual(['succeeded', 1])
  })

  it('H14, P65: one that dies after its call: the next sends the same id, or leaves it to a person', async () => {
    for (const kind of ['takes keys', 'neither'] as const) {
      const calls: string[] = []
      const service = kind === 'neither' ? neither() : takesKeys({ retentionMs: 60 * MINUTE_MS })
      const { clock, mock } = working(async (task) => {
        await externalCall(task, 'charge', {
          service,
          request: { cents: 100 },
          async send({ operationId }) {
            calls.push(operationId)
            return done({ charge: 'ch_1' })
          },
        })
        return json(200, { charged: true })
      })
      mock.faults.work.next(workerDies({ afterCommits: 1 }))
      await send(mock)
      await clock.advance(0)
      expect([await shown(mock), calls.length]).toEqual(['processing', 1])
      await clock.advance(MINUTE_MS)
      expect([kind, await shown(mock), new Set(calls).size]).toEqual([
        kind,
        kind === 'neither' ? 'unknown' : 'succeeded',
        1,
      ])
      if (kind === 'takes keys') continue
      const [task] = await mock.store.unknownTasks()
      const operationId = task?.calls[0]?.row.operationId ?? ''
      expect(await settle(mock.store, operationId, 'done', 'seen in their dashboard', { charge: 'ch_1' })).toBe(true)
      await clock.advance(0)
      expect([await shown(mock), calls.length, mock.effects.total]).toEqual(['succeeded', 1, 1])
    }
  })

  it('scripts are taken per execution, by key, intent and operation', async () => {
    const { clock, mock } = working(place, { worker: { leaseMs: 10_000 } })
    mock.faults.work.next(workerDies())
    mock.faults.work.forKey('b', noFault(), workerDies())
    for (const key of ['a', 'b']) await send(mock, key)
    await clock.advance(0)
    expect(['a', 'b'].map((key) => mock.effects.forKey(key))).toEqual([0, 1])
    await clock.advance(10_000)
    expect([mock.effects.forKey('a'), mock.faults.left]).toEqual([1, 1])
  })

  it('what cannot happen to work, and what happens to work alone, is refused', () => {
    const { faults } = createMockServer()
    expect(() => faults.work.next(acceptedFault())).toThrow('cannot happen to work')
    expect(() => faults.next(workerDies())).toThrow('cannot happen')
    expect(() => workerDies({ afterCommits: -1 })).toThrow('afterCommits')
    expect(() => workerSleeps(2 ** 31)).toThrow('workerSleeps')
    expect(() => createMockServer({ worker: { leaseMs: 0 } })).toThrow('leaseMs')
  })

  it('reset and close end the workers: nothing is done, told or waited for any more', async () => {
    for (const end of ['reset', 'close'] as const) {
      const { clock, mock } = working(place)
      mock.faults.work.next(workerSleeps(1000))
      for (const key of ['a', 'b']) await send(mock, key)
      await clock.advance(0)
      await send(mock, 'c')
      mock[end]()
      expect(clock.pending()).toBe(0)
      await clock.advance(60 * MINUTE_MS)
      expect(mock.effects.total).toBe(end === 'reset' ? 0 : 1)
    }
  })
})

describe('P58: voids of accepted work are the kit’s', () => {
  const takenBack: unknown[] = []
  const onVoid: NonNullable<MockOperation['onVoid']> = ({ transaction, work }) =>
    transaction.onCommit(() => takenBack.push(work))

  it('with onVoid, before it began: taken back, refused from then on, never done', async () => {
    const { clock, mock } = working(place, { operation: { onVoid } })
    await send(mock)
    expect([await statusOf(await voidKey(mock)), takenBack.splice(0)]).toEqual(['voided', [{ item: 'tea' }]])
    await clock.advance(MINUTE_MS)
    expect([await codeOf(await send(mock)), mock.effects.total, takenBack]).toEqual(['idempotency_voided', 0, []])
  })

  it('H34: while a worker has it that has done nothing yet, too', async () => {
    const { clock, mock } = working(place, { operation: { onVoid } })
    mock.faults.work.next(workerSleeps(1000))
    await send(mock)
    await clock.advance(0)
    expect(await statusOf(await voidKey(mock))).toBe('voided')
    await clock.advance(MINUTE_MS)
    expect([await shown(mock), mock.effects.total]).toEqual(['voided', 0])
  })

  it('without onVoid, and after a committed step, it is told how far it is', async () => {
    const stepping: MockOperation['work'] = async (task, extra) => {
      if (task.attempt > 1) return place(task, extra)
      await task.step(() => {})
      return retry()
    }
    for (const [work, operation] of [
      [place, {}],
      [stepping, { onVoid }],
    ] as const) {
      const { clock, mock } = working(work, { operation })
      await send(mock)
      if (work === stepping) await clock.advance(0)
      expect(await statusOf(await voidKey(mock))).toBe(work === stepping ? 'failed_retryable' : 'processing')
      await clock.advance(MINUTE_MS)
      expect([await shown(mock), mock.effects.total]).toEqual(['succeeded', 1])
    }
  })

  it('work that a script accepted has nothing to take back, and its script ends there', async () => {
    takenBack.length = 0
    const mock = createMockServer({ operations: { 'orders.create': { path: '/orders', onVoid } } })
    mock.faults.next(acceptedFault({ processing: 0 }))
    await send(mock)
    expect(await statusOf(await voidKey(mock))).toBe('voided')
    expect([await shown(mock), mock.effects.total, takenBack]).toEqual(['voided', 0, []])
    expect(await mock.complete('k-1')).toBe(false)
  })
})

describe('the rest of an operation’s options', () => {
  it('P55: a permission that is revoked and granted again', async () => {
    let allowed = true
    const mock = createMockServer({
      operations: { 'orders.create': { path: '/orders', authorize: () => allowed } },
    })
    await send(mock)
    allowed = false
    const codes = [await codeOf(await send(mock)), await codeOf(await look(mock)), await codeOf(await voidKey(mock))]
    expect(codes).toEqual(['forbidden', 'forbidden', 'forbidden'])
    allowed = true
    expect((await send(mock)).headers.get('idempotent-replayed')).toBe('true')
    expect(mock.effects.total).toBe(1)
  })

  it('P60: an answer by reference is read again', async () => {
    let today: string | null = '{"seats":1}'
    const mock = createMockServer({
      operations: {
        'orders.create': {
          path: '/orders',
          execute: () => ({ ...json(201, { seats: 1 }), reference: 'flights/7' }),
          reread: ({ reference }) => (reference === 'flights/7' ? today : null),
        },
      },
    })
    await send(mock)
    today = '{"seats":2}'
    expect(await (await send(mock)).json()).toEqual({ seats: 2 })
    today = null
    expect((await send(mock)).headers.get('idempotency-body')).toBe('omitted')
  })

  it('P41: CORS lines, where they are asked for', async () => {
    const preflight = {
      method: 'OPTIONS',
      headers: { origin: 'https://app.test', 'access-control-request-method': 'POST' },
    }
    const plain = createMockServer()
    expect((await plain.fetch('/orders', preflight)).status).toBe(404)
    const mock = createMockServer({ cors: { origins: ['https://app.test'] } })
    const response = await mock.fetch('/orders', preflight)
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([204, 'https://app.test'])
    const request = (method: string, path: string) => new Request(`${mock.baseUrl}${path}`, { method })
    expect(mock.serves(request('OPTIONS', '/orders'))).toBe(true)
    expect(plain.serves(request('OPTIONS', '/orders'))).toBe(false)
    expect(mock.serves(request('OPTIONS', '/elsewhere'))).toBe(false)
    expect(plain.serves(request('PATCH', '/keys/orders.create/k-1'))).toBe(true)
  })

  it('P56: what is declined is not remembered', async () => {
    let open = false
    const mock = createMockServer({
      operations: {
        'orders.create': { path: '/orders', execute: () => (open ? json(200, {}) : decline(422, { open })) },
      },
    })
    expect([(await send(mock)).status, mock.effects.total]).toEqual([422, 0])
    open = true
    expect([(await send(mock)).status, mock.effects.total]).toEqual([200, 1])
  })
})

function fakeTimer(ms: number, run: () => void) {
  const timer = setTimeout(run, ms)
  return { cancel: () => clearTimeout(timer) }
}
