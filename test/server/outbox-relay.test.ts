import { CommitUnknownError, StoreUnavailableError } from 'samekey/server'
import { virtualClock } from 'samekey/testing'
import { describe, expect, it } from 'vitest'
import { type Deliver, park } from '../../src/server/outbox/deliver.ts'
import type { RelayEvent } from '../../src/server/outbox/events.ts'
import type { OutboxMessage } from '../../src/server/outbox/message.ts'
import type { RelayTerms } from '../../src/server/outbox/options.ts'
import { claimed, type OutboxRow } from '../../src/server/outbox/outbox-row.ts'
import { type Relay, relayOver } from '../../src/server/outbox/relay.ts'
import type { OutboxStore } from '../../src/server/outbox/store.ts'
import { settled, type VirtualClock } from '../../src/testing/virtual-clock.ts'

const LEASE_MS = 10_000

interface World {
  readonly clock: VirtualClock
  readonly rows: Map<string, OutboxRow>
  readonly events: RelayEvent[]
  readonly relay: Relay
  /** Errors that the next changes run into, before they are made; `after` for one that is lost after it was made. */
  readonly trouble: (Error | { readonly after: Error })[]
  /** From now on, no change is ever answered. */
  hangs(): void
  /** Run after the next claims. */
  readonly onClaim: (() => void)[]
  add(id: string, part?: Partial<OutboxRow>): void
  row(id: string): OutboxRow
}

/** A relay over a store in memory, in virtual time: messages without order, what PostgreSQL adds is tested there. */
function world(deliver: Deliver, terms: Partial<RelayTerms> = {}): World {
  const clock = virtualClock()
  const rows = new Map<string, OutboxRow>()
  const events: RelayEvent[] = []
  const trouble: World['trouble'] = []
  const onClaim: World['onClaim'] = []
  let wake = (): void => {}
  let hanging = false
  const row = (id: string): OutboxRow => {
    const found = rows.get(id)
    if (found === undefined) throw new Error(`There is no ${id}.`)
    return found
  }
  const store: OutboxStore = {
    async claim(limit, leaseMs) {
      const messages = [...rows].flatMap(([id, before]) => {
        const taken = claimed(before, clock.now(), leaseMs)
        return taken === null ? [] : [{ number: id, message: messageOf(id), claimed: taken }]
      })
      const taken = messages.slice(0, limit)
      for (const { number, claimed: next } of taken) rows.set(number, next)
      if (taken.length > 0) onClaim.shift()?.()
      return { messages: taken, more: messages.length > limit, nextInMs: null }
    },
    async change({ number, claimed: { epoch } }, change) {
      if (hanging) await new Promise(() => {})
      const error = trouble.shift()
      if (error instanceof Error) throw error
      const before = row(number)
      if (before.epoch !== epoch) return { kind: 'late' }
      const next = change(before, clock.now())
      rows.set(number, next ?? before)
      if (error !== undefined) throw error.after
      return { kind: 'written', row: next ?? before }
    },
    onMessage(run) {
      wake = run
      return () => {
        wake = () => {}
      }
    },
  }
  const relay = relayOver(store, {
    deliver,
    leaseMs: LEASE_MS,
    pollMs: 1000,
    clock,
    random: () => 0.5,
    report: (event) => events.push(event),
    ...terms,
  })
  return {
    clock,
    rows,
    events,
    relay,
    trouble,
    onClaim,
    hangs() {
      hanging = true
    },
    row,
    add(id, part = {}) {
      const fresh: OutboxRow = {
        state: 'waiting',
        dueAt: clock.now(),
        epoch: 0,
        attempts: 0,
        error: null,
        notes: [],
        settledAt: null,
      }
      rows.set(id, { ...fresh, ...part })
      wake()
    },
  }
}

const messageOf = (id: string): OutboxMessage => ({
  id,
  topic: 'orders.placed',
  aggregate: null,
  payload: new Uint8Array(),
  text: '',
  createdAt: 0,
})

const away = (): Error => new StoreUnavailableError('away')

