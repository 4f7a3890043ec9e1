/**
 * A proxy before PostgreSQL that cuts connections. Of its language it knows where a message ends and which ones ask for an
 * answer, so that it can cut exactly before, within and behind an exchange: a question and its answer.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Where to cut. */
export interface Cut {
  /** Which exchange, counted from the moment at which this was said. */
  readonly exchange: number
  /** How much of the question reaches the database: nothing, all but its last byte, or all of it. */
  readonly question: 'none' | 'most' | 'all'
  /**
   * How many bytes of the answer come back; all but these are lost. Null: the question is the last thing that the
   * connection carries, and the database has not begun to answer. Of interest for the question `all` alone.
   */
  readonly answerBytes: number | null
}

/** One exchange as it went by. */
export interface Exchange {
  /** The first words of the statement. */
  readonly label: string
  readonly answerBytes: number
}

export interface CuttingProxy {
  /** The database's address, by way of the proxy. */
  readonly url: string
  /** Cuts there, once; null: nowhere. Forgets the exchanges that it saw. */
  plan(cut: Cut | null): void
  /** True once the planned cut has been made. */
  readonly hasCut: boolean
  readonly exchanges: readonly Exchange[]
  /** Cuts whatever is connected now. */
  cutAll(): void
  close(): Promise<void>
}

export async function startCuttingProxy(databaseUrl: string): Promise<CuttingProxy> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let planned: Cut | null = null
  let exchanges: { label: string; answerBytes: number }[] = []
  let hasCut = false

  const server = createServer((client) => {
    const database = connect(Number(target.port), target.hostname)
    const cut = (): void => {
      client.destroy()
      database.destroy()
    }
    /** What the planned cut still lets through of the answer; null while it does not concern this connection. */
    let answerLeft: number | null = null

    const onQuestion = (label: string, bytes: Buffer): void => {
      const number = exchanges.length
      exchanges.push({ label, answerBytes: 0 })
      if (planned === null || planned.exchange !== number) {
        database.write(bytes)
        return
      }
      hasCut = true
      if (planned.question === 'none') cut()
      else if (planned.question === 'most') database.end(bytes.subarray(0, -1), cut)
      else if (planned.answerBytes === null) database.end(bytes, cut)
      else {
        answerLeft = planned.answerBytes
        database.write(bytes)
      }
    }
    const messages = readMessages(onQuestion, (bytes) => void database.write(bytes))
    client.on('data', (chunk) => messages(chunk))
    database.on('data', (chunk) => {
      const current = exchanges.at(-1)
      if (current !== undefined) current.answerBytes += chunk.length
      if (answerLeft === null) return void client.write(chunk)
      const passed = chunk.subarray(0, answerLeft)
      answerLeft -= passed.length
      // Until the database has answered nothing is cut: what was asked for has taken effect by then.
      if (answerLeft === 0) client.write(passed, cut)
      else client.write(passed)
    })
    for (const socket of [client, database]) {
      sockets.add(socket)
      socket.on('error', cut)
      socket.on('close', () => {
        sockets.delete(socket)
        cut()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const url = new URL(databaseUrl)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    plan(cut) {
      planned = cut
      exchanges = []
      hasCut = false
    },
    get hasCut() {
      return hasCut
    },
    get exchanges() {
      return exchanges
    },
    cutAll,
    async close() {
      cutAll()
      server.close()
      await once(server, 'close')
    },
  }
}

/**
 * Puts the bytes of one side together to questions. The first message of a connection has no type; all others have one
 * byte of type and four of length.
 */
function readMessages(
  onQuestion: (label: string, bytes: Buffer) => void,
  onOther: (bytes: Buffer) => void,
): (chunk: Buffer) => void {
  let buffer = Buffer.alloc(0)
  let question: Buffer[] = []
  let label = ''
  let isFirst = true
  return (chunk) => {
    buffer = Buffer.concat([buffer, chunk])
    for (;;) {
      const head = isFirst ? 0 : 1
      if (buffer.length < head + 4) return
      const end = head + buffer.readInt32BE(head)
      if (buffer.length < end) return
      const message = buffer.subarray(0, end)
      buffer = buffer.subarray(end)
      const type = isFirst ? '' : String.fromCharCode(message[0] ?? 0)
      isFirst = false
      // The first message, the password, and the goodbye.
      if (type === '' || type === 'p' || type === 'X') {
        onOther(message)
        continue
      }
      question.push(message)
      if (type === 'Q') label = textOf(message, 5)
      // Parse: a name, which is empty here, and then the statement.
      if (type === 'P') label = textOf(message, message.indexOf(0, 5) + 1)
      if (type !== 'Q' && type !== 'S') continue
      onQuestion(label, Buffer.concat(question))
      question = []
    }
  }
}

function textOf(message: Buffer, start: number): string {
  const text = message.subarray(start, message.indexOf(0, start)).toString('utf8')
  return text.trim().replace(/\s+/g, ' ').slice(0, 60)
}
