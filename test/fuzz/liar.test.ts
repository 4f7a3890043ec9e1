/** A server that lies may be believed, but it cannot break the client: no strange error, no loop, no success that nobody told of. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { stripe } from '../../src/protocol/dialects/stripe.ts'
import { isSettled } from '../../src/protocol/states.ts'
import { operation, shopOrder } from '../support/shop.ts'
import { origin, world } from '../support/world.ts'
import { anyDamage, damaged } from './junk.ts'
import { anyReply, headerValue, type Reply, responseOf, typed } from './replies.ts'
import { runs } from './runs.ts'
import { expectNoStrays } from './strays.ts'

const minute = 60_000
const retentionMs = 4 * minute

const ours = { ...samekey, retentionMs }
const dialects = [ours, ours, ours, ietf({ retentionMs }), { ...stripe, retentionMs }, none]

/** The words of the protocol, true or not, whole or damaged. */
const word = fc.oneof(
  fc
    .constantFrom('idempotency_voided', 'idempotency_expired', 'idempotency_conflict', 'idempotency_in_progress')
    .map((code): unknown => ({ type: 'about:blank', code })),
  fc
    .record({
      id: fc.constant('k'),
      status: fc.constantFrom('processing', 'succeeded', 'failed', 'failed_retryable', 'unknown', 'voided'),
      monitor: fc.constantFrom('/tasks/1', '/tasks/2', '/orders', 'https://evil.example/1', '//', 'x:'),
      response: fc.constantFrom(
        undefined,
        { status: 201, headers: { etag: '"1"' }, body: '{"id":9}', bodyEncoding: 'utf8' },
        { status: 204, headers: {}, body: 'not allowed here' },
        { status: 299, headers: { 'content-type': 'x\u00ff' }, body: '/w==', bodyEncoding: 'base64' },
        { status: 422, headers: { 'set-cookie': 'a=b', location: '//[' }, body: '' },
        { status: 500, headers: { 'idempotency-body': 'omitted' }, body: '' },
      ),
      error: fc.constantFrom(undefined, { code: 'x', title: '\ud800\0' }),
      retryAfter: fc.constantFrom(undefined, 1, 5, 1e9, Number.MAX_SAFE_INTEGER),
      resultExpiresAt: fc.constantFrom(undefined, '2026-12-01T12:01:00Z', '9999-12-31T23:59:59Z', 'soon'),
    })
    .map((document): unknown => document),
)
const lie: fc.Arbitrary<Reply> = fc
  .record({
    reply: anyReply,
    // Refusals and successes of every kind, with the signs of proof.
    proof: fc.constantFrom<Readonly<Record<string, string>>>(
      {},
      { 'idempotency-expires': 'Wed, 02 Dec 2026 12:00:00 GMT' },
      { 'idempotency-expires': 'junk', 'idempotent-replayed': 'true' },
      { 'idempotent-replayed': 'TRUE ' },
    ),
    says: fc.option(fc.tuple(word, fc.option(anyDamage))),
    jsonType: fc.boolean(),
    location: fc.option(headerValue),
  })
  .map(({ reply, proof, says, jsonType, location }) => {
    const body = says === null ? reply.body : JSON.stringify(says[1] === null ? says[0] : damaged(says[0], says[1]))
    const headers = {
      ...reply.headers,
      ...(jsonType && { 'content-type': 'application/problem+json' }),
      ...(location !== null && { location }),
      ...proof,
    }
    return { ...reply, headers, body }
  })

const anyAct = fc.record({
  afterMs: fc.constantFrom(0, 2000, 20_000, 6 * minute),
  what: fc.constantFrom('cancel', 'check', 'retry', 'abandon', 'none'),
})

it('P28, P33, P42, H63: whatever a lying server says, every caller gets an answer or a typed error, and it comes to rest', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...dialects),
      fc.array(lie, { minLength: 1, maxLength: 10 }),
      fc.boolean(),
      fc.array(anyAct, { maxLength: 3 }),
      async (dialect, lies, known, acts) => {
        const { clock, network, tab } = world()
        let at = 0
        const told: Reply[] = []
        network.script(() => {
          const reply = lies[Math.min(at++, lies.length - 1)]!
          told.push(reply)
          return responseOf(reply)
        })
        const only = tab({
          dialect,
          operations: known ? { [operation]: { retentionMs } } : {},
          attemptTimeoutMs: 5000,
          transitMs: 20_000,
          retry: { attempts: 15, capMs: 20_000 },
          waitMs: 20_000,
          maxBodyBytes: 4000,
        })
        const { operation: name, ...plain } = shopOrder('checkout:1')
        const write = only.fetch('orders', known ? { ...plain, operation: name } : plain)
        const calls = [typed(write), typed(write.outcome())]
        const read = write.then(
          (response) => response.text(),
          () => {},
        )
        calls.push(typed(read))
        for (const { afterMs, what } of acts) {
          await clock.advance(afterMs)
          if (what !== 'none') calls.push(typed(only.fetch.intents[what]('checkout:1')))
        }
        await clock.advance(retentionMs + minute)
        let open = calls.length
        for (const call of calls) void call.then(() => open--)
        await Promise.race([Promise.all(calls), clock.advance(0)])
        expect(open, 'calls that came to nothing').toBe(0)
        await expectNoStrays()
        const view = (await only.fetch.intents.get('checkout:1'))!
        const history = JSON.stringify(view.history)
        const failures = only.notes.filter((note) => note.type === 'warning' && note.code === 'store_failed')
        expect(
          failures.map((note) => 'error' in note && String(note.error)),
          history,
        ).toEqual([])
        expect(
          network.calls.filter(({ url }) => new URL(url).origin !== origin),
          'P40: nothing goes elsewhere',
        ).toEqual([])
        const seconds = (clock.now() - view.createdAt) / 1000
        // P31, P39: twice a second is the fastest poll, and no more than five redirects are followed.
        expect(network.calls.length, 'P31, P39: no loop').toBeLessThan(6 * (15 + 2 * seconds))
        if (view.state === 'succeeded' && dialect === ours) {
          const isTold = told.some(
            ({ headers, body }) =>
              'idempotency-expires' in headers || 'idempotent-replayed' in headers || body.includes('succeeded'),
          )
          expect(isTold, `H24, P42: no success without proof; ${history}`).toBe(true)
        }
        if (isSettled(view.state) || view.state === 'unknown') return
        expect(view.dueAt !== null || view.detail === 'attempts', `P33: ${view.state}; ${history}`).toBe(true)
        if (view.inDoubt) expect(view.state, history).toBe('processing')
      },
    ),
    runs(30, 150),
  )
})
