import { createClient, createFetch, type Dialect } from 'samekey'
import { ietf, samekey } from 'samekey/dialects'
import { memoryStore } from 'samekey/memory'
import { describe, expect, it } from 'vitest'
import type { IntentInit } from '../../src/fetch.ts'
import { order, origin, type TabOptions, world } from '../support/world.ts'

/** Anything at all: what callers in JavaScript may give. */
const wrong = (options: Record<string, unknown>): TabOptions => options as TabOptions
const config = (option: string) =>
  expect.objectContaining({ code: 'config', option, message: expect.stringMatching(/: .{15,}/) })

describe('a wrong option is a ConfigError that names it and says what would be right', () => {
  it.each<[option: string, options: Record<string, unknown>]>([
    ['dialect', { dialect: undefined }],
    ['dialect', { dialect: null }],
    ['dialect', { dialect: 'samekey' }],
    ['dialect', { dialect: {} }],
    ['dialect', { dialect: { name: 'half', deduplicates: true } }],
    ['dialect.retentionMs', { dialect: { ...samekey, retentionMs: -1 } }],
    ['dialect.retentionMs', { dialect: ietf({ retentionMs: Number.NaN }) }],
    ['dialect.keyRules.pattern', { dialect: { ...samekey, keyRules: { pattern: '[' } } }],
    ['name', { name: '' }],
    ['name', { name: 42 }],
    ['name', { name: 'a\0b' }],
    ['scope', { anonymous: undefined, scope: undefined, auth: () => ({ scope: 'a', headers: {} }) }],
    ['scope', { scope: 'ann' }],
    ['auth', { scope: () => 'ann', auth: { headers: {} } }],
    ['anonymous', { anonymous: true, scope: () => 'ann' }],
    ['anonymous', { anonymous: true, auth: () => ({ scope: 'a', headers: {} }) }],
    ['anonymous', { anonymous: 'yes' }],
    ['credentialOrigins', { credentialOrigins: ['api.example.com'] }],
    ['credentialOrigins', { credentialOrigins: ['data:x'] }],
    ['credentialOrigins', { credentialOrigins: 'https://api.example.com' }],
    ['credentialHeaders', { credentialHeaders: ['Content-Type'] }],
    ['credentialHeaders', { credentialHeaders: ['Idempotency-Key'] }],
    ['credentialHeaders', { credentialHeaders: ['not a name'] }],
    ['credentialHeaders', { credentialHeaders: [5] }],
    ['credentialHeaders', { credentialHeaders: 'x-session' }],
    ['monitorOrigins', { monitorOrigins: ['/monitors'] }],
    ['keysUrl', { keysUrl: 5 }],
    ['keysUrl', { keysUrl: 'https://' }],
    ['scopeTag', { scopeTag: 'tag' }],
    ['mintKey', { mintKey: 'k-1' }],
    ['observer', { observer: {} }],
    ['fetch', { fetch: 'undici' }],
    ['intentOf', { intentOf: 'checkout' }],
    ['store', { store: 'memory' }],
    ['operations', { operations: [] }],
    ['operations', { operations: () => ({}) }],
    ['autoStart', { autoStart: 'no' }],
    ['retry', { retry: 3 }],
    ['retry.attempts', { retry: { attempts: 0 } }],
    ['retry.attempts', { retry: { attempts: 1.5 } }],
    ['retry.attempts', { retry: { attempts: Number.POSITIVE_INFINITY } }],
    ['retry.baseMs', { retry: { baseMs: 0 } }],
    ['retry.baseMs', { retry: { baseMs: '500' } }],
    ['retry.capMs', { retry: { capMs: -5 } }],
    ['retry.concurrency', { retry: { concurrency: 0 } }],
    ['retry.budget', { retry: { budget: -1 } }],
    ['attemptTimeoutMs', { attemptTimeoutMs: 0 }],
    ['attemptTimeoutMs', { attemptTimeoutMs: Number.NaN }],
    ['transitMs', { transitMs: -1 }],
    ['waitMs', { waitMs: -1 }],
    ['waitMs', { waitMs: '30' }],
    ['rememberMs', { rememberMs: 1000 }],
    ['rememberMs', { rememberMs: 8 * 86_400_000, operations: { op: { retentionMs: 30 * 86_400_000 } } }],
    [
      'rememberMs',
      { rememberMs: 8 * 86_400_000, operations: { op: { dialect: ietf({ retentionMs: 30 * 86_400_000 }) } } },
    ],
    ['maxBodyBytes', { maxBodyBytes: 0 }],
    ['transport', { transport: true }],
    ['operations.', { operations: { '': {} } }],
    ['operations.POST /orders', { operations: { 'POST /orders': {} } }],
    ['operations.op', { operations: { op: null } }],
    ['operations.op', { operations: { op: true } }],
    ['operations.op.match', { operations: { op: { match: '/orders' } } }],
    ['operations.op.accept', { operations: { op: { accept: true } } }],
    ['operations.op.reconcile', { operations: { op: { reconcile: {} } } }],
    ['operations.op.retentionMs', { operations: { op: { retentionMs: 0 } } }],
    ['operations.op.dialect', { operations: { op: { dialect: {} as Dialect } } }],
    ['operations.op.lane', { operations: { op: { lane: '' } } }],
    ['operations.op.storeAnswer', { operations: { op: { storeAnswer: 'no' } } }],
    ['operations.op.duplicate', { operations: { op: { duplicate: 'reject' } } }],
    ['operations.op.fingerprint', { operations: { op: { fingerprint: { omit: ['clientTime'] } } } }],
    ['operations.op.fingerprint', { operations: { op: { fingerprint: { defaults: { currency: 'EUR' } } } } }],
  ])('%s: %j', (option, options) => {
    expect(() => world().tab(wrong(options))).toThrow(config(option))
  })

  it('baseUrl', () => {
    expect(() =>
      createFetch({ baseUrl: 'not an address', dialect: samekey, anonymous: true, store: memoryStore() }),
    ).toThrow(config('baseUrl'))
  })

  it('store: outside a browser one has to be named; a silent memory store would break the promise', () => {
    expect(() => createClient({ baseUrl: origin, dialect: samekey, anonymous: true })).toThrow(config('store'))
    expect(() => createFetch({ baseUrl: origin, dialect: samekey, anonymous: true })).toThrow(/sqliteStore|memoryStore/)
  })

  it('name and credentialOrigins: outside a browser, without baseUrl, there is nothing to take them from', () => {
    const options = { dialect: samekey, store: memoryStore() }
    expect(() => createFetch({ ...options, anonymous: true })).toThrow(config('name'))
    const auth = () => ({ scope: 'ann', headers: {} })
    expect(() => createFetch({ ...options, name: 'a', scope: () => 'ann', auth })).toThrow(config('credentialOrigins'))
  })

  it('register() checks like the option does', () => {
    const { fetch } = world().tab()
    expect(() => fetch.register('op', { retentionMs: -1 })).toThrow(config('operations.op.retentionMs'))
    expect(() => fetch.register('', {})).toThrow(config('operations.'))
  })

  it('an option that was refused leaves no client behind: the name is free', () => {
    const { tab } = world()
    const liveClients = new Set<string>()
    expect(() => tab(wrong({ waitMs: -1, replace: { liveClients } }))).toThrow(config('waitMs'))
    expect(() => tab({ replace: { liveClients } })).not.toThrow()
  })
})

