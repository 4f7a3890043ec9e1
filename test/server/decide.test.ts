import { describe, expect, it } from 'vitest'
import { type FingerprintInput, fingerprint } from '../../src/protocol/fingerprint.ts'
import { PROBLEMS } from '../../src/protocol/problem.ts'
import { type MonitorStatus, readMonitor } from '../../src/protocol/wire.ts'
import { answerFor, type FinalDecision, monitorDocument } from '../../src/server/answer-for.ts'
import {
  type Asked,
  decideLookup,
  decideSubmit,
  decideVoid,
  type KeyRow,
  readAge,
  readKey,
  readKeySegment,
  readScopeTag,
  type StoredAnswer,
  type TaskView,
} from '../../src/server/decide.ts'

const HOUR_MS = 3_600_000
const NOW = Date.UTC(2026, 11, 1, 12)
const EXPIRES = NOW + 24 * HOUR_MS

const asked: Asked & { takesBack: boolean } = {
  takesBack: true,
  key: { ok: true, key: 'k-1' },
  age: { ok: true, ageMs: 0, since: null },
  scope: 'not-asked',
  retentionMs: 24 * HOUR_MS,
  transitMs: 300_000,
}

const request: FingerprintInput = {
  method: 'POST',
  url: 'https://api.example.com/orders',
  operation: 'orders.create',
  headers: [['content-type', 'application/json']],
  body: { kind: 'json', text: '{"item":"tea","count":2}' },
}

const answer: StoredAnswer = {
  status: 201,
  headers: [
    ['Content-Type', 'application/json'],
    ['Location', '/orders/1'],
  ],
  body: { kind: 'bytes', bytes: new TextEncoder().encode('{"id":1}') },
}

const row: KeyRow = {
  state: 'finished',
  fingerprint: fingerprint(request),
  requestDigest: 'a'.repeat(64),
  answer,
  task: null,
  createdAt: NOW - HOUR_MS,
  expiresAt: EXPIRES,
}

const processing: TaskView = {
  status: 'processing',
  result: null,
  error: null,
  retryAfterSeconds: 2,
  resultExpiresAt: EXPIRES,
}

const inserted = { seen: 'inserted', now: NOW, expiresAt: EXPIRES } as const
const gone = { seen: 'gone', now: NOW } as const
const unread = { seen: 'unread' } as const
const old = { ok: true, ageMs: 24 * HOUR_MS - 300_000, since: null } as const
const almostOld = { ok: true, ageMs: 24 * HOUR_MS - 301_000, since: null } as const
const oldSince = { ok: true, ageMs: null, since: NOW - 24 * HOUR_MS } as const
const almostOldSince = { ok: true, ageMs: null, since: NOW - 24 * HOUR_MS + 1000 } as const

