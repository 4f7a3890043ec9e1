import { describe, expect, it } from 'vitest'
import { canonicalMediaType, isJsonMediaType } from '../../src/protocol/media-type.ts'

describe('isJsonMediaType', () => {
  it.each([
    'application/json',
    'Application/JSON',
    ' application/json ; charset=utf-8',
    'application/json;charset=utf-8',
    'application/problem+json',
    'application/vnd.acme.v2+json; version=1',
    'model/gltf+json',
  ])('%s is JSON', (type) => {
    expect(isJsonMediaType(type)).toBe(true)
  })

  it.each([
    null,
    '',
    'text/plain',
    'application/jsonp',
    'application/json-seq',
    'application/json, text/html',
    '+json',
    'text/html; a=application/json',
  ])('%s is not JSON', (type) => {
    expect(isJsonMediaType(type)).toBe(false)
  })
})

describe('canonicalMediaType', () => {
  it('white space and letter case of names do not matter, values do', () => {
    expect(canonicalMediaType(' Text/Plain ;  Charset=UTF-8;')).toBe('text/plain;charset=UTF-8')
    expect(canonicalMediaType('text/plain;charset=utf-8')).not.toBe(canonicalMediaType('text/plain;charset=UTF-8'))
  })

  it('named parameters are left out', () => {
    expect(canonicalMediaType('application/json; Charset=utf-8; v=2', ['charset'])).toBe('application/json;v=2')
  })
})
