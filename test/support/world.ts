/**
 * A small world in virtual time: contexts (tabs, processes) on one shelf, and a network that a test scripts. Contexts can
 * be killed at any port operation, as a process is: nothing of theirs happens any more, what is stored stays.
 */

import type { Note } from '../../src/engine/observer.ts'
import type { EngineOptions } from '../../src/engine/options.ts'
import { type FetchOptions, fetchOver, type SafeFetch } from '../../src/fetch.ts'
import type { ChannelMessage, IntentStore, Platform } from '../../src/ports.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import { setUp } from '../../src/setup.ts'
import { type MemoryShelf, memoryShelf, memoryStore } from '../../src/stores/memory.ts'
import { type VirtualClock, virtualClock } from '../../src/testing/virtual-clock.ts'
import { chance } from './chance.ts'

export const origin = 'https://api.example.com'
export const day = 24 * 3600 * 1000

/** One request as the network saw it. */
export interface Call {
  readonly method: string
  readonly url: string
  readonly key: string | null
  readonly age: string | null
  readonly since: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Virtual wall time. */
  readonly at: number
  readonly credentials: string
  readonly mode: string
  readonly signal: AbortSignal
}

/** Answers one request; throws for a network error; never resolves for a hanging one. */
export type Answer = (call: Call, request: Request) => Response | Promise<Response>

/** The network of a world. */
export interface Network {
  readonly calls: Call[]
  /** POSTs and other writes only. */
  writes(): Call[]
  /** Answers used one after another; the last one stays. */
  script(...answers: readonly Answer[]): void
}

/** One context: a client with its own platform on the world's shelf. */
export interface Tab {
  readonly fetch: SafeFetch
  readonly notes: Note[]
  readonly store: IntentStore
  readonly platform: Platform
  /** Ends it as SIGKILL does. */
  kill(): void
  /** Stands still until `thaw`: its port calls wait, its timers do not run. */
  freeze(): void
  thaw(): void
  setOnline(online: boolean): void
  /** The page is shown again, or gets the focus. */
  show(): void
  /** Port operations so far: store calls and sends. */
  operations(): number
}

/** What a tab may be made with. */
export interface TabOptions extends Partial<FetchOptions> {
  /** Dies at this port operation (1 is the first), before or after it took effect. */
  readonly dieAt?: { readonly operation: number; readonly when: 'before' | 'after' }
  /** Stands still once this store operation (1 is the first) took effect, until `thaw`: as a page in the background does. */
  readonly freezeAt?: number
  /** Replaces parts of the platform. */
  readonly replace?: Partial<Platform>
  /** Wraps the store: for failures. */
  readonly wrapStore?: (store: IntentStore) => IntentStore
  /** True when other tabs can see that this one is gone (Web Locks). Default is false: leases run out by time. */
  readonly visibleDeath?: boolean
}

export interface World {
  readonly clock: VirtualClock
  readonly network: Network
  readonly shelf: MemoryShelf
  tab(options?: TabOptions): Tab
  /** Lets time pass in small steps until nothing is due soon, at most `ms`. */
  pass(ms: number): Promise<void>
}

