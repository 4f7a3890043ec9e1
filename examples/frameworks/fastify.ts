/**
 * Shows: the server kit in Fastify. In its plugin bodies stay as they come; routes outside keep their parsers.
 *
 *     DATABASE_URL=postgres://localhost/shop npx tsx examples/frameworks/fastify.ts
 *     curl -i localhost:3000/orders -H 'authorization: ann' -H 'idempotency-key: k-1' \
 *       -H 'content-type: application/json' -d '{"sku":"tea"}'
 */
import fastify, { type FastifyPluginAsync } from 'fastify'
import { fastifyHandler, rawBodies } from 'samekey/server/fastify'
import { keys, keysUrl, open, orders } from './orders.ts'

const close = await open()

const shop: FastifyPluginAsync = async (scope) => {
  rawBodies(scope)
  scope.route({ method: ['POST', 'OPTIONS'], url: '/orders', handler: fastifyHandler(orders) })
  scope.all(`${keysUrl}/*`, fastifyHandler(keys))
}

const app = fastify()
app.register(shop)
app.post('/echo', (request, reply) => reply.send(request.body))

const url = await app.listen({ host: 'localhost', port: Number(process.env.PORT ?? 3000) })
console.log(`listening on ${url}`)
process.once('SIGTERM', () => void app.close().then(close))
