import { describe, expect, it } from 'vitest'
import { updates } from '../../src/protocol/updates.ts'
import { context, EVENTS, firstAttempt, NOW, record, secondAttempt } from '../support/machine.ts'

const keepDoubt = (of: ReturnType<typeof record>, serverNow: number | null) =>
  updates.keepDoubt(of, EVENTS.ambiguous, context({ times: { now: NOW + 5000, serverNow } })).doubt

describe('section 16: when the first hand-over was by the server’s clock', () => {
  it('the first attempt’s own answer brings the first date: carried back by the attempt’s duration', () => {
    const first = firstAttempt()
    const at = first.state.name === 'sending' ? first.state.attempt.at : 0
    expect(keepDoubt(first, NOW - 100_000)).toEqual({ at, serverAt: NOW - 100_000 - (NOW + 5000 - at) })
  })

  it('a clock that stepped back meanwhile makes it no later than the answer', () => {
    const first = firstAttempt()
    const at = first.state.name === 'sending' ? first.state.attempt.at : 0
    const times = { now: at - 60_000, serverNow: NOW }
    expect(updates.keepDoubt(first, EVENTS.ambiguous, context({ times })).doubt).toEqual({ at, serverAt: NOW })
  })

  it('without a date, for an earlier attempt, or without a hand-over, nothing is made up', () => {
    const second = secondAttempt()
    expect(keepDoubt(firstAttempt(), null)?.serverAt).toBeNull()
    expect(keepDoubt(second, NOW)).toEqual(second.doubt)
    expect(keepDoubt(record(), NOW)).toBeNull()
  })
})
