import type { Transport } from '../ports.ts'

/** What the app says of its own `fetch`. */
export interface TransportFacts {
  readonly provesNonDelivery?: boolean
  readonly repeats?: boolean
}

/** The platform's fetch, looked up at each call; or the app's own, believed only as far as it says (P30). */
export function systemTransport(own?: (request: Request) => Promise<Response>, facts: TransportFacts = {}): Transport {
  const repeats = facts.repeats ?? false
  if (own !== undefined)
    return { fetch: (request) => own(request), provesNonDelivery: facts.provesNonDelivery ?? false, repeats }
  return {
    fetch: (request) => globalThis.fetch(request),
    get provesNonDelivery() {
      return facts.provesNonDelivery ?? isPlainNodeFetch()
    },
    repeats,
  }
}

interface Dispatcher {
  readonly dispatch?: unknown
}

/**
 * True for Node's own fetch over its own plain agent: no wrapper, no proxy, no interceptor that could have retried
 * (H17). Only then does a refused connection prove that nothing was delivered (section 6). A browser never proves it.
 */
function isPlainNodeFetch(): boolean {
  if (globalThis.process?.versions?.node === undefined || typeof globalThis.document === 'object') return false
  if (!/undici/.test(Function.prototype.toString.call(globalThis.fetch))) return false
  const agent = (globalThis as { [name: symbol]: unknown })[Symbol.for('undici.globalDispatcher.1')] as
    | Dispatcher
    | undefined
  if (agent === undefined || agent.constructor.name !== 'Agent') return false
  // An agent with interceptors answers with a dispatch of its own instead of its class's.
  const base: unknown = Object.getPrototypeOf(Object.getPrototypeOf(agent))
  return agent.dispatch === (base as Dispatcher | null)?.dispatch
}
