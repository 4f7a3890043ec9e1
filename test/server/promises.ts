import { accepted, bytes, complete, decline, empty, json, omitBody, refuse, tellTask } from 'samekey/server'
import { beforeEach, describe, expect, it } from 'vitest'
import { sha256Hex } from '../../src/protocol/sha256.ts'
import { codeOf, DAY_MS, gate, HOUR_MS, idOf, placeIt, post, scope, shop, type World } from './world.ts'

/** What the server promises, whatever keeps its keys. Run over each store (`setup` gives an empty one). */
export function serverPromises<Transaction>(name: string, setup: () => Promise<World<Transaction>>): void {
  let world: World<Transaction>
  beforeEach(async () => {
    world = await setup()
  })

  describe(`${name}: one effect per key`, () => {
    it('B113, F7: 50 parallel requests with one key are one order and one answer; nobody gets a 5xx', async () => {
      const { submit, runs } = shop(world, { limits: { waitMs: Number.POSITIVE_INFINITY } })
      const responses = await Promise.all(Array.from({ length: 50 }, () => submit('k-1', { item: 'tea' })))
      expect(await world.orders()).toEqual(['tea'])
      expect(runs()).toBe(1)
      const bodies = await Promise.all(responses.map((response) => response.text()))
      expect(new Set(bodies).size).toBe(1)
      expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 201))
      expect(responses.filter(({ headers }) => headers.has('idempotent-replayed'))).toHaveLength(49)
    })

    it('P55, B118, B119: ten replays: same status, bytes and headers, with the marker', async () => {
      const { submit } = shop(world)
      const first = await submit('k-1', { item: 'tea' })
      const body = await first.clone().text()
      expect(first.headers.get('idempotent-replayed')).toBeNull()
      for (let i = 0; i < 10; i += 1) {
        const replay = await submit('k-1', { item: 'tea' })
        expect(replay.status).toBe(201)
        expect(await replay.text()).toBe(body)
        const { 'idempotent-replayed': marker, ...headers } = Object.fromEntries(replay.headers)
        expect(marker).toBe('true')
        expect(headers).toEqual(Object.fromEntries(first.headers))
        expect(headers).toMatchObject({ location: '/orders/1', etag: '"1"' })
      }
      expect(await world.orders()).toEqual(['tea'])
    })

    it('P56: every remembered answer carries the proof: the end of the promise', async () => {
      const { submit } = shop(world, { retentionMs: DAY_MS })
      const expires = Date.parse((await submit('k-1', { item: 'tea' })).headers.get('idempotency-expires') ?? '')
      expect(expires).toBe(Math.floor((world.now() + DAY_MS) / 1000) * 1000)
    })

    it('F8: the same key with another payload is a conflict, and nothing happens', async () => {
      const { submit } = shop(world)
      await submit('k-1', { item: 'tea' })
      const response = await submit('k-1', { item: 'coffee' })
      expect(response.status).toBe(409)
      expect(await codeOf(response)).toBe('idempotency_conflict')
      expect(response.headers.get('idempotency-expires')).toBeNull()
      expect(await world.orders()).toEqual(['tea'])
    })

    it('P14: reordered members and spelled-out numbers are the same payload', async () => {
      const { submit } = shop(world)
      await submit('k-1', '{"item":"tea","count":1}')
      const again = await submit('k-1', ' { "count" : 1.0, "item" : "t\\u0065a" } ')
      expect(again.headers.get('idempotent-replayed')).toBe('true')
    })

    it('P14, H23: what two readers would read differently is refused before the key', async () => {
      const { submit, lookup } = shop(world)
      for (const body of ['{"item":"tea","item":"coffee"}', '{"amount":9007199254740993}', '{', '"\\ud800"']) {
        const response = await submit('k-1', body)
        expect(response.status).toBe(400)
        expect(await codeOf(response)).toBe('body_refused')
      }
      expect((await lookup('k-1')).status).toBe(404)
    })

    it('bytes are replayed as bytes: NUL, what is no text, and a megabyte', async () => {
      const big = 'x'.repeat(1_000_000)
      const blob = Uint8Array.of(0, 255, 254, 0)
      const { submit } = shop(world, {
        execute: ({ body }) =>
          body.bytes.length > 1000 ? json(200, { big, nul: '\0' }) : bytes(200, blob, 'application/octet-stream'),
        limits: { answerBytes: 2_000_000 },
      })
      await submit('k-1', { item: 'tea\0' })
      const replay = await submit('k-1', { item: 'tea\0' })
      expect(new Uint8Array(await replay.arrayBuffer())).toEqual(blob)
      expect(replay.headers.get('content-type')).toBe('application/octet-stream')
      await submit('k-2', { item: big })
      expect(await (await submit('k-2', { item: big })).json()).toEqual({ big, nul: '\0' })
    })

    it('bodies of other kinds are read and compared too', async () => {
      const kinds: string[] = []
      const { handler } = shop(world, {
        async execute({ body, request }) {
          kinds.push(body.kind)
          // The request that execute gets can be read once more.
          expect(new Uint8Array(await request.arrayBuffer())).toEqual(body.bytes)
          return empty()
        },
      })
      const send = (key: string, body: BodyInit | null) =>
        handler(
          new Request('https://shop.test/orders', {
            method: 'PUT',
            body,
            headers: { authorization: 'ann', 'idempotency-key': key },
          }),
        )
      const form = (text: string) => {
        const data = new FormData()
        data.append('item', text)
        data.append('file', new File([text], 'a.txt', { type: 'text/plain' }))
        return data
      }
      for (const [key, body, other] of [
        ['none', null, 'x'],
        ['form', () => form('tea'), () => form('coffee')],
        ['text', 'tea', 'coffee'],
      ] as const) {
        const made = (value: typeof body | typeof other) => (typeof value === 'function' ? value() : value)
        expect((await send(key, made(body))).status).toBe(204)
        // Each FormData has a boundary of its own.
        expect((await send(key, made(body))).headers.get('idempotent-replayed')).toBe('true')
        expect(await codeOf(await send(key, made(other)))).toBe('idempotency_conflict')
      }
      expect(kinds).toEqual(['none', 'form', 'bytes'])
    })

    it('P16, H22: a later rule for the fingerprint makes no conflict of an old, faithful retry', async () => {
      await shop(world, { fingerprint: { omit: ['/at'], version: '1' } }).submit('k-1', { item: 'tea', at: 1 })
      const { submit } = shop(world, { fingerprint: { version: '2' } })
      expect((await submit('k-1', { item: 'tea', at: 2 })).headers.get('idempotent-replayed')).toBe('true')
      expect(await codeOf(await submit('k-1', { item: 'coffee', at: 2 }))).toBe('idempotency_conflict')
    })

    it('an origin that changes behind a proxy is no conflict once it is named', async () => {
      const { handler } = shop(world, { publicOrigin: 'https://shop.example' })
      const at = (origin: string) => handler(new Request(`${origin}/orders?a=1`, post('k-1', { item: 'tea' })))
      await at('http://10.0.0.1:8080')
      expect((await at('http://10.0.0.2:8080')).headers.get('idempotent-replayed')).toBe('true')
    })
  })

  describe(`${name}: whose key`, () => {
    it('P53, B117: the same key of another principal or operation is another key', async () => {
      const { submit } = shop(world)
      const other = shop(world, { operation: 'orders.quote' })
      await submit('k-1', { item: 'tea' })
      expect((await submit('k-1', { item: 'coffee' }, { authorization: 'bob' })).status).toBe(201)
      expect((await other.submit('k-1', { item: 'cocoa' })).status).toBe(201)
      expect(await world.orders()).toEqual(['tea', 'coffee', 'cocoa'])
      expect((await shop(world).lookup('k-1', { authorization: 'eve' })).status).toBe(404)
    })

    it('section 12: no authentication, no look at the key', async () => {
      const { handler } = shop(world)
      const request = post('k-1', { item: 'tea' })
      request.headers.delete('authorization')
      const response = await handler(request)
      expect([response.status, await response.text()]).toEqual([401, 'who?'])
      expect(await world.orders()).toEqual([])
    })

    it('H5: the tag of another account is refused before the key is touched', async () => {
      const { submit, lookup, void: voidKey } = shop(world)
      const wrong = { 'idempotency-scope': 'tag-bob' }
      for (const response of [
        await submit('k-1', {}, wrong),
        await lookup('k-1', wrong),
        await voidKey('k-1', wrong),
      ]) {
        expect(response.status).toBe(403)
        expect(await codeOf(response)).toBe('idempotency_scope_mismatch')
      }
      expect((await submit('k-1', { item: 'tea' }, { 'idempotency-scope': 'tag-ann' })).status).toBe(201)
    })

    it('a tag that the server cannot check is refused, not ignored', async () => {
      const { submit } = shop(world, { scope: () => ({ tenant: 'acme', principal: 'ann' }) })
      const response = await submit('k-1', { item: 'tea' }, { 'idempotency-scope': 'tag-ann' })
      expect(await codeOf(response)).toBe('idempotency_scope_mismatch')
    })

    it('P55: a permission that was revoked since hides the replay, the look-up and the void', async () => {
      let allowed = true
      const { submit, lookup, void: voidKey, runs } = shop(world, { authorize: () => allowed })
      await submit('k-1', { item: 'tea' })
      allowed = false
      for (const response of [await submit('k-1', { item: 'tea' }), await lookup('k-1'), await voidKey('k-1')]) {
        expect(response.status).toBe(403)
        expect(await response.text()).not.toContain('tea')
      }
      allowed = true
      expect((await submit('k-1', { item: 'tea' })).headers.get('idempotent-replayed')).toBe('true')
      expect(runs()).toBe(1)
    })

    it('P55: authorisation sees the stored answer before it is shown', async () => {
      const purposes: string[] = []
      const {
        submit,
        lookup,
        void: voidKey,
      } = shop(world, {
        authorize({ purpose, answer, key }) {
          purposes.push(`${purpose}${answer === null ? '' : ` ${answer.status}`}`)
          return answer === null ? true : new Response(key, { status: 403 })
        },
      })
      await submit('k-1', { item: 'tea' })
      expect((await submit('k-1', { item: 'tea' })).status).toBe(403)
      expect(await (await lookup('k-1')).text()).toBe('k-1')
      expect((await voidKey('k-1')).status).toBe(403)
      expect(purposes).toEqual(['submit', 'submit', 'replay 201', 'lookup', 'lookup 201', 'void', 'void 201'])
    })

    it('P53: a principal that is missing is a mistake of the server, not one that everybody shares', async () => {
      const broken = { tenant: 'acme' } as { tenant: string; principal: string }
      const { submit, events } = shop(world, { scope: () => broken })
      const response = await submit('k-1', { item: 'tea' })
      expect(response.status).toBe(503)
      expect(await codeOf(response)).toBe('idempotency_unavailable')
      expect(events).toMatchObject([{ kind: 'entryFailed' }])
      expect(await world.orders()).toEqual([])
    })
  })

  describe(`${name}: what is remembered`, () => {
    it('P56: a refusal is remembered although its business change is taken back', async () => {
      const { submit, runs } = shop(world, {
        async execute(context) {
          await placeIt(world)(context)
          return refuse(402, { reason: 'declined' })
        },
      })
      const first = await submit('k-1', { item: 'tea' })
      const replay = await submit('k-1', { item: 'tea' })
      for (const response of [first, replay]) {
        expect(response.status).toBe(402)
        expect(response.headers.get('idempotency-expires')).not.toBeNull()
        expect(await response.json()).toEqual({ reason: 'declined' })
      }
      expect(replay.headers.get('idempotent-replayed')).toBe('true')
      expect(await world.orders()).toEqual([])
      expect(runs()).toBe(1)
    })

    it('P56: failed validation is not remembered: the corrected request may have the same key', async () => {
      let open = false
      const { submit } = shop(world, {
        async execute(context) {
          const placed = await placeIt(world)(context)
          return open ? placed : decline(422, { reason: 'no such item' })
        },
      })
      const declined = await submit('k-1', { item: 'teaa' })
      expect(declined.status).toBe(422)
      expect(declined.headers.get('idempotency-expires')).toBeNull()
      expect(await world.orders()).toEqual([])
      open = true
      expect((await submit('k-1', { item: 'tea' })).status).toBe(201)
      expect(await world.orders()).toEqual(['tea'])
    })

    it('B116, F4: what threw was rolled back and is not remembered: the next request executes', async () => {
      let down = true
      const { submit, events } = shop(world, {
        async execute(context) {
          const placed = await placeIt(world)(context)
          if (down) throw new Error('secret detail')
          return placed
        },
      })
      const failed = await submit('k-1', { item: 'tea' })
      expect(failed.status).toBe(500)
      expect(failed.headers.get('idempotency-expires')).toBeNull()
      expect(await failed.text()).not.toContain('secret')
      expect(events).toMatchObject([{ kind: 'executeFailed', id: idOf('k-1'), detail: 'secret detail' }])
      expect(await world.orders()).toEqual([])
      down = false
      const second = await submit('k-1', { item: 'tea' })
      expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([201, null])
      expect(await world.orders()).toEqual(['tea'])
    })

    it('F18: a server error is remembered only by refuse(), and then it is replayed as such', async () => {
      const { submit } = shop(world, { execute: () => refuse(500, { reason: 'half done outside' }) })
      await submit('k-1', {})
      const replay = await submit('k-1', {})
      expect([replay.status, replay.headers.get('idempotent-replayed')]).toEqual([500, 'true'])
    })

    const mistakes = [
      ['a failure status without a word on remembering it', () => json(422, {})],
      ['nothing', () => undefined],
      ['a Response', () => Response.json({})],
      ['a header that cannot be sent', () => json(200, {}, { 'bad name': 'x' })],
      ['a body where none may be', () => ({ status: 204, body: 'x' })],
      ['a value that JSON cannot say', () => json(200, undefined)],
      ['a refusal that is none', () => refuse(200, {})],
      ['a pace that is none', () => accepted({ retryAfterSeconds: 0.5 })],
    ] as const

    it.each(mistakes)('execute returns %s: rolled back, reported, not remembered', async (_, result) => {
      const { submit, events, lookup } = shop(world, {
        async execute(context) {
          await placeIt(world)(context)
          return result() as never
        },
      })
      expect((await submit('k-1', { item: 'tea' })).status).toBe(500)
      expect(events).toMatchObject([{ kind: 'executeFailed', error: expect.any(Error) }])
      expect(await world.orders()).toEqual([])
      expect((await lookup('k-1')).status).toBe(404)
    })

    it('P55: Set-Cookie reaches the first caller and nobody after it', async () => {
      const headers = [
        ['Set-Cookie', 'session=s3cret'],
        ['Set-Cookie', 'a=b'],
        ['X-Kept', '1'],
        ['Idempotency-Expires', 'never'],
        ['Connection', 'close'],
      ] as const
      const { submit, lookup } = shop(world, { execute: () => json(200, {}, headers) })
      const first = await submit('k-1', {})
      expect(first.headers.getSetCookie()).toEqual(['session=s3cret', 'a=b'])
      const replay = await submit('k-1', {})
      expect(replay.headers.getSetCookie()).toEqual([])
      expect(replay.headers.get('x-kept')).toBe('1')
      expect(replay.headers.get('connection')).toBeNull()
      expect(replay.headers.get('idempotency-expires')).not.toContain('never')
      expect(await (await lookup('k-1')).text()).not.toContain('s3cret')
    })

    it('P60: an answer may be kept without its body', async () => {
      const { submit, events } = shop(world, { execute: () => omitBody(json(201, { token: 't0p' })) })
      const first = await submit('k-1', {})
      expect(await first.json()).toEqual({ token: 't0p' })
      expect(first.headers.get('idempotency-body')).toBeNull()
      const replay = await submit('k-1', {})
      expect([replay.status, await replay.text(), replay.headers.get('idempotency-body')]).toEqual([201, '', 'omitted'])
      expect(events).toEqual([])
    })

    it('P60: limits: the key, the request, and an answer that is too long to keep', async () => {
      const limits = { key: { maxLength: 5 }, requestBytes: 20, answerBytes: 10 }
      const { submit, events, runs } = shop(world, { limits, execute: () => json(200, 'long enough') })
      expect(await codeOf(await submit('k-12345', {}))).toBe('idempotency_key_invalid')
      const large = await submit('k-1', { item: 'more than twenty bytes' })
      expect([large.status, await codeOf(large)]).toEqual([413, 'request_too_large'])
      const streamed = await shop(world, { limits }).handler(streaming('k-1', 3, 10))
      expect(streamed.status).toBe(413)
      expect(runs()).toBe(0)
      expect(await (await submit('k-1', {})).json()).toBe('long enough')
      expect((await submit('k-1', {})).headers.get('idempotency-body')).toBe('omitted')
      expect(events).toMatchObject([{ kind: 'bodyNotStored' }])
    })

    it('a body that breaks off executes nothing', async () => {
      const response = await shop(world).handler(streaming('k-1', 1, 10, new Error('gone')))
      expect(response.status).toBe(400)
      expect(await world.orders()).toEqual([])
    })
  })

  describe(`${name}: the key header`, () => {
    it('B133: two keys are refused, a quoted one is the same key, none is told so', async () => {
      const { submit } = shop(world)
      expect(await codeOf(await submit(null, {}))).toBe('idempotency_key_missing')
      expect(await codeOf(await submit('a, b', {}))).toBe('idempotency_key_invalid')
      await submit('k-1', { item: 'tea' })
      expect((await submit('"k-1"', { item: 'tea' })).headers.get('idempotent-replayed')).toBe('true')
      expect(await world.orders()).toEqual(['tea'])
    })
  })

  describe(`${name}: expiry`, () => {
    const retention = { retentionMs: DAY_MS, transitMs: 300_000, graceMs: HOUR_MS }

    it('P57, H10, H12: inside the grace an old row is replayed, not taken over', async () => {
      const { submit, runs } = shop(world, retention)
      await submit('k-1', { item: 'tea' })
      world.pass(DAY_MS + HOUR_MS - 1)
      expect(await world.store.reap()).toBe(0)
      const late = await submit('k-1', { item: 'tea' }, { 'idempotency-age': '90000' })
      expect(late.headers.get('idempotent-replayed')).toBe('true')
      expect(runs()).toBe(1)
    })

    it('P57, H1, H8: after it, an old request, look-up or void is refused as expired, and leaves nothing behind', async () => {
      const { submit, lookup, void: voidKey, runs } = shop(world, retention)
      await submit('k-1', { item: 'tea' })
      world.pass(DAY_MS + HOUR_MS)
      expect(await world.store.reap()).toBe(1)
      const old = { 'idempotency-age': String((DAY_MS - 300_000) / 1000) }
      const answers = [await submit('k-1', { item: 'tea' }, old), await lookup('k-1', old), await voidKey('k-1', old)]
      for (const response of answers) {
        expect(response.status).toBe(409)
        expect(await codeOf(response)).toBe('idempotency_expired')
      }
      expect(runs()).toBe(1)
      expect((await lookup('k-1')).status).toBe(404)
    })

    it('P57, H40: Idempotency-Since tells an age that a stepped clock hides', async () => {
      const { submit, void: voidKey, runs } = shop(world, retention)
      const since = new Date(world.now()).toUTCString()
      world.pass(DAY_MS + HOUR_MS)
      const headers = { 'idempotency-age': '0', 'idempotency-since': since }
      expect(await codeOf(await submit('k-1', { item: 'tea' }, headers))).toBe('idempotency_expired')
      expect(await codeOf(await voidKey('k-1', headers))).toBe('idempotency_expired')
      expect(runs()).toBe(0)
    })

    it('P57: one second less, or neither header, is executed', async () => {
      const { submit } = shop(world, retention)
      const young = { 'idempotency-age': String((DAY_MS - 300_000) / 1000 - 1) }
      expect((await submit('k-1', { item: 'tea' }, young)).status).toBe(201)
      expect((await submit('k-2', { item: 'tea' })).status).toBe(201)
    })

    it('P57: an age that cannot be read is refused, not ignored', async () => {
      const { submit } = shop(world, retention)
      for (const headers of [{ 'idempotency-age': '1.5' }, { 'idempotency-since': '2026-12-01' }]) {
        const response = await submit('k-1', { item: 'tea' }, headers)
        expect([response.status, await codeOf(response)]).toEqual([400, 'idempotency_key_invalid'])
      }
      expect(await world.orders()).toEqual([])
    })

    it('P57: the reaper works in batches and leaves damage and unfinished work alone', async () => {
      const { submit } = shop(world, retention)
      const slow = shop(world, { ...retention, operation: 'orders.ship', execute: () => accepted() })
      for (const key of ['k-1', 'k-2', 'k-3']) await submit(key, { item: 'tea' })
      await slow.submit('k-4', {})
      await damage('k-5')
      world.pass(DAY_MS + HOUR_MS)
      expect([await world.store.reap(2), await world.store.reap(2), await world.store.reap(2)]).toEqual([2, 1, 0])
      expect(await (await slow.lookup('k-4')).json()).toMatchObject({ status: 'processing' })
      expect((await shop(world, retention).lookup('k-5')).status).toBe(500)
    })
  })

  describe(`${name}: look-up and void`, () => {
    it('P43, B101: a look-up by key gives the stored answer and does nothing', async () => {
      const { submit, lookup, runs } = shop(world)
      await submit('k-1', { item: 'tea' })
      const found = await lookup('k-1')
      expect(found.headers.get('cache-control')).toBe('no-store')
      expect(await found.json()).toMatchObject({
        id: 'k-1',
        status: 'succeeded',
        response: { status: 201, body: '{"id":1,"item":"tea"}', bodyEncoding: 'utf8' },
        requestDigest: sha256Hex('{"item":"tea"}'),
      })
      const missing = await lookup('k-2')
      expect([missing.status, await codeOf(missing)]).toEqual([404, 'absent'])
      expect(runs()).toBe(1)
    })

    it('P58, F19: a void before the request: whatever comes later, or late, is refused', async () => {
      const { submit, lookup, void: voidKey } = shop(world)
      const voided = await voidKey('k-1')
      expect(voided.headers.get('idempotency-expires')).not.toBeNull()
      expect(await voided.json()).toMatchObject({ id: 'k-1', status: 'voided' })
      const late = await submit('k-1', { item: 'tea' })
      expect([late.status, await codeOf(late)]).toEqual([409, 'idempotency_voided'])
      expect(await (await voidKey('k-1')).json()).toMatchObject({ status: 'voided' })
      expect(await (await lookup('k-1')).json()).toMatchObject({ status: 'voided' })
      expect(await world.orders()).toEqual([])
    })

    it('P44, P58: a void after the request tells what it answered', async () => {
      const { submit, void: voidKey } = shop(world, {
        execute: (context) => (context.key === 'k-1' ? placeIt(world)(context) : refuse(402, { reason: 'declined' })),
      })
      await submit('k-1', { item: 'tea' })
      await submit('k-2', { item: 'tea' })
      expect(await (await voidKey('k-1')).json()).toMatchObject({ status: 'succeeded', response: { status: 201 } })
      expect(await (await voidKey('k-2')).json()).toMatchObject({ status: 'failed', response: { status: 402 } })
      expect((await submit('k-1', { item: 'tea' })).headers.get('idempotent-replayed')).toBe('true')
    })

    it('P58: a void waits for a running request and tells how that ended', async () => {
      const { opened, open } = gate()
      const started = gate()
      let fail = false
      const {
        submit,
        lookup,
        void: voidKey,
      } = shop(world, {
        async execute(context) {
          started.open()
          await opened
          if (fail) throw new Error('rolled back')
          return placeIt(world)(context)
        },
      })
      const running = submit('k-1', { item: 'tea' })
      await started.opened
      // H36: a look-up sees nothing yet, and says that this proves nothing.
      expect((await lookup('k-1')).status).toBe(404)
      const voiding = voidKey('k-1')
      open()
      expect((await running).status).toBe(201)
      expect(await (await voiding).json()).toMatchObject({ status: 'succeeded' })
      fail = true
      const failing = submit('k-2', { item: 'tea' })
      const second = voidKey('k-2')
      expect((await failing).status).not.toBe(201)
      expect(await (await second).json()).toMatchObject({ status: 'voided' })
      expect(await world.orders()).toEqual(['tea'])
    })

    it('F7, P58: who waits too long is told "in progress", submit and void alike', async () => {
      const { opened, open } = gate()
      const started = gate()
      const { submit, void: voidKey } = shop(world, {
        limits: { waitMs: 50, voidWaitMs: 50 },
        async execute(context) {
          started.open()
          await opened
          return placeIt(world)(context)
        },
      })
      const first = submit('k-1', { item: 'tea' })
      await started.opened
      for (const rival of [
        () => submit('k-1', { item: 'tea' }),
        () => submit('k-1', { item: 'coffee' }),
        () => voidKey('k-1'),
      ]) {
        const response = await world.after(50, rival())
        expect([response.status, response.headers.get('retry-after')]).toEqual([409, '1'])
        expect(await codeOf(response)).toBe('idempotency_in_progress')
      }
      open()
      expect((await first).status).toBe(201)
      expect((await submit('k-1', { item: 'tea' })).headers.get('idempotent-replayed')).toBe('true')
      expect(await world.orders()).toEqual(['tea'])
    })

    it('P54: a rival that rolled back leaves the key to the one that waited', async () => {
      const started = gate()
      const { opened, open } = gate()
      const failing = shop(world, {
        async execute() {
          started.open()
          await opened
          throw new Error('rolled back')
        },
      })
      const first = failing.submit('k-1', { item: 'tea' })
      await started.opened
      const second = shop(world).submit('k-1', { item: 'tea' })
      open()
      expect((await first).status).toBe(500)
      expect([(await second).status, (await second).headers.get('idempotent-replayed')]).toEqual([201, null])
      expect(await world.orders()).toEqual(['tea'])
    })
  })

  describe(`${name}: damage`, () => {
    it('F21: a row without a finished answer is never executed again, and an operator is told', async () => {
      await damage('k-1')
      const { submit, lookup, void: voidKey, events, runs } = shop(world)
      for (const response of [await submit('k-1', {}), await lookup('k-1'), await voidKey('k-1')]) {
        expect([response.status, await codeOf(response)]).toEqual([500, 'idempotency_inconsistent'])
      }
      expect(events).toHaveLength(3)
      expect(events[0]).toMatchObject({ kind: 'inconsistent', id: idOf('k-1') })
      expect(runs()).toBe(0)
    })

    it('P28: a report that throws changes nothing', async () => {
      await damage('k-1')
      const { submit } = shop(world, {
        report() {
          throw new Error('no log today')
        },
      })
      expect((await submit('k-1', {})).status).toBe(500)
    })

    it('a scope or an authorisation that throws: nothing was executed, and it says so', async () => {
      const fail = (): never => {
        throw new Error('directory down')
      }
      for (const part of [{ scope: fail }, { authorize: fail }]) {
        const { submit, events } = shop(world, part)
        const response = await submit('k-1', { item: 'tea' })
        expect([response.status, await codeOf(response)]).toEqual([503, 'idempotency_unavailable'])
        expect(events).toMatchObject([{ kind: 'entryFailed', error: new Error('directory down') }])
      }
      expect(await world.orders()).toEqual([])
    })
  })

  describe(`${name}: accepted work`, () => {
    it('F9, P62: a 202 is replayed as stored; its monitor goes from processing to the result', async () => {
      const { submit, lookup } = shop(world, {
        async execute(context) {
          await placeIt(world)(context)
          return accepted({ retryAfterSeconds: 3 })
        },
      })
      const first = await submit('k/1', { item: 'tea' })
      const monitor = '/keys/orders.create/k%2F1'
      expect(first.status).toBe(202)
      expect(Object.fromEntries(first.headers)).toMatchObject({ location: monitor, 'retry-after': '3' })
      const body = await first.text()
      expect(JSON.parse(body)).toMatchObject({ id: 'k/1', status: 'processing', monitor, retryAfter: 3 })
      const processing = await lookup('k/1')
      expect(processing.headers.get('retry-after')).toBe('3')
      expect(await processing.json()).toMatchObject({ status: 'processing', retryAfter: 3 })

      world.pass(HOUR_MS)
      expect(await complete(world.store, idOf('k/1'), json(200, { shipped: true }))).toBe(true)
      expect(await complete(world.store, idOf('k/1'), json(200, { shipped: false }))).toBe(false)
      const done = (await (await lookup('k/1')).json()) as { resultExpiresAt: string }
      expect(done).toMatchObject({ status: 'succeeded', response: { status: 200, body: '{"shipped":true}' } })
      // P62: the result lives as long as the key, and a full retention from its own making.
      expect(Date.parse(done.resultExpiresAt)).toBe(world.now() + DAY_MS)
      const replay = await submit('k/1', { item: 'tea' })
      expect([replay.status, await replay.text()]).toEqual([202, body])
    })

    it('P64: progress, retryable failure, unknown and failure are told apart', async () => {
      const { submit, lookup } = shop(world, { execute: () => accepted() })
      await submit('k-1', {})
      const id = idOf('k-1')
      const none = { result: null, error: null, retryAfterSeconds: null }
      for (const status of ['failed_retryable', 'unknown', 'processing'] as const) {
        const error = { code: 'carrier_down', detail: 'again soon' }
        expect(await tellTask(world.store, id, { ...none, status, error, retryAfterSeconds: 9 })).toBe(true)
        expect(await (await lookup('k-1')).json()).toMatchObject({ status, error, retryAfter: 9 })
      }
      expect(await complete(world.store, id, refuse(422, { reason: 'no stock' }))).toBe(true)
      const failed = await (await lookup('k-1')).json()
      expect(failed).toMatchObject({ status: 'failed', response: { status: 422 } })
      expect(failed).not.toHaveProperty('retryAfter')
      expect(failed).not.toHaveProperty('error')
      expect(await tellTask(world.store, idOf('k-2'), { ...none, status: 'unknown' })).toBe(false)
    })

    it('a 202 without a place for its monitor is a mistake that rolls back', async () => {
      const options = { store: world.store, operation: 'orders.ship', scope, execute: () => accepted() }
      const { idempotent } = await import('samekey/server')
      const events: unknown[] = []
      const handler = idempotent<Transaction>({ ...options, report: (event) => events.push(event) })
      expect((await handler(post('k-1', {}))).status).toBe(500)
      expect(events).toMatchObject([{ kind: 'executeFailed', error: { option: 'keysUrl' } }])
      const own = idempotent<Transaction>({ ...options, execute: () => accepted({ monitor: '/jobs/7' }) })
      expect((await own(post('k-1', {}))).headers.get('location')).toBe('/jobs/7')
    })
  })

  /** A committed row without an answer: what must never be, and what F21 is about. */
  async function damage(key: string): Promise<void> {
    await world.store.begin({ waitMs: 0 }, async (unit) => {
      const newKey = {
        state: 'running',
        fingerprint: null,
        requestDigest: null,
        retentionMs: DAY_MS,
        graceMs: HOUR_MS,
      } as const
      await unit.claim(idOf(key), newKey)
      return { commit: true, value: undefined }
    })
  }
}

/** A request whose body comes in pieces and may break off; its length is not announced. */
function streaming(key: string, pieces: number, size: number, error?: Error): Request {
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent < pieces) controller.enqueue(new Uint8Array(size))
      else if (error === undefined) controller.close()
      else controller.error(error)
      sent += 1
    },
  })
  const headers = { authorization: 'ann', 'idempotency-key': key }
  const init: RequestInit & { duplex: 'half' } = { method: 'POST', body, headers, duplex: 'half' }
  return new Request('https://shop.test/orders', init)
}