describe('a wrong call is a ConfigError, as a rejection, before anything is stored or sent', () => {
  it.each<[option: string, init: Record<string, unknown>, url?: string]>([
    ['intent', { intent: '' }],
    ['intent', { intent: 'x'.repeat(513) }],
    ['intent', { intent: 42 }],
    ['intent', { intent: {} }],
    ['intent', { intent: 'half a \ud83d pair' }],
    ['intent', { intent: 'a\0b' }],
    ['key', { key: 'k-1' }],
    ['key', { key: null }],
    ['key', { key: 5 }],
    ['key', { key: {} }],
    ['key', { key: { since: 'new' } }],
    ['key', { key: { value: 5, since: 'new' } }],
    ['key', { key: { derived: false, since: 'new' } }],
    ['key', { key: { value: 'k-1', derived: true, since: 'new' } }],
    ['key', { key: { value: '', since: 'new' } }],
    ['key', { key: { value: 'with space', since: 'new' } }],
    ['key.since', { key: { value: 'k-1' } }],
    ['key.since', { key: { derived: true } }],
    ['key.since', { key: { derived: true, since: 'old' } }],
    ['key.since', { key: { derived: true, since: Number.NaN } }],
    ['key.since', { key: { derived: true, since: new Date('tomorrow') } }],
    ['key.since', { key: { derived: true, since: '2026-12-01' } }],
    ['operation', { operation: 'unknown' }],
    ['operation', { operation: '' }],
    ['operation', { operation: 5 }],
    ['lane', { lane: '' }],
    ['lane', { lane: 5 }],
    ['lane', { lane: 'a\0b' }],
    ['again', { again: 'yes' }],
    ['sendBefore', { sendBefore: 'tomorrow' }],
    ['sendBefore', { sendBefore: new Date('tomorrow') }],
    ['sendBefore', { sendBefore: Number.POSITIVE_INFINITY }],
    ['waitMs', { waitMs: -1 }],
    ['waitMs', { waitMs: Number.NaN }],
    ['waitMs', { waitMs: '30' }],
    ['mode', { mode: 'no-cors' }],
    ['init', { method: 'CONNECT' }],
    ['init', {}, 'https://user:secret@api.example.com/orders'],
    ['headers.authorization', { headers: { authorization: 'Bearer x' } }],
    ['headers.idempotency-key', { headers: { 'idempotency-key': 'a b' } }],
  ])('%s: %j', async (option, init, url = 'orders') => {
    const { network, tab, pass } = world()
    const only = tab()
    const write = only.fetch(url, { ...order('a'), ...init } as RequestInit & IntentInit & { intent: string })
    await pass(60_000)
    await expect(write).rejects.toEqual(config(option))
    await expect(write).rejects.not.toThrow(/secret/)
    await expect(write.stored).rejects.toEqual(config(option))
    await expect(write.outcome()).rejects.toEqual(config(option))
    await expect(write.json()).rejects.toEqual(config(option))
    expect(await only.store.list(origin, { limit: 9 })).toEqual([])
    expect(network.calls).toEqual([])
  })

  it('input: a relative address outside a browser, without baseUrl', async () => {
    const fetch = createFetch({ name: 'no base', dialect: samekey, anonymous: true, store: memoryStore() })
    await expect(fetch('/orders', { ...order('a') })).rejects.toEqual(config('input'))
    await fetch.stop()
  })

  it('a call after stop()', async () => {
    const { tab, network } = world()
    const only = tab()
    await only.fetch.stop()
    await expect(only.fetch('orders', order('a'))).rejects.toEqual(config('stop'))
    await expect(only.fetch.start()).rejects.toEqual(config('stop'))
    await expect(only.fetch.intents.list()).rejects.toMatchObject({ code: 'config' })
    expect(network.calls).toEqual([])
  })

  it('a name of 512 characters is fine', async () => {
    const { tab, pass } = world()
    const write = tab().fetch('orders', order('x'.repeat(512)))
    await pass(1000)
    expect((await write).status).toBe(201)
  })
})
