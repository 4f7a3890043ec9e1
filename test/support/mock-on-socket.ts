import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { MockServer } from 'samekey/msw'

export interface MockOnSocket {
  /** `http://127.0.0.1:12345` */
  readonly origin: string
  close(): Promise<void>
}

/**
 * A mock behind a real TCP port: what it loses is lost by a reset of the connection. Requests keep their path; the mock
 * sees its own origin.
 */
export async function mockOnSocket(mock: MockServer): Promise<MockOnSocket> {
  const server = createServer((incoming, outgoing) => {
    answer(mock, incoming, outgoing).catch(() => incoming.socket.resetAndDestroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    close() {
      mock.disconnect()
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

async function answer(mock: MockServer, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const headers = new Headers()
  for (const [name, values] of Object.entries(incoming.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value)
  }
  const body = Buffer.concat(chunks)
  const { method = 'GET', url = '/' } = incoming
  const gone = new AbortController()
  outgoing.on('close', () => gone.abort())
  const response = await mock.fetch(new URL(url, mock.baseUrl), {
    method,
    headers,
    body: body.length === 0 ? null : body,
    signal: gone.signal,
  })
  outgoing.sendDate = false
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  const reader = response.body?.getReader()
  if (reader === undefined) {
    outgoing.end()
    return
  }
  for (let step = await reader.read(); !step.done; step = await reader.read()) {
    await new Promise((written) => outgoing.write(step.value, written))
  }
  outgoing.end()
}
