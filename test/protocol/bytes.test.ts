import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromBase64, utf8 } from '../../src/protocol/bytes.ts'

describe('bytes', () => {
  it('section 16: text becomes UTF-8', () => {
    expect(utf8('aé€😀')).toEqual(new Uint8Array(Buffer.from('aé€😀')))
    expect(utf8('')).toHaveLength(0)
  })

  it('section 16: base64 gives back the bytes it was made of, whatever they are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(fromBase64(Buffer.from(bytes).toString('base64'))).toEqual(bytes)
      }),
    )
  })
})
