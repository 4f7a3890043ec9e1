/** What a fault is played on: both clients with the same orders, each behind a bad network of its own, and the shop. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Order } from '../orders/order.ts'
import { startChild } from './child.ts'
import type { PlainJob, PlainReport, PlainWord } from './client-plain.ts'
import type { IntentReport, SamekeyJob, SamekeyReport, SamekeyWord } from './client-samekey.ts'
import type { ClientName, House, Site } from './house.ts'
import type { Program } from './programs.ts'
import { type Fate, type Seen, startProxy, type TcpProxy } from './proxy.ts'
import { ATTEMPT_TIMEOUT_MS, CALM_TIMEOUT_MS, CONCURRENCY } from './terms.ts'

/** What both clients did, as they reported it. */
export interface Heard {
  /** What the plain client said of an order last. */
  readonly plain: Map<string, PlainReport['state']>
  /** By store file and reference: what samekey holds in the end. */
  readonly intents: Map<string, IntentReport>
  /** By reference: the number of the order, as samekey learnt it. */
  readonly orderIds: Map<string, string>
}

/** One for each client. */
export type Networks = Readonly<Record<ClientName, TcpProxy>>

/** A client process. */
export interface Client<Word> {
  readonly ended: Promise<void>
  kill(): Promise<void>
  /** What its user, or the app around it, says to it. */
  say(word: Word): void
}

export interface Stage extends House {
  readonly orders: readonly Order[]
  readonly references: readonly string[]
  readonly heard: Heard
  /** Rejects when a client process ends as it should not. */
  readonly failure: Promise<never>
  /** Puts a network before each client; `rules` is called once for each, so that neither sees the other's requests. */
  network(rules: () => (seen: Seen) => Fate, shop?: Pick<Program, 'port'>): Promise<Networks>
  /** How many orders one client sent, as its network saw it. */
  sends(client: ClientName): number
  plain(path: string, more?: Partial<PlainJob>): Client<PlainWord>
  samekey(
    path: string,
    operation: SamekeyJob['operation'],
    more?: Partial<SamekeyJob>,
    onReport?: (report: SamekeyReport) => void,
  ): Client<SamekeyWord>
  close(): Promise<void>
}

export function openStage(house: House, faultId: string, orders: readonly Order[]): Stage {
  const heard: Heard = { plain: new Map(), intents: new Map(), orderIds: new Map() }
  const sites: Site[] = []
  let networks: Networks | null = null
  let losesThings = false
  let fail: (error: unknown) => void = () => {}
  const failure = new Promise<never>((_resolve, reject) => {
    fail = reject
  })
  failure.catch(() => {})
  const file = (name: string): string => join(house.folder, `${faultId}-${name}`)

  function networkOf(client: ClientName): TcpProxy {
    if (networks === null) throw new Error('There is no network yet.')
    return networks[client]
  }

  function watched<Started extends { readonly ended: Promise<void> }>(child: Started): Started {
    child.ended.catch(fail)
    return child
  }

  return {
    ...house,
    orders,
    references: orders.map(({ reference }) => reference),
    heard,
    failure,

    async newSite(name) {
      const site = await house.newSite(name)
      sites.push(site)
      return site
    },

    async network(rules, shop = house.shop) {
      losesThings = rules !== allPass
      const port = (): number => shop.port
      networks = { plain: await startProxy(port, rules()), samekey: await startProxy(port, rules()) }
      return networks
    },

    sends: (client) => networkOf(client).seen.filter(({ method }) => method === 'POST').length,

    plain(path, more = {}) {
      const job: PlainJob = {
        url: `${networkOf('plain').url}/${path}`,
        token: house.tokens.plain,
        orders,
        doneFile: file('done.txt'),
        signInHangs: false,
        attemptTimeoutMs: losesThings ? ATTEMPT_TIMEOUT_MS : CALM_TIMEOUT_MS,
        concurrency: CONCURRENCY,
        ...more,
      }
      const child = startChild<PlainJob, PlainReport>(
        house.fileOf('demo/client-plain'),
        job,
        ({ reference, state }) => {
          heard.plain.set(reference, state)
          house.onThrough(`plain ${reference}`)
        },
      )
      return watched(child)
    },

    samekey(path, operation, more = {}, onReport = () => {}) {
      const job: SamekeyJob = {
        baseUrl: networkOf('samekey').url,
        token: house.tokens.samekey,
        path,
        orders,
        storeFile: file('store.db'),
        operation,
        retentionMs: null,
        ownKeys: false,
        signInHangs: false,
        attemptTimeoutMs: losesThings ? ATTEMPT_TIMEOUT_MS : CALM_TIMEOUT_MS,
        concurrency: CONCURRENCY,
        person: null,
        ...more,
      }
      const child = startChild<SamekeyJob, SamekeyReport>(house.fileOf('demo/client-samekey'), job, (report) => {
        if (report.type === 'ended') {
          // A later word that knows no number (a conflict) takes back none that is known.
          if (report.orderId !== null) heard.orderIds.set(report.reference, report.orderId)
          house.onThrough(`samekey ${report.reference}`)
        }
        if (report.type === 'over') {
          for (const intent of report.intents) heard.intents.set(`${job.storeFile} ${intent.reference}`, intent)
        }
        onReport(report)
      })
      return watched(child)
    },

    async close() {
      await Promise.all([networks?.plain.close(), networks?.samekey.close(), ...sites.map((site) => site.close())])
    },
  }
}

/** Rules that say, for each order by its place, what becomes of its first request, of its second, and so on; then all pass. */
export function rulesFor(
  orders: readonly Order[],
  fatesOf: (place: number) => readonly Fate[],
): () => (seen: Seen) => Fate {
  return () => {
    const places = new Map(orders.map(({ reference }, place) => [reference, place]))
    const counts = new Map<string, number>()
    return ({ method, reference }) => {
      if (method !== 'POST') return 'pass'
      const count = counts.get(reference) ?? 0
      counts.set(reference, count + 1)
      return fatesOf(places.get(reference) ?? 0)[count] ?? 'pass'
    }
  }
}

/** Rules under which nothing is lost. */
export function allPass(): () => Fate {
  return () => 'pass'
}

/** Waits until it is so. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, patienceMs = 60_000): Promise<void> {
  for (const start = performance.now(); performance.now() - start < patienceMs; await sleep(50)) {
    if (await isSo()) return
  }
  throw new Error(`It did not come to this within ${patienceMs / 1000} s: ${what}.`)
}
