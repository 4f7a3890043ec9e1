/** What a client's options allow but hardly mean: told once at start, refused nowhere. */
import { windowMs } from '../protocol/window.ts'
import type { WarningNote } from './observer.ts'
import type { Resolved } from './options.ts'

/** Warnings about these options. */
export function adviceOn(options: Resolved): Omit<WarningNote, 'type'>[] {
  return [...closedWindows(options), ...unusedKeysUrl(options)]
}

/** A retention that is over before a retry could be safe leaves every ambiguous attempt unknown (P35). */
function closedWindows({ dialect, operations, attemptTimeoutMs, transitMs }: Resolved): Omit<WarningNote, 'type'>[] {
  const retentions = [
    { of: 'the dialect', dialect, retentionMs: dialect.retentionMs },
    ...[...operations].map(([name, operation]) => {
      const own = operation.dialect ?? dialect
      return { of: `operations.${name}`, dialect: own, retentionMs: operation.retentionMs ?? own.retentionMs }
    }),
  ]
  return retentions
    .filter((kind) => kind.dialect.deduplicates && windowMs({ ...kind, attemptTimeoutMs, transitMs }) === 0)
    .map(({ of, retentionMs }) => ({
      code: 'window_closed',
      message: `The retention of ${of} (${retentionMs ?? 'unknown'} ms) is not longer than attemptTimeoutMs and transitMs together (${attemptTimeoutMs + transitMs} ms), so no retry can be safe and every ambiguous attempt ends unknown. State a longer retention if the server has one, or shorter limits.`,
    }))
}

/** Look-up and void need the server's own name of the operation, so without registered ones the address is never used. */
function unusedKeysUrl({ keysUrl, operations }: Resolved): Omit<WarningNote, 'type'>[] {
  if (keysUrl === null || operations.size > 0) return []
  return [
    {
      code: 'keys_url_unused',
      message:
        'keysUrl is given, but no operation is registered: look-up and void by key need the name that the server gives the operation. Name it in operations.',
    },
  ]
}
