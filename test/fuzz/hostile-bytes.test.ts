/** Any bytes in place of an answer, over real sockets, from a server that may have done it before: one effect, one key, the true end. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { live, proof, rawSite } from '../support/sockets.ts'
import { order } from '../support/world.ts'
import { runs } from './runs.ts'
import { expectNoStrays } from './strays.ts'

/** No refusal among them: who refuses has not let the request through, and here it may have been. */
const line = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      '200 OK',
      '201 Created',
      '204 No',
      '302 F',
      '307 T',
      '308 P',
      '500 E',
      '503 U',
      '599 X',
      '999 X',
    ),
  },
  fc.constantFrom('100 Continue', '103 Hints', '101 Switching', '0 Zero', '-1 X', '', '2e2 OK'),
)
const header = fc.oneof(
  fc.constantFrom(
    'Content-Length: 5',
    'Content-Length: 0',
    'Content-Length: 99999999999999999999',
    'Content-Length: -5',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'Content-Encoding: gzip',
    'Content-Encoding: br, gzip, deflate, x',
    'Content-Type: application/json',
    'Content-Type: ;;;',
    'Location: /elsewhere',
    'Location: http://127.0.0.1:1/',
    'Location: \x80\xff',
    'Retry-After: 0',
    'Retry-After: -1',
    'Date: Fri, 31 Dec 9999 23:59:59 GMT',
    'Set-Cookie: a=b',
    'Connection: upgrade',
    'Trailer: x',
    ': empty',
    'no colon',
    ' folded: 1',
    'X: a\rb',
    'X: \0',
  ),
  fc.tuple(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 })).map(([name, value]) => `${name}: ${value}`),
)
const body = fc.oneof(
  fc.constantFrom(
    '',
    'hello',
    '5\r\nhello\r\n0\r\n\r\n',
    '5\r\nhel',
    'ffffffffffff\r\nx',
    '{"code":1}',
    '\x1f\x8b\x08junk',
  ),
  fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((unit) => String.fromCharCode(unit)) }),
)
const anyBytes = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .tuple(line, fc.array(header, { maxLength: 4 }), body)
      .map(([status, headers, text]) => [`HTTP/1.1 ${status}`, ...headers, '', text].join('\r\n')),
  },
  body,
)

it('P5, P27, P42: whatever bytes come back first, the intent ends succeeded, done once, under one key', async () => {
  const effects = new Map<string, number>()
  const firsts: { bytes: string; how: 'ends' | 'resets' | 'stays'; commits: boolean }[] = []
  const spoken = new Set<string>()
  const expires = proof()['idempotency-expires']

  function commit(key: string): boolean {
    const isNew = !effects.has(key)
    if (isNew) effects.set(key, 1)
    return isNew
  }

  const url = await rawSite((socket, text) => {
    const key = /^idempotency-key: (\S+)/im.exec(text)?.[1] ?? 'none'
    const first = spoken.has(key) ? undefined : firsts.shift()
    spoken.add(key)
    if (first === undefined) {
      const replayed = commit(key) ? '' : 'Idempotent-Replayed: true\r\n'
      socket.write(`HTTP/1.1 201 Created\r\nIdempotency-Expires: ${expires}\r\n${replayed}Content-Length: 2\r\n\r\n{}`)
      return
    }
    if (first.commits) commit(key)
    const bytes = Buffer.from(first.bytes, 'latin1')
    if (first.how === 'ends') socket.end(bytes)
    else socket.write(bytes, () => void (first.how === 'resets' && socket.resetAndDestroy()))
  })
  const { fetch } = live(url, {
    attemptTimeoutMs: 100,
    maxBodyBytes: 1000,
    retry: { attempts: 50, baseMs: 1, capMs: 5, budget: 1000 },
  })
  let n = 0
  await fc.assert(
    fc.asyncProperty(
      anyBytes,
      fc.constantFrom('ends', 'ends', 'resets', 'stays'),
      fc.boolean(),
      async (bytes, how, commits) => {
        firsts.push({ bytes, how, commits })
        const before = effects.size
        const id = `checkout:${++n}`
        const response = await fetch('/orders', order(id, { n }))
        expect(response.status).toBe(201)
        expect(await fetch.intents.get(id)).toMatchObject({ state: 'succeeded' })
        expect(effects.size - before).toBe(1)
        await expectNoStrays()
      },
    ),
    runs(50, 60),
  )
})
