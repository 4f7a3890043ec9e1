import {
  accepted,
  CommitUnknownError,
  decline,
  idempotent,
  json,
  type MemoryTransaction,
  memoryServerStore,
  refuse,
} from 'samekey/server'
import { beforeEach, describe, expect, it } from 'vitest'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { type InquiryKind, readInquiry } from '../../src/protocol/inquiry.ts'
import { sha256Hex } from '../../src/protocol/sha256.ts'
import { type AnsweredExchange, classify } from '../../src/protocol/verdict.ts'
import { gate, idOf, post, type Shop, scope, shop, type World } from './world.ts'

/** Server and client of one protocol: what this server says, the client's own dialect reads as it was meant. */
async function exchangeOf(response: Response): Promise<AnsweredExchange> {
  const headers = [...response.headers].map(([name, value]) => [name.toLowerCase(), value] as const)
  const body = new Uint8Array(await response.arrayBuffer())
  const plain = { redirected: false, opaque: false, crossOrigin: false, seeOtherProof: false, repeated: false } as const
  return {
    kind: 'answered',
    status: response.status,
    headers,
    url: 'https://shop.test/',
    body,
    bodyState: 'complete',
    ...plain,
  }
}

async function verdictOn(response: Response) {
  const context = { dialect: samekey, accept: null, appAccepts: null, now: Date.now(), monitorUrl: null }
  return classify(await exchangeOf(response), context)
}

async function findingOf(response: Response, kind: InquiryKind, body = '{"item":"tea"}') {
  const context = { kind, dialect: samekey, bodyDigest: sha256Hex(body), now: Date.now() }
  return readInquiry(await exchangeOf(response), context)
}

let store: ReturnType<typeof memoryServerStore>
let results: Record<string, () => unknown>
let server: Shop

beforeEach(() => {
  store = memoryServerStore()
  const world: World<MemoryTransaction> = {
    store,
    place: () => Promise.resolve(1),
    orders: () => Promise.resolve([]),
    now: () => Date.now(),
    pass: () => {},
    after: (_, promise) => promise,
  }
  results = {}
  const execute = ({ key }: { key: string }) => (results[key] ?? (() => json(201, { id: 1 })))() as never
  server = shop(world, { execute, limits: { waitMs: 1, requestBytes: 1000 } })
})

const submit = (key: string, headers?: Record<string, string>) => server.submit(key, { item: 'tea' }, headers)

