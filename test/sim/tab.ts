/** A tab or process: the real client on simulated ports, which can be killed or frozen at any operation of them. */
import type { Note } from '../../src/engine/observer.ts'
import type { EngineOptions } from '../../src/engine/options.ts'
import { type FetchOptions, fetchOver, type SafeFetch } from '../../src/fetch.ts'
import type { ChannelMessage, IntentStore, Platform, Timer } from '../../src/ports.ts'
import { setUp } from '../../src/setup.ts'

/** What a tab stands on. */
export interface Ground {
  readonly holder: string
  readonly clock: Platform['clock']
  readonly store: IntentStore
  readonly deliver: (request: Request) => Promise<Response>
  readonly random: () => number
  readonly key: () => string
  /** True where it can see that another tab is gone. */
  readonly isGone: (holder: string) => boolean
  /** All tabs that hear each other; null where nothing is heard. */
  readonly channel: Set<(message: ChannelMessage) => void> | null
  readonly online: () => boolean
  readonly transport: Pick<Platform['transport'], 'provesNonDelivery' | 'repeats'>
  readonly options: EngineOptions & FetchOptions
  /** Of the page; null where there is none. */
  readonly pageOrigin: string | null
  readonly observer: (note: Note) => void
  /** It was killed. */
  readonly died: () => void
  /** It does more than any schedule can call for. */
  readonly races: () => void
}

export interface Tab {
  readonly holder: string
  readonly fetch: SafeFetch
  /** As SIGKILL does. */
  kill(): void
  killAt(operation: number, when: 'before' | 'after'): void
  freeze(): void
  freezeAt(operation: number, when: 'before' | 'after'): void
  thaw(): void
  throttle(on: boolean): void
  /** What was planted and did not happen yet will not. */
  mend(): void
  /** The platform says that something may be different now. */
  wake(why: 'online' | 'visible'): void
  readonly isDead: boolean
  readonly isFrozen: boolean
}

/** Timers of a page in the background are rounded up to so many ms. */
const throttledMs = 60_000
/** Port operations of one tab in a whole schedule. */
const mostOperations = 20_000
const never = new Promise<never>(() => {})

export function openTab(ground: Ground): Tab {
  const { holder, clock } = ground
  const wakers = new Set<(why: 'online' | 'visible') => void>()
  const timers = new Set<Timer>()
  let dead = false
  let throttled = false
  let frozen: Promise<void> | null = null
  let thawed: () => void = () => {}
  let operations = 0
  let dies: { at: number; when: 'before' | 'after' } | null = null
  let freezes: { at: number; when: 'before' | 'after' } | null = null

  function kill(): void {
    if (dead) return
    dead = true
    for (const timer of timers) timer.cancel()
    ground.died()
  }

  function freeze(): void {
    frozen ??= new Promise((resolve) => {
      thawed = resolve
    })
  }

  function thaw(): void {
    frozen = null
    thawed()
  }

  /** One operation of a port: nothing of it happens to the dead, and it waits for the frozen. */
  async function port<T>(run: () => Promise<T>, atOnce = false): Promise<T> {
    operations++
    if (operations > mostOperations) {
      ground.races()
      return never
    }
    const mine = operations
    // Asked when it matters: what was planted may have been taken back while it stood still.
    const standsStill = (when: 'before' | 'after'): boolean => freezes?.at === mine && freezes.when === when && !atOnce
    if (standsStill('before')) freeze()
    if (frozen !== null && !atOnce) await frozen
    if (dead) return never
    const end = dies?.at === mine ? dies.when : null
    if (end === 'before') {
      kill()
      return never
    }
    const running = run()
    if (end === 'after') {
      await running.catch(() => {})
      kill()
      return never
    }
    try {
      const result = await running
      if (standsStill('after')) freeze()
      if (frozen !== null) await frozen
      return dead ? never : result
    } catch (error) {
      if (frozen !== null) await frozen
      return dead ? never : Promise.reject(error)
    }
  }

  function timer(ms: number, run: () => void): Timer {
    const rounded = throttled && ms > 0 ? Math.ceil(ms / throttledMs) * throttledMs : ms
    const entry = clock.timer(rounded, () => {
      timers.delete(entry)
      if (dead) return
      if (frozen === null) run()
      else void frozen.then(() => dead || run())
    })
    timers.add(entry)
    return {
      cancel() {
        timers.delete(entry)
        entry.cancel()
      },
    }
  }

  const store = new Proxy(ground.store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function' || name === 'close') return value
      return (...args: unknown[]) => port(() => (value as (...args: unknown[]) => Promise<unknown>).apply(target, args))
    },
  })

  const platform: Platform = {
    clock: { now: clock.now, monotonic: clock.monotonic, timer },
    ids: { key: ground.key, token: () => String(ground.random()).slice(2), random: ground.random },
    signals: {
      online: ground.online,
      onWake(wake) {
        wakers.add(wake)
        return () => wakers.delete(wake)
      },
    },
    liveness: { holder, isGone: (other) => Promise.resolve(ground.isGone(other)), close() {} },
    transport: {
      // Nothing can come between the last check and the call of fetch, which are one tick: a page freezes before both or after.
      fetch: (request) => port(() => ground.deliver(request), true),
      ...ground.transport,
    },
    channel: () => {
      const own = new Set<(message: ChannelMessage) => void>()
      return {
        post(message) {
          for (const listener of ground.channel ?? []) if (!own.has(listener)) listener(message)
        },
        onMessage(listener) {
          const heard = (message: ChannelMessage): void => void (dead || frozen !== null || listener(message))
          own.add(heard)
          ground.channel?.add(heard)
          return () => ground.channel?.delete(heard)
        },
        close() {},
      }
    },
    pageOrigin: ground.pageOrigin,
    liveClients: new Set(),
  }
  const options = { ...ground.options, store, observer: (note: Note) => void (dead || ground.observer(note)) }

  return {
    holder,
    fetch: fetchOver(setUp(options, options.baseUrl, platform), options),
    kill,
    killAt(operation, when) {
      dies = { at: operations + operation, when }
    },
    freeze,
    freezeAt(operation, when) {
      freezes = { at: operations + operation, when }
    },
    thaw,
    mend() {
      dies = null
      freezes = null
      throttled = false
      thaw()
    },
    throttle(on) {
      throttled = on
    },
    wake(why) {
      if (dead || frozen !== null) return
      for (const wake of wakers) wake(why)
    },
    get isDead() {
      return dead
    },
    get isFrozen() {
      return frozen !== null
    },
  }
}
