/**
 * `createClient` in a world of virtual time. Test files replace the platform with
 * `vi.mock('../../src/platform/platform.ts', ...)`, see {@link platformInUse}.
 */
import { type Client, type ClientOptions, createClient } from 'samekey'
import { samekey } from 'samekey/dialects'
import { usePlatform } from './platform-in-use.ts'
import { origin, type Tab, type TabOptions, type World, world } from './world.ts'

export interface ClientWorld extends World {
  /** A client in a context of its own; the tab is that context. */
  client(options?: Partial<ClientOptions>, context?: TabOptions): { api: Client; tab: Tab }
}

export function clientWorld(): ClientWorld {
  const around = world()
  return {
    ...around,
    client(options = {}, context = {}) {
      // The tab's own engine stands aside: only its platform and its store are wanted.
      const tab = around.tab({ ...context, name: 'aside', autoStart: false })
      usePlatform(tab.platform)
      const api = createClient({
        baseUrl: origin,
        dialect: samekey,
        ...(options.scope === undefined ? { anonymous: true as const } : {}),
        store: tab.store,
        keysUrl: '/keys',
        observer: (note) => tab.notes.push(note),
        ...options,
      })
      return { api, tab }
    },
  }
}
