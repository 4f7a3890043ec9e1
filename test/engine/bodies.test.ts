import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { IntentInit } from '../../src/fetch.ts'
import {
  answer,
  broken,
  commitThenDrop,
  created,
  honestServer,
  order,
  origin,
  type Tab,
  world,
} from '../support/world.ts'

const text = (value: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(value)
const untouched = async ({ store }: Tab): Promise<boolean> => (await store.list(origin, { limit: 9 })).length === 0

/** A stream of these chunks, as a caller makes it. */
function streamOf(...chunks: readonly unknown[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk as Uint8Array<ArrayBuffer>)
      controller.close()
    },
  })
}

async function* iterableOf(...chunks: readonly unknown[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield chunk as Uint8Array
}

function form(): FormData {
  const data = new FormData()
  data.set('name', 'Ann Ünïcode')
  data.set(
    'file',
    new File([new Uint8Array([0, 13, 10, 255, 0])], 'receipt "1".bin', { type: 'application/x-receipt' }),
  )
  return data
}

type Body = RequestInit['body'] | AsyncIterable<Uint8Array>

const bodies: [kind: string, body: () => Body, type: string | null, bytes: string | RegExp][] = [
  ['JSON text', () => '{"item":"tea"}', 'text/plain;charset=UTF-8', '{"item":"tea"}'],
  ['text', () => 'żółw 🐢', 'text/plain;charset=UTF-8', 'żółw 🐢'],
  ['an empty text', () => '', 'text/plain;charset=UTF-8', ''],
  [
    'a form in the address style',
    () => new URLSearchParams({ a: '1 2', b: 'ü' }),
    'application/x-www-form-urlencoded;charset=UTF-8',
    'a=1+2&b=%C3%BC',
  ],
  ['a Blob', () => new Blob(['bl', 'ob'], { type: 'application/x-thing' }), 'application/x-thing', 'blob'],
  ['an ArrayBuffer', () => text('buffer').buffer, null, 'buffer'],
  ['a view into a larger buffer', () => text('a larger one').subarray(2, 8), null, 'larger'],
  ['a DataView', () => new DataView(text('..view').buffer, 2), null, 'view'],
  ['a form with a file', form, 'multipart/form-data; boundary=', /receipt %221%22\.bin/],
  ['a ReadableStream', () => streamOf(text('str'), text('eam')), null, 'stream'],
  ['a stream without any chunk', () => streamOf(), null, ''],
  ['an async iterable', () => iterableOf(text('iter'), text('able')), null, 'iterable'],
  ['a Readable of Node', () => Readable.from([Buffer.from('read'), Buffer.from('able')]), null, 'readable'],
  ['no body', () => null, null, ''],
]

describe('P9, B12, B14: the bytes of every kind of body are fixed at submit', () => {
  it.each(bodies)(
    '%s: three attempts and a restart send equal bytes and an equal content type',
    async (_kind, body, type, bytes) => {
      const { network, tab, pass } = world()
      network.script(answer(500), answer(503), broken(), created())
      const options = { retry: { baseMs: 20_000, capMs: 20_000 } }
      const first = tab(options)
      void first.fetch('orders', { method: 'POST', body: body() as NonNullable<RequestInit['body']>, intent: 'a' })
      await pass(25_000)
      first.kill()
      const second = tab(options)
      await pass(300_000)
      expect(await second.fetch.intents.get('a')).toMatchObject({ state: 'succeeded' })
      const sent = network.writes()
      expect(sent).toHaveLength(4)
      expect(sent[0]!.body).toEqual(bytes instanceof RegExp ? expect.stringMatching(bytes) : bytes)
      expect(new Set(sent.map((call) => call.body)).size).toBe(1)
      const types = new Set(sent.map(({ headers }) => headers['content-type'] ?? null))
      expect([...types]).toEqual([type?.endsWith('boundary=') ? expect.stringContaining(type) : type])
      expect(new Set(sent.map(({ key }) => key)).size).toBe(1)
    },
  )

  it('B15: a form with a file keeps its boundary and its bytes, byte for byte, through a restart', async () => {
    const { network, tab, pass } = world()
    const raw: Uint8Array[] = []
    const boundaries = new Set<string | null>()
    network.script(async (call, request) => {
      raw.push(new Uint8Array(await request.clone().arrayBuffer()))
      boundaries.add(request.headers.get('content-type'))
      return raw.length < 3 ? answer(503)(call, request) : created()(call, request)
    })
    const options = { retry: { baseMs: 20_000, capMs: 20_000 } }
    const first = tab(options)
    void first.fetch('uploads', { method: 'POST', body: form(), intent: 'upload:1' })
    await pass(1000)
    first.kill()
    tab(options)
    await pass(120_000)
    expect(raw).toHaveLength(3)
    expect(boundaries.size).toBe(1)
    expect(raw[1]).toEqual(raw[0])
    expect(raw[2]).toEqual(raw[0])
    const back = await new Response(raw[2] as Uint8Array<ArrayBuffer>, {
      headers: { 'content-type': [...boundaries][0]! },
    }).formData()
    expect(new Uint8Array(await (back.get('file') as File).arrayBuffer())).toEqual(new Uint8Array([0, 13, 10, 255, 0]))
  })

  it('P14: the same form with another boundary is the same content; with another file it is not', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const upload = (body: FormData) => only.fetch('uploads', { method: 'POST', body, intent: 'upload:1' })
    void upload(form())
    await pass(1000)
    const again = upload(form())
    const other = form()
    other.set('file', new File(['x'], 'other.bin'))
    const edited = upload(other)
    await pass(1000)
    expect((await again).status).toBe(201)
    await expect(edited).rejects.toMatchObject({ code: 'intent_mismatch' })
    expect(network.writes()).toHaveLength(1)
  })

  it('B14: streams with the same bytes are the same content, however they are cut', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const first = only.fetch('uploads', { method: 'POST', body: streamOf(text('ab'), text('c')), intent: 'a' })
    const again = only.fetch('uploads', { method: 'POST', body: streamOf(text('abc')), intent: 'a' })
    await pass(1000)
    expect([(await first).status, (await again).status]).toEqual([201, 201])
    expect(network.writes()).toMatchObject([{ body: 'abc' }])
  })

  it('B14, P9: a producer that fills one buffer again and again is read chunk by chunk', async () => {
    const { network, tab, pass } = world()
    const buffer = new Uint8Array(2)
    async function* reused(): AsyncGenerator<Uint8Array> {
      for (const chunk of ['on', 'tw', 'th']) {
        buffer.set(text(chunk))
        yield buffer
      }
    }
    const write = tab().fetch('uploads', { method: 'POST', body: reused() as unknown as ReadableStream, intent: 'a' })
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(network.writes()).toMatchObject([{ body: 'ontwth' }])
  })

  it('B14: a browser whose Request does not show its body (Firefox) sends the same bytes', async () => {
    const { network, tab, pass } = world()
    const shown = Object.getOwnPropertyDescriptor(Request.prototype, 'body')!
    Object.defineProperty(Request.prototype, 'body', { configurable: true, get: () => undefined })
    try {
      const only = tab()
      const json = only.fetch('orders', order('a'))
      const file = only.fetch('uploads', { method: 'POST', body: form(), intent: 'b' })
      const empty = only.fetch('pings', { method: 'POST', intent: 'c' })
      const stream = only.fetch('uploads', { method: 'POST', body: streamOf(text('stream')), intent: 'd' })
      await pass(1000)
      expect((await Promise.all([json, file, empty, stream])).map(({ status }) => status)).toEqual([201, 201, 201, 201])
    } finally {
      Object.defineProperty(Request.prototype, 'body', shown)
    }
    const sent = Object.fromEntries(
      network.writes().map(({ url, headers, body }) => [`${url} ${headers['content-type']}`.slice(0, 70), body]),
    )
    expect(Object.values(sent)).toEqual(
      expect.arrayContaining([order('a').body, '', 'stream', expect.stringContaining('application/x-receipt')]),
    )
  })

  it('P9: a ready Request is taken with its method, headers, body and modes', async () => {
    const { network, tab, pass } = world()
    network.script(answer(503), created())
    const request = new Request(`${origin}/orders`, {
      ...order('x'),
      headers: { 'content-type': 'application/json', 'x-tenant': 'shop-1', 'samekey-intent': 'checkout:1' },
      credentials: 'include',
      referrerPolicy: 'no-referrer',
    })
    const write = tab().fetch(request)
    await pass(60_000)
    expect((await write).status).toBe(201)
    for (const call of network.writes()) {
      expect(call).toMatchObject({ method: 'POST', body: order('x').body, credentials: 'include' })
      expect(call.headers).toMatchObject({ 'x-tenant': 'shop-1', 'content-type': 'application/json' })
    }
  })

  it.each(['omit', 'same-origin', 'include'] as const)(
    'H62, P9: a request that is resumed after a restart has its credentials mode: %s',
    async (credentials) => {
      const { network, tab, pass } = world()
      network.script(broken(), created())
      const first = tab({ retry: { baseMs: 20_000, capMs: 20_000 } })
      void first.fetch('orders', { ...order('a'), credentials, mode: 'same-origin' })
      await pass(100)
      first.kill()
      tab()
      await pass(60_000)
      expect(network.writes().map((call) => [call.credentials, call.mode])).toEqual([
        [credentials, 'same-origin'],
        [credentials, 'same-origin'],
      ])
    },
  )
})

