/**
 * A small order server for the examples: the server kit over memory, behind a real socket that can lose answers. A real
 * server keeps its keys in the database of its orders; see server.ts.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { idempotencyRoutes, idempotent, json, memoryServerStore } from 'samekey/server'
import { nodeHandler } from 'samekey/server/node'

export interface OrderServer {
  /** Such as `http://127.0.0.1:49152`. */
  readonly url: string
  /** How many orders there are: the number that must not be wrong. */
  orders(): number
  /** Does the work of the next request, and closes its connection before the answer. */
  loseNextAnswer(): void
  close(): Promise<void>
}

export async function startOrderServer(port = 0): Promise<OrderServer> {
  const orders: unknown[] = []
  let answersToLose = 0

  const createOrder = idempotent({
    store: memoryServerStore(),
    operation: 'orders.create',
    scope: (request) => {
      const user = request.headers.get('authorization')
      return user === null ? new Response(null, { status: 401 }) : { tenant: 'shop', principal: user }
    },
    execute: ({ transaction, body }) => {
      const id = `order-${orders.length + 1}`
      transaction.onCommit(() => orders.push({ id, ...(body.kind === 'json' && { order: body.value }) }))
      return json(201, { id })
    },
  })
  const keys = idempotencyRoutes({ keysUrl: '/idempotency-keys', operations: [createOrder] })

  async function handle(request: Request, incoming: IncomingMessage): Promise<Response> {
    if (request.method === 'GET' && new URL(request.url).pathname === '/orders') return Response.json(orders)
    const response = (await keys(request)) ?? (await createOrder(request))
    if (request.method === 'POST' && answersToLose > 0) {
      answersToLose -= 1
      incoming.socket.destroy()
    }
    return response
  }

  const server = createServer((incoming, outgoing) =>
    nodeHandler((request) => handle(request, incoming))(incoming, outgoing),
  )
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    orders: () => orders.length,
    loseNextAnswer() {
      answersToLose += 1
    },
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)))
        server.closeAllConnections()
      }),
  }
}
