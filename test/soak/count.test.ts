/** The judge is only worth something if it sees what it is there for. */
import { describe, expect, test } from 'vitest'
import type { Told, Wanted } from './book.ts'
import { count, type Evidence, type Violation } from './count.ts'
import type { EffectRow, KeyRow, LogRow, OrderRow, Truth } from './truth.ts'
import type { ClientReport, OrderKind, StoredIntent } from './words.ts'

const wanted = (kind: OrderKind, isCancelled = false): Wanted => ({
  account: 'ann',
  order: { intent: 'i-1', kind, dwellMs: 0 },
  isCancelled,
})
const told = (report: ClientReport): Told => ({ at: 0, from: 'client-1', report })
const isStored = told({ type: 'stored', intent: 'i-1', key: 'k-1' })
const endedAs = (state: string, status: number | null, body: string | null): Told =>
  told({ type: 'ended', intent: 'i-1', key: 'k-1', state, status, body })
const body = JSON.stringify({ intent: 'i-1', orderId: '7' })
const succeeded = endedAs('succeeded', 201, body)
const order: OrderRow = { id: '7', intent: 'i-1', key: 'k-1', account: 'ann', status: 'placed', made_by: 'server-1' }
const effect: EffectRow = { intent: 'i-1', key: 'k-1', order_id: '7', epoch: 1, made_by: 'worker-1' }
const key: KeyRow = {
  key: 'k-1',
  account: 'ann',
  operation: 'orders.create',
  state: 'finished',
  answer_status: 201,
  task: null,
  attempts: null,
}
const log: LogRow = { key: 'k-1', requests: 2, bodies: 1 }

const record = (state: string, more: Partial<StoredIntent> = {}): StoredIntent => ({
  account: 'ann',
  intent: 'i-1',
  key: 'k-1',
  current: true,
  state,
  because: null,
  inDoubt: false,
  attempts: 1,
  status: state === 'succeeded' ? 201 : null,
  body: state === 'succeeded' ? body : null,
  history: [],
  ...more,
})

/** One order that went well, changed in one place or another. */
function verdict({ truth = {}, ...more }: Partial<Omit<Evidence, 'truth'>> & { truth?: Partial<Truth> } = {}) {
  return count({
    wanted: [wanted('order')],
    told: [isStored, succeeded, succeeded],
    stored: [record('succeeded')],
    truth: { orders: [order], effects: [], keys: [key], log: [log], ...truth },
    ...more,
  })
}

const violations = (changes: Parameters<typeof verdict>[0]): [Violation['kind'], string][] =>
  verdict(changes).violations.map(({ kind, what }) => [kind, what])

const none: Partial<Truth> = { orders: [] }

describe('what is as it must be', () => {
  test('one order, told to everybody alike', () => {
    expect(verdict()).toMatchObject({
      intents: 1,
      outcomes: { succeeded: 1 },
      lost: 0,
      doubled: 0,
      wrong: 0,
      unknown: [],
      orders: 1,
      answers: 2,
      violations: [],
    })
  })

  test.for<[string, Parameters<typeof verdict>[0]]>([
    [
      'refused, and nothing is there',
      {
        wanted: [wanted('refused')],
        told: [isStored, endedAs('rejected', 422, '{}')],
        stored: [record('rejected', { status: 422, body: '{}' })],
        truth: none,
      },
    ],
    [
      'cancelled, and the order was taken back',
      {
        wanted: [wanted('later', true)],
        told: [isStored, endedAs('cancelled', null, null)],
        stored: [record('cancelled')],
        truth: { orders: [{ ...order, status: 'taken back' }], keys: [{ ...key, state: 'voided' }] },
      },
    ],
    ['accepted, and done by one worker', { wanted: [wanted('later')], truth: { effects: [effect] } }],
    [
      'unknown, in doubt, whether or not the order is there',
      {
        told: [isStored, endedAs('unknown', null, null)],
        stored: [record('unknown', { inDoubt: true })],
      },
    ],
    [
      'unknown to the first caller, and settled by an answer that came late',
      {
        told: [isStored, endedAs('unknown', null, null), succeeded],
      },
    ],
    [
      'cancelled too late: done, without the body of the answer',
      {
        wanted: [wanted('order', true)],
        told: [isStored, endedAs('succeeded', 201, null)],
        stored: [record('succeeded', { body: null })],
      },
    ],
    [
      'a cancel that came too late was refused',
      {
        told: [isStored, succeeded, told({ type: 'failed', intent: 'i-1', doing: 'cancel', error: 'not_possible: …' })],
      },
    ],
  ])('%s', ([, changes]) => {
    expect(violations(changes)).toEqual([])
  })

  test('answers without a body are counted', () => {
    const { bodiless } = verdict({
      wanted: [wanted('refused')],
      told: [isStored, endedAs('rejected', 422, null)],
      stored: [record('rejected', { status: 422 })],
      truth: none,
    })
    expect(bodiless).toEqual({ rejected: 1 })
  })

  test('unknown ones are listed', () => {
    const { unknown } = verdict({
      told: [isStored],
      stored: [record('unknown', { inDoubt: true })],
      truth: none,
    })
    expect(unknown).toEqual(['i-1'])
  })
})