describe('P9: later changes to the objects of the caller do not reach the wire', () => {
  it('P9, P5: body, headers, address, key and times are copied in the tick of the call', async () => {
    const { network, tab, pass, clock } = world()
    network.script(broken(), created())
    const only = tab()
    const bytes = text('one')
    const headers = new Headers({ 'x-tenant': 'shop-1' })
    const url = new URL(`${origin}/orders?page=1`)
    const key = { value: 'k-1', since: 'new' as const as string | Date }
    const sendBefore = new Date(clock.now() + 3_600_000)
    const init = { method: 'POST', body: bytes, headers, intent: 'a', key, sendBefore } as RequestInit &
      IntentInit & { intent: string }
    const write = only.fetch(url, init)
    bytes.set(text('two'))
    headers.set('x-tenant', 'shop-2')
    url.searchParams.set('page', '2')
    key.value = 'k-2'
    sendBefore.setTime(0)
    Object.assign(init, { method: 'PUT', intent: 'b' })
    await pass(60_000)
    expect((await write).status).toBe(201)
    for (const call of network.writes()) {
      expect(call).toMatchObject({ method: 'POST', url: `${origin}/orders?page=1`, body: 'one', key: 'k-1' })
      expect(call.headers).toMatchObject({ 'x-tenant': 'shop-1' })
    }
    expect(network.writes()).toHaveLength(2)
  })

  it('P9: the same for a form, a derived key and its since', async () => {
    const { network, tab, pass, clock } = world()
    const data = new URLSearchParams({ a: '1' })
    const since = new Date(clock.now() - 60_000)
    const write = tab().fetch('orders', { method: 'POST', body: data, intent: 'a', key: { derived: true, since } })
    data.set('a', '2')
    since.setTime(clock.now())
    await pass(1000)
    expect((await write).status).toBe(201)
    expect(network.writes()).toMatchObject([{ body: 'a=1', age: '60' }])
  })

  it('B09: deeply frozen options serve two intents: nothing is written into them, and the keys differ', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const options = Object.freeze({
      method: 'POST',
      body: '{"item":"tea"}',
      headers: Object.freeze({ 'content-type': 'application/json' }),
    })
    const before = JSON.stringify(options)
    const [one, two] = [
      only.fetch('orders', { ...options, intent: 'a' }),
      only.fetch('orders', Object.freeze({ ...options, intent: 'b' })),
    ]
    await pass(1000)
    expect([(await one).status, (await two).status]).toEqual([201, 201])
    expect(JSON.stringify(options)).toBe(before)
    expect(new Set(network.writes().map(({ key }) => key)).size).toBe(2)
  })

  it('B20: the stored bytes are sent again as they are, not serialised again', async () => {
    const { network, tab, pass } = world()
    const body = JSON.stringify({
      gone: undefined,
      at: new Date(0),
      zero: -0,
      large: '9007199254740993',
      astral: '𝒳',
      decomposed: 'e\u0301',
      nested: { b: 1, a: null },
    })
    const spaced = `  ${body}\n`
    network.script(answer(500), created())
    const first = tab({ retry: { baseMs: 20_000, capMs: 20_000 } })
    void first.fetch('orders', { ...order('a'), body: spaced })
    await pass(100)
    first.kill()
    tab()
    await pass(60_000)
    expect(network.writes().map((call) => call.body)).toEqual([spaced, spaced])
  })

  it('B13, P30: below a transport that repeats by itself, the key and the bytes are the same, and it is all one attempt', async () => {
    const { network, tab, pass } = world()
    const server = honestServer()
    let copies = 0
    network.script(async (call, request) => {
      copies++
      await Promise.resolve(commitThenDrop(server)(call, request)).catch(() => {})
      return server.answer(call, request)
    })
    const only = tab({ transport: { repeats: true } })
    void only.fetch('orders', order('a'))
    await pass(1000)
    expect([copies, server.total()]).toEqual([1, 1])
    expect(await only.fetch.intents.get('a')).toMatchObject({ state: 'succeeded', attempts: 1 })
  })
})

