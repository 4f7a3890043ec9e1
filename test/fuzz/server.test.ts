/** The server kit, asked by somebody who sends what he likes: always an answer that fits, and one effect per key at most (P54). */
import fc from 'fast-check'
import { accepted, idempotencyRoutes, idempotent, json, refuse } from 'samekey/server'
import { expect, it } from 'vitest'
import { memoryWorld } from '../server/memory-world.ts'
import { scope } from '../server/world.ts'
import { anyDamage, damaged, oddValue, wildJson } from './junk.ts'
import { runs } from './runs.ts'
import { expectNoStrays } from './strays.ts'

const latin1 = fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((unit) => String.fromCharCode(unit)) })
const goodKey = fc.constantFrom('k-1', 'k-1', 'k-2', '"k-1"', ' k-1 ')
const junkHeader = fc.oneof(
  latin1,
  fc.constantFrom(
    '',
    ' ',
    '"',
    '""',
    '"k-1',
    'k-1, k-1',
    '"k-1", "k-2"',
    'k-1;a=1',
    '"k-1";a=1',
    '.',
    '..',
    'k/1',
    'x'.repeat(256),
  ),
  fc.constantFrom('-1', '1e3', '0', '1.5', '99999999999999999999999', 'NaN', '0x10', '+1', 'Infinity'),
  fc.constantFrom(
    'Fri, 31 Dec 9999 23:59:59 GMT',
    'Sat, 01 Jan 0000 00:00:00 GMT',
    'Tue, 01 Dec 2026 12:00:00 GMT',
    'yesterday',
  ),
  fc.constantFrom(
    'tag-ann',
    'tag-bob',
    '__proto__',
    'application/json',
    'multipart/form-data; boundary=x',
    'text/plain',
  ),
)
const sound = { item: 'tea', count: 3, address: { city: 'Wien', lines: ['a', 'b'] } }
const anyBody = fc.oneof(
  { weight: 3, arbitrary: fc.constant(JSON.stringify(sound)) },
  anyDamage.map((damage) => JSON.stringify(damaged(sound, damage))),
  wildJson,
  oddValue.map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '{"a":1,"a":1}',
    '[9007199254740993]',
    '"\\ud800"',
    '--x\r\n\r\n\r\n--x--',
    '{"item":"sold out"}',
    '{"item":"later"}',
    '{"item":"throws"}',
  ),
)
const headerName = fc.constantFrom(
  'idempotency-key',
  'idempotency-age',
  'idempotency-since',
  'idempotency-scope',
  'content-type',
  'content-length',
  'content-encoding',
  'accept',
  'samekey-intent',
  'if-match',
)
const segment = fc.oneof(
  fc.constantFrom(
    'k-1',
    'k-2',
    'orders.create',
    'orders',
    '',
    '.',
    '..',
    '%zz',
    '%00',
    '%2F',
    '%ff',
    '__proto__',
    'constructor',
    '*',
  ),
  latin1.map((text) => encodeURIComponent(text)),
)
const path = fc.oneof(
  { weight: 4, arbitrary: fc.constant('/orders') },
  fc.constantFrom('/keys/orders.create/k-1', '/keys/orders.create/k-2'),
  fc.array(segment, { maxLength: 4 }).map((segments) => `/keys/${segments.join('/')}`),
)

const anyRequest = fc.record({
  method: fc.constantFrom('POST', 'POST', 'POST', 'GET', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS', 'REPORT'),
  path,
  key: fc.option(goodKey, { freq: 8 }),
  headers: fc.dictionary(headerName, junkHeader, { maxKeys: 2 }),
  body: anyBody,
  /** The body breaks off instead of ending. */
  breaks: fc.constantFrom(false, false, false, true),
  passMs: fc.constantFrom(0, 0, 0, 1000, 3_600_000, 50 * 3_600_000),
})

/** What the kit may answer to a client's mistake; 500 where the app's own code throws, and nowhere else. */
const fitting = new Set([200, 201, 202, 400, 401, 403, 404, 405, 409, 413, 422])

it('P54, P60: whatever is asked, in whatever order or at once: an answer that fits, no effect twice, none without a key', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyRequest, { minLength: 1, maxLength: 8 }), fc.boolean(), async (asked, atOnce) => {
      const world = memoryWorld()
      /** Committed effects, by whose key and body. */
      const effects: string[] = []
      let thrown = 0
      const handler = idempotent({
        store: world.store,
        operation: 'orders.create',
        scope,
        keysUrl: '/keys',
        report: () => {},
        onVoid: () => {},
        execute({ transaction, key, body, scope: who }) {
          const { item } = (
            body.kind === 'json' && typeof body.value === 'object' && body.value !== null ? body.value : {}
          ) as { item?: unknown }
          transaction.onCommit(() => effects.push(`${who.principal} ${key}`))
          if (item === 'throws') {
            thrown++
            throw new Error('mine')
          }
          if (item === 'sold out') return refuse(422, { code: 'sold_out' })
          return item === 'later' ? accepted() : json(201, { key })
        },
      })
      const keys = idempotencyRoutes({ keysUrl: '/keys', operations: [handler] })

      async function answerTo({ method, path: at, key, headers, body, breaks }: (typeof asked)[number]): Promise<void> {
        const all = new Headers({ authorization: 'ann', 'content-type': 'application/json', ...headers })
        if (key !== null && !all.has('idempotency-key')) all.set('idempotency-key', key)
        const bodyless = method === 'GET' || method === 'HEAD'
        const stream = new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode(body)),
          pull: (controller) => controller.error(new Error('gone')),
        })
        const init = { method, headers: all, ...(!bodyless && { body: breaks ? stream : body, duplex: 'half' }) }
        const request = new Request(`https://shop.test${at}`, init as RequestInit)
        const before = thrown
        const response = (await keys(request)) ?? (await handler(request))
        expect(response).toBeInstanceOf(Response)
        const text = await response.text()
        const shown = `${method} ${at} ${JSON.stringify([...all])} ${body.slice(0, 200)}: ${response.status} ${text.slice(0, 300)}`
        if (response.status !== 500 || thrown === before) expect(fitting, shown).toContain(response.status)
        // Proof is on what is remembered, and on nothing else.
        const isRemembered = response.headers.has('idempotency-expires')
        if (response.status === 201 || response.status === 202) expect(isRemembered, shown).toBe(true)
        if (response.status >= 400 && response.status !== 422) expect(isRemembered, shown).toBe(false)
        // 401 and 422 are the app's own answers, given back as they are.
        if (response.status >= 400 && response.status !== 401 && response.status !== 422 && method !== 'HEAD')
          expect(JSON.parse(text), shown).toMatchObject({ type: expect.any(String), code: expect.any(String) })
        if (at === '/orders' && (response.status === 201 || response.status === 202)) {
          expect(breaks, `half a body is never executed: ${shown}`).toBe(false)
          expect(['GET', 'HEAD', 'OPTIONS']).not.toContain(method)
        }
      }

      if (atOnce) await Promise.all(asked.map(answerTo))
      else
        for (const one of asked) {
          world.pass(one.passMs)
          await answerTo(one)
        }
      await expectNoStrays()
      expect(new Set(effects).size, `P54: once per key: ${effects.join(', ')}`).toBe(effects.length)
    }),
    runs(80, 400),
  )
})
