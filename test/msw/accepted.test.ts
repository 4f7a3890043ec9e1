import { accepted, commitThenDrop, createMockServer, delay, together } from 'samekey/msw'
import { accepted as acceptedAnswer, json, refuse } from 'samekey/server'
import { describe, expect, it } from 'vitest'
import { codeOf, look, send, statusOf, voidKey } from './send.ts'

describe('accepted work', () => {
  it('202 with a monitor, which says processing as often as scripted, and then the result with one effect', async () => {
    const mock = createMockServer()
    mock.faults.next(accepted({ processing: 2, retryAfterSeconds: 5 }))
    const first = await send(mock)
    expect([first.status, first.headers.get('location'), first.headers.get('retry-after')]).toEqual([
      202,
      '/keys/orders.create/k-1',
      '5',
    ])
    const monitor = new URL(first.headers.get('location') ?? '', 'https://api.test')
    const said = []
    for (let n = 0; n < 4; n++) {
      said.push([await statusOf(await mock.fetch(monitor)), mock.effects.total])
    }
    expect(said).toEqual([
      ['processing', 0],
      ['processing', 0],
      ['succeeded', 1],
      ['succeeded', 1],
    ])
    expect(await (await look(mock)).json()).toMatchObject({ response: { status: 201, body: '{"id":1,"item":"tea"}' } })
    expect(mock.orders).toMatchObject([{ id: 1, value: { item: 'tea' } }])
  })

  it('a repetition of the POST gets the stored 202, executed once', async () => {
    const mock = createMockServer()
    mock.faults.next(together(accepted(), commitThenDrop()))
    await expect(send(mock)).rejects.toThrow(TypeError)
    const again = await send(mock)
    expect([again.status, again.headers.get('idempotent-replayed'), await statusOf(again)]).toEqual([
      202,
      'true',
      'processing',
    ])
  })

  it.each([
    ['failed', 0],
    ['unknown', 0],
    ['voided', 0],
  ] as const)('can end as %s, for good, with %i effects', async (end, effects) => {
    const mock = createMockServer()
    mock.faults.next(accepted({ processing: 0, ends: end }))
    await send(mock)
    for (let n = 0; n < 2; n++) expect(await statusOf(await look(mock))).toBe(end)
    expect(mock.effects.total).toBe(effects)
    if (end === 'voided') {
      expect(await codeOf(await send(mock))).toBe('idempotency_voided')
      expect(await statusOf(await voidKey(mock))).toBe('voided')
    }
  })

  it('P64: may fail on the way and be tried again by the server', async () => {
    const mock = createMockServer()
    mock.faults.next(accepted({ processing: 1, ends: ['failed_retryable', 'processing', 'succeeded'] }))
    await send(mock)
    const said = []
    for (let n = 0; n < 5; n++) said.push(await statusOf(await look(mock)))
    expect(said).toEqual(['processing', 'failed_retryable', 'processing', 'succeeded', 'succeeded'])
    expect(mock.effects.total).toBe(1)
  })

  it('two looks at one moment finish it once', async () => {
    const mock = createMockServer()
    mock.faults.next(accepted({ processing: 0 }))
    await send(mock)
    await Promise.all([look(mock), look(mock)])
    expect([mock.effects.total, mock.orders.length]).toEqual([1, 1])
  })

  it('is begun by the commit: what is rolled back is not accepted', async () => {
    const mock = createMockServer()
    mock.faults.next(together(accepted(), delay(1000, 'before')))
    const lost = send(mock).catch(() => {})
    await new Promise(setImmediate)
    mock.disconnect()
    await lost
    expect([await codeOf(await look(mock)), mock.keys]).toEqual(['absent', []])
  })

  it('complete and fail end it when the test says so', async () => {
    const mock = createMockServer()
    mock.faults.next(...['a', 'b', 'c', 'd'].map(() => accepted({ ends: 'processing' })))
    for (const key of ['a', 'b', 'c', 'd']) await send(mock, key)
    expect(await mock.complete('a')).toBe(true)
    expect(await mock.complete('b', json(200, { own: 1 }))).toBe(true)
    expect(await mock.complete('c', refuse(410, { gone: 1 }))).toBe(true)
    expect(await mock.fail('d', 400, { why: 1 })).toBe(true)
    const shown = async (key: string) => ((await (await look(mock, key)).json()) as { response?: object }).response
    expect([await shown('a'), await shown('b'), await shown('c'), await shown('d')]).toMatchObject([
      { status: 201, body: '{"id":1,"item":"tea"}' },
      { status: 200, body: '{"own":1}' },
      { status: 410, body: '{"gone":1}' },
      { status: 400, body: '{"why":1}' },
    ])
    expect(['a', 'b', 'c', 'd'].map((key) => mock.effects.forKey(key))).toEqual([1, 1, 0, 0])
    expect([await mock.complete('a'), await mock.complete('nobody'), mock.effects.total]).toEqual([false, false, 2])
  })

  it('an operation may accept by itself, and is finished with an answer', async () => {
    const mock = createMockServer({
      operations: { 'orders.create': { path: '/orders', execute: () => acceptedAnswer() } },
    })
    expect((await send(mock)).status).toBe(202)
    expect([await statusOf(await look(mock)), mock.effects.total]).toEqual(['processing', 0])
    await expect(mock.complete('k-1')).rejects.toThrow('answer')
    expect(await mock.complete('k-1', json(200, {}))).toBe(true)
    expect([await statusOf(await look(mock)), mock.effects.total]).toEqual(['succeeded', 1])
  })
})
