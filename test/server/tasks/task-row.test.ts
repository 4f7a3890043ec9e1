import { describe, expect, it } from 'vitest'
import { afterFailure, attemptFailed, plainFailure, workUnknown } from '../../../src/server/tasks/attempt.ts'
import {
  begun,
  claimed,
  isHeld,
  isSettled,
  isUntaken,
  keyStateOf,
  leftUnknown,
  newTask,
  released,
  renewed,
  reopened,
  retried,
  settled,
  type TaskRow,
  told,
  viewOf,
  voidedTask,
} from '../../../src/server/tasks/task-row.ts'

const NOW = 1_000_000
const LEASE_MS = 30_000
const answer = (status: number) => ({ status, headers: [], body: { kind: 'omitted' } }) as const
const waiting = newTask({ input: '{}', retryAfterSeconds: 2 }, NOW)
const inHand: TaskRow = { ...waiting, epoch: 3, attempts: 2, dueAt: NOW + LEASE_MS }
const error = { code: 'carrier_down' }

/** A row in every status, as it comes about. */
const rows: Readonly<Record<string, TaskRow>> = {
  waiting,
  'in hand': inHand,
  'lease over': { ...inHand, dueAt: NOW - 1 },
  'begun, in hand': { ...inHand, effectsBegun: true },
  failed_retryable: { ...inHand, status: 'failed_retryable', dueAt: NOW, error },
  unknown: { ...inHand, status: 'unknown', dueAt: null, error },
  succeeded: { ...inHand, status: 'succeeded', dueAt: null, result: answer(200) },
  failed: { ...inHand, status: 'failed', dueAt: null, result: answer(422) },
  voided: { ...inHand, status: 'voided', dueAt: null },
  "the app's own": { ...newTask({ input: null, retryAfterSeconds: 2 }, NOW), epoch: 3 },
}
const names = Object.keys(rows)

/** What each row becomes; the names that are missing here become null. */
function table(change: (row: TaskRow) => TaskRow | null, expected: Readonly<Record<string, Partial<TaskRow>>>): void {
  const got = names.flatMap((name) => {
    const row = rows[name] ?? waiting
    const next = change(row)
    return next === null ? [] : [[name, next, row] as const]
  })
  expect(got.map(([name]) => name)).toEqual(names.filter((name) => name in expected))
  for (const [name, next, row] of got) expect([name, next]).toEqual([name, { ...row, ...expected[name] }])
}

describe('task rows', () => {
  it('P62: accepted work waits for a worker; without input, for nobody of ours', () => {
    expect(waiting).toMatchObject({ status: 'processing', epoch: 0, attempts: 0, dueAt: NOW, effectsBegun: false })
    expect(rows["the app's own"]).toMatchObject({ input: null, dueAt: null })
  })

  it('P63, F9: what is due is taken with a new epoch, and nothing else is', () => {
    const taken = { status: 'processing', epoch: 4, attempts: 3, dueAt: NOW + LEASE_MS } as const
    table((row) => claimed(row, NOW, LEASE_MS), {
      waiting: { ...taken, epoch: 1, attempts: 1 },
      'lease over': taken,
      failed_retryable: taken,
    })
    // To the millisecond.
    expect(claimed({ ...waiting, dueAt: NOW + 1 }, NOW, LEASE_MS)).toBeNull()
    expect(claimed({ ...waiting, status: 'succeeded' }, NOW, LEASE_MS)).toBeNull()
  })

  it('P63, F10: only its own epoch holds it, and a lease that is over still does', () => {
    expect(names.filter((name) => isHeld(rows[name] ?? waiting, 3))).toEqual([
      'in hand',
      'lease over',
      'begun, in hand',
    ])
    expect(isHeld(inHand, 2)).toBe(false)
    expect(isHeld(inHand, 4)).toBe(false)
  })

  it("P63: what it let go of is still nobody else's, until somebody takes, voids or ends it", () => {
    const untaken = names.filter((name) => isUntaken(rows[name] ?? waiting, 3))
    expect(untaken).toEqual(['in hand', 'lease over', 'begun, in hand', 'failed_retryable', "the app's own"])
    expect(isUntaken(inHand, 2)).toBe(false)
  })

  it('P63: what the holder may say', () => {
    const each = (part: Partial<TaskRow>) => ({ 'in hand': part, 'lease over': part, 'begun, in hand': part })
    const later = NOW + LEASE_MS
    table((row) => renewed(row, 3, NOW, LEASE_MS), each({ dueAt: later }))
    table((row) => released(row, 3, NOW), each({ dueAt: NOW, attempts: 1 }))
    table((row) => begun(row, 3, NOW, LEASE_MS), each({ dueAt: later, effectsBegun: true }))
    table((row) => retried(row, 3, later, error), each({ status: 'failed_retryable', dueAt: later, error }))
    table((row) => leftUnknown(row, 3, error), each({ status: 'unknown', dueAt: null, error }))
    table((row) => settled(row, 3, answer(201)), each({ status: 'succeeded', dueAt: null, result: answer(201) }))
    table((row) => settled(row, 3, answer(400)), each({ status: 'failed', dueAt: null, result: answer(400) }))
  })

  it('P63, F10: to a holder of before, every one of them says no', () => {
    const says = [
      renewed(inHand, 2, NOW, LEASE_MS),
      released(inHand, 2, NOW),
      begun(inHand, 2, NOW, LEASE_MS),
      retried(inHand, 2, NOW, null),
      leftUnknown(inHand, 2, null),
      settled(inHand, 2, answer(200)),
    ]
    expect(says).toEqual(says.map(() => null))
  })

  it('P58, H34: voided only before anything that cannot be taken back, and with a new epoch', () => {
    const voided = { status: 'voided', epoch: 4, dueAt: null, error: null } as const
    table(voidedTask, {
      waiting: { ...voided, epoch: 1 },
      'in hand': voided,
      'lease over': voided,
      failed_retryable: voided,
      "the app's own": voided,
    })
  })

  it('P63: somebody who knows better takes it off the queue', () => {
    const word = { status: 'succeeded', result: answer(200), error: null, retryAfterSeconds: null } as const
    const next = { ...word, retryAfterSeconds: 2, epoch: 4, dueAt: null }
    const open = ['waiting', 'in hand', 'lease over', 'begun, in hand', 'failed_retryable', 'unknown', "the app's own"]
    table((row) => told(row, word), {
      ...Object.fromEntries(open.map((name) => [name, next])),
      waiting: { ...next, epoch: 1 },
    })
    const noted = told(inHand, { ...word, retryAfterSeconds: 9, note: 'seen in the books' })
    expect(noted).toMatchObject({ retryAfterSeconds: 9, note: 'seen in the books' })
    expect(told({ ...inHand, note: 'old' }, word)).toMatchObject({ note: 'old' })
  })

  it('P65: a person lets it go on, with all its attempts', () => {
    const next = { status: 'processing', epoch: 4, attempts: 0, dueAt: NOW, error: null, note: 'again' } as const
    const open = ['waiting', 'in hand', 'lease over', 'begun, in hand', 'failed_retryable', 'unknown']
    table((row) => reopened(row, NOW, 'again'), {
      ...Object.fromEntries(open.map((name) => [name, next])),
      waiting: { ...next, epoch: 1 },
    })
    expect(reopened({ ...inHand, note: 'old' }, NOW, null)).toMatchObject({ note: 'old' })
  })

  it('P64: what a monitor shows, and what the key is', () => {
    const settledNames = names.filter((name) => isSettled(rows[name] ?? waiting))
    expect(settledNames).toEqual(['succeeded', 'failed', 'voided'])
    for (const name of names) {
      const row = rows[name] ?? waiting
      const { status, result, error } = row
      const retryAfterSeconds = settledNames.includes(name) ? null : 2
      expect(viewOf(row, NOW)).toEqual({ status, result, error, retryAfterSeconds, resultExpiresAt: NOW })
      const state = name === 'voided' ? 'voided' : settledNames.includes(name) ? 'finished' : 'accepted'
      expect([name, keyStateOf(row)]).toEqual([name, state])
    }
  })
})

