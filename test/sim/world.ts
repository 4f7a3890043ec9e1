/** A whole world of one schedule: device, tabs, network, server, people, and the watch over all of it. */
import type { EngineOptions, Reconciliation } from '../../src/engine/options.ts'
import type { FetchOptions } from '../../src/fetch.ts'
import type { ChannelMessage } from '../../src/ports.ts'
import type { Dialect } from '../../src/protocol/dialects/dialect.ts'
import { ietf } from '../../src/protocol/dialects/ietf.ts'
import { none } from '../../src/protocol/dialects/none.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { stripe } from '../../src/protocol/dialects/stripe.ts'
import { type Chance, chance } from '../support/chance.ts'
import { createStorage, type Storage } from './device.ts'
import { createWatch, intentHeader, type Leaving, type Watch } from './invariants.ts'
import { createNetwork, type Network } from './network.ts'
import { type Setting, type TabNumber, times, type User } from './schedule.ts'
import { accountHeader, createServer, operations, type Server, tagOf } from './server.ts'
import { type FaultyStore, faultyStore } from './store.ts'
import { openTab, type Tab } from './tab.ts'
import { type Timeline, timeline } from './timeline.ts'
import { type Truth, truth } from './truth.ts'

/** A tab as the world has it. */
export interface Seat {
  readonly tab: Tab
  readonly store: FaultyStore
  /** Whom its page takes to be signed in. */
  user: User | null
  /** Ends the waiting of its callers. */
  waiting: AbortController
  /** True once it was stopped cleanly. */
  closed: boolean
}

export interface World {
  readonly setting: Setting
  readonly time: Timeline
  readonly truth: Truth
  readonly server: Server
  readonly network: Network
  readonly watch: Watch
  readonly seats: Map<TabNumber, Seat>
  storage(): Storage
  /** @param client default: the shop's. */
  open(tab: TabNumber, client?: 'bank'): Seat
  loseStorage(): void
  /** Who is signed in on the device. */
  user(): User | null
  /** Who is signed in as far as a tab knows. */
  whom(seat: Seat): User | null
  signIn(user: User | null, seenBy: readonly Seat[]): void
  /** The user's token is fetched anew. */
  renew(user: User): void
  /** What auth() says besides. */
  chooseAccount(account: string | null): void
  hint(online: boolean): void
  online(): boolean
  told(line: string): void
  /** When a user first wanted this, by the shop's own clock: for keys that outlive storage (P11). */
  since(intent: string): number
}

const origin = 'https://shop.example'
const day = 24 * 3600_000

const dialects: Readonly<Record<Setting['dialect'], Dialect>> = {
  samekey,
  ietf: ietf({ retentionMs: times.retention }),
  stripe,
  none,
}

