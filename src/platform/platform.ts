/** The platform that samekey runs on, found once per client. With the other files here, the only code that touches globals. */
import type { Platform } from '../ports.ts'
import { systemChannel } from './channel.ts'
import { systemClock } from './clock.ts'
import { systemIds } from './ids.ts'
import { systemLiveness } from './liveness.ts'
import { systemSignals } from './signals.ts'
import { systemTransport, type TransportFacts } from './transport.ts'

/** Clients that live in this context; shared by every copy of the library in it (P4). */
const liveClientsSymbol: unique symbol = Symbol.for('samekey.liveClients') as never

function liveClients(): Set<string> {
  const holder = globalThis as { [liveClientsSymbol]?: Set<string> }
  holder[liveClientsSymbol] ??= new Set()
  return holder[liveClientsSymbol]
}

/** What of the platform a client may replace. */
export interface PlatformChoices {
  readonly mintKey?: () => string
  readonly fetch?: (request: Request) => Promise<Response>
  readonly transport?: TransportFacts
}

/** Origin of the page or worker, or null outside a browser. */
export function pageOrigin(): string | null {
  const origin = globalThis.location?.origin
  return origin === undefined || origin === 'null' ? null : origin
}

/** Address that relative addresses are resolved against, or null outside a browser. */
export function pageUrl(): string | null {
  return globalThis.document?.baseURI ?? globalThis.location?.href ?? null
}

/** The real platform. */
export function systemPlatform({ mintKey, fetch, transport }: PlatformChoices): Platform {
  const ids = systemIds(mintKey)
  return {
    clock: systemClock,
    ids,
    signals: systemSignals,
    liveness: systemLiveness(ids),
    transport: systemTransport(fetch, transport),
    channel: systemChannel,
    pageOrigin: pageOrigin(),
    liveClients: liveClients(),
  }
}