describe('before the key is touched', () => {
  const refused = [
    ['no key', { key: readKey(null) }, 'keyMissing'],
    ['an empty key', { key: readKey('  ') }, 'keyMissing'],
    ['two keys, as some browsers send them (B133)', { key: readKey('a, b') }, 'keyInvalid'],
    ['wrong quoting', { key: readKey('"a') }, 'keyInvalid'],
    ['a key over the limit', { key: readKey('abcdef', { maxLength: 5 }) }, 'keyInvalid'],
    ['an age that is no number', { age: readAge('soon', null) }, 'keyInvalid'],
    ['two ages', { age: readAge('1, 2', null) }, 'keyInvalid'],
    ['a negative age', { age: readAge('-1', null) }, 'keyInvalid'],
    ['a since that is no date', { age: readAge(null, 'yesterday') }, 'keyInvalid'],
    ['the tag of another account', { scope: readScopeTag('u-2', 'u-1') }, 'scopeMismatch'],
    ['a tag that this server cannot check', { scope: readScopeTag('u-2', undefined) }, 'scopeMismatch'],
    ['another account and no key: the account first', { scope: 'other', key: readKey(null) }, 'scopeMismatch'],
  ] as const

  it.each(refused)('P12, P57, H5: %s is refused: submit, lookup and void', (_, part, kind) => {
    const view = { ...asked, ...part, store: unread }
    for (const decision of [decideSubmit(view), decideLookup(view), decideVoid(view)]) {
      expect(decision).toMatchObject({ kind, detail: expect.any(String) })
    }
  })

  const fine = [
    ['age and since absent', { age: readAge(null, null) }],
    ['an age of more digits than a number holds', { age: readAge('9'.repeat(400), null) }],
    ['age and since', { age: readAge(' 17 ', 'Tue, 01 Dec 2026 11:00:00 GMT') }],
    ['a quoted key', { key: readKey('"k-1"') }],
    ['its own tag', { scope: readScopeTag(' u-1 ', 'u-1') }],
  ] as const

  it.each(fine)('%s: claim, and ask again', (_, part) => {
    const view = { ...asked, ...part, store: unread }
    for (const decide of [decideSubmit, decideLookup, decideVoid]) expect(decide(view)).toEqual({ kind: 'claim' })
  })

  it('a quoted structured-field string is the same key as the raw token', () => {
    expect(readKey('"k-1"')).toEqual(readKey('k-1'))
    expect(readKeySegment('k-1')).toEqual(readKey('k-1'))
    expect(readKeySegment('..')).toMatchObject({ ok: false, reason: 'invalid' })
  })
})

describe('decideSubmit', () => {
  it('a free key is executed', () => {
    expect(decideSubmit({ ...asked, store: inserted })).toEqual({ kind: 'execute', expiresAt: EXPIRES })
  })

  it('P57: both headers absent: executed, unprotected', () => {
    const age = readAge(null, null)
    expect(decideSubmit({ ...asked, age, store: inserted })).toMatchObject({ kind: 'execute' })
  })

  it('P57, H8, H10: a free key whose age plus transit reaches the retention is expired, not executed', () => {
    expect(decideSubmit({ ...asked, age: old, store: inserted })).toEqual({ kind: 'expired' })
    expect(decideSubmit({ ...asked, age: almostOld, store: inserted })).toMatchObject({ kind: 'execute' })
    expect(decideSubmit({ ...asked, age: readAge('9'.repeat(400), null), store: inserted })).toEqual({
      kind: 'expired',
    })
  })

  it('P57, H40: Idempotency-Since counts too, when the age says otherwise', () => {
    expect(decideSubmit({ ...asked, age: oldSince, store: inserted })).toEqual({ kind: 'expired' })
    expect(decideSubmit({ ...asked, age: { ...oldSince, ageMs: 0 }, store: inserted })).toEqual({ kind: 'expired' })
    expect(decideSubmit({ ...asked, age: almostOldSince, store: inserted })).toMatchObject({ kind: 'execute' })
  })

  it('a since in the future says nothing', () => {
    const age = { ok: true, ageMs: null, since: NOW + HOUR_MS } as const
    expect(decideSubmit({ ...asked, age, store: inserted })).toMatchObject({ kind: 'execute' })
  })

  it('an unread age is never executed', () => {
    expect(decideSubmit({ ...asked, age: readAge('x', null), store: inserted })).toEqual({ kind: 'expired' })
  })

  it('F7: a rival that still runs: in progress', () => {
    expect(decideSubmit({ ...asked, store: { seen: 'busy' } })).toEqual({ kind: 'inProgress' })
  })

  it('H11: a row that was there and is gone: expired, however young the request', () => {
    expect(decideSubmit({ ...asked, store: gone })).toEqual({ kind: 'expired' })
  })

  it('F5: a finished row is replayed, however old the request (H12)', () => {
    const decision = decideSubmit({ ...asked, age: old, store: { seen: 'row', row, request } })
    expect(decision).toEqual({ kind: 'answer', answer, expiresAt: EXPIRES, replayed: true })
  })

  it('F8: another payload is a conflict, finished or not', () => {
    const other: FingerprintInput = { ...request, body: { kind: 'json', text: '{"item":"coffee"}' } }
    expect(decideSubmit({ ...asked, store: { seen: 'row', row, request: other } })).toEqual({ kind: 'conflict' })
    const running: KeyRow = { ...row, state: 'running', answer: null }
    expect(decideSubmit({ ...asked, store: { seen: 'row', row: running, request: other } })).toEqual({
      kind: 'conflict',
    })
  })

  it('P16, H22: the stored rules decide, whatever the rules are today', () => {
    const stored = fingerprint(request, { omit: ['/count'], version: 'old' })
    const same: FingerprintInput = { ...request, body: { kind: 'json', text: '{"item":"tea","count":3}' } }
    const decision = decideSubmit({
      ...asked,
      store: { seen: 'row', row: { ...row, fingerprint: stored }, request: same },
    })
    expect(decision).toMatchObject({ kind: 'answer' })
  })

  it('H22: a fingerprint of an unknown version is no conflict: an operator looks', () => {
    const stored = { ...fingerprint(request), version: '0' }
    const decision = decideSubmit({ ...asked, store: { seen: 'row', row: { ...row, fingerprint: stored }, request } })
    expect(decision).toMatchObject({ kind: 'inconsistent' })
  })

  it('P58: a voided row refuses every payload', () => {
    const voided: KeyRow = { ...row, state: 'voided', fingerprint: null, requestDigest: null, answer: null }
    expect(decideSubmit({ ...asked, store: { seen: 'row', row: voided, request } })).toEqual({ kind: 'voided' })
  })

  it('F21: a row without a finished answer is inconsistent, never executed again', () => {
    for (const damage of [{ state: 'running' }, { answer: null }, { fingerprint: null }] as const) {
      const decision = decideSubmit({ ...asked, store: { seen: 'row', row: { ...row, ...damage }, request } })
      expect(decision).toMatchObject({ kind: 'inconsistent', detail: expect.any(String) })
    }
  })

  it('a request that can have no fingerprint is an error, not an answer', () => {
    const bad: FingerprintInput = { ...request, body: { kind: 'json', text: '{' } }
    expect(() => decideSubmit({ ...asked, store: { seen: 'row', row, request: bad } })).toThrow()
  })
})

