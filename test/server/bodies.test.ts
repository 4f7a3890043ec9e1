import { describe, expect, it } from 'vitest'
import { memoryWorld } from './memory-world.ts'
import { codeOf, post, shop } from './world.ts'

describe('P60: a JSON body of very many values', () => {
  it('is refused before it holds up everybody else; a long text is none', async () => {
    const { submit, runs } = shop(memoryWorld(), { limits: { jsonValues: 1000 } })
    for (const body of [`[${'1,'.repeat(1000)}1]`, `[${'{},'.repeat(600)}{}]`, '['.repeat(1001) + ']'.repeat(1001)]) {
      const response = await submit('k-1', body)
      expect([response.status, await codeOf(response)]).toEqual([413, 'request_too_large'])
    }
    expect(runs()).toBe(0)
    expect((await submit('k-1', { item: ',[{"\\'.repeat(5000) })).status).toBe(201)
  })
})

it('P60: a text that never closes is refused as quickly as any other body: nobody else is held up', async () => {
  const { submit, runs } = shop(memoryWorld())
  for (const body of [`"${'\\"'.repeat(900_000)}`, `"${'\\"'.repeat(900_000)}\\`, `["${'x'.repeat(1_900_000)}`]) {
    const response = await submit('k-1', body)
    expect([response.status, await codeOf(response)]).toEqual([400, 'body_refused'])
  }
  expect(runs()).toBe(0)
  expect((await submit('k-1', { item: `"${'\\'.repeat(400_000)}` })).status).toBe(201)
})

describe('a body that is not whole is never executed, whatever the HTTP server made of it', () => {
  it('one that somebody has read before: a mistake in the set-up, told to an operator and not blamed on the client', async () => {
    const { handler, runs, events } = shop(memoryWorld())
    for (const read of [
      (request: Request) => request.text(),
      // Read to its end and let go: the next reader would get nothing, and no error.
      async (request: Request) => {
        const reader = request.body?.getReader()
        while (!(await reader?.read())?.done);
        reader?.releaseLock()
      },
    ]) {
      const request = post('k-1', { item: 'tea' })
      await read(request)
      expect((await handler(request)).status).toBe(503)
      expect(events.at(-1)).toMatchObject({
        kind: 'entryFailed',
        error: { message: expect.stringContaining('parser') },
      })
    }
    expect(runs()).toBe(0)
  })

  it('one that ends before its announced length', async () => {
    const { submit, runs } = shop(memoryWorld())
    const response = await submit('k-1', '{}', { 'content-length': '40' })
    expect([response.status, await codeOf(response), runs()]).toEqual([400, 'body_refused', 0])
    // What a middleware has decoded has another length.
    expect((await submit('k-2', { item: 'tea' }, { 'content-length': '90', 'content-encoding': 'gzip' })).status).toBe(
      201,
    )
  })

  it('one whose sender is gone', async () => {
    const { handler, runs } = shop(memoryWorld())
    const gone = new AbortController()
    const body = new ReadableStream({
      pull(controller) {
        gone.abort()
        controller.close()
      },
    })
    const init: RequestInit & { duplex: 'half' } = { body, duplex: 'half', signal: gone.signal, method: 'POST' }
    const request = new Request('https://shop.test/orders', { ...init, headers: post('k-1', {}).headers })
    expect(await codeOf(await handler(request))).toBe('body_refused')
    expect(runs()).toBe(0)
  })
})
