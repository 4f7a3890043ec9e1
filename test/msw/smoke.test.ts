import { commitThenDrop, createMockServer, dropBeforeCommit } from 'samekey/msw'
import { expect, it } from 'vitest'

const order = {
  method: 'POST',
  headers: { 'idempotency-key': 'k-1', 'content-type': 'application/json' },
  body: '{"item":"tea"}',
}

it('executes once, whatever is lost', async () => {
  const mock = createMockServer()
  mock.faults.next(dropBeforeCommit(), commitThenDrop())
  await expect(mock.fetch('/orders', order)).rejects.toThrow(TypeError)
  expect(mock.effects.total).toBe(0)
  await expect(mock.fetch('/orders', order)).rejects.toThrow(TypeError)
  expect(mock.effects.total).toBe(1)
  const replay = await mock.fetch('/orders', order)
  expect(replay.status).toBe(201)
  expect(replay.headers.get('idempotent-replayed')).toBe('true')
  expect(await replay.json()).toEqual({ id: 1, item: 'tea' })
  expect(mock.effects.total).toBe(1)
  expect(mock.requests.map(({ decided, delivered }) => [decided, delivered])).toEqual([
    [null, 'lost'],
    ['executed', 'lost'],
    ['replayed', 'whole'],
  ])
})