describe('decideLookup', () => {
  it('P43: tells what is there', () => {
    expect(decideLookup({ ...asked, age: old, store: { seen: 'row', row } })).toEqual({ kind: 'monitor', row })
  })

  it('P43, P57: absent only while the key cannot have been forgotten', () => {
    expect(decideLookup({ ...asked, store: gone })).toEqual({ kind: 'absent' })
    expect(decideLookup({ ...asked, age: old, store: gone })).toEqual({ kind: 'expired' })
    expect(decideLookup({ ...asked, age: oldSince, store: gone })).toEqual({ kind: 'expired' })
  })

  it('F21: damage is said', () => {
    const damaged: KeyRow = { ...row, state: 'running', answer: null }
    expect(decideLookup({ ...asked, store: { seen: 'row', row: damaged } })).toMatchObject({ kind: 'inconsistent' })
  })
})

describe('decideVoid', () => {
  it('P58: a free key is voided', () => {
    const decision = decideVoid({ ...asked, store: inserted })
    expect(decision).toMatchObject({ kind: 'void', row: { state: 'voided', expiresAt: EXPIRES, answer: null } })
  })

  it('P57, H1: a free key that is too old is expired, not voided', () => {
    expect(decideVoid({ ...asked, age: old, store: inserted })).toEqual({ kind: 'expired' })
    expect(decideVoid({ ...asked, age: oldSince, store: inserted })).toEqual({ kind: 'expired' })
    expect(decideVoid({ ...asked, store: gone })).toEqual({ kind: 'expired' })
  })

  it('P44: otherwise the stored answer decides', () => {
    expect(decideVoid({ ...asked, store: { seen: 'row', row } })).toEqual({ kind: 'monitor', row })
    expect(decideVoid({ ...asked, store: { seen: 'busy' } })).toEqual({ kind: 'inProgress' })
    const damaged: KeyRow = { ...row, answer: null }
    expect(decideVoid({ ...asked, store: { seen: 'row', row: damaged } })).toMatchObject({ kind: 'inconsistent' })
  })

  it('P58: accepted work is voided while nobody knows better, and only where the app takes back what it wrote', () => {
    const store = (status: MonitorStatus, state: KeyRow['state'] = 'accepted') =>
      ({ seen: 'row', row: { ...row, state, task: { ...processing, status } } }) as const
    for (const status of ['processing', 'failed_retryable'] as const) {
      expect(decideVoid({ ...asked, store: store(status) }).kind).toBe('voidWork')
      expect(decideVoid({ ...asked, takesBack: false, store: store(status) }).kind).toBe('monitor')
    }
    expect(decideVoid({ ...asked, store: store('unknown') }).kind).toBe('monitor')
    expect(decideVoid({ ...asked, store: store('succeeded', 'finished') }).kind).toBe('monitor')
    expect(decideVoid({ ...asked, store: store('voided', 'voided') }).kind).toBe('monitor')
  })
})

