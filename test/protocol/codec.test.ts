import { describe, expect, it } from 'vitest'
import { decodeRecord, encodeRecord } from '../../src/protocol/codec.ts'
import { type IntentRecord, recordFormat } from '../../src/protocol/record.ts'
import type { State } from '../../src/protocol/states.ts'
import { FULL, MONITOR, NOW, record, sending } from '../support/machine.ts'

const STATES: readonly State[] = [
  { name: 'queued' },
  sending({ serverAt: NOW, exact: false }),
  { name: 'waiting', because: 'ambiguous' },
  { name: 'processing', monitor: { ...MONITOR, resultExpiresAt: NOW } },
  { name: 'blocked', on: 'lane' },
  { name: 'cancelling', purpose: 'found' },
  { name: 'unknown', because: 'window_over' },
  { name: 'succeeded', by: 'reconcile' },
  { name: 'rejected' },
  { name: 'conflicted' },
  { name: 'cancelled', because: 'voided' },
  { name: 'abandoned', mayStillHappen: true, freed: false },
]

type Path = readonly (string | number)[]

/** Every place in a plain value, the root left out. */
function places(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]) => {
    const here = [...path, Array.isArray(value) ? Number(key) : key]
    return [here, ...places(member, here)]
  })
}

/** A copy with another value at this place; undefined takes it away. */
function damaged(value: unknown, [key, ...rest]: Path, junk: unknown): unknown {
  if (key === undefined) return junk
  if (Array.isArray(value)) return value.map((member, index) => (index === key ? damaged(member, rest, junk) : member))
  const members = value as Record<string, unknown>
  return { ...members, [key]: damaged(members[key], rest, junk) }
}

const decode = (value: unknown) => decodeRecord(recordFormat, JSON.stringify(value))
const DAMAGED = { ok: false, reason: 'damaged' }
const named = (path: Path): string => path.join('.')
const optional = new Set(['history.0.attempt', 'history.0.status', 'history.0.detail', 'actions.0.note'])
const nullable = new Set([
  'lane',
  'since',
  'sendBefore',
  'dueAt',
  'doubt',
  'doubt.serverAt',
  'lastHandOverAt',
  'answer',
  'settledAt',
  'acknowledgedAt',
  'state.attempt.serverAt',
  'state.monitor.resultExpiresAt',
])
const underRules = (path: Path): boolean => named(path).startsWith('fingerprint.rules.')

describe('records as text (P23)', () => {
  it.each(STATES)('P23: $name comes back as it went', (state) => {
    const whole = { ...FULL, state }
    expect(decodeRecord(recordFormat, encodeRecord(whole))).toEqual({ ok: true, record: whole })
    const bare = record({ state })
    expect(decodeRecord(recordFormat, encodeRecord(bare))).toEqual({ ok: true, record: bare })
  })

  it('B109: the format of this release is still read as its first one', () => {
    expect(recordFormat).toBe(1)
  })

  it.each([2, 99])('B109, P23: format %i is newer: left alone, not guessed at', (format) => {
    expect(decodeRecord(format, encodeRecord(FULL))).toEqual({ ok: false, reason: 'newer' })
    expect(decodeRecord(format, 'not even JSON')).toEqual({ ok: false, reason: 'newer' })
  })

  it.each(['', '{', 'null', '[]', '{}', '"a"', '1', '{"state":{"name":"queued"}}'])('P23: %j is damaged', (text) => {
    expect(decodeRecord(recordFormat, text)).toEqual(DAMAGED)
  })

  const fields = STATES.flatMap((state) => {
    const whole = { ...FULL, state }
    // The other members are damaged once, the state's own in every state.
    return places(whole)
      .filter((path) => state.name === 'queued' || path[0] === 'state')
      .map((path) => ({ where: `${state.name}: ${named(path)}`, whole, path }))
  }).filter(({ path }) => !underRules(path))

  it.each(fields)('P23: a damaged field is noticed: $where', ({ whole, path }) => {
    const kind = kindOf(valueAt(whole, path))
    for (const junk of [[[1]], { a: 1 }, 1, true, 'junk'].filter((value) => kindOf(value) !== kind)) {
      expect(decode(damaged(whole, path, junk)), JSON.stringify(junk)).toEqual(DAMAGED)
    }
    const missing = nullable.has(named(path)) ? { ok: true } : DAMAGED
    expect(decode(damaged(whole, path, null))).toMatchObject(missing)
  })

  it.each(fields)('P23: a missing field is noticed: $where', ({ whole, path }) => {
    expect(decode(damaged(whole, path, undefined))).toMatchObject(optional.has(named(path)) ? { ok: true } : DAMAGED)
  })

  it.each([
    ['key', ''],
    ['attempts', -1],
    ['attempts', 1.5],
    ['answer.status', -200],
    ['keyOrigin', 'found'],
    ['request.method', 'CONNECT'],
    ['request.method', 'trace'],
    ['request.url', 'https://user:password@api.example.com/'],
    ['request.url', 'https://user@api.example.com/'],
    ['request.headers', [['x', '\u20ac']]],
    ['request.referrerPolicy', 'never'],
    ['answer.headers', [['x', '\u20ac']]],
    ['fingerprint.rules.omit', '/meta'],
    ['fingerprint.rules.version', 2],
    ['lane.kind', 'any'],
    ['request.credentials', 'always'],
    ['answer.body', 'gone'],
    ['actions.0.action', 'forget'],
    ['state.name', 'sleeping'],
  ])('P23: a value that no release wrote is noticed: %s = %j', (where, junk) => {
    const path = where.split('.').map((key) => (key === '0' ? 0 : key))
    expect(decode(damaged(FULL, path, junk))).toEqual(DAMAGED)
  })

  it('P23: reasons are words that later releases may add to, and are read as they are', () => {
    for (const name of ['waiting', 'unknown']) {
      expect(decode({ ...FULL, state: { name, because: 'of_something_new' } })).toMatchObject({ ok: true })
    }
  })

  it('P16: the rules of a fingerprint are kept as they are, whatever they hold', () => {
    const rules = { defaults: { '/a': [null, { b: 1 }] }, omit: ['/c'], later: [1] }
    const kept = { ...FULL, fingerprint: { ...FULL.fingerprint, rules } }
    expect(decodeRecord(recordFormat, encodeRecord(kept as IntentRecord))).toEqual({ ok: true, record: kept })
  })
})

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, key) => (at as Record<string | number, unknown>)[key], value)
}
