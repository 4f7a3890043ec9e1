/**
 * Between a shop and PostgreSQL: cuts connections in COMMIT, before the database hears of it or before the shop hears
 * that it is done. It reads just enough of PostgreSQL's protocol to know what a transaction was about.
 */
import { connect, createServer, type Socket } from 'node:net'

/** What becomes of a COMMIT. */
export type CommitFate = 'pass' | 'cut before' | 'cut after'

export interface DatabaseProxy {
  /** Of the same database, through here. */
  readonly databaseUrl: string
  /** What became of each COMMIT. */
  readonly commits: readonly CommitFate[]
  close(): Promise<void>
}

/** @param judge decides by all that was sent in the transaction. */
export async function startDatabaseProxy(
  databaseUrl: string,
  judge: (transaction: string) => CommitFate,
): Promise<DatabaseProxy> {
  const target = new URL(databaseUrl)
  const commits: CommitFate[] = []
  const sockets = new Set<Socket>()

  function tracked(socket: Socket): Socket {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    return socket
  }

  function serve(shop: Socket): void {
    const upstream = tracked(connect(Number(target.port), target.hostname))
    const cut = (): void => {
      shop.resetAndDestroy()
      upstream.resetAndDestroy()
    }
    shop.once('close', () => upstream.destroy())
    upstream.once('close', () => shop.destroy())
    let answersToLose = false
    upstream.on('data', (chunk) => {
      // Whatever comes first after COMMIT says that it is done.
      if (answersToLose) cut()
      else shop.write(chunk)
    })
    let transaction = ''
    const messages = messageReader()
    shop.on('data', (chunk) => {
      for (const { type, bytes } of messages(chunk)) {
        const text = bytes.toString('utf8')
        const isQuery = type === 'Q'
        if (isQuery && /^begin\b/i.test(text.slice(5).trim())) transaction = ''
        transaction += text
        if (!isQuery || !/^commit\b/i.test(text.slice(5))) {
          upstream.write(bytes)
          continue
        }
        const fate = judge(transaction)
        commits.push(fate)
        if (fate === 'cut before') return cut()
        answersToLose = fate === 'cut after'
        upstream.write(bytes)
      }
    })
  }

  const server = createServer((socket) => serve(tracked(socket)))
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    databaseUrl: Object.assign(new URL(databaseUrl), { host: `127.0.0.1:${port}` }).href,
    commits,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

interface Message {
  /** Empty for the first one, which has no type. */
  readonly type: string
  readonly bytes: Buffer
}

/** Cuts a stream into messages: a type of one byte, except in the first one, then the length of the rest. */
function messageReader(): (chunk: Buffer) => Message[] {
  let buffer: Buffer = Buffer.alloc(0)
  let typeLength = 0
  return (chunk) => {
    buffer = Buffer.concat([buffer, chunk])
    const messages: Message[] = []
    while (buffer.length >= typeLength + 4) {
      const length = typeLength + buffer.readInt32BE(typeLength)
      if (buffer.length < length) break
      messages.push({ type: buffer.toString('latin1', 0, typeLength), bytes: buffer.subarray(0, length) })
      buffer = buffer.subarray(length)
      typeLength = 1
    }
    return messages
  }
}
