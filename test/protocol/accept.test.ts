import { describe, expect, it } from 'vitest'
import { accepts } from '../../src/protocol/accept.ts'

describe('accepts (section 6)', () => {
  it.each([
    [null, 'text/html'],
    ['application/json', null],
    ['application/json', 'application/json; charset=utf-8'],
    ['Application/JSON;q=0.1', 'application/json'],
    ['text/plain, application/json', 'application/json'],
    ['text/*', 'text/html'],
    ['*/*', 'anything/else'],
    ['text/html;q=0, */*', 'application/json'],
    ['application/json, */*;q=0', 'application/json'],
    ['application/json;q=0.0001', 'application/json'],
  ])('%j takes %j', (accept, type) => {
    expect(accepts(accept, type)).toBe(true)
  })

  it.each([
    ['application/json', 'text/html'],
    ['application/*', 'text/html'],
    ['', 'text/html'],
    ['application/json', 'application/json-patch+json'],
    ['text/html;q=0', 'text/html'],
    ['text/html;q=0.000, */*', 'text/html'],
    ['text/*; q=0 , */*', 'text/html'],
    ['application/json, */*;q=0', 'text/html'],
  ])('H24: %j does not take %j', (accept, type) => {
    expect(accepts(accept, type)).toBe(false)
  })
})
