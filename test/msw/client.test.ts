import { createClient } from 'samekey'
import { samekey } from 'samekey/dialects'
import { memoryStore } from 'samekey/memory'
import { createMockServer, damaged, type MockServer, workerDies } from 'samekey/msw'
import { accepted, finish, json, retry } from 'samekey/server'
import { afterEach, describe, expect, it } from 'vitest'

const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

function clientOf(mock: MockServer) {
  const { baseUrl, keysUrl, fetch } = mock
  const options = { dialect: samekey, anonymous: true, store: memoryStore(), retry: { baseMs: 1 } } as const
  const operations = {
    'orders.create': {
      match: ({ method, url }: { method: string; url: URL }) => method === 'POST' && url.pathname === '/orders',
    },
  }
  const api = createClient({ baseUrl, keysUrl, fetch, operations, ...options })
  closing.push(() => api.stop())
  return api
}

describe('a client on the mock', () => {
  it('F9, H32: a 202 ends by real work, through a dead worker and a second try, with one effect', async () => {
    const mock = createMockServer({
      worker: { leaseMs: 20, retry: { baseMs: 5 } },
      operations: {
        'orders.create': {
          path: '/orders',
          execute: () => accepted({ work: { item: 'tea' }, retryAfterSeconds: 0 }),
          work: (task, { createOrder }) =>
            task.attempt < 3 ? retry() : finish((transaction) => json(201, createOrder(transaction, task.work))),
        },
      },
    })
    closing.push(() => mock.close())
    mock.faults.work.next(workerDies())
    const outcome = await clientOf(mock)
      .post('orders', { intent: 'checkout:42', json: { item: 'tea' } })
      .outcome()
    expect(outcome.state).toBe('succeeded')
    expect([mock.effects.total, mock.requests.filter(({ kind }) => kind === 'submit').length]).toEqual([1, 1])
  })

  it('F21: a damaged row is neither success nor refusal: the intent stays open, in doubt, and nothing is doubled', async () => {
    const mock = createMockServer()
    mock.faults.next(damaged('committed'))
    const write = clientOf(mock).post('orders', { intent: 'checkout:42', json: { item: 'tea' }, waitMs: 200 })
    expect(await write.outcome()).toMatchObject({ state: 'waiting', inDoubt: true })
    expect(mock.requests.map(({ decided }) => decided).slice(0, 2)).toEqual(['executed', 'idempotency_inconsistent'])
    expect(mock.effects.total).toBe(1)
  })
})