describe('lost', () => {
  test.for<[string, Parameters<typeof verdict>[0]]>([
    ['it was told to be stored, and no store has it', { told: [isStored], stored: [], truth: { ...none, log: [] } }],
    ['it has no end: it is waiting', { told: [isStored], stored: [record('waiting', { inDoubt: true })] }],
    ['it has no end: it is damaged', { told: [isStored], stored: [record('damaged')] }],
    ['it succeeded, and there is no order', { truth: none }],
    ['it succeeded, and no worker did it', { wanted: [wanted('later')] }],
    [
      'the store has another key than callers were told',
      {
        told: [told({ type: 'stored', intent: 'i-1', key: 'k-0' })],
      },
    ],
    ['there is an order, and no store knows of it', { told: [], stored: [], truth: { log: [] } }],
    ['something was sent that no store knows of (key k-2)', { truth: { log: [log, { ...log, key: 'k-2' }] } }],
  ])('%s', ([what, changes]) => {
    expect(violations(changes)).toContainEqual(['lost', what])
    expect(verdict(changes).lost).toBe(1)
  })
})

describe('doubled', () => {
  test.for<[string, Parameters<typeof verdict>[0]]>([
    ['it was ordered 2 times', { truth: { orders: [order, { ...order, id: '8' }] } }],
    ['it was ordered 2 times', { truth: { orders: [order, { ...order, id: '8', key: 'k-2' }] } }],
    ['a worker did it 2 times', { wanted: [wanted('later')], truth: { effects: [effect, { ...effect, epoch: 2 }] } }],
    ['it has 2 records', { stored: [record('succeeded'), record('succeeded', { key: 'k-2' })] }],
    ['callers were told 2 keys', { told: [isStored, told({ type: 'stored', intent: 'i-1', key: 'k-2' })] }],
  ])('%s', ([what, changes]) => {
    expect(violations(changes)).toContainEqual(['doubled', what])
    expect(verdict(changes).doubled).toBe(1)
  })
})

describe('wrong', () => {
  const rejected = {
    told: [isStored, endedAs('rejected', 422, '{}')],
    stored: [record('rejected', { status: 422, body: '{}' })],
  }
  const cancelled = { told: [isStored, endedAs('cancelled', null, null)], stored: [record('cancelled')] }

  test.for<[string, Parameters<typeof verdict>[0]]>([
    ['it is rejected, and the order is there', { ...rejected, wanted: [wanted('refused')] }],
    ['it is cancelled, and the order is there', { ...cancelled, wanted: [wanted('order', true)] }],
    [
      'it is cancelled, and a worker did it',
      {
        ...cancelled,
        wanted: [wanted('later', true)],
        truth: { orders: [{ ...order, status: 'taken back' }], effects: [effect] },
      },
    ],
    ['its key was voided, and the order is there', { truth: { keys: [{ ...key, state: 'voided' }] } }],
    ['it was rejected with 422, and the server takes such orders', { ...rejected, truth: none }],
    ['it succeeded, and the server refuses such orders', { wanted: [wanted('refused')] }],
    ['it was cancelled, and nobody wanted that', { ...cancelled, truth: none }],
    ['it is unknown, and was never in doubt', { told: [isStored], stored: [record('unknown')] }],
    [
      'somebody was told that it is cancelled, and it is succeeded',
      {
        told: [isStored, succeeded, endedAs('cancelled', null, null)],
      },
    ],
    [
      'its answer is {"intent":"i-1","orderId":"6"}, and its order is 7',
      {
        told: [isStored],
        stored: [record('succeeded', { body: '{"intent":"i-1","orderId":"6"}' })],
      },
    ],
    [
      'it succeeded, and its answer was not asked for again',
      {
        told: [isStored],
        stored: [record('succeeded', { body: null })],
      },
    ],
    ['there is a row of a key that no store knows: k-2', { truth: { orders: [{ ...order, key: 'k-2' }] } }],
    ['it came with 2 different bodies', { truth: { log: [{ ...log, bodies: 2 }] } }],
  ])('%s', ([what, changes]) => {
    expect(violations(changes)).toContainEqual(['wrong', what])
    expect(verdict(changes).wrong).toBe(1)
  })

  test('two callers were given different answers', () => {
    const other = endedAs('succeeded', 201, '{"intent":"i-1","orderId":"8"}')
    expect(violations({ told: [isStored, succeeded, other] })).toContainEqual([
      'wrong',
      expect.stringMatching(/^answers differ: .*7.* and .*8/),
    ])
  })
})

describe('other things that must not be', () => {
  test.for<[string, Parameters<typeof verdict>[0]]>([
    [
      'submit: store_write: full',
      {
        told: [
          isStored,
          succeeded,
          told({ type: 'failed', intent: 'i-1', doing: 'submit', error: 'store_write: full' }),
        ],
      },
    ],
    [
      'it was ordered until the end, and nobody was ever told that it is stored',
      {
        told: [],
        stored: [],
        truth: { ...none, log: [] },
      },
    ],
    ['its row was committed without an answer', { truth: { keys: [{ ...key, state: 'running' }] } }],
    ['its work is unknown to the server', { truth: { keys: [{ ...key, task: 'unknown' }] } }],
    ['there is an order without a key row', { truth: { keys: [] } }],
  ])('%s', ([what, changes]) => {
    expect(violations(changes)).toContainEqual(['other', what])
  })
})
