/** Whose credentials go with an attempt, and whether they may (P3, P4, P9). Asked at each attempt, stored nowhere. */
import type { HeaderPair, IntentRecord } from '../protocol/record.ts'
import { IDEMPOTENCY_SCOPE } from '../protocol/wire.ts'
import type { Announcer } from './announcer.ts'
import type { AskApp } from './app-code.ts'
import type { Credentials, Resolved } from './options.ts'

/** Leave to hand over, valid in the same tick only while `stillValid()`; or why not. */
export type Leave =
  | {
      readonly granted: true
      readonly headers: readonly HeaderPair[]
      /** Value of `Idempotency-Scope`, or null (section 16). */
      readonly scopeTag: string | null
      readonly stillValid: () => boolean
    }
  | {
      readonly granted: false
      readonly event: { type: 'scopeDiffers' } | { type: 'credentialsMissing'; detail: string }
    }

export interface CredentialDesk {
  /** Asks for credentials for one exchange of this record with `url`. */
  ask(record: IntentRecord, url: string): Promise<Leave>
  /** The app says that its session changed: whatever was granted before is void (P3). */
  changed(): void
}

export function createCredentialDesk(options: Resolved, announcer: Announcer, askApp: AskApp): CredentialDesk {
  let generation = 0
  const waiting = new Set<() => void>()

  function headersOf(given: Credentials['headers'] | Headers, record: IntentRecord): HeaderPair[] {
    // Also what the types forbid: sent without a word, credentials that were meant would be missing.
    const entries: [string, unknown][] = given instanceof Headers ? [...given] : Object.entries(given)
    return entries.map(([rawName, value]) => {
      const name = rawName.toLowerCase()
      if (options.credentialHeaders.has(name)) return sendable(name, value)
      announcer.warnOnce(name, {
        code: 'auth_header_refused',
        message: `auth() returned the header "${name}", which is not known to be a credential. A header that chooses account, tenant or version belongs to the request, so that it is fixed at submit (P9); if it is a credential, name it in credentialHeaders.`,
        intentId: record.id,
        key: record.key,
      })
      throw new HeaderRefused()
    })
  }

  /** `sessionChanged` as soon as the app says that its session changed: what was asked for before is not waited for (P3, P33). */
  async function unlessChanged(asked: Promise<Credentials>): Promise<Credentials | typeof sessionChanged> {
    let change: () => void = () => {}
    const changed = new Promise<typeof sessionChanged>((resolve) => {
      change = () => resolve(sessionChanged)
    })
    waiting.add(change)
    try {
      return await Promise.race([asked, changed])
    } finally {
      waiting.delete(change)
    }
  }

  return {
    async ask(record, url) {
      const asked = generation
      const sameScope = (): boolean => options.scope() === record.scope
      const stillValid = (): boolean => generation === asked && sameScope()
      if (!sameScope()) return { granted: false, event: { type: 'scopeDiffers' } }
      const { auth, scopeTag: tagOf } = options
      try {
        // Everything of the app's is asked for and looked at here: after the attempt is marked, nothing may fail (P28).
        // The tag says whose account it is: like credentials, it goes to declared origins only (P4).
        const isDeclared = options.credentialOrigins.has(new URL(url).origin)
        const scopeTag = tagOf === null || !isDeclared ? null : sendable(IDEMPOTENCY_SCOPE, tagOf(record.scope))[1]
        if (auth === null || !isDeclared) {
          return { granted: true, headers: [], scopeTag, stillValid }
        }
        const credentials = await unlessChanged(askApp(auth, options.attemptTimeoutMs))
        if (credentials === sessionChanged) return this.ask(record, url)
        if (typeof credentials !== 'object' || credentials === null)
          throw new CredentialsRefused('auth() gave no credentials')
        if (credentials.scope !== record.scope) return { granted: false, event: { type: 'scopeDiffers' } }
        return { granted: true, headers: headersOf(credentials.headers, record), scopeTag, stillValid }
      } catch (error) {
        if (!(error instanceof HeaderRefused)) {
          announcer.warn({
            code: 'auth_failed',
            message: 'auth() or scopeTag() failed; the intent waits for authChanged(), a new submit or the slow poll.',
            intentId: record.id,
            key: record.key,
            error,
          })
        }
        return {
          granted: false,
          event: { type: 'credentialsMissing', detail: error instanceof Error ? error.name : 'unknown' },
        }
      }
    },
    changed() {
      generation++
      for (const changed of [...waiting]) changed()
    },
  }
}

/** What stands for "asked in vain": no value that the app's code could give. */
const sessionChanged: unique symbol = Symbol('session changed')

/** @throws CredentialsRefused when no request can carry the value. The platform's own error would quote it (P51). */
function sendable(name: string, value: unknown): HeaderPair {
  try {
    if (typeof value !== 'string') throw new TypeError()
    new Headers([[name, value]])
    return [name, value]
  } catch {
    throw new CredentialsRefused(`the value for "${name}" is no text that a header can carry`)
  }
}

class CredentialsRefused extends Error {
  override readonly name = 'CredentialsRefused'
}

class HeaderRefused extends Error {
  override readonly name = 'HeaderRefused'
}
