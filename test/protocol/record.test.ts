import { describe, expect, it } from 'vitest'
import {
  doubtOf,
  firstHandOver,
  type HistoryLine,
  holdsLane,
  isHandedOver,
  isInDoubt,
  wasHeldBack,
  wasUnheard,
} from '../../src/protocol/record.ts'
import { isOpen, isSettled, rank, type State, stateNames } from '../../src/protocol/states.ts'
import { firstAttempt, inDoubt, NOW, record, secondAttempt } from '../support/machine.ts'

const rejected: State = { name: 'rejected' }
const succeeded: State = { name: 'succeeded', by: 'answer' }

describe('facts on disk (P19)', () => {
  it('P19: never handed over, handed over and in doubt are three things', () => {
    expect([isHandedOver(record()), isInDoubt(record())]).toEqual([false, false])
    const refused = record({ state: { name: 'blocked', on: 'credentials' }, handedOver: true })
    expect([isHandedOver(refused), isInDoubt(refused)]).toEqual([true, false])
    const lost = inDoubt({ name: 'waiting', because: 'ambiguous' })
    expect([isHandedOver(lost), isInDoubt(lost)]).toEqual([true, true])
  })

  it('P19, P20: an attempt under way is handed over and in doubt', () => {
    expect([isHandedOver(firstAttempt()), isInDoubt(firstAttempt())]).toEqual([true, true])
    expect(firstHandOver(firstAttempt())).toEqual({ at: NOW, serverAt: null })
    expect(firstHandOver(secondAttempt())).toEqual({ at: NOW - 1000, serverAt: null })
    expect(firstHandOver(record())).toBeNull()
  })

  it('P42: what is unknown is in doubt, what is settled is not', () => {
    expect(isInDoubt(inDoubt({ name: 'unknown', because: 'window_over' }))).toBe(true)
    expect(isInDoubt(inDoubt(rejected))).toBe(false)
  })

  it('P35: the doubt of an attempt keeps both clocks', () => {
    expect(doubtOf({ number: 3, at: 1, serverAt: 2, exact: true })).toEqual({ at: 1, serverAt: 2 })
  })
})

describe('holdsLane (P34)', () => {
  const holds = (kind: 'named' | 'serial' | null, state: State, laneReleased = false): boolean =>
    holdsLane(record({ state, laneReleased, lane: kind === null ? null : { lane: 'l', kind } }))

  it('P34: a serial lane goes on once settled, unknown holds it (H28: no old write after a newer one)', () => {
    expect(holds('serial', { name: 'waiting', because: 'ambiguous' })).toBe(true)
    expect(holds('serial', { name: 'unknown', because: 'window_over' })).toBe(true)
    expect(holds('serial', rejected)).toBe(false)
    expect(holds('serial', succeeded)).toBe(false)
  })

  it('P34, B106, H60: a named lane goes on only after success, or when it is told to', () => {
    expect(holds('named', rejected)).toBe(true)
    expect(holds('named', succeeded)).toBe(false)
    expect(holds('named', rejected, true)).toBe(false)
    expect(holds('named', { name: 'queued' }, true)).toBe(false)
  })

  it('P34: independent intents wait for nobody', () => {
    expect(holds(null, { name: 'queued' })).toBe(false)
  })
})

describe('what a change for the better wakes', () => {
  const waiting: State = { name: 'waiting', because: 'ambiguous' }
  const last = (line: Omit<HistoryLine, 'at'>, state: State = waiting) =>
    record({
      state,
      history: [
        { at: NOW, event: 'done' },
        { at: NOW, ...line },
      ],
    })

  it('P31: a network that came back wakes what nobody answered, not what a server told to wait (P32)', () => {
    expect(wasUnheard(last({ event: 'neverDelivered' }))).toBe(true)
    expect(wasUnheard(last({ event: 'ambiguous' }))).toBe(true)
    expect(wasUnheard(last({ event: 'ambiguous', status: 503 }))).toBe(false)
    expect(wasUnheard(last({ event: 'inProgress' }))).toBe(false)
    expect(wasUnheard(last({ event: 'ambiguous' }, { name: 'unknown', because: 'window_over' }))).toBe(false)
    expect(wasUnheard(record())).toBe(false)
  })

  it('P33, H44: new credentials wake what could not be asked for want of them', () => {
    for (const event of ['credentialsMissing', 'scopeDiffers', 'inquiryUnauthorized']) {
      expect(wasHeldBack(last({ event })), event).toBe(true)
    }
    for (const on of ['credentials', 'scope'] as const) {
      expect(wasHeldBack(last({ event: 'needsCredentials' }, { name: 'blocked', on })), on).toBe(true)
    }
    expect(wasHeldBack(last({ event: 'credentialsMissing' }, { name: 'blocked', on: 'attempts' }))).toBe(false)
    expect(wasHeldBack(last({ event: 'ambiguous' }))).toBe(false)
    expect(wasHeldBack(record())).toBe(false)
  })
})

describe('ranks (P48)', () => {
  it('P48: open < unknown < abandoned < cancelled, rejected, conflicted < succeeded', () => {
    expect(stateNames.filter((name) => isOpen(name))).toEqual([
      'queued',
      'sending',
      'waiting',
      'processing',
      'blocked',
      'cancelling',
    ])
    expect(rank.unknown).toBeLessThan(rank.abandoned)
    expect(rank.abandoned).toBeLessThan(rank.cancelled)
    expect(new Set([rank.cancelled, rank.rejected, rank.conflicted]).size).toBe(1)
    expect(rank.cancelled).toBeLessThan(rank.succeeded)
  })

  it('P42: unknown is neither open nor settled', () => {
    expect([isOpen('unknown'), isSettled('unknown')]).toEqual([false, false])
    expect(stateNames.filter(isSettled)).toEqual(['succeeded', 'rejected', 'conflicted', 'cancelled', 'abandoned'])
  })
})
