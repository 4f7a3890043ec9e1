/** What a fault is played on: both clients with the same orders, each behind a bad network of its own, and the shop. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { type Child, startChild } from './child.ts'
import type { PlainJob, PlainReport } from './client-plain.ts'
import type { IntentReport, SamekeyJob, SamekeyReport } from './client-samekey.ts'
import type { Order } from './orders.ts'
import { type Fate, type Seen, startProxy, type TcpProxy } from './proxy.ts'
import type { ServerJob } from './server.ts'
import { CONCURRENCY } from './terms.ts'

/** The shop's process. */
export interface Shop extends Child {
  readonly port: number
}

/** What is on the stage before the first fault. */
export interface House {
  readonly databaseUrl: string
  readonly database: Pool
  readonly folder: string
  readonly shop: Shop
  /** Told that one client is through with one order, under a name for that. */
  readonly onThrough: (what: string) => void
}

/** What both clients did, as they reported it. */
export interface Heard {
  /** Orders that the plain client reported as failed. */
  readonly gaveUp: Set<string>
  /** By store file and reference: what samekey holds in the end. */
  readonly intents: Map<string, IntentReport>
  /** By reference: the number of the order, as samekey learnt it. */
  readonly orderIds: Map<string, string>
}

/** One for each client. */
export interface Networks {
  readonly plain: TcpProxy
  readonly samekey: TcpProxy
}

export interface Stage extends House {
  readonly orders: readonly Order[]
  readonly heard: Heard
  /** Rejects when a client process ends as it should not. */
  readonly failure: Promise<never>
  /** Puts a network before each client; `rules` is called once for each, so that neither sees the other's requests. */
  network(rules: () => (seen: Seen) => Fate, port?: () => number): Promise<Networks>
  /** How many orders one client sent, as its network saw it. */
  sends(client: keyof Networks): number
  plain(path: string, more?: Partial<PlainJob>): Child
  samekey(
    path: string,
    operation: SamekeyJob['operation'],
    more?: Partial<SamekeyJob>,
    onReport?: (report: SamekeyReport) => void,
  ): Child
  close(): Promise<void>
}

/** Starts the shop; resolves when it listens. */
export async function startShop(job: ServerJob): Promise<Shop> {
  const { child, port } = await new Promise<{ child: Child; port: number }>((resolve, reject) => {
    const child = startChild<ServerJob, { readonly port: number }>('server.ts', job, ({ port }) =>
      resolve({ child, port }),
    )
    child.ended.then(() => reject(new Error('The shop ended before it listened.')), reject)
  })
  return { ...child, port }
}

export function openStage(house: House, faultId: string, orders: readonly Order[]): Stage {
  const heard: Heard = { gaveUp: new Set(), intents: new Map(), orderIds: new Map() }
  let networks: Networks | null = null
  let fail: (error: unknown) => void = () => {}
  const failure = new Promise<never>((_resolve, reject) => {
    fail = reject
  })
  failure.catch(() => {})
  const file = (name: string): string => join(house.folder, `${faultId}-${name}`)

  function networkOf(client: keyof Networks): TcpProxy {
    if (networks === null) throw new Error('There is no network yet.')
    return networks[client]
  }

  function watched(child: Child): Child {
    child.ended.catch(fail)
    return child
  }

  return {
    ...house,
    orders,
    heard,
    failure,

    async network(rules, port = () => house.shop.port) {
      networks = { plain: await startProxy(port, rules()), samekey: await startProxy(port, rules()) }
      return networks
    },

    sends: (client) => networkOf(client).seen.filter(({ method }) => method === 'POST').length,

    plain(path, more = {}) {
      const job: PlainJob = {
        url: `${networkOf('plain').url}/${path}`,
        orders,
        doneFile: file('done.txt'),
        signInHangs: false,
        concurrency: CONCURRENCY,
        ...more,
      }
      const child = startChild<PlainJob, PlainReport>('client-plain.ts', job, ({ reference, state }) => {
        if (state === 'gave up') heard.gaveUp.add(reference)
        else heard.gaveUp.delete(reference)
        house.onThrough(`plain ${reference}`)
      })
      return watched(child)
    },

    samekey(path, operation, more = {}, onReport = () => {}) {
      const job: SamekeyJob = {
        baseUrl: networkOf('samekey').url,
        path,
        orders,
        storeFile: file('store.db'),
        operation,
        ownKeys: false,
        signInHangs: false,
        concurrency: CONCURRENCY,
        ...more,
      }
      const child = startChild<SamekeyJob, SamekeyReport>('client-samekey.ts', job, (report) => {
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
      await Promise.all([networks?.plain.close(), networks?.samekey.close()])
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
    return ({ method, body }) => {
      if (method !== 'POST') return 'pass'
      const { reference } = JSON.parse(body) as Order
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
  for (const start = performance.now(); performance.now() - start < patienceMs; await sleep(20)) {
    if (await isSo()) return
  }
  throw new Error(`It did not come to this within ${patienceMs / 1000} s: ${what}.`)
}
