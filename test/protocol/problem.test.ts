import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeProblem, PROBLEM_MEDIA_TYPE, PROBLEMS, type ProblemCode, readProblem } from '../../src/protocol/problem.ts'

describe('the table', () => {
  it('section 16: every code has the status of the wire profile', () => {
    expect(Object.fromEntries(Object.entries(PROBLEMS).map(([code, { status }]) => [code, status]))).toEqual({
      idempotency_key_missing: 400,
      idempotency_key_invalid: 400,
      idempotency_scope_mismatch: 403,
      idempotency_conflict: 409,
      idempotency_in_progress: 409,
      idempotency_expired: 409,
      idempotency_voided: 409,
      idempotency_inconsistent: 500,
      idempotency_unavailable: 503,
    })
  })

  it('section 16: types are distinct, and belong to their code', () => {
    for (const [code, { type }] of Object.entries(PROBLEMS)) {
      expect(type).toBe(`urn:samekey:problem:${code.replaceAll('_', '-')}`)
    }
  })
})

describe('makeProblem', () => {
  it('has type, title, status and code, and detail only if there is one', () => {
    expect(makeProblem('idempotency_expired')).toEqual({ ...PROBLEMS.idempotency_expired, code: 'idempotency_expired' })
    expect(makeProblem('idempotency_conflict', 'Other amount.')).toHaveProperty('detail', 'Other amount.')
    expect(makeProblem('idempotency_conflict')).not.toHaveProperty('detail')
  })

  it('further members cannot replace the standard ones', () => {
    const problem = makeProblem('idempotency_conflict', 'd', {
      code: 'x',
      status: 1,
      type: 'x',
      title: 'x',
      detail: 'x',
      key: 'k',
    })
    expect(problem).toEqual({ ...PROBLEMS.idempotency_conflict, code: 'idempotency_conflict', detail: 'd', key: 'k' })
  })
})

describe('readProblem', () => {
  it('reads back what makeProblem made', () => {
    for (const code of Object.keys(PROBLEMS) as ProblemCode[]) {
      const { type, title } = PROBLEMS[code]
      expect(readProblem(PROBLEM_MEDIA_TYPE, JSON.stringify(makeProblem(code)))).toEqual({ code, type, title })
    }
  })

  it('reads the code from plain JSON of other servers, whatever else is in it', () => {
    const text = '{"code":"in_use","message":"m","id":9007199254740993,"id":2}'
    expect(readProblem('application/json; charset=utf-8', text)).toEqual({ code: 'in_use' })
  })

  it('members that are no text are left out', () => {
    expect(readProblem('application/json', '{"code":409,"type":null,"title":"T"}')).toEqual({ title: 'T' })
  })

  it.each([
    [null, '{"code":"a"}'],
    ['text/html', '{"code":"a"}'],
    ['application/json', ''],
    ['application/json', '<html>'],
    ['application/json', 'null'],
    ['application/json', '"code"'],
    ['application/json', '["code"]'],
    ['application/json', '{"code":1}'],
    ['application/json', '{"__proto__":{"code":"a"}}'],
  ])('junk is null: %s %s', (contentType, text) => {
    expect(readProblem(contentType, text)).toBeNull()
  })

  it('never throws', () => {
    expect(readProblem('application/json', '['.repeat(100_000))).toBeNull()
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        readProblem('application/json', text)
      }),
    )
  })
})