describe('a failed attempt', () => {
  const policy = { baseMs: 1000, capMs: 8000, maxAttempts: 3 }
  const at = (attempts: number) => ({ ...inHand, attempts })

  it('P64, P31: waits longer each time, with full jitter and a cap', () => {
    const generous = { ...policy, maxAttempts: Number.POSITIVE_INFINITY }
    const waits = (random: number) =>
      [1, 2, 3, 4, 5, 500].map((attempts) => {
        const next = afterFailure(at(attempts), 3, plainFailure, { now: NOW, random, policy: generous })
        return (next?.dueAt ?? 0) - NOW
      })
    expect(waits(1)).toEqual([1000, 2000, 4000, 8000, 8000, 8000])
    expect(waits(0.5)).toEqual([500, 1000, 2000, 4000, 4000, 4000])
    expect(waits(0)).toEqual([0, 0, 0, 0, 0, 0])
  })

  it('P64: is retryable, and says what the handler says, when it says', () => {
    const fail = (part: Partial<typeof plainFailure>) =>
      afterFailure(at(1), 3, { ...plainFailure, ...part }, { now: NOW, random: 1, policy })
    expect(fail({})).toMatchObject({ status: 'failed_retryable', dueAt: NOW + 1000, error: attemptFailed })
    expect(fail({ error, afterMs: 5 })).toMatchObject({ status: 'failed_retryable', dueAt: NOW + 5, error })
    // P65: asking earlier would prove nothing.
    expect(fail({ notBefore: NOW + 60_000 })).toMatchObject({ dueAt: NOW + 60_000 })
    expect(fail({ notBefore: NOW - 60_000 })).toMatchObject({ dueAt: NOW + 1000 })
  })

  it('P27, P64: given up as failed only where nothing has begun, else as unknown', () => {
    const giveUp = (part: Partial<TaskRow>) =>
      afterFailure({ ...at(3), ...part }, 3, plainFailure, { now: NOW, random: 1, policy })
    const failed = giveUp({})
    expect(failed).toMatchObject({ status: 'failed', dueAt: null, result: { status: 500 } })
    const body = failed?.result?.body.kind === 'bytes' ? new TextDecoder().decode(failed.result.body.bytes) : ''
    expect(JSON.parse(body)).toMatchObject({ code: 'work_given_up', status: 500 })
    expect(giveUp({ effectsBegun: true })).toMatchObject({ status: 'unknown', error: workUnknown, result: null })
  })

  it('P63: is nothing that a holder of before could say', () => {
    for (const attempts of [1, 3]) {
      for (const effectsBegun of [true, false]) {
        const row = { ...at(attempts), effectsBegun }
        expect(afterFailure(row, 2, plainFailure, { now: NOW, random: 1, policy })).toBeNull()
      }
    }
  })
})
