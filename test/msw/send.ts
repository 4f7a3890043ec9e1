import type { MockServer } from 'samekey/msw'
import { expect } from 'vitest'

/** What a client of the profile sends: the same bytes and key, each time. */
export function order(key = 'k-1', body: string = '{"item":"tea"}', headers: Record<string, string> = {}): RequestInit {
  return { method: 'POST', headers: { 'idempotency-key': key, 'content-type': 'application/json', ...headers }, body }
}

export function send(mock: MockServer, key?: string, body?: string, headers?: Record<string, string>) {
  return mock.fetch('/orders', order(key, body, headers))
}

export const look = (mock: MockServer, key = 'k-1', headers: Record<string, string> = {}) =>
  mock.fetch(`${mock.keysUrl}/orders.create/${key}`, { headers })

export const voidKey = (mock: MockServer, key = 'k-1', headers: Record<string, string> = {}) =>
  mock.fetch(`${mock.keysUrl}/orders.create/${key}`, { method: 'DELETE', headers })

export async function codeOf(response: Response): Promise<unknown> {
  return ((await response.json()) as { code?: unknown }).code
}

export async function statusOf(response: Response): Promise<unknown> {
  return ((await response.json()) as { status?: unknown }).status
}

/** A network error, as fetch gives one; resolves with the code underneath. */
export async function brokenBy(promise: Promise<unknown>): Promise<unknown> {
  const error: unknown = await promise.then(
    () => null,
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(TypeError)
  return ((error as TypeError).cause as { code?: unknown }).code
}
