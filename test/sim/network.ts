/** The network between tabs and server: each request meets the fate that the schedule has for it, or none. */
import { CORS_EXPOSE_HEADERS } from '../../src/protocol/wire.ts'
import type { Fate, Setting } from './schedule.ts'
import { times } from './schedule.ts'
import { deliveryHeader, labelHeader, type Server } from './server.ts'
import type { Timeline } from './timeline.ts'

/** A request as it left the tab. */
export interface Sent {
  /** The key that the intent has on this device; empty where the simulation knows none. */
  readonly label: string
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly body: string
  readonly signal: AbortSignal
}

export interface Network {
  /** As `fetch`: rejects as a browser does. */
  deliver(sent: Sent): Promise<Response>
  /** What becomes of the next requests. */
  fate(fates: readonly Fate[]): void
  partition(on: boolean): void
  /** True for an answer of the server itself, whole, that the page can tell. */
  isGenuine(answer: Response): boolean
  /** Every fault is over. */
  mend(): void
}

/** One way, ms. */
const latencyMs = 20
/** When a broken connection is noticed, ms. */
const breakMs = 300

export function createNetwork(setting: Setting, time: Timeline, server: Server, told: (line: string) => void): Network {
  const fates: Fate[] = []
  const genuine = new WeakSet<Response>()
  let partitioned = false
  let deliveries = 0

  const later = (ms: number): Promise<void> => new Promise((resolve) => void time.server.timer(ms, resolve))
  /** What reaches a device waits until that is awake. */
  const arrives = (ms: number): Promise<void> => new Promise((resolve) => void time.device.timer(ms, resolve))
  const never = new Promise<never>(() => {})

  /** The server's part, whoever still listens. */
  async function served({ label, method, url, headers, body }: Sent): Promise<Response> {
    const given = new Headers(headers)
    given.set(labelHeader, label)
    given.set(deliveryHeader, String(deliveries++))
    const bodyless = method === 'GET' || method === 'DELETE'
    const answer = await server.handle(new Request(url, { method, headers: given, body: bodyless ? null : body }))
    if (setting.hidesHeaders === true) for (const name of CORS_EXPOSE_HEADERS) answer.headers.delete(name)
    else genuine.add(answer)
    told(`server → ${answer.status} for ${label}`)
    return answer
  }

  async function broken(): Promise<never> {
    await arrives(breakMs)
    throw new TypeError('fetch failed')
  }

  async function neverConnected(): Promise<never> {
    await arrives(latencyMs)
    throw new TypeError('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) })
  }

  async function gateway(status: number, headers: Record<string, string> = {}): Promise<Response> {
    await arrives(latencyMs)
    return new Response('<p>Not now.', { status, headers: { 'content-type': 'text/html', ...headers } })
  }

  async function through(sent: Sent, backMs = latencyMs): Promise<Response> {
    await later(latencyMs)
    let answer: Response
    try {
      answer = await served(sent)
    } catch {
      return broken()
    }
    await arrives(backMs)
    return answer
  }

  const ways: Readonly<Record<Fate, (sent: Sent) => Promise<Response>>> = {
    refused: neverConnected,
    'request-lost': broken,
    'request-late'(sent) {
      // A little less than the transit: that much time is promised (P57).
      void later(times.transit - 1000).then(() => served(sent).catch(() => {}))
      return broken()
    },
    async 'answer-lost'(sent) {
      await through(sent, 0)
      return broken()
    },
    async 'answer-cut'(sent) {
      const { status, headers } = await through(sent)
      const body = new ReadableStream({
        pull(controller) {
          controller.error(new TypeError('terminated'))
        },
      })
      return new Response(status === 204 ? null : body, { status, headers })
    },
    'answer-late': (sent) => through(sent, times.attemptTimeout + 2000),
    'black-hole': () => never,
    'black-hole-after': (sent) => through(sent).then(() => never),
    twice(sent) {
      // The answer is that of the one copy, whatever becomes of it; the other one comes later.
      if (setting.repeats) void later(5000).then(() => served(sent).catch(() => {}))
      return meets(sent)
    },
    portal: () => gateway(200),
    async 'foreign-json'() {
      await arrives(latencyMs)
      return Response.json({ welcome: true })
    },
    async 'proxy-502'(sent) {
      void later(latencyMs).then(() => served(sent).catch(() => {}))
      return gateway(502)
    },
    async 'proxy-504'(sent) {
      void later(3000).then(() => served(sent).catch(() => {}))
      return gateway(504)
    },
    'gateway-401': () => gateway(401),
    'gateway-403': () => gateway(403),
    'gateway-404': () => gateway(404),
    'gateway-413': () => gateway(413),
    'gateway-429': () => gateway(429, { 'retry-after': '40' }),
    'gateway-500': () => gateway(500),
    'gateway-503': () => gateway(503, { 'retry-after': '25' }),
    async 'redirect-away'(sent) {
      await through(sent)
      return new Response(null, { status: 307, headers: { location: 'https://dead.example/' } })
    },
    async 'redirect-here'(sent) {
      await arrives(latencyMs)
      return new Response(null, { status: 307, headers: { location: sent.url } })
    },
    async 'redirect-after'(sent) {
      await through(sent)
      return new Response(null, { status: 307, headers: { location: sent.url } })
    },
    async 'refused-after'(sent) {
      await through(sent)
      return neverConnected()
    },
    async 'login-page'() {
      await arrives(latencyMs)
      return new Response(null, { status: 303, headers: { location: '/sign-in' } })
    },
  }

  function meets(sent: Sent): Promise<Response> {
    const fate = partitioned ? 'request-lost' : fates.shift()
    if (fate === undefined) return heard(through(sent), sent.signal)
    told(`network: ${fate}`)
    const answer = ways[fate](sent)
    return fate === 'black-hole' || fate === 'black-hole-after' ? answer : heard(answer, sent.signal)
  }

  return {
    deliver: meets,
    fate: (next) => void fates.push(...next),
    partition(on) {
      partitioned = on
    },
    isGenuine: (answer) => genuine.has(answer),
    mend() {
      partitioned = false
      fates.length = 0
    },
  }
}

/** Until the sender stops listening. */
function heard(answer: Promise<Response>, signal: AbortSignal): Promise<Response> {
  return new Promise((resolve, reject) => {
    answer.then(resolve, reject)
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