describe('deliver', () => {
  it('P66: gets the message with its try and epoch; resolved means marked', async () => {
    const seen: unknown[] = []
    const { add, row, events } = world(async (message, { attempt, epoch, signal }) => {
      seen.push([message.id, attempt, epoch, signal.aborted])
    })
    add('m-1', { epoch: 4, attempts: 2 })
    await settled()
    expect(seen).toEqual([['m-1', 3, 5, false]])
    expect(row('m-1').state).toBe('delivered')
    expect(events).toEqual([])
  })

  it('P66: thrown, or thrown at once, or come to something else: told, and tried again after back-off', async () => {
    const ends: Deliver[] = [
      () => Promise.reject(new Error('503')),
      () => {
        throw new Error('at once')
      },
      (() => Promise.resolve({ status: 500 })) as unknown as Deliver,
      async () => {},
    ]
    const times: number[] = []
    const { clock, add, row, events } = world((...all) => {
      times.push(clock.monotonic())
      return (ends.shift() as Deliver)(...all)
    })
    add('m-1')
    await clock.advance(60_000)
    expect(row('m-1')).toMatchObject({ state: 'delivered', attempts: 4, error: null })
    expect(events.map(({ kind, attempt, detail }) => [kind, attempt, detail])).toEqual([
      ['deliveryFailed', 1, 'It comes again: 503'],
      ['deliveryFailed', 2, 'It comes again: at once'],
      ['deliveryFailed', 3, expect.stringContaining('resolve with nothing')],
    ])
    // Half of 1, 2 and 4 seconds, and up to one poll.
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0))
    expect(gaps.every((gap, index) => gap >= [500, 1000, 2000][index]! && gap < 3100)).toBe(true)
  })

  it('P66: what is hopeless is parked at once, and what was tried often enough', async () => {
    const { clock, add, row, events } = world(
      async ({ id }) => {
        if (id === 'm-1') return park('nobody knows this topic')
        throw new Error('no')
      },
      { retry: { maxAttempts: 2 } },
    )
    add('m-1')
    add('m-2')
    await clock.advance(60_000)
    expect(row('m-1')).toMatchObject({ state: 'parked', attempts: 1, error: 'nobody knows this topic' })
    expect(row('m-2')).toMatchObject({ state: 'parked', attempts: 2, error: 'no' })
    expect(events.filter(({ kind }) => kind === 'messageParked').map(({ message }) => message?.id)).toEqual([
      'm-1',
      'm-2',
    ])
  })

  it('P66: a message that kills every process that takes it is parked without another try', async () => {
    let calls = 0
    const { add, row } = world(
      async () => {
        calls += 1
      },
      { retry: { maxAttempts: 3 } },
    )
    add('m-1', { attempts: 3 })
    await settled()
    expect([calls, row('m-1').state, row('m-1').error]).toEqual([0, 'parked', 'No try came to an end.'])
  })

  it('P26: one that takes too long is aborted before its lease is over, and holds nobody up', async () => {
    const signals: AbortSignal[] = []
    const { clock, add, row, events, relay } = world(
      (_, { signal }) => {
        signals.push(signal)
        return new Promise(() => {})
      },
      { concurrency: 1 },
    )
    add('m-1')
    await clock.advance(LEASE_MS * 0.8 - 1)
    expect(signals[0]?.aborted).toBe(false)
    await clock.advance(1)
    expect(signals[0]?.aborted).toBe(true)
    expect(row('m-1')).toMatchObject({ state: 'waiting', attempts: 1, error: expect.stringContaining('leaseMs') })
    expect(events).toMatchObject([{ kind: 'deliveryFailed' }])
    await clock.advance(2000)
    expect([signals.length, relay.running()]).toEqual([2, 1])
  })

  it('P63: a process that was frozen between claim and hand-over does not begin, and spends no try', async () => {
    const epochs: number[] = []
    const { clock, add, row, onClaim } = world(async (_, { epoch }) => void epochs.push(epoch))
    onClaim.push(() => clock.jump(LEASE_MS))
    add('m-1')
    await settled()
    expect(epochs).toEqual([2])
    expect(row('m-1')).toMatchObject({ state: 'delivered', attempts: 1 })
  })
})

