/**
 * Canonical JSON against what it must not depend on (P14, H23). RFC 8785's own vectors: test/protocol/json.test.ts; here
 * are its bytes (section 3.2.4), and properties.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, JsonRefusedError, parseJson } from '../../src/protocol/json.ts'
import vectors from '../vectors/jcs.json' with { type: 'json' }
import { runs } from './runs.ts'

/** The canonical text, or why there is none. */
function canonical(text: string): { text: string } | { refused: string } {
  try {
    return { text: canonicalJson(parseJson(text)) }
  } catch (error) {
    if (error instanceof JsonRefusedError) return { refused: error.reason }
    throw error
  }
}

const name = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 4 }),
  fc.constantFrom('a', 'b', '__proto__', 'constructor', '1', '10', ''),
)
/** Objects whose members are listed, so that they can be written in any order. */
type Tree = null | boolean | number | string | { list: Tree[] } | { members: [string, Tree][] }
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(
      fc.constant(null),
      fc.boolean(),
      fc.string({ unit: 'binary', maxLength: 6 }),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
    ),
    fc.array(tie('tree'), { maxLength: 3 }).map((list) => ({ list })),
    fc
      .uniqueArray(fc.tuple(name, tie('tree')), { maxLength: 4, selector: ([key]) => key })
      .map((members) => ({ members })),
  ),
}))

/** A stream of choices, so that one tree can be written in many ways. */
function chooser(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >>> 8) % below
  }
}

/** Another spelling of the same decimal value. */
function spelt(value: number, choose: (below: number) => number): string {
  const plain = String(value)
  const [, sign = '', whole = '0', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e\+?(-?\d+))?$/.exec(plain) ?? []
  const power = Number(exponent)
  switch (choose(5)) {
    case 0:
      return fraction === '' && exponent === '0' ? `${plain}.000` : plain
    case 1:
      return `${sign}${whole}.${fraction}000E${power}`
    case 2:
      return `${sign}${`${whole}${fraction}`.replace(/^0+(?=\d)/, '')}e${power - fraction.length}`
    case 3:
      return `${sign}0.${`${whole}${fraction}`}e+${power + whole.length}`.replace('+-', '-')
    default:
      return plain
  }
}

function quoted(text: string, choose: (below: number) => number): string {
  let written = '"'
  for (const char of text) {
    const escaped = JSON.stringify(char).slice(1, -1)
    const hex = char.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    written += choose(3) === 0 ? hex.join('') : escaped
  }
  return `${written}"`
}

/** The tree as text: members in any order, white space anywhere, numbers and strings spelt in any way. */
function written(node: Tree, choose: (below: number) => number): string {
  const blank = (): string => ['', '', ' ', '\n\t', '\r '][choose(5)] ?? ''
  const around = (text: string): string => blank() + text + blank()
  if (typeof node === 'number') return around(spelt(node, choose))
  if (typeof node === 'string') return around(quoted(node, choose))
  if (node === null || typeof node === 'boolean') return around(String(node))
  if ('list' in node) return around(`[${node.list.map((item) => written(item, choose)).join(',') || blank()}]`)
  const shuffled = node.members.map((member) => ({ member, at: choose(1000) })).sort((a, b) => a.at - b.at)
  const members = shuffled.map(({ member: [key, value] }) => `${around(quoted(key, choose))}:${written(value, choose)}`)
  return around(`{${members.join(',') || blank()}}`)
}

/** A decimal number as digits and exponent: equal exactly where the values are. */
function decimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const bare = digits.replace(/0+$/, '')
  return bare === '' ? '0' : `${sign}${bare}e${Number(exponent) - fraction.length + digits.length - bare.length}`
}

const digits = fc.stringMatching(/^[1-9][0-9]{0,24}$/)
const numberText = fc
  .tuple(
    fc.constantFrom('', '-'),
    digits,
    fc.option(fc.stringMatching(/^[0-9]{1,24}$/)),
    fc.option(fc.integer({ min: -330, max: 330 })),
  )
  .map(
    ([sign, whole, fraction, exponent]) =>
      `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${exponent === null ? '' : `e${exponent}`}`,
  )

describe('canonical JSON', () => {
  it('P14, RFC 8785 3.2.4: the canonical bytes are UTF-8', () => {
    const sample = vectors.documents[0]!
    const hex =
      '7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e33333333333333' +
      '2c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e4127425c225c5c5c5c5c222f227d'
    const text = canonicalJson(JSON.parse(sample.input))
    expect(Buffer.from(text, 'utf8').toString('hex')).toBe(hex)
  })

  it('P14: order, white space, escapes and number spelling do not matter', () => {
    fc.assert(
      fc.property(tree, fc.nat(), fc.nat(), (node, one, other) => {
        const [first, second] = [written(node, chooser(one)), written(node, chooser(other))]
        const form = canonical(first)
        expect('text' in form ? 'fine' : form.refused, first).toBe('fine')
        expect(canonical(second)).toEqual(form)
      }),
      runs(70, 1500),
    )
  })

  it('P14, H23: a number is taken at its written value, or refused: two different amounts never look alike', () => {
    fc.assert(
      fc.property(numberText, numberText, fc.boolean(), (one, random, near) => {
        // Near: the same but for its last digit, which is where a double rounds.
        const last = one.search(/\d(?=e|$)/)
        const other = near ? `${one.slice(0, last)}${(Number(one[last]) + 1) % 10}${one.slice(last + 1)}` : random
        const forms = [canonical(one), canonical(other)] as const
        for (const [at, form] of forms.entries()) {
          const text = at === 0 ? one : other
          if ('refused' in form) expect(form.refused).toBe('inexact-number')
          else expect(decimal(form.text), text).toBe(decimal(text))
        }
        const [a, b] = forms
        if ('text' in a && 'text' in b) expect(a.text === b.text).toBe(decimal(one) === decimal(other))
      }),
      runs(71, 3000),
    )
  })

  it('P14: every double that ECMAScript can write is taken', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(canonical(String(value))).toEqual({ text: String(value === 0 ? 0 : value) })
      }),
      runs(72, 2000),
    )
  })

  it('P14: a member that occurs twice is refused at every depth, whatever its value and however its name is spelt', () => {
    fc.assert(
      fc.property(
        fc.array(tree, { maxLength: 3 }),
        name,
        tree,
        tree,
        fc.nat(5),
        fc.nat(),
        (around, key, one, other, depth, seed) => {
          const choose = chooser(seed)
          const members = [
            `${quoted(key, choose)}:${written(one, choose)}`,
            `${quoted(key, choose)}:${written(other, choose)}`,
          ]
          for (const [n, node] of around.entries())
            members.splice(choose(members.length + 1), 0, `"other ${n}":${written(node, choose)}`)
          let text = `{${members.join(',')}}`
          for (let level = 0; level < depth; level++) text = choose(2) === 0 ? `[0,${text}]` : `{"deeper":${text}}`
          expect(canonical(text)).toEqual({ refused: 'duplicate-member' })
        },
      ),
      runs(73, 1000),
    )
  })
})
