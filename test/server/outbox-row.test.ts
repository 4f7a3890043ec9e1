import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { errorText } from '../../src/server/error-text.ts'
import { checkDelivered, park } from '../../src/server/outbox/deliver.ts'
import { checkMessageId, checkName, payloadBytes, payloadText } from '../../src/server/outbox/message.ts'
import {
  claimed,
  type DeliveryPolicy,
  delivered,
  failed,
  type OutboxRow,
  released,
  retriedByHand,
  skippedByHand,
} from '../../src/server/outbox/outbox-row.ts'

const NOW = Date.UTC(2026, 11, 1, 12)
const LEASE_MS = 60_000
const policy: DeliveryPolicy = { baseMs: 1000, capMs: 8000, maxAttempts: 3 }
const fresh: OutboxRow = {
  state: 'waiting',
  dueAt: NOW,
  epoch: 0,
  attempts: 0,
  error: null,
  notes: [],
  settledAt: null,
}

const must = <T>(value: T | null): T => {
  if (value === null) throw new Error('It was not changed.')
  return value
}
const take = (row: OutboxRow, now = NOW): OutboxRow => must(claimed(row, now, LEASE_MS))
const fail = (row: OutboxRow, part: Partial<Parameters<typeof failed>[2]> = {}): OutboxRow | null =>
  failed(row, row.epoch, { now: NOW, random: 1, policy, error: 'away', park: false, ...part })

describe('a claim', () => {
  it('P66: takes what is due, for the lease, with a new epoch and an attempt more', () => {
    expect(take(fresh)).toEqual({ ...fresh, state: 'delivering', dueAt: NOW + LEASE_MS, epoch: 1, attempts: 1 })
  })

  it('P66: nobody takes what is not due, behind another one, parked, or at its end', () => {
    const parked = must(fail(take(fresh), { park: true }))
    const done = must(delivered(take(fresh), 1, NOW))
    for (const row of [{ ...fresh, dueAt: NOW + 1 }, { ...fresh, dueAt: null }, take(fresh), parked, done]) {
      expect(claimed(row, NOW, LEASE_MS)).toBeNull()
    }
  })

  it('F12: after the lease it is taken again, and whoever had it is out', () => {
    const first = take(fresh)
    const second = take(first, NOW + LEASE_MS)
    expect(second).toMatchObject({ epoch: 2, attempts: 2 })
    expect(delivered(second, first.epoch, NOW)).toBeNull()
    expect(failed(second, first.epoch, { now: NOW, random: 0, policy, error: '', park: true })).toBeNull()
    expect(released(second, first.epoch, NOW)).toBeNull()
    expect(delivered(second, second.epoch, NOW)).toMatchObject({ state: 'delivered' })
  })

  it('a lease that is over keeps its holder while nobody took the message', () => {
    expect(delivered(take(fresh), 1, NOW + 10 * LEASE_MS)).toMatchObject({ state: 'delivered' })
  })
})

describe('an end of a try', () => {
  it('P66: delivered is final, and forgets the last error', () => {
    const row = must(delivered(take({ ...fresh, error: 'away' }), 1, NOW + 5))
    expect(row).toMatchObject({ state: 'delivered', dueAt: null, error: null, settledAt: NOW + 5 })
    expect([delivered(row, 1, NOW), fail(row), released(row, 1, NOW)]).toEqual([null, null, null])
  })

  it('P31, P66: failed waits for a back-off that doubles up to its cap, and is never lost', () => {
    const never = { policy: { ...policy, maxAttempts: Number.POSITIVE_INFINITY } }
    let row = fresh
    const waits: number[] = []
    for (let attempt = 1; attempt <= 40; attempt += 1) {
      row = must(fail(take({ ...row, dueAt: NOW }), never))
      waits.push((row.dueAt ?? 0) - NOW)
    }
    expect(waits.slice(0, 6)).toEqual([1000, 2000, 4000, 8000, 8000, 8000])
    expect(row).toMatchObject({ state: 'waiting', attempts: 40, error: 'away', settledAt: null })
    expect(must(fail(take(fresh), { random: 0.5 })).dueAt).toBe(NOW + 500)
  })

  it('P66: after so many tries it is parked, or at once when trying is of no use', () => {
    expect(fail(take({ ...fresh, attempts: 1 }))).toMatchObject({ state: 'waiting' })
    const third = fail(take({ ...fresh, attempts: 2 }))
    expect(third).toMatchObject({ state: 'parked', dueAt: null, attempts: 3, error: 'away', settledAt: null })
    expect(fail(take(fresh), { park: true })).toMatchObject({ state: 'parked', attempts: 1 })
  })

  it('a stop costs no try and no wait', () => {
    expect(released(take({ ...fresh, attempts: 4 }), 1, NOW + 7)).toMatchObject({ dueAt: NOW + 7, attempts: 4 })
  })
})

