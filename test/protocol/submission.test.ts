import { describe, expect, it } from 'vitest'
import { type FingerprintInput, fingerprint } from '../../src/protocol/fingerprint.ts'
import type { IntentRecord } from '../../src/protocol/record.ts'
import { isOpen, type State } from '../../src/protocol/states.ts'
import { decideSubmit, isForgettable, type SubmitDecision } from '../../src/protocol/submission.ts'
import { inDoubt, MONITOR, NOW, record, sending } from '../support/machine.ts'

const order = (amount: number): FingerprintInput => ({
  method: 'POST',
  url: 'https://api.example.com/orders',
  operation: 'orders.create',
  headers: [['content-type', 'application/json']],
  body: { kind: 'json', text: JSON.stringify({ amount }) },
})
const SAME = order(1)
const OTHER = order(2)

const states: readonly State[] = [
  { name: 'queued' },
  sending(),
  { name: 'waiting', because: 'ambiguous' },
  { name: 'processing', monitor: MONITOR },
  { name: 'blocked', on: 'credentials' },
  { name: 'cancelling', purpose: 'cancel' },
  { name: 'unknown', because: 'window_over' },
  { name: 'succeeded', by: 'answer' },
  { name: 'rejected' },
  { name: 'conflicted' },
  { name: 'cancelled', because: 'by_app' },
  { name: 'abandoned', mayStillHappen: true, freed: false },
]
const freed: State = { name: 'abandoned', mayStillHappen: true, freed: true }
const mendable = ['rejected', 'cancelled']

const at = (state: State, change: Partial<IntentRecord> = {}): IntentRecord =>
  record({ state, fingerprint: fingerprint(SAME), ...change })
const submit = (
  current: IntentRecord | undefined,
  input = SAME,
  wish: Partial<Parameters<typeof decideSubmit>[2]> = {},
): SubmitDecision => decideSubmit(current, input, { again: false, key: null, ...wish })

describe('decideSubmit', () => {
  it('P6: a free name is taken', () => {
    expect(submit(undefined)).toBe('create')
    expect(submit(undefined, SAME, { again: true, key: 'k' })).toBe('create')
  })

  it.each(states)('P6, P8, B02, H20: the same content again joins what is $name (no second key)', (state) => {
    expect(submit(at(state))).toBe('join')
  })

  it.each(states)(
    'P7, B16, H56: other content is a typed error while it is $name, unless the refusal was mended',
    (state) => {
      expect(submit(at(state), OTHER)).toBe(mendable.includes(state.name) ? 'supersede' : 'mismatch')
    },
  )

  it.each(states)(
    'P7: "again" takes a new key after rejected and cancelled only, and joins what is $name otherwise',
    (state) => {
      expect(submit(at(state), SAME, { again: true })).toBe(mendable.includes(state.name) ? 'supersede' : 'join')
      const other = mendable.includes(state.name) ? 'supersede' : 'mismatch'
      expect(submit(at(state), OTHER, { again: true })).toBe(other)
    },
  )

  it('H56: version 2 of a document is not answered with version 1 (no lost write)', () => {
    expect(submit(at({ name: 'succeeded', by: 'answer' }), OTHER)).toBe('mismatch')
  })

  it.each(states)("P5, B01: another key of the caller's is refused, never replaced: $name", (state) => {
    expect(submit(at(state), SAME, { key: 'another' })).toBe('other_key')
    expect(submit(at(state), SAME, { key: 'key-42' })).toBe('join')
  })

  it('P5, P7: a mended submit may bring a new key, but not the old one with other content', () => {
    const rejected = at({ name: 'rejected' }, { keyOrigin: 'given' })
    expect(submit(rejected, OTHER, { key: 'another' })).toBe('supersede')
    expect(submit(rejected, OTHER, { key: 'key-42' })).toBe('mismatch')
    expect(submit(rejected, SAME, { key: 'key-42', again: true })).toBe('join')
  })

  it('P45, H30: force frees the id for any content', () => {
    expect(submit(at(freed))).toBe('supersede')
    expect(submit(at(freed), OTHER)).toBe('supersede')
  })

  it('P8, P11: a derived name is never freed: its key would come out the same', () => {
    for (const state of [freed, ...states]) {
      const derived = at(state, { keyOrigin: 'derived' })
      expect(submit(derived)).toBe('join')
      expect(submit(derived, SAME, { again: true })).toBe('join')
      expect(submit(derived, OTHER)).toBe('mismatch')
    }
  })

  it('P16: a fingerprint of an unknown version is never taken for the same', () => {
    const old = { version: '0', digest: fingerprint(SAME).digest, rules: {} }
    expect(submit(at({ name: 'queued' }, { fingerprint: old }))).toBe('mismatch')
    expect(submit(at({ name: 'rejected' }, { fingerprint: old }))).toBe('supersede')
  })

  it('P16: it is compared under the rules of its own time', () => {
    const lenient = fingerprint(SAME, { omit: ['/amount'] })
    expect(submit(at({ name: 'queued' }, { fingerprint: lenient }), OTHER)).toBe('join')
  })

  it('P7, P16: registering an operation later makes no other intent of what was submitted without', () => {
    const unnamed = { ...SAME, operation: 'POST /orders' }
    const before = at(
      { name: 'queued' },
      { registered: false, operation: 'POST /orders', fingerprint: fingerprint(unnamed) },
    )
    expect(submit(before)).toBe('join')
    expect(submit(before, OTHER)).toBe('mismatch')
    expect(submit({ ...before, registered: true })).toBe('mismatch')
  })

  it('P14: content that cannot be compared safely is an error, not "another content"', () => {
    const junk: FingerprintInput = { ...SAME, body: { kind: 'json', text: '{"a":1,"a":2}' } }
    expect(() => submit(at({ name: 'rejected' }), junk)).toThrow()
  })
})

describe('isForgettable', () => {
  it.each([freed, ...states])('P8: only what is settled and cannot happen any more: $name', (state) => {
    const settled = ['succeeded', 'rejected', 'conflicted', 'cancelled'].includes(state.name)
    expect(isForgettable(at(state))).toBe(settled || state === freed)
    expect(isForgettable(inDoubt(state))).toBe(settled || state === freed)
    if (isOpen(state.name)) expect(isForgettable(at(state))).toBe(false)
  })

  it('P8: a derived name is never freed', () => {
    for (const state of [freed, ...states]) expect(isForgettable(at(state, { keyOrigin: 'derived' }))).toBe(false)
  })

  it('P34, F23: nor is the head of a stopped lane, before the lane is told to go on', () => {
    const head = { lane: { lane: 'l', kind: 'named' }, settledAt: NOW } as const
    expect(isForgettable(at({ name: 'rejected' }, head))).toBe(false)
    expect(isForgettable(at({ name: 'rejected' }, { ...head, laneReleased: true }))).toBe(true)
    expect(isForgettable(at({ name: 'succeeded', by: 'answer' }, head))).toBe(true)
  })
})
