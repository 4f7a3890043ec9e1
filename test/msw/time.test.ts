import { createMockServer, delay, hang, together } from 'samekey/msw'
import { virtualClock } from 'samekey/testing'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { brokenBy, codeOf, look, send, statusOf, voidKey } from './send.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** Whether it has settled, without waiting for it. */
function watched<T>(promise: Promise<T>): { readonly settled: () => boolean; readonly promise: Promise<T> } {
  let settled = false
  const done = (): void => {
    settled = true
  }
  promise.then(done, done)
  return { promise, settled: () => settled }
}

describe('B126: time is the test’s', () => {
  it('a delay passes when the virtual clock is advanced, and not before', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock })
    mock.faults.next(delay(1000))
    const answer = watched(send(mock))
    await clock.advance(999)
    expect(answer.settled()).toBe(false)
    await clock.advance(1)
    expect((await answer.promise).status).toBe(201)
  })

  it('under fake timers, the asynchronous advance helper lets it pass', async () => {
    vi.useFakeTimers()
    const mock = createMockServer({ latencyMs: 500 })
    mock.faults.next(delay(500, 'after'))
    const answer = watched(send(mock))
    await vi.advanceTimersByTimeAsync(999)
    expect(answer.settled()).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect((await answer.promise).status).toBe(201)
  })

  it('the answer’s Date and the key’s expiry are by the mock’s clock', async () => {
    const clock = virtualClock(Date.UTC(2030, 0, 1))
    const mock = createMockServer({ clock, retentionMs: 3_600_000, latencyMs: 10_000 })
    const answer = send(mock)
    await clock.advance(10_000)
    const { headers } = await answer
    expect(headers.get('date')).toBe('Tue, 01 Jan 2030 00:00:05 GMT')
    expect(headers.get('idempotency-expires')).toBe('Tue, 01 Jan 2030 01:00:05 GMT')
  })

  it('latency is half on the way in and half on the way out', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock, latencyMs: 100 })
    const answer = watched(send(mock))
    await clock.advance(49)
    expect(mock.effects.total).toBe(0)
    await clock.advance(1)
    expect([mock.effects.total, answer.settled()]).toEqual([1, false])
    await clock.advance(50)
    expect(answer.settled()).toBe(true)
  })
})

describe('F7: a request that takes its time holds its key', () => {
  it('before the commit, others with the key wait and are told "in progress"; afterwards they get the replay', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock })
    mock.faults.next(delay(5000, 'before'))
    const slow = send(mock)
    await clock.advance(0)
    const rival = send(mock)
    expect(await codeOf(await lookedAt(mock))).toBe('absent')
    await clock.advance(2000)
    expect(await codeOf(await rival)).toBe('idempotency_in_progress')
    const patient = send(mock)
    const voiding = voidKey(mock)
    await clock.advance(1500)
    await clock.advance(1500)
    expect((await slow).status).toBe(201)
    expect((await patient).status).toBe(409)
    expect(await statusOf(await voiding)).toBe('succeeded')
    expect(mock.effects.total).toBe(1)
  })

  it('in transit it holds nothing: a late copy finds what came first', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock })
    mock.faults.next(delay(5000, 'transit'))
    const late = send(mock)
    expect(await statusOf(await voidKey(mock))).toBe('voided')
    await clock.advance(5000)
    expect(await codeOf(await late)).toBe('idempotency_voided')
    expect(mock.effects.total).toBe(0)
  })

  it('the last moment before the commit is before it: closing rolls back', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock })
    mock.faults.next(delay(1000, 'before'))
    const lost = brokenBy(send(mock))
    await clock.advance(999)
    mock.disconnect()
    expect(await lost).toBe('ECONNRESET')
    await clock.advance(10)
    expect([mock.effects.total, mock.keys, clock.pending()]).toEqual([0, [], 0])
    expect((await send(mock)).headers.has('idempotent-replayed')).toBe(false)
  })

  const lookedAt = (mock: Parameters<typeof look>[0]) => look(mock)
})

describe('a client that gives up', () => {
  it('learns its own reason at once, and the server goes on', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock })
    mock.faults.next(together(delay(1000, 'transit'), delay(1000, 'after')))
    const abort = new AbortController()
    const reason = new Error('enough')
    const given = mock.fetch('/orders', { method: 'POST', headers: { 'idempotency-key': 'k-1' }, signal: abort.signal })
    await clock.advance(500)
    abort.abort(reason)
    await expect(given).rejects.toBe(reason)
    expect(mock.requests[0]).toMatchObject({ delivered: 'aborted', decided: null })
    await clock.advance(5000)
    expect(mock.requests[0]).toMatchObject({ delivered: 'aborted', decided: 'executed' })
    expect(mock.effects.total).toBe(1)
  })

  it('before it was sent, sends nothing', async () => {
    const mock = createMockServer()
    await expect(mock.fetch('/orders', { signal: AbortSignal.abort() })).rejects.toThrow('aborted')
    expect(mock.requests).toEqual([])
  })

  it('ends a request that hangs, and a body that stalls', async () => {
    for (const where of ['before', 'after', 'body'] as const) {
      const mock = createMockServer()
      mock.faults.next(hang(where))
      const abort = new AbortController()
      const answer = mock.fetch('/orders', {
        method: 'POST',
        headers: { 'idempotency-key': 'k-1' },
        signal: abort.signal,
      })
      const text = answer.then((response) => response.text())
      const seen = watched(text)
      await virtualClock().advance(0)
      expect(seen.settled()).toBe(false)
      abort.abort()
      await expect(text).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
    }
  })
})

describe('B129: closing the mock ends what hangs', () => {
  it.each(['before', 'after', 'body'] as const)('%s', async (where) => {
    const mock = createMockServer()
    mock.faults.next(hang(where))
    const text = send(mock).then((response) => response.text())
    const broken = brokenBy(text)
    await virtualClock().advance(0)
    mock.close()
    expect(await broken).toBe('ECONNRESET')
    expect(await brokenBy(send(mock))).toBe('ECONNREFUSED')
  })
})
