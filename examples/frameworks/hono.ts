/**
 * Shows: the server kit in Hono, whose requests are the web's own: nothing is needed in between. Where `app.fetch` is
 * what the platform wants, it is served as always; on Node, serve it with `nodeHandler`.
 *
 *     DATABASE_URL=postgres://localhost/shop npx tsx examples/frameworks/hono.ts
 *     curl -i localhost:3000/orders -H 'authorization: ann' -H 'idempotency-key: k-1' \
 *       -H 'content-type: application/json' -d '{"sku":"tea"}'
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Hono } from 'hono'
import { nodeHandler } from 'samekey/server/node'
import { keys, keysUrl, open, orders } from './orders.ts'

const close = await open()

const app = new Hono()
app.on(['POST', 'OPTIONS'], '/orders', (context) => orders(context.req.raw))
app.all(`${keysUrl}/*`, (context) => keys(context.req.raw))

// Not @hono/node-server: it reads the body of a client that is gone as an empty one, which would be an order of nothing.
const server = createServer(nodeHandler((request) => app.fetch(request)))
server.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`listening on http://localhost:${(server.address() as AddressInfo).port}`)
})
process.once('SIGTERM', () => server.close(() => void close()))