export function createWorld(setting: Setting, told: (line: string) => void): World {
  const time = timeline(setting.skewMs)
  const books = truth()
  const random: Chance = chance(0x5eed)
  let user: User | null = 'alice'
  let account: string | null = null
  let online = true
  let opened = 0
  let keys = 0
  const tokens = new Map<User, string>()
  const gone = new Set<string>()
  const channel = new Set<(message: ChannelMessage) => void>()
  const seats = new Map<TabNumber, Seat>()
  const wanted = new Map<string, number>()
  const watch: Watch = createWatch(setting, time, books, 7 * day)
  const server = createServer(setting, time, books, {
    executing: (key) => watch.executing(key),
    remembered: (key) => watch.remembered(key),
    executed: () => watch.executed(),
  })
  const network = createNetwork(setting, time, server, told)
  let storage = createStorage(watch)

  function deliver(seat: () => Seat, request: Request): Promise<Response> {
    const { holder } = seat().tab
    const headers = new Headers(request.headers)
    // The page is not on the shop's origin: its cookies go where the request says so.
    if (setting.identity === 'cookie' && user !== null && request.credentials === 'include')
      headers.set('authorization', `Bearer ${server.token(user)}`)
    const [, sender = ''] = (headers.get('authorization') ?? '').split('-')
    const leaving: Leaving = { holder, method: request.method, url: request.url, headers, user: sender }
    const label = watch.leaving(leaving)
    told(`${holder} → ${request.method} ${label || request.url} age ${headers.get('idempotency-age') ?? '-'}`)
    return exchanged(seat, request, leaving, label)
  }

  async function exchanged(seat: () => Seat, request: Request, leaving: Leaving, label: string): Promise<Response> {
    const body = await request.text()
    watch.left(label, leaving, body)
    const { method, url } = request
    const answer = await network.deliver({ label, method, url, headers: leaving.headers, body, signal: request.signal })
    const { tab, closed } = seat()
    if (!tab.isDead && !tab.isFrozen && !closed && !request.signal.aborted && method !== 'GET' && method !== 'DELETE') {
      const { status } = answer
      watch.heard(label, tab.holder, {
        status,
        proof: network.isGenuine(answer) && (status < 300 || answer.headers.has('idempotency-expires')),
        replayed: answer.headers.has('idempotent-replayed'),
        followable: answer.headers.get('location')?.startsWith(origin) === true,
        retryAfterMs: answer.headers.has('retry-after') ? Number(answer.headers.get('retry-after')) * 1000 : null,
      })
    }
    return answer
  }

  /** What nobody named goes past the client, and past the watch. */
  async function passed(request: Request): Promise<Response> {
    const headers = new Headers(request.headers)
    if (user !== null) headers.set('authorization', `Bearer ${server.token(user)}`)
    told(`unnamed → ${request.method} ${request.url}`)
    const { method, url, signal } = request
    return network.deliver({ label: '', method, url, headers, body: await request.text(), signal })
  }

  function optionsOf(seat: () => Seat, client: 'bank' | undefined): EngineOptions & FetchOptions {
    const scope = (): User | null => (setting.identity === 'cookie' ? seat().user : user)
    const dialect = dialects[setting.dialect]
    const reconcile = async (intent: { id: string; key: string }): Promise<Reconciliation> => {
      await new Promise<void>((resolve) => void time.device.timer(30, resolve))
      const found = books.effects.filter((effect) => effect.intent === intent.id && effect.user === scope())
      if (found.length === 0) return { found: false }
      return { found: true, byKey: found.some(({ key }) => key === intent.key) }
    }
    const operation = {
      ...(dialect.deduplicates ? { retentionMs: times.retention } : {}),
      ...(setting.reconcile ? { reconcile } : {}),
    }
    return {
      ...(client !== undefined && { name: client }),
      baseUrl: client === undefined ? `${origin}/` : `https://${client}.example/`,
      fetch: (input, init) => passed(new Request(input, init)),
      dialect,
      scope,
      ...(setting.identity === 'token'
        ? {
            auth: async () => {
              await new Promise<void>((resolve) => void time.device.timer(5, resolve))
              const who = user ?? ''
              const authorization = `Bearer ${tokens.get(who as User) ?? ''}`
              return { scope: who, headers: { authorization, ...(account !== null && { [accountHeader]: account }) } }
            },
          }
        : { scopeTag: tagOf }),
      operations: { [operations.orders]: operation, [operations.documents]: operation },
      ...(setting.dialect === 'samekey' ? { keysUrl: '/keys' } : {}),
      retry: { attempts: setting.attempts },
      attemptTimeoutMs: times.attemptTimeout,
      transitMs: times.transit,
    }
  }

  function open(number: TabNumber, client?: 'bank'): Seat {
    seats.get(number)?.tab.kill()
    const holder = `tab${number}#${opened++}`
    const store = faultyStore(storage.connect(holder), time.device)
    const here: { seat?: Seat } = {}
    const seatOf = (): Seat => {
      if (here.seat === undefined) throw new Error('The tab is not open yet.')
      return here.seat
    }
    const tab = openTab({
      holder,
      clock: time.device,
      store: store.store,
      deliver: (request) => deliver(seatOf, request),
      random: random.next,
      key: () => `key-${++keys}`,
      isGone: (other) => setting.locks && gone.has(other),
      channel: setting.channel ? channel : null,
      online: () => online,
      transport: { provesNonDelivery: setting.provesNonDelivery, repeats: setting.repeats },
      options: optionsOf(() => here.seat ?? ({ user } as Seat), client),
      pageOrigin: setting.hidesHeaders === true ? 'https://app.example' : null,
      observer: (note) => watch.logged(note),
      died: () => {
        gone.add(holder)
        watch.unreliable(holder)
        told(`${holder} is dead`)
      },
      races: () => watch.races(holder),
    })
    here.seat = { tab, store, user, waiting: new AbortController(), closed: false }
    const seat = here.seat
    tab.fetch.subscribe((note) => {
      if (!tab.isDead) watch.noted(note, setting.identity === 'cookie' ? seat.user : user)
    })
    seats.set(number, seat)
    return seat
  }

  for (const who of ['alice', 'bob'] as const) tokens.set(who, server.token(who))

  return {
    setting,
    time,
    truth: books,
    server,
    network,
    watch,
    seats,
    storage: () => storage,
    open,
    loseStorage() {
      for (const { tab } of seats.values()) tab.kill()
      seats.clear()
      watch.storageLost()
      storage.lose()
      storage = createStorage(watch)
    },
    user: () => user,
    whom: (seat) => (setting.identity === 'cookie' ? seat.user : user),
    signIn(next, seenBy) {
      user = next
      for (const seat of seenBy) {
        seat.user = next
        if (!seat.tab.isDead && !seat.closed) seat.tab.fetch.authChanged()
      }
    },
    renew(who) {
      if (tokens.get(who) === server.token(who)) return
      tokens.set(who, server.token(who))
      for (const { tab, closed } of seats.values()) if (!tab.isDead && !closed) tab.fetch.authChanged()
    },
    chooseAccount(next) {
      account = next
    },
    online: () => online,
    hint(next) {
      online = next
      watch.hinted(next)
      if (next) for (const { tab, closed } of seats.values()) if (!closed) tab.wake('online')
    },
    told,
    since(intent) {
      const at = wanted.get(intent) ?? time.server.now()
      wanted.set(intent, at)
      return at
    },
  }
}

export { intentHeader, origin }