describe('the mark', () => {
  it('P66: is said again while the database is away, told once, and the message is delivered once', async () => {
    let calls = 0
    const { clock, add, row, events, trouble } = world(async () => void calls++)
    trouble.push(away(), away(), new CommitUnknownError('lost'), away())
    add('m-1')
    await clock.advance(60_000)
    expect([calls, row('m-1').state]).toEqual([1, 'delivered'])
    expect(events.map(({ kind }) => kind)).toEqual(['relayTrouble'])
  })

  it('F20: written, and the answer to that lost: saying it again finds it written', async () => {
    const { clock, add, row, events, trouble } = world(async () => {})
    trouble.push({ after: new CommitUnknownError('lost') })
    add('m-1')
    await clock.advance(60_000)
    expect([row('m-1').state, row('m-1').epoch]).toEqual(['delivered', 1])
    expect(events.map(({ kind }) => kind)).toEqual(['relayTrouble'])
  })

  it('a mark that the database refuses for good is told and given up: the lease ends, and it is delivered again', async () => {
    let calls = 0
    const { clock, add, row, events, trouble } = world(async () => void calls++)
    trouble.push(new Error('invalid byte sequence'))
    add('m-1')
    await clock.advance(LEASE_MS - 1)
    expect([calls, row('m-1').state]).toEqual([1, 'delivering'])
    await clock.advance(2000)
    expect([calls, row('m-1').state, row('m-1').epoch]).toEqual([2, 'delivered', 2])
    expect(events).toMatchObject([{ kind: 'relayTrouble', detail: expect.stringContaining('invalid byte') }])
  })

  it('F12, F10: of a relay that was overtaken is refused, and told', async () => {
    let resolve = (): void => {}
    const { add, rows, row, events } = world(() => new Promise<void>((done) => (resolve = done)))
    add('m-1')
    await settled()
    rows.set('m-1', { ...row('m-1'), epoch: 2 })
    resolve()
    await settled()
    expect(row('m-1')).toMatchObject({ state: 'delivering', epoch: 2 })
    expect(events).toMatchObject([{ kind: 'deliveryLate', message: { id: 'm-1' }, attempt: 1 }])
  })

  it('P28: a report that throws changes nothing', async () => {
    const { clock, add, row } = world(
      async (_, { attempt }) => {
        if (attempt === 1) throw new Error('no')
      },
      {
        report() {
          throw new Error('report')
        },
      },
    )
    add('m-1')
    await clock.advance(5000)
    expect(row('m-1').state).toBe('delivered')
  })
})

describe('stop', () => {
  it('waits for deliveries, then aborts them and gives their messages back as if untried', async () => {
    const { clock, add, row, relay, events } = world(
      (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    add('m-1')
    await settled()
    const stopped = relay.stop({ graceMs: 3000 })
    await clock.advance(2999)
    expect(row('m-1').state).toBe('delivering')
    await clock.advance(1)
    await stopped
    expect(row('m-1')).toMatchObject({ state: 'waiting', attempts: 0, dueAt: clock.now(), error: null })
    add('m-2')
    await clock.advance(10_000)
    expect([row('m-2').state, events, clock.pending()]).toEqual(['waiting', [], 0])
  })

  it('does not wait for ever for a database that neither answers nor fails', async () => {
    const { clock, add, relay, events, hangs } = world(async () => {})
    hangs()
    add('m-1')
    await settled()
    const stopped = relay.stop({ graceMs: 1000 })
    await clock.advance(60_000)
    await stopped
    expect([relay.running(), events.at(-1)?.detail]).toEqual([1, 'Stopped, although 1 deliveries would not let go.'])
  })

  it('does not wait for a database that is away: it says once more what it has to say, and leaves the rest to the lease', async () => {
    const { clock, add, row, relay, events, trouble } = world(async () => {})
    trouble.push(...Array.from({ length: 100 }, away))
    add('m-1')
    await clock.advance(2000)
    const stopped = relay.stop({ graceMs: 1000 })
    await clock.advance(1000)
    await stopped
    expect([row('m-1').state, relay.running(), clock.pending()]).toEqual(['delivering', 0, 0])
    expect(events.at(-1)).toMatchObject({ kind: 'relayTrouble', detail: expect.stringContaining('lease is over') })
  })
})

describe('options', () => {
  it.each([
    [{ concurrency: 0 }, 'concurrency'],
    [{ leaseMs: 1.5 }, 'leaseMs'],
    [{ pollMs: 2 ** 31 }, 'pollMs'],
    [{ retry: { baseMs: 5, capMs: 4 } }, 'retry.capMs'],
    [{ retry: { maxAttempts: 0 } }, 'retry.maxAttempts'],
    [{ deliver: undefined as unknown as Deliver }, 'deliver'],
  ])('%o cannot be meant', (terms, option) => {
    expect(() => world(async () => {}, terms)).toThrow(expect.objectContaining({ code: 'config', option }))
  })
})
