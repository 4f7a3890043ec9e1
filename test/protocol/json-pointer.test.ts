import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parsePointer, pointerStep } from '../../src/protocol/json-pointer.ts'

describe('JSON pointer', () => {
  it.each([
    ['/a', [], 'a'],
    ['/a/0/b', ['a', '0'], 'b'],
    ['/', [], ''],
    ['//x', [''], 'x'],
    ['/a~1b/~0~01', ['a/b'], '~~1'],
  ])('%s names a step in its container', (text, parents, last) => {
    expect(parsePointer(text)).toEqual({ parents, last })
  })

  it.each(['', 'a', 'a/b', '/a~', '/a~2', '#/a'])('%j is no pointer to a member', (text) => {
    expect(parsePointer(text)).toBeNull()
  })

  it('any names survive being written and read', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.string(), (parents, last) => {
        expect(parsePointer(`/${[...parents, last].map(pointerStep).join('/')}`)).toEqual({ parents, last })
      }),
    )
  })
})