describe("a person's word", () => {
  const parked = must(fail(take({ ...fresh, attempts: 2 })))

  it('P45: "again" is at once, with all tries before it, and the note stays with its time', () => {
    const again = retriedByHand(parked, NOW + 5, 'mended')
    expect(again).toMatchObject({ state: 'waiting', dueAt: NOW + 5, attempts: 0, epoch: parked.epoch + 1 })
    const twice = skippedByHand(again as OutboxRow, NOW + 9, 'no')
    expect((twice as OutboxRow).notes).toEqual([
      { at: NOW + 5, action: 'retry', note: 'mended' },
      { at: NOW + 9, action: 'skip', note: 'no' },
    ])
  })

  it('P45: "never" is final, and fences out who was late with it', () => {
    const late = take(fresh)
    const row = skippedByHand(late, NOW + LEASE_MS, 'no') as OutboxRow
    expect(row).toMatchObject({ state: 'skipped', dueAt: null, settledAt: NOW + LEASE_MS, epoch: 2 })
    expect(delivered(row, late.epoch, NOW)).toBeNull()
    expect(claimed(row, NOW + 10 * LEASE_MS, LEASE_MS)).toBeNull()
  })

  it('P34: nothing while a relay has it, and nothing after its end', () => {
    for (const word of [retriedByHand, skippedByHand]) {
      expect(word(take(fresh), NOW + 1, 'now')).toBe('delivering')
      expect(word(must(delivered(take(fresh), 1, NOW)), NOW, 'now')).toBe('settled')
    }
  })
})

describe('what is stored', () => {
  it('P66: a payload comes back byte for byte, whatever is in it', () => {
    const text = '\uFEFF{"nul":"\u0000","emoji":"\u{1F375}","ä":1}'
    expect(payloadText(payloadBytes(text))).toBe(text)
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    expect(payloadBytes(bytes)).toBe(bytes)
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (any) => {
        expect(payloadText(payloadBytes(any))).toBe(any)
      }),
    )
  })

  it('P66: what would be changed by storing it is refused before the database sees it', () => {
    expect(() => payloadBytes('half: \uD83C')).toThrow(/payload: .*surrogate/)
    expect(() => payloadBytes({ id: 7 })).toThrow(/JSON.stringify/)
    for (const name of ['', 'a\0b', '\uDC00', 'x'.repeat(501), 7, undefined]) {
      expect(() => checkName('topic', name)).toThrow(/^topic: /)
    }
    expect(checkName('topic', 'x'.repeat(500))).toHaveLength(500)
    expect(() => checkMessageId('order-7')).toThrow(/UUID/)
    expect(checkMessageId('018F0F3E-7B1C-7CC2-9F5D-2D5A0C3B1E4F')).toBe('018f0f3e-7b1c-7cc2-9f5d-2d5a0c3b1e4f')
  })

  it('P51: of an error, the message and nothing else, of bearable length and without NUL', () => {
    const error = Object.assign(new Error('no\0 way'), { headers: { authorization: 'secret' } })
    expect(errorText(error)).toBe('no way')
    expect(errorText(new Error('x'.repeat(5000)))).toHaveLength(1000)
    expect(errorText({ token: 'secret' })).toBe('Something was thrown that is no Error.')
    expect(errorText('plain')).toBe('plain')
  })

  it('P66: a deliver that comes to an answer, and not to nothing, counts as failed', () => {
    expect([checkDelivered(undefined), checkDelivered(null)]).toEqual([null, null])
    expect(checkDelivered(park('unknown topic'))).toEqual({ outcome: 'park', reason: 'unknown topic' })
    expect(() => checkDelivered(new Response(null, { status: 500 }))).toThrow(/resolve with nothing/)
  })
})
