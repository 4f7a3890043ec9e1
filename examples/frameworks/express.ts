/**
 * Shows: the server kit in Express. It stands before the body parser, which other routes keep.
 *
 *     DATABASE_URL=postgres://localhost/shop npx tsx examples/frameworks/express.ts
 *     curl -i localhost:3000/orders -H 'authorization: ann' -H 'idempotency-key: k-1' \
 *       -H 'content-type: application/json' -d '{"sku":"tea"}'
 */
import type { AddressInfo } from 'node:net'
import express from 'express'
import { expressHandler } from 'samekey/server/express'
import { keys, keysUrl, open, orders } from './orders.ts'

const close = await open()

const app = express()
app.route('/orders').post(expressHandler(orders)).options(expressHandler(orders))
app.use(keysUrl, expressHandler(keys))
app.use(express.json())
app.post('/echo', (request, response) => void response.json(request.body))

const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`listening on http://localhost:${(server.address() as AddressInfo).port}`)
})
process.once('SIGTERM', () => server.close(() => void close()))
