/**
 * A bad network between one account's clients and the servers. It works on connections as they are, kept alive ones too:
 * of HTTP it knows only that client and server speak in turns, so that what a client says after an answer is a new request.
 */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Chance } from '../support/chance.ts'

/** What becomes of a request, and how often out of a hundred. */
const fates = [
  [62, 'pass'],
  /** The connection is reset, and the server never hears of it. */
  [5, 'reset before'],
  /** The server hears half of it. */
  [4, 'reset within'],
  /** The server has answered, and the connection is reset. */
  [8, 'answer lost'],
  /** The client hears the beginning of the answer. */
  [5, 'answer cut'],
  [7, 'delay'],
  /** Nobody hears anything, but the request arrives when its sender has long given up. */
  [3, 'late copy'],
  /** Nobody hears anything, and the connection stays. */
  [3, 'black hole'],
  /** The server's half of the connection ends after its answer; the client's half stays, and hears nothing. */
  [3, 'half-open'],
] as const

export type Fate = (typeof fates)[number][1]
/** Connections are refused besides, while the server is down that a client depends on. */
export type NetworkFault = Exclude<Fate, 'pass'> | 'refused'

export const networkFaults: readonly NetworkFault[] = [
  ...fates.map(([, fate]) => fate).filter((fate) => fate !== 'pass'),
  'refused',
]

/** Longer than a client waits for an answer. */
const lateMs = [2000, 4500] as const
const delayMs = [30, 1200] as const

export interface Network {
  readonly url: string
  /** How often what happened. */
  readonly counts: Readonly<Record<NetworkFault, number>>
  /** Connections are accepted, or refused. */
  setOpen(open: boolean): void
  /** From now on everything passes. Resolves when what is late has arrived. */
  heal(): Promise<void>
  close(): Promise<void>
}

/**
 * @param route port of a server for a new connection; null: there is none now.
 * @param port a free one, which nobody takes while connections are refused.
 */
export async function startNetwork(port: number, route: () => number | null, chance: Chance): Promise<Network> {
  const counts = Object.fromEntries(networkFaults.map((fault) => [fault, 0])) as Record<NetworkFault, number>
  const sockets = new Set<Socket>()
  const late = new Set<Promise<void>>()
  let healed = false
  let server: Server | null = null
  let changing: Promise<void> = Promise.resolve()

  function tracked(socket: Socket): Socket {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    return socket
  }

  function judge(): Fate {
    const fate = chance.weighted(fates)
    if (healed) return 'pass'
    if (fate !== 'pass') counts[fate] += 1
    return fate
  }

  const between = ([least, most]: readonly [number, number]): number => least + chance.below(most - least)

  function serve(client: Socket): void {
    const target = route()
    if (target === null) return void client.resetAndDestroy()
    const upstream = tracked(connect(target, '127.0.0.1'))
    const reset = (): void => {
      client.resetAndDestroy()
      upstream.resetAndDestroy()
    }
    let fate: Fate = 'pass'
    let isAsking = false
    let waitMs = 0
    const kept: Buffer[] = []

    client.on('data', (chunk) => {
      if (!isAsking) {
        isAsking = true
        fate = judge()
        waitMs = fate === 'delay' ? between(delayMs) : 0
        if (fate === 'late copy') deliverLate(kept)
      }
      if (fate === 'late copy') kept.push(chunk)
      else if (fate === 'reset before') reset()
      else if (fate === 'reset within') upstream.write(chunk.subarray(0, chunk.length >> 1), reset)
      else if (waitMs > 0) setTimeout(() => upstream.write(chunk), waitMs)
      else if (fate !== 'black hole') upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      isAsking = false
      if (fate === 'answer lost') reset()
      else if (fate === 'answer cut') client.write(chunk.subarray(0, -10), reset)
      else if (fate === 'half-open') upstream.resetAndDestroy()
      else client.write(chunk)
    })
    const isSilent = (): boolean => fate === 'half-open' || fate === 'black hole' || fate === 'late copy'
    client.once('close', () => upstream.destroy())
    upstream.once('close', (hadError) => {
      if (isSilent()) return
      if (hadError) client.resetAndDestroy()
      else client.end()
    })
  }

  /** Says what was kept by then to whoever is there. */
  function deliverLate(kept: readonly Buffer[]): void {
    const delivered = new Promise<void>((resolve) => setTimeout(resolve, between(lateMs))).then(async () => {
      const target = route()
      if (target === null) return
      const upstream = tracked(connect(target, '127.0.0.1'))
      upstream.write(Buffer.concat(kept))
      // Its answer is heard by nobody; one that does not come is not waited for.
      upstream.once('data', () => upstream.destroy())
      upstream.setTimeout(5000, () => upstream.destroy())
      if (!upstream.destroyed) await once(upstream, 'close')
    })
    late.add(delivered)
    void delivered.finally(() => late.delete(delivered)).catch(() => {})
  }

  async function accept(): Promise<void> {
    if (server !== null) return
    const starting = createServer((client) => serve(tracked(client)))
    starting.listen({ port, host: '127.0.0.1' })
    await once(starting, 'listening')
    server = starting
  }

  function refuse(): void {
    // Connections that are there stay; only new ones are refused.
    server?.close()
    server = null
  }

  await accept()
  return {
    url: `http://127.0.0.1:${port}`,
    counts,
    setOpen(open) {
      if (!open && server !== null && !healed) counts.refused += 1
      changing = changing.then(() => (open ? accept() : refuse()))
    },
    async heal() {
      healed = true
      await Promise.allSettled(late)
    },
    async close() {
      await changing
      refuse()
      for (const socket of sockets) socket.destroy()
    },
  }
}
