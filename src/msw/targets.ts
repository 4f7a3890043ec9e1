/** What a request is about: an operation, a key, or something else. */
import { ConfigError } from '../errors.ts'
import { IDEMPOTENCY_KEY } from '../protocol/wire.ts'
import { readKey, readKeySegment } from '../server/decide.ts'
import type { RequestKind } from './faults.ts'
import type { MockOperation, NamedOperation } from './operations.ts'
import { pathPattern } from './path-pattern.ts'

/** Where the server is. */
export interface Place {
  readonly origin: string
  /** Without a slash at the end. */
  readonly pathname: string
  /** Path of the keys, from the origin. */
  readonly keysPathname: string
}

/** What a request is about. */
export interface Target {
  readonly kind: RequestKind
  /** Below the base; null for another place. */
  readonly path: string | null
  readonly operation: NamedOperation | null
  /** Null where there is none, or none that the operation takes. */
  readonly key: string | null
}

/** @throws ConfigError naming the option. */
export function placeOf(baseUrl: string | URL, keysPath: string): Place {
  const url = URL.parse(String(baseUrl))
  if (url === null || url.search !== '' || url.hash !== '') {
    throw new ConfigError('baseUrl', `must be an address such as https://api.test, not ${String(baseUrl)}`)
  }
  if (!/^(\/[^/?#]+)+$/.test(keysPath)) {
    throw new ConfigError('keysPath', `must be a path such as /keys, not ${JSON.stringify(keysPath)}`)
  }
  const pathname = url.pathname.replace(/\/+$/, '')
  return { origin: url.origin, pathname, keysPathname: pathname + keysPath }
}

/** @throws ConfigError where a request could mean two of them, or a path is none. */
export function namedOperations(
  operations: Readonly<Record<string, MockOperation>>,
  base: Place,
): readonly NamedOperation[] {
  const places = new Set<string>()
  return Object.entries(operations).map(([name, options]) => {
    const method = (options.method ?? 'POST').toUpperCase()
    const place = `${method} ${options.path}`
    if (places.has(place)) throw new ConfigError(`operations.${name}.path`, `another operation is at ${place} too`)
    places.add(place)
    const params = pathPattern(`operations.${name}.path`, options.path)
    return { name, method, options, params: (pathname) => params(pathname.slice(base.pathname.length)) }
  })
}

/** True for what a server with these operations answers itself: an operation, a key, or a page's question about either. */
export function isServed(place: Place, operations: readonly NamedOperation[], { method, url }: Request): boolean {
  const { origin, pathname } = new URL(url)
  if (origin !== place.origin) return false
  if (pathname.startsWith(`${place.keysPathname}/`)) return true
  if (!pathname.startsWith(`${place.pathname}/`)) return false
  return operations.some((each) => (method === each.method || method === 'OPTIONS') && each.params(pathname) !== null)
}

/** Finds out what a request is about; where two patterns match, the first one counts. */
export function targetFinder(place: Place, operations: readonly NamedOperation[]): (request: Request) => Target {
  return (request) => {
    const { origin, pathname } = new URL(request.url)
    if (origin !== place.origin || !pathname.startsWith(`${place.pathname}/`)) {
      return { kind: 'other', path: null, operation: null, key: null }
    }
    const path = pathname.slice(place.pathname.length)
    if (pathname.startsWith(`${place.keysPathname}/`)) {
      return { ...aboutKey(request.method, pathname.slice(place.keysPathname.length + 1), operations), path }
    }
    const operation = operations.find(({ method, params }) => method === request.method && params(pathname) !== null)
    if (operation === undefined) return { kind: 'other', path, operation: null, key: null }
    const reading = readKey(request.headers.get(IDEMPOTENCY_KEY), operation.options.limits?.key)
    return { kind: 'submit', path, operation, key: reading.ok ? reading.key : null }
  }
}

/** `{operation}/{key}` below the keys. */
function aboutKey(method: string, rest: string, operations: readonly NamedOperation[]): Omit<Target, 'path'> {
  const [name, key, ...more] = rest.split('/').map(decoded)
  const operation = operations.find((each) => each.name === name)
  const kind = method === 'GET' ? 'lookup' : method === 'DELETE' ? 'void' : null
  if (kind === null || operation === undefined || key === undefined || more.length > 0) {
    return { kind: 'other', operation: null, key: null }
  }
  const reading = readKeySegment(key, operation.options.limits?.key)
  return { kind, operation, key: reading.ok ? reading.key : null }
}

/** An empty text, which is no name and no key, for what is not percent-encoded properly. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return ''
  }
}
