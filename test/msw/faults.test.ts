import {
  accepted,
  always,
  captivePortal,
  commitThenDrop,
  commitUnknown,
  createMockServer,
  cutBody,
  damaged,
  delay,
  dropBeforeCommit,
  expired,
  type Fault,
  hang,
  hideHeaders,
  inProgress,
  malformedMonitor,
  noFault,
  redirect,
  refuseConnection,
  status,
  storedFailure,
  together,
  unavailable,
  voided,
} from 'samekey/msw'
import { virtualClock } from 'samekey/testing'
import { describe, expect, it } from 'vitest'
import { brokenBy, codeOf, look, send, voidKey } from './send.ts'

/** What became of one request under one fault. */
async function under(fault: Fault) {
  const clock = virtualClock()
  const mock = createMockServer({ clock })
  mock.faults.next(fault)
  const answer = send(mock).then(
    (response) => response,
    (error: unknown) => error,
  )
  await clock.advance(60_000)
  const effects = mock.effects.total
  mock.disconnect()
  return { mock, answer: await answer, effects }
}

describe('B128: each fault has the effect count that its commit point says', () => {
  const counts: [fault: Fault, effects: number, sees: number | 'network error'][] = [
    [noFault(), 1, 201],
    [refuseConnection(), 0, 'network error'],
    [dropBeforeCommit(), 0, 'network error'],
    [commitThenDrop(), 1, 'network error'],
    [cutBody(), 1, 201],
    [hang('before'), 0, 'network error'],
    [hang('after'), 1, 'network error'],
    [hang('body'), 1, 201],
    [delay(1000, 'transit'), 1, 201],
    [delay(1000, 'before'), 1, 201],
    [delay(1000, 'after'), 1, 201],
    [hideHeaders(), 1, 201],
    [status(503), 0, 503],
    [redirect(307, '/elsewhere'), 0, 307],
    [captivePortal(), 0, 200],
    [inProgress(), 0, 409],
    [unavailable(), 0, 503],
    [expired(), 0, 409],
    [voided(), 0, 409],
    [storedFailure(), 0, 500],
    [commitUnknown('committed'), 1, 503],
    [commitUnknown('rolledBack'), 0, 503],
    [damaged('committed'), 1, 'network error'],
    [damaged('rolledBack'), 0, 'network error'],
    [accepted(), 0, 202],
  ]

  it.each(counts.map(([fault, effects, sees]) => [fault.name, fault, effects, sees] as const))(
    '%s',
    async (_name, fault, effects, sees) => {
      const seen = await under(fault)
      expect(seen.effects).toBe(effects)
      expect(seen.answer instanceof Response ? seen.answer.status : 'network error').toBe(sees)
      if (sees === 'network error') expect(seen.answer).toBeInstanceOf(TypeError)
    },
  )

  it('and a second request finds exactly that', async () => {
    for (const [fault, effects] of counts) {
      // These say something about the key for good.
      if (/expired|voided|storedFailure|accepted|damaged/.test(fault.name)) continue
      const { mock } = await under(fault)
      // The script of this one is used up; the truth is in the row.
      const second = await send(mock)
      expect([fault.name, second.headers.get('idempotent-replayed')]).toEqual([
        fault.name,
        effects === 1 ? 'true' : null,
      ])
      expect(mock.effects.total).toBe(1)
      expect(mock.orders).toMatchObject([{ value: { item: 'tea' } }])
    }
  })

  it('a replay under a fault executes nothing', async () => {
    for (const fault of [commitThenDrop(), cutBody(), hideHeaders(), storedFailure(), accepted(), voided()]) {
      const mock = createMockServer()
      await send(mock)
      mock.faults.next(fault)
      await send(mock).catch(() => {})
      expect([fault.name, mock.effects.total, mock.requests[1]?.decided]).toEqual([fault.name, 1, 'replayed'])
    }
  })
})

