/**
 * Shows: tests against the mock server. It is the real server kit over memory, so it replays, conflicts and forgets like
 * a real one; faults are scripted, with a stated moment of the commit, and what counts is the number of effects.
 *
 *     npx tsx examples/testing-with-mock.ts
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setupServer } from 'msw/node'
import { type Client, createClient } from 'samekey'
import { samekey } from 'samekey/dialects'
import { memoryStore } from 'samekey/memory'
import { commitThenDrop, createMockServer, dropBeforeCommit, expired, handlers, type MockServer } from 'samekey/msw'

/** The code under test. */
async function checkOut(api: Client, cart: { id: string; lines: string[] }): Promise<string> {
  const outcome = await api.post('orders', { intent: `checkout:${cart.id}`, json: cart }).outcome()
  if (outcome.state === 'succeeded') return 'thank you'
  return outcome.state === 'unknown' ? 'we are looking into it' : 'please try again'
}

const cart = { id: 'cart-42', lines: ['tea'] }

/** A client on the mock: no network, no MSW. Back-off is short, so that tests need no fake timers. */
function clientOf({ baseUrl, keysUrl, fetch }: MockServer, baseMs = 5): Client {
  return createClient({
    baseUrl,
    keysUrl,
    fetch,
    dialect: samekey,
    anonymous: true,
    store: memoryStore(),
    retry: { baseMs },
    operations: { 'orders.create': { match: ({ method, url }) => method === 'POST' && url.pathname === '/orders' } },
  })
}

test('the answer is lost after the commit: one order, and the customer is thanked', async () => {
  const mock = createMockServer()
  const api = clientOf(mock)
  mock.faults.next(commitThenDrop())

  assert.equal(await checkOut(api, cart), 'thank you')
  assert.equal(mock.effects.total, 1)
  assert.deepEqual(
    mock.requests.map(({ decided, age }) => [decided, age]),
    [
      ['executed', 0],
      ['replayed', 1],
    ],
  )
  await api.stop()
})

test('the server forgot the key while an answer is missing: nobody is told to try again', async () => {
  const mock = createMockServer()
  const api = clientOf(mock)
  mock.faults.next(commitThenDrop(), expired())

  assert.equal(await checkOut(api, cart), 'we are looking into it')
  const { intents } = await api.intents.list({ states: ['unknown'] })
  assert.deepEqual(
    intents.map(({ id, detail }) => [id, detail]),
    [['checkout:cart-42', 'expired_in_doubt']],
  )
  await api.stop()
})

test('cancelling while in doubt voids the key: a copy that arrives late makes no order', async () => {
  const mock = createMockServer()
  const api = clientOf(mock, 60_000)
  mock.faults.next(dropBeforeCommit())

  const write = api.post('orders', { intent: 'checkout:cart-42', json: cart, waitMs: 20 })
  assert.equal((await write.outcome()).state, 'waiting')
  await api.intents.cancel('checkout:cart-42', 'changed my mind')
  assert.equal((await api.intents.wait('checkout:cart-42')).state, 'cancelled')

  const [first] = mock.requests
  assert.ok(first)
  const late = await mock.fetch(first.url, { method: 'POST', headers: first.headers, body: first.body })
  assert.equal(late.status, 409)
  assert.equal(mock.effects.total, 0)
  await api.stop()
})

test('through MSW, for apps whose fetch cannot be handed in', async () => {
  const mock = createMockServer({ baseUrl: 'https://api.example.com' })
  const msw = setupServer(...handlers(mock))
  msw.listen({ onUnhandledFrame: 'error' })
  after(() => msw.close())
  mock.faults.next(commitThenDrop())

  const api = createClient({
    baseUrl: 'https://api.example.com',
    dialect: samekey,
    anonymous: true,
    store: memoryStore(),
    retry: { baseMs: 5 },
  })
  assert.equal(await checkOut(api, cart), 'thank you')
  assert.equal(mock.effects.total, 1)
  await api.stop()
})
