import { canonicalJson, type JsonValue, parseJson } from './json.ts'
import { type JsonPointer, parsePointer } from './json-pointer.ts'

/** The part of the fingerprint rules that concerns the body; see `FingerprintRules`. */
export interface BodyRules {
  readonly omit?: readonly string[]
  readonly defaults?: Readonly<Record<string, JsonValue>>
}

/**
 * Fills defaults into a parsed JSON body and takes the omitted members out (P15), in that order, so that a member that
 * is both is omitted. Defaults of outer members come first.
 *
 * @param body changed in place: give it a value of its own, from `parseJson`. The rules are not changed.
 */
export function applyBodyRules(body: unknown, rules: BodyRules): unknown {
  const defaults = Object.entries(rules.defaults ?? {}).flatMap(([text, value]) =>
    pointers(text).map((pointer) => ({ pointer, value })),
  )
  defaults.sort((a, b) => a.pointer.parents.length - b.pointer.parents.length)
  for (const { pointer, value } of defaults) {
    const container = reach(body, pointer.parents)
    if (isContainer(container) && !Array.isArray(container) && !has(container, pointer.last)) {
      // A copy, or omitting a member of the default would change the rules that are stored.
      put(container, pointer.last, parseJson(canonicalJson(value)))
    }
  }
  for (const pointer of (rules.omit ?? []).flatMap(pointers)) {
    const container = reach(body, pointer.parents)
    if (!isContainer(container) || !has(container, pointer.last)) continue
    if (Array.isArray(container)) put(container, pointer.last, null)
    else Reflect.deleteProperty(container, pointer.last)
  }
  return body
}

/** `header:` and `query:` rules are no pointers and do not concern the body. */
function pointers(rule: string): JsonPointer[] {
  const pointer = parsePointer(rule)
  return pointer === null ? [] : [pointer]
}

function reach(root: unknown, steps: readonly string[]): unknown {
  let at = root
  for (const step of steps) {
    if (!isContainer(at) || !has(at, step)) return undefined
    at = at[step]
  }
  return at
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Own and enumerable: neither `toString` of an object nor `length` of an array is a member in JSON. */
function has(container: object, name: string): boolean {
  return Object.prototype.propertyIsEnumerable.call(container, name)
}

/** Assignment would take a member called `__proto__` for the prototype. */
function put(container: object, name: string, value: unknown): void {
  Object.defineProperty(container, name, { value, writable: true, enumerable: true, configurable: true })
}