describe('what the client sees', () => {
  it('a connection that was never made says so, and a broken one does not', async () => {
    const mock = createMockServer()
    mock.faults.next(refuseConnection(), dropBeforeCommit(), commitThenDrop())
    expect(await brokenBy(send(mock))).toBe('ECONNREFUSED')
    expect(await brokenBy(send(mock))).toBe('ECONNRESET')
    expect(await brokenBy(send(mock))).toBe('ECONNRESET')
  })

  it('cutBody: status, headers and half of the body, then a network error', async () => {
    const mock = createMockServer()
    mock.faults.next(cutBody())
    const response = await send(mock)
    expect(response.headers.get('idempotency-expires')).not.toBeNull()
    const reader = response.body?.getReader()
    const first = await reader?.read()
    expect(new TextDecoder().decode(first?.value)).toBe('{"id":1,"it')
    await expect(reader?.read()).rejects.toThrow(TypeError)
    expect(response.headers.get('content-length')).toBe(String('{"id":1,"item":"tea"}'.length))
  })

  it('cutBody of an answer without a body is refused: there is nothing to cut', async () => {
    const mock = createMockServer()
    mock.faults.next(together(status(204), cutBody()))
    await expect(send(mock)).rejects.toThrow('no body to cut')
  })

  it('a captive portal is a page without the proof', async () => {
    const { answer } = await under(captivePortal())
    const { headers } = answer as Response
    expect([headers.get('content-type'), headers.get('idempotency-expires')]).toEqual(['text/html', null])
  })

  it('status: body as text, bytes or JSON, and headers', async () => {
    const mock = createMockServer()
    mock.faults.next(
      status(503, { 'Retry-After': '7' }, 'busy'),
      status(500, {}, { a: 1 }),
      status(502, {}, Uint8Array.of(65)),
    )
    const [text, json, bytes] = [await send(mock), await send(mock), await send(mock)]
    expect([text.headers.get('retry-after'), await text.text()]).toEqual(['7', 'busy'])
    expect([json.headers.get('content-type'), await json.json()]).toEqual(['application/json', { a: 1 }])
    expect(await bytes.text()).toBe('A')
  })

  it('hideHeaders: the answer without what a page on another origin could not read', async () => {
    const { answer } = await under(hideHeaders())
    const shown = [...(answer as Response).headers.keys()]
    expect(shown).toEqual(['content-length', 'content-type'])
  })

  it('inProgress(n): n requests are told to wait, the next one is executed', async () => {
    const mock = createMockServer()
    mock.faults.next(inProgress(2))
    const [first, second, third] = [await send(mock), await send(mock), await send(mock)]
    expect([await codeOf(first), first.headers.get('retry-after')]).toEqual(['idempotency_in_progress', '1'])
    expect(await codeOf(second)).toBe('idempotency_in_progress')
    expect([third.status, mock.effects.total]).toEqual([201, 1])
  })

  it('voided and expired stay so', async () => {
    const mock = createMockServer()
    mock.faults.next(voided())
    mock.faults.forKey('k-2', expired())
    for (let n = 0; n < 2; n++) {
      expect(await codeOf(await send(mock))).toBe('idempotency_voided')
      expect(await codeOf(await send(mock, 'k-2'))).toBe('idempotency_expired')
    }
    expect(await codeOf(await look(mock, 'k-2'))).toBe('idempotency_expired')
    expect(await codeOf(await voidKey(mock, 'k-2'))).toBe('idempotency_expired')
    expect(mock.effects.total).toBe(0)
  })

  it('storedFailure: F18, the 500 is from behind the key and is replayed for ever', async () => {
    const mock = createMockServer()
    mock.faults.next(storedFailure())
    const first = await send(mock)
    const second = await send(mock)
    expect([first.status, first.headers.has('idempotency-expires'), first.headers.has('idempotent-replayed')]).toEqual([
      500,
      true,
      false,
    ])
    expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([500, 'true'])
    expect([mock.effects.total, mock.orders]).toEqual([0, []])
  })

  it('F20: a connection lost in COMMIT says that nobody knows, and the row tells the next request', async () => {
    for (const truth of ['committed', 'rolledBack'] as const) {
      const mock = createMockServer()
      mock.faults.next(commitUnknown(truth))
      expect(await codeOf(await send(mock))).toBe('outcome_unknown')
      const next = await send(mock)
      expect(next.headers.get('idempotent-replayed')).toBe(truth === 'committed' ? 'true' : null)
      expect(mock.effects.total).toBe(1)
    }
  })

  it('F21: a damaged row is never executed and never replayed, whatever the truth is', async () => {
    for (const truth of ['committed', 'rolledBack'] as const) {
      const mock = createMockServer()
      mock.faults.next(damaged(truth))
      expect(await brokenBy(send(mock))).toBe('ECONNRESET')
      const codes = [await codeOf(await send(mock)), await codeOf(await look(mock)), await codeOf(await voidKey(mock))]
      expect(codes).toEqual(Array(3).fill('idempotency_inconsistent'))
      expect([mock.effects.total, mock.orders.length]).toEqual(truth === 'committed' ? [1, 1] : [0, 0])
      expect(mock.keys).toMatchObject([{ key: 'k-1', row: { state: 'running', answer: null } }])
    }
  })

  it('questions about a key break too', async () => {
    const mock = createMockServer()
    await send(mock)
    mock.faults.lookups.next(malformedMonitor(), unavailable(), dropBeforeCommit())
    mock.faults.voids.next(commitThenDrop(), inProgress())
    await expect((await look(mock)).json()).rejects.toThrow(SyntaxError)
    expect(await codeOf(await look(mock))).toBe('idempotency_unavailable')
    expect(await brokenBy(look(mock))).toBe('ECONNRESET')
    expect(await brokenBy(voidKey(mock, 'k-9'))).toBe('ECONNRESET')
    expect(mock.keys.at(-1)).toMatchObject({ key: 'k-9', row: { state: 'voided' } })
    expect(await codeOf(await voidKey(mock))).toBe('idempotency_in_progress')
  })
})