describe('bodies that cannot be kept and sent again: a typed error, nothing stored or sent', () => {
  const refusedBody = async (init: Omit<RequestInit, 'body'> & { body?: unknown }, options = {}): Promise<unknown> => {
    const { network, tab, pass } = world()
    const only = tab(options)
    const write = only.fetch('orders', { method: 'POST', intent: 'a', ...init } as RequestInit & { intent: string })
    await pass(1000)
    const error = await write.then(
      () => null,
      (reason: unknown) => reason,
    )
    expect([network.calls.length, await untouched(only)]).toEqual([0, true])
    await expect(write.stored).rejects.toBe(error)
    return error
  }
  const typed = { code: 'unsupported_body', intentId: 'a' }

  it('B14: a stream that breaks off', async () => {
    const cause = new Error('disk gone')
    async function* breaks(): AsyncGenerator<Uint8Array> {
      yield text('half')
      throw cause
    }
    expect(await refusedBody({ body: breaks() })).toMatchObject({ ...typed, cause })
    const stream = new ReadableStream({ pull: (controller) => controller.error(cause) })
    expect(await refusedBody({ body: stream })).toMatchObject({ ...typed, cause })
  })

  it.each<[string, () => unknown]>([
    ['text chunks in a stream', () => streamOf('1', '2')],
    ['text chunks in an async iterable', () => iterableOf('1', '2')],
    ['objects in a stream', () => streamOf({ a: 1 })],
  ])('B14: %s are not silently turned into other bytes', async (_what, body) => {
    expect(await refusedBody({ body: body() })).toMatchObject(typed)
  })

  it.each<[string, unknown]>([
    ['a plain object', { item: 'tea' }],
    ['an array', [1, 2]],
    ['a Map', new Map([['a', 1]])],
    ['a Date', new Date(0)],
  ])('B15: %s would be sent as "[object ...]", and is refused', async (_what, body) => {
    expect(await refusedBody({ body })).toMatchObject({ ...typed, message: expect.stringContaining('JSON.stringify') })
  })

  it.each<[string, () => unknown]>([
    ['text', () => 'x'.repeat(101)],
    ['bytes', () => new Uint8Array(101)],
    [
      'a stream, which is not read to its end',
      () => streamOf(new Uint8Array(60), new Uint8Array(60), new Uint8Array(60)),
    ],
    [
      'an endless iterable',
      async function* () {
        for (;;) yield new Uint8Array(10)
      },
    ],
  ])('P60: %s over the limit', async (_what, body) => {
    expect(await refusedBody({ body: body() }, { maxBodyBytes: 100 })).toMatchObject({
      ...typed,
      message: expect.stringContaining('100 bytes'),
    })
  })

  it('a body of exactly the limit is fine', async () => {
    const { network, tab, pass } = world()
    void tab({ maxBodyBytes: 100 }).fetch('orders', { method: 'POST', body: 'x'.repeat(100), intent: 'a' })
    await pass(1000)
    expect(network.writes()).toHaveLength(1)
  })

  it('B12: a Request that was read before', async () => {
    const { network, tab, pass } = world()
    const only = tab()
    const request = new Request(`${origin}/orders`, order('x'))
    await request.text()
    const write = only.fetch(request, { intent: 'a' })
    const named = new Request(`${origin}/orders`, { ...order('x'), headers: { 'samekey-intent': 'a' } })
    await named.text()
    const byHeader = only.fetch(named)
    await pass(1000)
    await expect(write).rejects.toMatchObject(typed)
    await expect(byHeader).rejects.toMatchObject(typed)
    expect([network.calls.length, await untouched(only)]).toEqual([0, true])
  })

  it('B12: the body of an unnamed Request that was read before fails as in fetch', async () => {
    const request = new Request(`${origin}/orders`, order('x'))
    await request.text()
    await expect(world().tab().fetch(request)).rejects.toThrow(TypeError)
  })

  it('B14: a stream that somebody reads, or has read from', async () => {
    const locked = streamOf(text('a'))
    locked.getReader()
    expect(await refusedBody({ body: locked })).toMatchObject(typed)
    const begun = streamOf(text('a'), text('b'))
    const reader = begun.getReader()
    await reader.read()
    reader.releaseLock()
    expect(await refusedBody({ body: begun })).toMatchObject(typed)
  })

  it('B14: a stream is taken over in the tick of the call', async () => {
    const { tab, pass } = world()
    const body = streamOf(text('a'))
    void tab().fetch('orders', { method: 'POST', body, intent: 'a' })
    expect(body.locked).toBe(true)
    await pass(1000)
  })

  it('P14: JSON that is not UTF-8', async () => {
    const headers = { 'content-type': 'application/json' }
    expect(await refusedBody({ body: new Uint8Array([0x22, 0xff, 0x22]), headers })).toMatchObject(typed)
  })

  it.each([
    ['duplicate members', '{"amount":1,"amount":2}'],
    ['an amount beyond double precision (H23)', '{"amount":9007199254740993}'],
    ['no JSON', '{"amount":'],
  ])('P14: JSON with %s is refused, not rounded', async (_what, body) => {
    const headers = { 'content-type': 'application/json' }
    const error = await refusedBody({ body, headers })
    expect(error).toMatchObject(typed)
    expect(String(error)).not.toContain('9007199254740993')
  })

  it('a method or a header that no Request takes is a ConfigError that names the intent', async () => {
    expect(await refusedBody({ method: 'TRACE' })).toMatchObject({ code: 'config', option: 'init', intentId: 'a' })
    expect(await refusedBody({ headers: { 'bad header': 'x' } })).toMatchObject({ code: 'config', option: 'init' })
    expect(await refusedBody({ mode: 'no-cors' })).toMatchObject({ code: 'config', option: 'mode' })
  })
})
