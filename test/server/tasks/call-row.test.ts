import { describe, expect, it } from 'vitest'
import {
  afterTry,
  type CallRow,
  decideCall,
  heardLate,
  isOpen,
  isThisTry,
  type ServiceKind,
  settledCall,
} from '../../../src/server/tasks/call-row.ts'

const NOW = 1_000_000
const TRANSIT_MS = 60_000
const RETENTION_MS = 600_000

const services = {
  takesKeys: { kind: 'takesKeys', retentionMs: RETENTION_MS, transitMs: TRANSIT_MS },
  canBeAsked: { kind: 'canBeAsked', transitMs: TRANSIT_MS },
  neither: { kind: 'neither', transitMs: TRANSIT_MS },
} as const satisfies Record<string, ServiceKind>
const kinds = ['takesKeys', 'canBeAsked', 'neither'] as const

const wanted = (kind: (typeof kinds)[number], epoch = 2) => ({
  operationId: 'op-1',
  service: services[kind],
  request: '{"amount":1}',
  epoch,
})

const rowOf = (kind: (typeof kinds)[number], part: Partial<CallRow> = {}): CallRow => ({
  operationId: 'op-1',
  kind,
  state: 'begun',
  request: '{"amount":1}',
  value: null,
  epoch: 1,
  attempts: 1,
  begunAt: NOW,
  lastBegunAt: NOW,
  error: null,
  lateAnswer: null,
  note: null,
  ...part,
})

describe('what to do about a call', () => {
  it.each(kinds)('P65: the first try is written down as begun, then sent (%s)', (kind) => {
    const row = rowOf(kind, { epoch: 2 })
    expect(decideCall(null, wanted(kind), NOW)).toEqual({ kind: 'send', row })
  })

  it.each(kinds)('P65: what is known is not sent again (%s)', (kind) => {
    for (const outcome of ['done', 'refused'] as const) {
      const row = rowOf(kind, { state: outcome, value: '{"id":7}' })
      expect(decideCall(row, wanted(kind), NOW)).toEqual({ kind: 'known', outcome, value: '{"id":7}' })
    }
  })

  it.each(kinds)('P65: what only a person can find out stays unknown (%s)', (kind) => {
    const row = rowOf(kind, { state: 'unknown' })
    expect(decideCall(row, wanted(kind), NOW)).toEqual({ kind: 'unknown', row })
  })

  it.each(kinds)(
    'P65: what surely never arrived is sent as if for the first time, with its first request (%s)',
    (kind) => {
      const row = rowOf(kind, { state: 'undelivered', error: 'refused' })
      const decision = decideCall(row, { ...wanted(kind), request: '{"amount":2}' }, NOW + 5)
      expect(decision).toEqual({
        kind: 'send',
        row: { ...row, state: 'begun', epoch: 2, attempts: 2, begunAt: NOW + 5, lastBegunAt: NOW + 5 },
      })
    },
  )

  it('P65, H14: with a key, a broken-off try is sent again under the same id and the same request', () => {
    const decision = decideCall(rowOf('takesKeys'), { ...wanted('takesKeys'), request: '{"amount":2}' }, NOW + 5)
    // Its age counts from the first try.
    const row = rowOf('takesKeys', { epoch: 2, attempts: 2, lastBegunAt: NOW + 5 })
    expect(decision).toEqual({ kind: 'send', row })
  })

  it('P65, P35: but not when the service may have forgotten the id by the time it arrives', () => {
    const last = NOW + RETENTION_MS - TRANSIT_MS
    expect(decideCall(rowOf('takesKeys'), wanted('takesKeys'), last - 1)).toMatchObject({ kind: 'send' })
    expect(decideCall(rowOf('takesKeys'), wanted('takesKeys'), last)).toEqual({
      kind: 'unknown',
      row: rowOf('takesKeys', { state: 'unknown', error: expect.stringContaining('forgotten') }),
    })
  })

  it('P65: nor when the earlier copy went out without an id', () => {
    for (const kind of ['canBeAsked', 'neither'] as const) {
      expect(decideCall(rowOf(kind), wanted('takesKeys'), NOW)).toMatchObject({
        kind: 'unknown',
        row: { state: 'unknown', error: expect.stringContaining('without') },
      })
    }
  })

  it('P65, F11: where it can be asked, it is asked first, and only after the transit', () => {
    const row = rowOf('canBeAsked', { lastBegunAt: NOW + 10 })
    const at = NOW + 10 + TRANSIT_MS
    expect(decideCall(row, wanted('canBeAsked'), at - 1)).toEqual({ kind: 'later', at })
    expect(decideCall(row, wanted('canBeAsked'), at)).toEqual({ kind: 'ask', row: { ...row, epoch: 2 } })
  })

  it('P65: "it did not happen" clears the doubt, and it is sent anew', () => {
    const row = rowOf('canBeAsked')
    const at = NOW + TRANSIT_MS
    expect(decideCall(row, wanted('canBeAsked'), at, true)).toEqual({
      kind: 'send',
      row: { ...row, epoch: 2, attempts: 2, begunAt: at, lastBegunAt: at },
    })
  })

  it('P65: neither: unknown, with the best word there is for it', () => {
    const silent = decideCall(rowOf('neither'), wanted('neither'), NOW)
    expect(silent).toMatchObject({
      kind: 'unknown',
      row: { state: 'unknown', error: expect.stringContaining('nobody') },
    })
    const timedOut = decideCall(rowOf('neither', { error: 'time limit' }), wanted('neither'), NOW)
    expect(timedOut).toMatchObject({ kind: 'unknown', row: { error: 'time limit' } })
  })
})