describe('answerFor', () => {
  const text = (decision: FinalDecision) => {
    const { body } = answerFor(decision, 'k-1')
    return body === null ? null : new TextDecoder().decode(body)
  }
  const header = (decision: FinalDecision, name: string) =>
    answerFor(decision, 'k-1').headers.find(([found]) => found === name)?.[1] ?? null

  it('P55, P56: a first answer and its replay differ in the marker alone', () => {
    const first = { kind: 'answer', answer, expiresAt: EXPIRES, replayed: false } as const
    const replay = { ...first, replayed: true } as const
    expect(text(replay)).toBe(text(first))
    expect(answerFor(replay, 'k-1').status).toBe(201)
    const marker = ['Idempotent-Replayed', 'true']
    expect(answerFor(replay, 'k-1').headers).toEqual([...answerFor(first, 'k-1').headers, marker])
    expect(header(first, 'Idempotency-Expires')).toBe('Wed, 02 Dec 2026 12:00:00 GMT')
    expect(header(first, 'Location')).toBe('/orders/1')
  })

  it('P60: a body that was not kept is said to be omitted', () => {
    const omitted: StoredAnswer = { ...answer, body: { kind: 'omitted' } }
    const decision = { kind: 'answer', answer: omitted, expiresAt: EXPIRES, replayed: true } as const
    expect(text(decision)).toBeNull()
    expect(header(decision, 'Idempotency-Body')).toBe('omitted')
  })

  it('an answer without a body has none', () => {
    const bare: StoredAnswer = { status: 204, headers: [], body: { kind: 'bytes', bytes: new Uint8Array() } }
    expect(text({ kind: 'answer', answer: bare, expiresAt: EXPIRES, replayed: false })).toBeNull()
  })

  const problems = [
    ['keyMissing', { kind: 'keyMissing', detail: 'd' }, 'idempotency_key_missing'],
    ['keyInvalid', { kind: 'keyInvalid', detail: 'd' }, 'idempotency_key_invalid'],
    ['scopeMismatch', { kind: 'scopeMismatch', detail: 'd' }, 'idempotency_scope_mismatch'],
    ['conflict', { kind: 'conflict' }, 'idempotency_conflict'],
    ['inProgress', { kind: 'inProgress' }, 'idempotency_in_progress'],
    ['expired', { kind: 'expired' }, 'idempotency_expired'],
    ['voided', { kind: 'voided' }, 'idempotency_voided'],
    ['inconsistent', { kind: 'inconsistent', detail: 'd' }, 'idempotency_inconsistent'],
  ] as const

  it.each(problems)('section 16: %s has its own status, type and code, and no proof', (_, decision, code) => {
    const { status, headers } = answerFor(decision, 'k-1')
    expect(status).toBe(PROBLEMS[code].status)
    expect(JSON.parse(text(decision) ?? '')).toMatchObject({ code, type: PROBLEMS[code].type, status })
    expect(Object.fromEntries(headers)).toMatchObject({
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
    })
    expect(header(decision, 'Idempotency-Expires')).toBeNull()
    expect(header(decision, 'Retry-After')).toBe(decision.kind === 'inProgress' ? '1' : null)
  })

  it('P43: absent is a 404 with a code of its own', () => {
    expect(answerFor({ kind: 'absent' }, 'k-1').status).toBe(404)
    expect(JSON.parse(text({ kind: 'absent' }) ?? '')).toMatchObject({ code: 'absent' })
  })
})

