/**
 * What `JSON.stringify` would drop or change without a word, found before anything is stored (B15): a payment must not
 * lose a field because it was a function.
 */
import { MAX_JSON_DEPTH } from '../protocol/json.ts'

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
  if (value === null) return null
  // JSON.stringify makes null of it.
  if (value instanceof Date && Number.isNaN(value.getTime())) return found('an invalid Date')
  if ('toJSON' in value && typeof value.toJSON === 'function') return null
  if (within.includes(value)) return found('a cycle')
  if (within.length >= MAX_JSON_DEPTH) return found(`nested more than ${MAX_JSON_DEPTH} levels deep`)
  if (isOpaque(value)) return found(`a ${value.constructor?.name ?? 'object without members'}`)
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

/**
 * Objects whose content is not in members, such as Map, Blob, FormData or a promise that was not awaited: JSON would make
 * `{}` of them. Of bytes it makes an object with a member per byte.
 */
function isOpaque(value: object): boolean {
  if (ArrayBuffer.isView(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null || Array.isArray(value)) return false
  return (
    Object.keys(value).length === 0 && !(value instanceof String || value instanceof Number || value instanceof Boolean)
  )
}
