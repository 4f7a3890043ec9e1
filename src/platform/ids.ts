import { v4, v7 } from 'uuid'
import { ConfigError } from '../errors.ts'
import type { Ids } from '../ports.ts'

/** Keys and tokens from the platform's secure source, or from the app's `mintKey` (P12). `Math.random` is for jitter only. */
export function systemIds(mintKey?: () => string): Ids {
  return {
    key(uuidVersion) {
      if (mintKey !== undefined) return mintKey()
      requireSecureSource()
      return uuidVersion === 4 ? v4() : v7()
    },
    token() {
      // Tokens need to differ, not to be secret: the app's own keys do where there is no secure source.
      if (!hasSecureSource() && mintKey !== undefined) return mintKey()
      requireSecureSource()
      return v4()
    },
    random: () => Math.random(),
  }
}

/** Works on plain-http pages too, where `randomUUID` is missing (B06). */
function hasSecureSource(): boolean {
  return typeof globalThis.crypto?.getRandomValues === 'function'
}

function requireSecureSource(): void {
  if (hasSecureSource()) return
  throw new ConfigError(
    'mintKey',
    'there is no secure source of randomness here (crypto.getRandomValues), and a key from a weak one could be minted twice; give a mintKey, or load a polyfill before samekey',
  )
}
