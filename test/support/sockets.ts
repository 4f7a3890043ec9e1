/** Real servers on the loopback interface, and a client on the real platform: for what only sockets can show. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createRawServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Note, StateNote } from '../../src/engine/observer.ts'
import { createFetch, type FetchOptions, type SafeFetch } from '../../src/fetch.ts'
import { samekey } from '../../src/protocol/dialects/samekey.ts'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import { memoryStore } from '../../src/stores/memory.ts'

/** One request, read to its end. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** Answers one request; `response.socket` is there for rudeness. */
export type Handler = (request: Received, response: ServerResponse) => void

export interface Site {
  readonly url: string
  readonly port: number
  readonly received: Received[]
  /** Used one after another; the last one stays. */
  script(...handlers: readonly Handler[]): void
  /** Stops listening and ends every connection. */
  close(): Promise<void>
}

/** A server of HTTP; closed after the test. */
export async function site(port = 0): Promise<Site> {
  const received: Received[] = []
  let handlers: readonly Handler[] = []
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('error', () => {})
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const { method = '', url: path = '', headers } = incoming
      const request = { method, path, headers, body: Buffer.concat(chunks).toString() }
      received.push(request)
      const [handler, ...rest] = handlers
      if (rest.length > 0) handlers = rest
      handler?.(request, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  onTestFinished(close)
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${bound}`,
    port: bound,
    received,
    script(...next) {
      handlers = next
    },
    close,
  }
}

/** A port on which nobody listens. */
export async function closedPort(): Promise<number> {
  const server = createRawServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** A server of bytes: is given each connection with the text of its request's head and body once they are there. */
export async function rawSite(serve: (socket: Socket, text: string, connection: number) => void): Promise<string> {
  let connections = 0
  const sockets = new Set<Socket>()
  const server = createRawServer((socket) => {
    const connection = ++connections
    let text = ''
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      text += chunk.toString()
      const length = /content-length: (\d+)/i.exec(text)?.[1]
      const headEnd = text.indexOf('\r\n\r\n')
      if (headEnd < 0 || text.length - headEnd - 4 < Number(length ?? 0)) return
      const request = text
      text = ''
      serve(socket, request, connection)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The head of an answer from behind the key. */
export function proof(): { 'idempotency-expires': string } {
  return { 'idempotency-expires': formatHttpDate(Date.now() + 24 * 3600_000) }
}

/** A server that keeps the promise. */
export function honest(): { handler: Handler; effects: Map<string, string>; commit(request: Received): boolean } {
  const effects = new Map<string, string>()
  function commit({ headers, body }: Received): boolean {
    const key = String(headers['idempotency-key'])
    const isNew = !effects.has(key)
    if (isNew) effects.set(key, body)
    return isNew
  }
  return {
    effects,
    commit,
    handler(request, response) {
      const replayed = commit(request) ? {} : { 'idempotent-replayed': 'true' }
      response.writeHead(201, { 'content-type': 'application/json', ...proof(), ...replayed })
      response.end(JSON.stringify({ id: request.headers['idempotency-key'] }))
    },
  }
}

export interface Live {
  readonly fetch: SafeFetch
  readonly notes: Note[]
  /** Resolves with the first state note, past or future, that `matches`. */
  until(matches: (note: StateNote) => boolean): Promise<StateNote>
}

/** A client on the real platform with a store in memory; quick retries; stopped after the test. */
export function live(baseUrl: string, options: Partial<FetchOptions> = {}): Live {
  const notes: Note[] = []
  const waiting = new Set<() => void>()
  const fetch = createFetch({
    baseUrl,
    name: `${baseUrl} ${Math.random()}`,
    dialect: samekey,
    ...(options.scope === undefined && { anonymous: true }),
    store: memoryStore(),
    retry: { baseMs: 5, capMs: 50, attempts: 1000, budget: 1000 },
    observer(note) {
      notes.push(note)
      for (const look of [...waiting]) look()
    },
    ...options,
  })
  onTestFinished(() => fetch.stop({ graceMs: 0 }))
  return {
    fetch,
    notes,
    until: (matches) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = notes.find((note): note is StateNote => note.type === 'state' && matches(note))
          if (found === undefined) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
      }),
  }
}
