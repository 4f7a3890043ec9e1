/**
 * Shows: the server kit on Node's own HTTP server.
 *
 *     DATABASE_URL=postgres://localhost/shop npx tsx examples/frameworks/node.ts
 *     curl -i localhost:3000/orders -H 'authorization: ann' -H 'idempotency-key: k-1' \
 *       -H 'content-type: application/json' -d '{"sku":"tea"}'
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { nodeHandler } from 'samekey/server/node'
import { keys, keysUrl, open, orders } from './orders.ts'

const close = await open()

const listener = nodeHandler((request) => {
  const { pathname } = new URL(request.url)
  if (pathname === '/orders' && ['POST', 'OPTIONS'].includes(request.method)) return orders(request)
  return pathname.startsWith(`${keysUrl}/`) ? keys(request) : null
})

const server = createServer(listener)
server.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`listening on http://localhost:${(server.address() as AddressInfo).port}`)
})
process.once('SIGTERM', () => server.close(() => void close()))
