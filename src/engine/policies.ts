/** The policy that holds for a record today: its operation's options over the client's (see protocol/policy.ts). */
import { ConfigError } from '../errors.ts'
import type { Dialect } from '../protocol/dialects/dialect.ts'
import type { Policy } from '../protocol/policy.ts'
import type { IntentRecord } from '../protocol/record.ts'
import type { OperationOptions, Resolved } from './options.ts'

/** What of a record decides its policy. */
type Kind = Pick<IntentRecord, 'operation' | 'registered' | 'request'>

export interface Policies {
  of(record: Kind): Policy
  dialectOf(operation: string): Dialect
  operationOf(name: string): OperationOptions | undefined
}

export function createPolicies(options: Resolved): Policies {
  const operationOf = (name: string): OperationOptions | undefined => options.operations.get(name)
  const dialectOf = (name: string): Dialect => operationOf(name)?.dialect ?? options.dialect
  return {
    operationOf,
    dialectOf,
    of({ operation, registered, request }) {
      const settings = operationOf(operation)
      const dialect = dialectOf(operation)
      const deduplicates = dialect.deduplicates && dialect.methods.includes(request.method)
      // Look-up and void need the server's own name of the operation, so only registered ones have them.
      const retentionMs = settings?.retentionMs ?? dialect.retentionMs
      const operationKnown = !registered || settings !== undefined
      const byKey = dialect.byKey && deduplicates && options.keysUrl !== null && registered && operationKnown
      return {
        deduplicates,
        retentionMs,
        attemptTimeoutMs: options.attemptTimeoutMs,
        transitMs: options.transitMs,
        voids: byKey,
        looksUp: byKey,
        operationKnown,
        maxAttempts: options.retry.attempts,
        backoff: {
          baseMs: options.retry.baseMs,
          capMs: options.retry.capMs,
          minMs: Math.min(50, options.retry.baseMs),
        },
        ask: {
          baseMs: Math.max(1000, options.retry.baseMs),
          capMs: Math.max(1000, options.retry.capMs),
          // A floor of its own: a server that says "at once" must not be polled in a loop (P39, B92).
          minMs: Math.max(100, Math.min(500, options.retry.baseMs)),
        },
        maxPollErrors: 10,
        monitorGraceMs: 30_000,
        slowPollMs: 60_000,
        // An operation that was registered later may have a longer retention than the client knew of (P8).
        rememberMs: Math.max(options.rememberMs, retentionMs ?? 0),
      }
    },
  }
}

/** Name of the registered operation that a request belongs to, or null. */
export function matchingOperation(options: Resolved, request: Request): string | null {
  for (const [name, { match }] of options.operations) {
    try {
      if (match?.({ method: request.method, url: new URL(request.url) }) === true) return name
    } catch (cause) {
      throw new ConfigError(
        `operations.${name}.match`,
        'threw, so it is not known what this request is; nothing was stored or sent',
        { cause },
      )
    }
  }
  return null
}
