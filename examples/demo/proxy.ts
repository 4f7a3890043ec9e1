/**
 * A bad network: a TCP proxy that loses what it is told to lose. Every request gets a connection of its own, so that
 * the end of a connection is the end of an answer.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** What becomes of one request. "Silently": nobody hears anything any more, until the sender gives up. */
export type Fate =
  | 'pass'
  | 'lose the request'
  | 'lose the request silently'
  | 'lose the answer'
  | 'lose the answer silently'
  | 'cut the answer'
  | 'delay the answer'
  /** Nobody hears anything, but the request is still there, and arrives when the network is told so. */
  | 'deliver late'

/** A request as the proxy read it. */
export interface Seen {
  readonly method: string
  readonly path: string
  /** Of the order that it is about; empty where the body names none. */
  readonly reference: string
}

/** What became of it. */
export interface Passed extends Seen {
  readonly fate: Fate
  /** What the server answered, heard or not; 0 while it did not. */
  readonly status: number
}

/** Decides about each request as it comes. */
export type Judge = (seen: Seen) => Fate

export interface TcpProxy {
  readonly url: string
  /** Everything that came through so far, with what became of it. */
  readonly seen: readonly Passed[]
  /** Answers of the server that were held back silently. */
  readonly held: number
  /** From now on connections are refused, or accepted again. */
  refuse(): Promise<void>
  accept(): Promise<void>
  /** From now on everything passes. */
  heal(): void
  /** Delivers what was to be late. Resolves with the server's answers, which nobody else hears. */
  deliverLate(): Promise<readonly Passed[]>
  close(): Promise<void>
}

/** How late a delayed answer is: later than anybody waits. */
const delayMs = 1500

/** Starts a proxy on loopback, in front of `target`. */
export async function startProxy(target: () => number, judge: Judge): Promise<TcpProxy> {
  const seen: (Passed & { status: number })[] = []
  const late: (() => Promise<Passed>)[] = []
  const sockets = new Set<Socket>()
  let held = 0
  let healed = false
  let port = 0
  let listener: Server | null = null

  function tracked(socket: Socket): Socket {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    return socket
  }

  async function serve(client: Socket): Promise<void> {
    const request = await readRequest(client)
    if (request === null) return void client.destroy()
    const fate = healed ? 'pass' : judge(request.seen)
    const passed = { ...request.seen, fate, status: 0 }
    seen.push(passed)
    if (fate === 'lose the request') return void client.resetAndDestroy()
    if (fate === 'lose the request silently') return untilGone(client)
    const deliver = async (): Promise<Buffer> => {
      const answer = await ask(request.bytes)
      passed.status = statusOf(answer)
      return answer
    }
    if (fate === 'deliver late') {
      late.push(async () => {
        await deliver()
        return passed
      })
      return untilGone(client)
    }
    const answer = await deliver()
    switch (fate) {
      case 'pass':
        if (answer.length === 0) client.resetAndDestroy()
        else client.end(answer)
        return
      case 'lose the answer':
        return void client.resetAndDestroy()
      case 'lose the answer silently':
        held += 1
        return untilGone(client)
      case 'cut the answer':
        // In the middle of the body: the status was heard, the order's number was not.
        client.write(answer.subarray(0, -10), () => client.destroy())
        return
      case 'delay the answer':
        await sleep(delayMs, undefined, { ref: false })
        client.end(answer)
    }
  }

  /** Everything the server answers, even if the client is gone by then; nothing if the server is away. */
  function ask(request: Buffer): Promise<Buffer> {
    return new Promise((resolve) => {
      const chunks: Buffer[] = []
      const upstream = tracked(connect(target(), '127.0.0.1'))
      upstream.on('data', (chunk) => chunks.push(chunk))
      upstream.once('close', () => resolve(Buffer.concat(chunks)))
      upstream.write(request)
    })
  }

  async function accept(): Promise<void> {
    const server = createServer((client) => void serve(tracked(client)))
    await new Promise<void>((resolve, reject) =>
      server.once('error', reject).listen({ port, host: '127.0.0.1' }, resolve),
    )
    const address = server.address()
    port = typeof address === 'object' && address !== null ? address.port : port
    listener = server
  }

  function refuse(): Promise<void> {
    const server = listener
    listener = null
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => (server === null ? resolve() : server.close(() => resolve())))
  }

  await accept()
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    get held() {
      return held
    },
    refuse,
    accept,
    heal() {
      healed = true
    },
    deliverLate: () => Promise.all(late.splice(0).map((deliver) => deliver())),
    close: refuse,
  }
}

function untilGone(socket: Socket): Promise<void> {
  // Reading on is what notices the end.
  socket.resume()
  return new Promise((resolve) => (socket.destroyed ? resolve() : socket.once('close', () => resolve())))
}

/** Reads one request to its end, and rewrites it to ask for a connection of its own. Null if none came. */
function readRequest(client: Socket): Promise<{ seen: Seen; bytes: Buffer } | null> {
  return new Promise((resolve) => {
    let bytes: Buffer = Buffer.alloc(0)
    client.once('close', () => resolve(null))
    client.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      const headEnd = bytes.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const head = bytes.subarray(0, headEnd).toString('latin1')
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
      const body = bytes.subarray(headEnd + 4)
      if (body.length < length) return
      const [method = '', path = ''] = head.split(' ')
      const ownConnection = `${head.replace(/\r\nconnection:[^\r]*/i, '')}\r\nconnection: close\r\n\r\n`
      resolve({
        seen: { method, path, reference: referenceIn(body) },
        bytes: Buffer.concat([Buffer.from(ownConnection, 'latin1'), body]),
      })
    })
  })
}

function referenceIn(body: Buffer): string {
  return body.length === 0 ? '' : ((JSON.parse(body.toString('utf8')) as { reference?: string }).reference ?? '')
}

function statusOf(answer: Buffer): number {
  return Number(/^HTTP\/1.1 (\d{3})/.exec(answer.subarray(0, 20).toString('latin1'))?.[1] ?? 0)
}