export function world(): World {
  const clock = virtualClock()
  const shelf = memoryShelf()
  const calls: Call[] = []
  let answers: readonly Answer[] = [created()]
  const listeners = new Set<(message: ChannelMessage) => void>()
  const dead = new Set<string>()
  let tabs = 0
  const random = chance(42).next

  async function deliver(request: Request): Promise<Response> {
    const headers = Object.fromEntries(request.headers)
    const call: Call = {
      method: request.method,
      url: request.url,
      key: headers['idempotency-key'] ?? null,
      age: headers['idempotency-age'] ?? null,
      since: headers['idempotency-since'] ?? null,
      headers,
      body: await request.clone().text(),
      at: clock.now(),
      credentials: request.credentials,
      mode: request.mode,
      signal: request.signal,
    }
    calls.push(call)
    const [answer = created(), ...rest] = answers
    if (rest.length > 0) answers = rest
    return answer(call, request)
  }

  function tab(options: TabOptions = {}): Tab {
    const { dieAt, freezeAt, replace, wrapStore, visibleDeath = false, ...rest } = options
    const holder = `tab${++tabs}`
    const notes: Note[] = []
    let isDead = false
    let frozen: Promise<void> | null = null
    let thawed: () => void = () => {}
    let online = true
    let operation = 0
    let storeOperation = 0
    const wakers = new Set<(why: 'online' | 'visible') => void>()
    const never = new Promise<never>(() => {})

    function kill(): void {
      isDead = true
      dead.add(holder)
    }

    function freeze(): void {
      frozen = new Promise((resolve) => {
        thawed = resolve
      })
    }

    async function port<T>(run: () => Promise<T>, atOnce = false): Promise<T> {
      if (frozen !== null && !atOnce) await frozen
      if (isDead) return never
      operation++
      const dies = dieAt?.operation === operation ? dieAt.when : null
      if (dies === 'before') {
        kill()
        return never
      }
      const running = run()
      if (dies === 'after') {
        await running.catch(() => {})
        kill()
        return never
      }
      try {
        const result = await running
        if (frozen !== null) await frozen
        return isDead ? never : result
      } catch (error) {
        return isDead ? never : Promise.reject(error)
      }
    }

    const inner = memoryStore({ shared: shelf })
    const wrapped = wrapStore === undefined ? inner : wrapStore(inner)
    const store = new Proxy(wrapped, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) =>
          port(() => {
            if (++storeOperation === freezeAt) freeze()
            return (value as (...args: unknown[]) => Promise<unknown>).apply(target, args)
          })
      },
    })

    const platform: Platform = {
      clock: {
        now: clock.now,
        monotonic: clock.monotonic,
        timer: (ms, run) =>
          clock.timer(ms, () => {
            if (isDead) return
            if (frozen === null) run()
            else void frozen.then(() => isDead || run())
          }),
      },
      ids: {
        key: () => `key-${holder}-${String(Math.floor(random() * 1e9))}`,
        token: () => String(random()).slice(2),
        random,
      },
      signals: {
        online: () => online,
        onWake(wake) {
          wakers.add(wake)
          return () => wakers.delete(wake)
        },
      },
      liveness: { holder, isGone: (other) => Promise.resolve(visibleDeath && dead.has(other)), close() {} },
      transport: {
        // Nothing can come between the last check and the call of fetch, which are one tick: a page freezes before both or after.
        fetch: (request) => port(() => deliver(request), true),
        provesNonDelivery: rest.transport?.provesNonDelivery ?? false,
        repeats: rest.transport?.repeats ?? false,
      },
      channel: () => {
        const own = new Set<(message: ChannelMessage) => void>()
        return {
          post(message) {
            for (const listener of listeners) if (!own.has(listener)) listener(message)
          },
          onMessage(listener) {
            const alive = (message: ChannelMessage): void => void (isDead || listener(message))
            own.add(alive)
            listeners.add(alive)
            return () => listeners.delete(alive)
          },
          close() {},
        }
      },
      pageOrigin: null,
      liveClients: new Set(),
      ...replace,
    }
    const engineOptions: EngineOptions & FetchOptions = {
      baseUrl: `${origin}/`,
      dialect: samekey,
      ...(rest.anonymous === undefined && rest.scope === undefined ? { anonymous: true as const } : {}),
      store,
      keysUrl: '/keys',
      observer: (note) => notes.push(note),
      ...rest,
    }
    return {
      fetch: fetchOver(setUp(engineOptions, engineOptions.baseUrl, platform), engineOptions),
      notes,
      store: inner,
      platform,
      kill,
      freeze,
      thaw() {
        frozen = null
        thawed()
      },
      setOnline(value) {
        online = value
        if (value) for (const wake of wakers) wake('online')
      },
      show() {
        for (const wake of wakers) wake('visible')
      },
      operations: () => operation,
    }
  }

  return {
    clock,
    shelf,
    network: {
      calls,
      writes: () => calls.filter(({ method }) => method !== 'GET' && method !== 'DELETE'),
      script(...next) {
        answers = next
      },
    },
    tab,
    pass: (ms) => clock.advance(ms),
  }
}

/** 201 from behind the key. */
export function created(body: unknown = { id: 9 }, headers: Record<string, string> = {}): Answer {
  return (call) =>
    Response.json(body, { status: 201, headers: { 'idempotency-expires': formatHttpDate(call.at + day), ...headers } })
}

/** Any answer, without proof unless its headers hold one. */
export function answer(status: number, headers: Record<string, string> = {}, body: string | null = null): Answer {
  return () => new Response(body, { status, headers })
}

/** A problem document of section 16. */
export function problem(status: number, code: string, headers: Record<string, string> = {}): Answer {
  return () =>
    new Response(JSON.stringify({ type: `urn:test:${code}`, title: code, status, code }), {
      status,
      headers: { 'content-type': 'application/problem+json', ...headers },
    })
}

/** The connection breaks: a browser's opaque TypeError. */
export function broken(): Answer {
  return () => Promise.reject(new TypeError('fetch failed'))
}

/** The connection was never made, as Node says it. */
export function refusedConnection(code = 'ECONNREFUSED'): Answer {
  return () => Promise.reject(new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) }))
}

/** A black-holed socket that ignores its signal (H43). */
export function hangs(): Answer {
  return () => new Promise(() => {})
}

/** Answers after a virtual while. */
export function later(clock: VirtualClock, ms: number, then: Answer): Answer {
  return (call, request) =>
    new Promise((resolve, reject) => clock.timer(ms, () => Promise.resolve(then(call, request)).then(resolve, reject)))
}

/** A server that keeps the promise: executes once per key, replays afterwards. Faults are wrapped around it. */
export interface HonestServer {
  readonly answer: Answer
  /** Executions by key. */
  readonly effects: Map<string, number>
  /** All executions. */
  total(): number
}

export function honestServer(): HonestServer {
  const effects = new Map<string, number>()
  return {
    effects,
    total: () => [...effects.values()].reduce((sum, count) => sum + count, 0),
    answer(call, request) {
      const key = call.key ?? `unkeyed-${call.at}-${Math.random()}`
      const known = effects.get(key)
      if (known === undefined) effects.set(key, 1)
      return created({ id: key }, known === undefined ? {} : { 'idempotent-replayed': 'true' })(call, request)
    },
  }
}

/** Commits, and the answer is lost: the most useful single fault. */
export function commitThenDrop(server: HonestServer): Answer {
  return async (call, request) => {
    await server.answer(call, request)
    throw new TypeError('fetch failed')
  }
}

/** An init for a JSON order. */
export function order(intent: string, json: unknown = { item: 'tea', amount: 3 }): RequestInit & { intent: string } {
  return { intent, method: 'POST', body: JSON.stringify(json), headers: { 'content-type': 'application/json' } }
}