describe('what the client reads', () => {
  it('done, and done again as a replay', async () => {
    expect(await verdictOn(await submit('k-1'))).toMatchObject({
      type: 'done',
      answer: { replayed: false, body: 'stored' },
    })
    expect(await verdictOn(await submit('k-1'))).toMatchObject({
      type: 'done',
      answer: { replayed: true, body: 'stored' },
    })
  })

  it('P56: a remembered refusal is proof, a declined one is not', async () => {
    results = { 'k-1': () => refuse(402, {}), 'k-2': () => decline(422, {}) }
    expect(await verdictOn(await submit('k-1'))).toMatchObject({ type: 'refused', proof: true })
    expect(await verdictOn(await submit('k-2'))).toMatchObject({ type: 'refused', proof: false })
    expect(await findingOf(await server.void('k-1'), 'void')).toMatchObject({ event: { type: 'refused', proof: true } })
  })

  it('F18: a stored server error stops', async () => {
    results = { 'k-1': () => refuse(500, {}) }
    await submit('k-1')
    expect(await verdictOn(await submit('k-1'))).toMatchObject({ type: 'storedFailure' })
    expect(await findingOf(await server.lookup('k-1'), 'lookup')).toMatchObject({ event: { type: 'serverUnknown' } })
  })

  it('F4, F20, B114: what failed is ambiguous unless the server knows that nothing was executed', async () => {
    const { opened, open } = gate()
    results = {
      'k-1': () => {
        throw new Error('x')
      },
      'k-2': () => opened,
    }
    expect(await verdictOn(await submit('k-1'))).toMatchObject({ type: 'ambiguous' })
    const running = submit('k-2')
    expect(await verdictOn(await submit('k-2'))).toMatchObject({ type: 'inProgress', retryAfterMs: 1000 })
    open()
    await running
    const options = { operation: 'orders.create', scope, report: () => {}, execute: () => json(200, {}) } as const
    const begin = async (): Promise<never> => {
      throw new CommitUnknownError('lost')
    }
    const lost = idempotent({ ...options, store: { ...store, begin } })
    expect(await verdictOn(await lost(post('k-3', {})))).toMatchObject({ type: 'ambiguous', retryAfterMs: 1000 })
    const nobody = (): never => {
      throw new Error('no directory')
    }
    const closed = idempotent({ ...options, store, scope: nobody })
    expect(await verdictOn(await closed(post('k-3', {})))).toMatchObject({
      type: 'refusedWithoutEffect',
      retryAfterMs: 1000,
    })
  })

  it('conflict, expired, voided, another account, an unacceptable key, too large', async () => {
    await submit('k-1')
    expect(await verdictOn(await server.submit('k-1', { item: 'coffee' }))).toMatchObject({ type: 'conflict' })
    expect(await verdictOn(await submit('k-2', { 'idempotency-age': '99999999' }))).toMatchObject({ type: 'expired' })
    await server.void('k-3')
    expect(await verdictOn(await submit('k-3'))).toMatchObject({ type: 'voided' })
    expect(await verdictOn(await submit('k-4', { 'idempotency-scope': 'x' }))).toMatchObject({ type: 'scopeMismatch' })
    expect(await verdictOn(await submit('a, b'))).toMatchObject({ type: 'refused', proof: false })
    expect(await verdictOn(await server.submit('k-5', 'x'.repeat(1001)))).toMatchObject({
      type: 'refused',
      proof: false,
    })
  })

  it('F21: damage keeps the doubt', async () => {
    await store.begin({ waitMs: 0 }, async (unit) => {
      const newKey = {
        state: 'running',
        fingerprint: null,
        requestDigest: null,
        retentionMs: 1e9,
        graceMs: 1e9,
      } as const
      await unit.claim(idOf('k-1'), newKey)
      return { commit: true, value: null }
    })
    expect(await verdictOn(await submit('k-1'))).toMatchObject({ type: 'ambiguous' })
    expect(await findingOf(await server.lookup('k-1'), 'lookup')).toMatchObject({ event: { type: 'inquiryFailed' } })
  })

  it('P43, P44: look-up and void', async () => {
    expect(await findingOf(await server.lookup('k-1'), 'lookup')).toMatchObject({
      event: { type: 'inquiryFailed', status: 404 },
    })
    await submit('k-1')
    const found = await findingOf(await server.lookup('k-1'), 'lookup')
    expect(found).toMatchObject({ event: { type: 'done', answer: { status: 201, body: 'stored' } } })
    expect(new TextDecoder().decode(found.body ?? new Uint8Array())).toBe('{"id":1}')
    // H37: the client sent something else under a name that it has forgotten.
    expect(await findingOf(await server.lookup('k-1'), 'lookup', '{}')).toMatchObject({
      event: { type: 'otherPayload' },
    })
    expect(await findingOf(await server.void('k-1'), 'void')).toMatchObject({ event: { type: 'done' } })
    expect(await findingOf(await server.void('k-2'), 'void')).toMatchObject({ event: { type: 'voided' } })
    const old = { 'idempotency-age': '99999999' }
    expect(await findingOf(await server.void('k-3', old), 'void')).toMatchObject({ event: { type: 'expired' } })
  })

  it('P37, P38: accepted work and its monitor', async () => {
    results = { 'k-1': () => accepted({ retryAfterSeconds: 3 }) }
    expect(await verdictOn(await submit('k-1'))).toMatchObject({ type: 'accepted', retryAfterMs: 3000 })
    const processing = await findingOf(await server.lookup('k-1'), 'poll')
    expect(processing).toMatchObject({ event: { type: 'stillProcessing', phase: 'running', retryAfterMs: 3000 } })
  })
})
