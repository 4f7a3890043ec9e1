/**
 * What the types refuse. Compiled by `npm run check:types`, where an unused `@ts-expect-error` is an error; never run.
 */
import { type Client, createClient, createFetch, type OperationOptions, type SafeFetch } from 'samekey'
import { none, samekey } from 'samekey/dialects'
import { expect, it } from 'vitest'

function writes(api: Client): void {
  void api.post('orders', { intent: 'a', json: {} })
  // @ts-expect-error P2: a write without options has no name
  void api.post('orders')
  // @ts-expect-error P2: a write without a name
  void api.post('orders', { json: {} })
  // @ts-expect-error P2: the same for put
  void api.put('orders', { json: {} })
  // @ts-expect-error P2: the same for patch
  void api.patch('orders', { json: {} })
  // @ts-expect-error P2: the same for delete
  void api.delete('orders', {})
  // @ts-expect-error ky's retries would mint new intents
  void api.post('orders', { intent: 'a', retry: 3 })
  // @ts-expect-error the time limit is attemptTimeoutMs
  void api.post('orders', { intent: 'a', timeout: 1000 })
  // @ts-expect-error another fetch would bypass everything
  void api.post('orders', { intent: 'a', fetch })
  // @ts-expect-error P11: a derived key says since when it may be in use
  void api.post('orders', { intent: 'a', key: { derived: true } })
  // @ts-expect-error P11: so does a key of the caller's own
  void api.post('orders', { intent: 'a', key: { value: 'k-1' } })
  // @ts-expect-error a key is not just a text
  void api.post('orders', { intent: 'a', key: 'k-1' })
  void api.get('orders', { searchParams: { page: 1 } })
}

function results(api: Client, safeFetch: SafeFetch): void {
  const write = api.post('orders', { intent: 'a', json: {} })
  const id: string = write.id
  const stored: Promise<{ readonly id: string; readonly key: string }> = write.stored
  const order: Promise<{ total: number }> = write.json<{ total: number }>()
  const named = safeFetch('orders', { method: 'POST', intent: 'a' })
  const key: Promise<string> = named.stored.then((known) => known.key)
  const passed = safeFetch('orders')
  // @ts-expect-error what has no name has no handle
  void passed.stored
  void [id, stored, order, key]
  void write.outcome().then((outcome) => {
    // @ts-expect-error only some outcomes hold an answer: look at the state first
    void outcome.response
    if (outcome.state === 'succeeded') void outcome.response.json()
    if (outcome.state === 'unknown') void outcome.because.length
  })
}

function options(): void {
  createClient({ baseUrl: 'https://api.example.com', dialect: none, anonymous: true })
  // @ts-expect-error P1: how the server de-duplicates is declared, never assumed
  createClient({ baseUrl: 'https://api.example.com', anonymous: true })
  // @ts-expect-error P1: the same for createFetch
  createFetch({ anonymous: true })
  // @ts-expect-error anonymous is said, or left out
  createFetch({ dialect: samekey, anonymous: false })
  // @ts-expect-error P3: scope is synchronous
  createFetch({ dialect: samekey, scope: async () => 'ann' })
  // @ts-expect-error P3: auth says whose credentials these are
  createFetch({ dialect: samekey, scope: () => 'ann', auth: () => ({ headers: {} }) })
  // @ts-expect-error samekey retries, not ky
  createClient({ dialect: samekey, anonymous: true, ky: { retry: 3 } })
  // @ts-expect-error a misspelt option
  const operation: OperationOptions = { retention: 1 }
  void operation
}

it('the compiler checks this file', () => {
  expect([writes, results, options].every((check) => typeof check === 'function')).toBe(true)
})