describe('monitor documents', () => {
  const told = (part: Partial<KeyRow>) => {
    const document = monitorDocument({ ...row, ...part }, 'k-1')
    // What we write, the client's own reader takes whole.
    expect(readMonitor(JSON.parse(JSON.stringify(document)))).toEqual(document)
    return document
  }
  const task = {
    status: 'processing',
    result: null,
    error: null,
    retryAfterSeconds: 5,
    resultExpiresAt: EXPIRES,
  } as const

  it('a finished answer, as a replay would give it', () => {
    expect(told({})).toEqual({
      id: 'k-1',
      status: 'succeeded',
      requestDigest: 'a'.repeat(64),
      resultExpiresAt: '2026-12-02T12:00:00.000Z',
      response: {
        status: 201,
        headers: {
          'Content-Type': 'application/json',
          Location: '/orders/1',
          'Idempotency-Expires': 'Wed, 02 Dec 2026 12:00:00 GMT',
          'Idempotent-Replayed': 'true',
        },
        body: '{"id":1}',
        bodyEncoding: 'utf8',
      },
    })
  })

  it('a remembered refusal is failed; a stored server error is unknown (F18)', () => {
    expect(told({ answer: { ...answer, status: 402 } })).toMatchObject({ status: 'failed', response: { status: 402 } })
    expect(told({ answer: { ...answer, status: 500 } })).toMatchObject({ status: 'unknown', response: { status: 500 } })
    expect(monitorDocument({ ...row, answer: null }, 'k-1').status).toBe('unknown')
  })

  it('bytes that are no text come as base64', () => {
    const bytes = Uint8Array.of(0xff, 0xfe, 0)
    const { response } = told({ answer: { ...answer, body: { kind: 'bytes', bytes } } })
    expect(response).toMatchObject({ body: '//4A', bodyEncoding: 'base64' })
  })

  it('P60: a body that was not kept', () => {
    const { response } = told({ answer: { ...answer, body: { kind: 'omitted' } } })
    expect(response).toMatchObject({ body: '', headers: { 'Idempotency-Body': 'omitted' } })
  })

  it('several values of one header are joined', () => {
    const headers = [
      ['Link', '<a>'],
      ['link', '<b>'],
    ] as const
    expect(told({ answer: { ...answer, headers } }).response?.headers).toMatchObject({ Link: '<a>, <b>' })
  })

  it('P64: accepted work says how far it is, with its pace', () => {
    const accepted: StoredAnswer = { ...answer, status: 202 }
    const processing = told({ answer: accepted, task })
    expect(processing).toMatchObject({ status: 'processing', retryAfter: 5 })
    expect(processing.response).toBeUndefined()
    const retrying = told({ answer: accepted, task: { ...task, status: 'failed_retryable', error: { code: 'busy' } } })
    expect(retrying).toMatchObject({ status: 'failed_retryable', error: { code: 'busy' } })
    const done = told({
      answer: accepted,
      task: { ...task, status: 'succeeded', result: answer, retryAfterSeconds: null },
    })
    expect(done).toMatchObject({ status: 'succeeded', response: { status: 201, body: '{"id":1}' } })
    expect(answerFor({ kind: 'monitor', row: { ...row, task } }, 'k-1').headers).toContainEqual(['Retry-After', '5'])
  })

  it('P58: voided work is voided, whatever it was before', () => {
    const document = told({ state: 'voided', task })
    expect(document).toMatchObject({ status: 'voided' })
    expect(document.response).toBeUndefined()
    expect(document.retryAfter).toBeUndefined()
  })
})