describe('scripts', () => {
  it('are used up in order, the key’s before the intent’s before the operation’s before the next', async () => {
    const mock = createMockServer()
    mock.faults.next(status(501), status(502))
    mock.faults.forOperation('orders.create', status(503))
    mock.faults.forIntent(2, status(504))
    mock.faults.forKey('a', status(505), noFault())
    const seen = []
    for (const key of ['a', 'a', 'b', 'b', 'c', 'c', 'd']) seen.push((await send(mock, key)).status)
    expect(seen).toEqual([505, 201, 504, 503, 501, 502, 201])
    expect(mock.faults.left).toBe(0)
  })

  it('always is never used up; clear forgets', async () => {
    const mock = createMockServer()
    mock.faults.next(status(501))
    mock.faults.forOperation('orders.create', always(status(503)))
    expect([(await send(mock)).status, (await send(mock)).status, mock.faults.left]).toEqual([503, 503, 1])
    mock.faults.clear()
    expect([(await send(mock)).status, mock.faults.left]).toEqual([201, 0])
  })

  it('several faults of one request happen at their stages', async () => {
    const clock = virtualClock()
    const mock = createMockServer({ clock })
    mock.faults.next(together(delay(10, 'transit'), delay(20, 'before'), delay(30, 'after'), commitThenDrop()))
    const lost = brokenBy(send(mock))
    await clock.advance(59)
    expect([mock.effects.total, mock.requests[0]?.delivered]).toEqual([1, null])
    await clock.advance(1)
    expect(await lost).toBe('ECONNRESET')
  })

  it('what the mock does not model is refused when it is scripted', () => {
    const mock = createMockServer()
    const { faults } = mock
    expect(() => together(status(500), commitUnknown('committed'))).toThrow('has ended')
    expect(() => together(dropBeforeCommit(), delay(1, 'after'))).toThrow('has ended')
    expect(() => together(refuseConnection(), cutBody())).toThrow('has ended')
    expect(() => together(inProgress(), accepted())).toThrow('has ended')
    expect(() => together(expired(), storedFailure())).toThrow('has ended')
    expect(() => together(cutBody(), commitThenDrop())).toThrow('two things at one stage')
    expect(() => together(malformedMonitor(), hang('after'), voided())).toThrow(/has ended|no request/)
    expect(() => together(inProgress(2), delay(1, 'after'))).toThrow('more than one request')
    expect(() => together(hideHeaders(), malformedMonitor(), noFault())).not.toThrow()
    expect(() => faults.lookups.next(accepted())).toThrow('cannot happen')
    expect(() => faults.next(malformedMonitor())).toThrow('cannot happen')
    expect(() => faults.forOperation('orders.crate', cutBody())).toThrow('orders.create')
    expect(() => faults.forIntent(0, cutBody())).toThrow('from 1')
    expect(() => faults.next('cutBody' as unknown as Fault)).toThrow('is not a fault')
    expect(() => faults.next(cutBody as unknown as Fault)).toThrow('is not a fault')
    expect(() => always({ ...cutBody() })).toThrow('is not a fault')
    expect(() => delay(-1)).toThrow('delay')
    expect(() => delay(2 ** 31)).toThrow('delay')
    expect(() => status(199)).toThrow('200 to 599')
    expect(() => inProgress(0)).toThrow('how often')
    expect(() => accepted({ ends: [] })).toThrow('how it ends')
    expect(faults.left).toBe(0)
  })
})
