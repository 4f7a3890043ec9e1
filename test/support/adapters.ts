/** The same app, served by each way that the documents show: over real sockets on the loopback interface. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { Router } from 'express'
import fastify, { type FastifyPluginAsync } from 'fastify'
import { Hono } from 'hono'
import { type Handler, type IdempotentHandler, idempotencyRoutes } from 'samekey/server'
import { expressHandler } from 'samekey/server/express'
import { fastifyHandler, rawBodies } from 'samekey/server/fastify'
import { nodeHandler, type WebHandler } from 'samekey/server/node'

export interface Route {
  /** `/shop/orders`: all but the last segment is where frameworks mount a router. */
  readonly path: string
  readonly method: string
  /** What `idempotent` made; or a plain handler, which has no keys. */
  readonly handler: IdempotentHandler | Handler
}

export interface App {
  readonly handlers: readonly Route[]
  /** A path. Look-up and void of every operation among the handlers. */
  readonly keysUrl: string
  /** Put around each handler and around the keys, which then get `OPTIONS` too: `cors(...)`. */
  readonly wrap?: (handler: Handler) => Handler
}

export interface Running {
  /** Without a slash at the end. */
  readonly url: string
  /** Stops listening and ends every connection. */
  close(): Promise<void>
}

export interface Adapter {
  readonly name: string
  start(app: App): Promise<Running>
}

export const adapters: readonly Adapter[] = [
  { name: 'node http', start: (app) => listen(nodeHandler(nodeApp(app))) },
  { name: 'express', start: (app) => listen(expressApp(app)) },
  { name: 'fastify', start: startFastify },
  { name: 'hono', start: (app) => listen(nodeHandler(honoApp(app).fetch)) },
  { name: 'next', start: (app) => listen(nodeHandler(nextApp(app))) },
]

/** On a free port. */
export async function listen(listener: RequestListener): Promise<Running> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** No framework: the app looks at the path itself. */
function nodeApp(app: App): WebHandler {
  const { routes, keys } = partsOf(app)
  return async (request) => {
    const { pathname } = new URL(request.url)
    const route = routes.find(({ path, methods }) => path === pathname && methods.includes(request.method))
    return route === undefined ? keys(request) : route.handler(request)
  }
}

/** Routers below a path, keys for the whole app, a body parser behind both. */
function expressApp(app: App): RequestListener {
  const { routes, keys } = partsOf(app)
  const served = express()
  for (const { path, methods, handler } of routes) {
    const router = Router()
    for (const method of methods) router[verb(method)](lastOf(path), expressHandler(handler))
    served.use(mountOf(path) || '/', router)
  }
  served.use(app.wrap === undefined ? '/' : app.keysUrl, expressHandler(keys))
  served.use(express.json())
  return served
}

/** One plugin for each path, with a prefix; the app's own parsers stay outside. */
async function startFastify(app: App): Promise<Running> {
  const { routes, keys } = partsOf(app)
  const served = fastify({ forceCloseConnections: true })
  const mount = (prefix: string, plugin: FastifyPluginAsync) => served.register(plugin, { prefix })
  for (const { path, methods, handler } of routes) {
    mount(mountOf(path), async (scope) => {
      rawBodies(scope)
      scope.route({ method: [...methods], url: lastOf(path), handler: fastifyHandler(handler) })
    })
  }
  mount(app.keysUrl, async (scope) => {
    rawBodies(scope)
    scope.all('/*', fastifyHandler(keys))
  })
  return { url: await served.listen({ host: '127.0.0.1', port: 0 }), close: () => served.close() }
}

/** Hono has web requests of its own; nothing of ours is needed but the socket. */
function honoApp(app: App): Hono {
  const { routes, keys } = partsOf(app)
  const served = new Hono()
  for (const { path, methods, handler } of routes) {
    const mounted = new Hono().on([...methods], lastOf(path), (context) => handler(context.req.raw))
    served.route(mountOf(path) || '/', mounted)
  }
  return served.all(`${app.keysUrl}/*`, async (context, next) => (await keys(context.req.raw)) ?? next())
}

/** What a `route.ts` exports. */
type RouteModule = Partial<Record<string, Handler>>

/** As Next.js does with the modules below `app/`: by path, then by the exported method. */
function nextApp(app: App): WebHandler {
  const { routes, keys } = partsOf(app)
  const orNotFound: Handler = async (request) => (await keys(request)) ?? new Response(null, { status: 404 })
  const modules: Record<string, RouteModule> = {
    [`${app.keysUrl}/[operation]/[key]`]: {
      GET: orNotFound,
      DELETE: orNotFound,
      POST: orNotFound,
      PUT: orNotFound,
      PATCH: orNotFound,
      ...(app.wrap !== undefined && { OPTIONS: orNotFound }),
    },
  }
  for (const { path, methods, handler } of routes) {
    modules[path] = { ...modules[path], ...Object.fromEntries(methods.map((method) => [method, handler])) }
  }
  const patterns = Object.entries(modules).map(([path, module]) => ({
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\[\w+\]/g, '[^/]+')}$`),
    module,
  }))
  return (request) => {
    const { pathname } = new URL(request.url)
    const module = patterns.find(({ pattern }) => pattern.test(pathname))?.module
    if (module === undefined) return null
    const handler = module[request.method === 'HEAD' ? 'GET' : request.method]
    return handler?.(request) ?? new Response(null, { status: 405 })
  }
}

interface Part {
  readonly path: string
  readonly methods: readonly string[]
  readonly handler: Handler
}

function partsOf({ handlers, keysUrl, wrap }: App): { routes: readonly Part[]; keys: WebHandler } {
  const operations = handlers.map(({ handler }) => handler).filter((handler) => 'operation' in handler)
  const keys = idempotencyRoutes({ keysUrl, operations })
  return {
    routes: handlers.map(({ path, method, handler }) =>
      wrap === undefined
        ? { path, methods: [method], handler }
        : { path, methods: [method, 'OPTIONS'], handler: wrap(handler) },
    ),
    keys:
      wrap === undefined ? keys : wrap(async (request) => (await keys(request)) ?? new Response(null, { status: 404 })),
  }
}

const mountOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))
const lastOf = (path: string): string => path.slice(path.lastIndexOf('/'))
const verb = (method: string) => method.toLowerCase() as 'get' | 'post' | 'put' | 'patch' | 'delete' | 'options'