describe('what a try came to', () => {
  const row = rowOf('takesKeys', { error: 'earlier' })

  it('P65: an answer settles it', () => {
    for (const outcome of ['done', 'refused'] as const) {
      const next = { ...row, state: outcome, value: '1', error: null }
      expect(afterTry(row, { outcome, value: '1' }, true)).toEqual(next)
    }
  })

  it('P65: no answer leaves it as open as it was', () => {
    expect(afterTry(row, { outcome: 'open', error: 'reset' }, false)).toEqual({ ...row, error: 'reset' })
  })

  it('P19: "never arrived" clears the doubt of this try only', () => {
    const report = { outcome: 'undelivered', error: 'refused' } as const
    expect(afterTry(row, report, false)).toEqual({ ...row, state: 'undelivered', error: 'refused' })
    expect(afterTry(row, report, true)).toEqual({ ...row, error: 'refused' })
  })

  it('P63: only the last try of the row may say so', () => {
    expect(isThisTry(row, row)).toBe(true)
    expect(isThisTry({ ...row, epoch: 2 }, row)).toBe(false)
    expect(isThisTry({ ...row, attempts: 2 }, row)).toBe(false)
    expect(isThisTry({ ...row, state: 'refused' }, row)).toBe(false)
  })

  it('P65: open means: it may have taken effect, and nobody knows', () => {
    const open = (['begun', 'undelivered', 'done', 'refused', 'unknown'] as const).filter((state) =>
      isOpen({ ...row, state }),
    )
    expect(open).toEqual(['begun', 'unknown'])
  })
})

describe('what is heard too late', () => {
  const sent = { epoch: 1, attempts: 1 }
  const taken = rowOf('takesKeys', { epoch: 2, attempts: 2 })

  it('P63: is kept as evidence, and changes no state', () => {
    const late = heardLate(taken, sent, { outcome: 'done', value: '{"id":7}' })
    expect(late).toEqual({ ...taken, lateAnswer: '{"epoch":1,"outcome":"done","value":{"id":7}}' })
    expect(heardLate(taken, sent, { outcome: 'undelivered', error: 'refused' })).toMatchObject({
      state: 'begun',
      lateAnswer: '{"epoch":1,"outcome":"undelivered","error":"refused"}',
    })
  })

  it('P63: an answer is not displaced by less', () => {
    const answered = { ...taken, lateAnswer: 'earlier' }
    expect(heardLate(answered, sent, { outcome: 'undelivered', error: 'x' })).toBeNull()
    expect(heardLate(answered, sent, { outcome: 'refused', value: 'null' })).toMatchObject({
      lateAnswer: expect.stringContaining('refused'),
    })
  })

  it('is nothing when it says nothing, or what the row says already, or is about a try that never was written down', () => {
    expect(heardLate(taken, sent, { outcome: 'open', error: 'reset' })).toBeNull()
    const settled = rowOf('takesKeys', { state: 'done', value: '1' })
    expect(heardLate(settled, sent, { outcome: 'done', value: '1' })).toBeNull()
    expect(
      heardLate(rowOf('takesKeys', { attempts: 1 }), { epoch: 2, attempts: 2 }, { outcome: 'done', value: '1' }),
    ).toBeNull()
  })

  it('P65: where a person has spoken, the same word of the service is still news', () => {
    const settled = rowOf('neither', { state: 'done', note: 'seen in the books' })
    expect(heardLate(settled, sent, { outcome: 'done', value: '1' })).toMatchObject({
      state: 'done',
      lateAnswer: expect.stringContaining('done'),
    })
  })
})

describe('what a person found out', () => {
  it('P65: settles what is not settled', () => {
    for (const state of ['begun', 'undelivered', 'unknown'] as const) {
      const row = rowOf('neither', { state })
      expect(settledCall(row, 'done', '1', 'called them')).toEqual({
        ...row,
        state: 'done',
        value: '1',
        note: 'called them',
      })
      // Not to be taken for an answer of the service: it is made once more.
      expect(settledCall(row, 'undelivered', '1', 'not in their books')).toMatchObject({
        state: 'undelivered',
        value: null,
        note: 'not in their books',
      })
    }
    for (const state of ['done', 'refused'] as const) {
      expect(settledCall(rowOf('neither', { state }), 'done', null, 'x')).toBeNull()
    }
  })
})
