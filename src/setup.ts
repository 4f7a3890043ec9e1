/** Wires an engine to the real platform: what `samekey` and `samekey/fetch` have in common. */
import { createEngine, type Engine } from './engine/engine.ts'
import { type EngineOptions, resolveOptions } from './engine/options.ts'
import { ConfigError } from './errors.ts'
import { systemIds } from './platform/ids.ts'
import { pageOrigin, pageUrl, systemPlatform } from './platform/platform.ts'
import type { IntentStore, Platform } from './ports.ts'
import { indexedDbStore } from './stores/indexeddb.ts'

/** The base that relative addresses are resolved against, absolute; null when there is none. */
export function absoluteBase(baseUrl: string | URL | undefined): URL | null {
  const page = pageUrl()
  if (baseUrl === undefined) return page === null ? null : new URL(page)
  const base = URL.parse(String(baseUrl), page ?? undefined)
  if (base === null)
    throw new ConfigError(
      'baseUrl',
      `is not an address; give an absolute one such as "https://api.example.com"; it is ${JSON.stringify(String(baseUrl))}`,
    )
  // A base is a folder: with and without a slash at its end it means the same, as in ky's prefix.
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  return base
}

/**
 * A fresh random id.
 *
 * @throws ConfigError when there is no secure source of randomness (P12).
 */
export function freshId(): string {
  return systemIds().key(7)
}

/** Creates the engine behind a client. `platform` is replaced in tests only. */
export function setUp(options: EngineOptions, baseUrl: string | URL | undefined, platform?: Platform): Engine {
  const base = absoluteBase(baseUrl)
  const resolved = resolveOptions(options, base?.origin ?? pageOrigin())
  const keysUrl = resolved.keysUrl === null ? null : (URL.parse(resolved.keysUrl, base ?? undefined)?.href ?? null)
  if (keysUrl === null && resolved.keysUrl !== null)
    throw new ConfigError('keysUrl', 'is not an address; give an absolute one, or a path and a baseUrl')
  const { mintKey, fetch, transport } = options
  const choices = { ...(mintKey && { mintKey }), ...(fetch && { fetch }), ...(transport && { transport }) }
  return createEngine({
    options: { ...resolved, keysUrl },
    store: options.store ?? defaultStore(),
    platform: platform ?? systemPlatform(choices),
    autoStart: options.autoStart ?? true,
    ownsStore: options.store === undefined,
  })
}

function defaultStore(): IntentStore {
  if ('indexedDB' in globalThis || typeof globalThis.document === 'object') return indexedDbStore()
  throw new ConfigError(
    'store',
    'there is no IndexedDB here, and a silent memory store would break the promise; name one: sqliteStore("outbox.db") from samekey/sqlite, or memoryStore() from samekey/memory if losing intents with the process is acceptable',
  )
}
