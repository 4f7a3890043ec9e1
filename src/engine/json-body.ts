/**
 * What `JSON.stringify` would drop or change without a word, found before anything is stored (B15): a payment must not
 * lose a field because it was a function.
 */

/** A value that JSON cannot carry, and where it is. */
export interface Unstorable {
  /** Such as `items[2].price`. */
  readonly path: string
  /** What it is, in a word or two. */
  readonly what: string
}

/** The first value that JSON would drop or change silently, or null. Objects with `toJSON`, such as dates, speak for themselves. */
export function unstorable(value: unknown): Unstorable | null {
  return look(value, '', [])
}

function look(value: unknown, path: string, within: readonly unknown[]): Unstorable | null {
  const found = (what: string): Unstorable => ({ path: path === '' ? 'the value' : path, what })
  switch (typeof value) {
    case 'function':
    case 'symbol':
    case 'bigint':
      return found(`a ${typeof value}`)
    case 'number':
      return Number.isFinite(value) ? null : found(String(value))
    case 'object':
      break
    default:
      return null
  }
  if (value === null || ('toJSON' in value && typeof value.toJSON === 'function')) return null
  if (within.includes(value)) return found('a cycle')
  if (value instanceof Map || value instanceof Set) return found(value instanceof Map ? 'a Map' : 'a Set')
  const inner = [...within, value]
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const at = `${path}[${index}]`
      const bad = item === undefined ? { path: at, what: 'undefined in an array' } : look(item, at, inner)
      if (bad !== null) return bad
    }
    return null
  }
  for (const [name, item] of Object.entries(value)) {
    const bad = look(item, path === '' ? name : `${path}.${name}`, inner)
    if (bad !== null) return bad
  }
  return null
}
