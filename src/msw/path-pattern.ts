/** Paths with names in them: `/orders/:id`. Small on purpose: `URLPattern` is not everywhere yet. */
import { ConfigError } from '../errors.ts'

/** What the names of a pattern stand for, decoded. */
export type PathParams = Readonly<Record<string, string>>

/** Matches a path; null where it is another one. */
export type PathPattern = (pathname: string) => PathParams | null

/**
 * Reads a pattern.
 *
 * @param pattern segments between slashes; `:name` stands for one segment that is not empty. A slash at the end counts.
 * @throws ConfigError for anything else that looks like a pattern: wildcards, optional parts, a query.
 */
export function pathPattern(option: string, pattern: string): PathPattern {
  if (!pattern.startsWith('/') || /[?#*{}()]/.test(pattern)) {
    throw new ConfigError(option, `must be a path such as /orders or /orders/:id, not ${JSON.stringify(pattern)}`)
  }
  const wanted = pattern.split('/')
  return (pathname) => {
    const given = pathname.split('/')
    if (given.length !== wanted.length) return null
    const params: Record<string, string> = {}
    for (const [index, segment] of wanted.entries()) {
      const value = given[index] ?? ''
      if (!segment.startsWith(':')) {
        if (value !== segment) return null
        continue
      }
      if (value === '') return null
      params[segment.slice(1)] = decoded(value)
    }
    return params
  }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
