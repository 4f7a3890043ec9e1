/** A real shop for browser tests: a page with the real client, an order server on the real kit, and faults on the wire. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import { sourceAliases } from '../../scripts/entries.ts'
import { nodeHandler } from '../../src/server/adapters/node.ts'
import { idempotencyRoutes, idempotent, json, memoryServerStore } from '../../src/server/index.ts'

/** A shop under way. */
export interface Shop {
  readonly origin: string
  /** Orders really made. */
  readonly orders: { readonly id: number; readonly key: string }[]
  /** Requests for orders, lost ones included. */
  readonly posts: { readonly key: string }[]
  /** The next so many orders are made, and their answers never leave: the connection is destroyed after the commit. */
  loseAnswers(count: number): void
  /** The next answer is held back after the commit until `release` is called, or the connection goes. */
  holdAnswer(): { readonly committed: Promise<void>; release(): void }
  close(): Promise<void>
}

const page = '<!doctype html><meta charset="utf-8"><title>Shop</title><script type="module" src="/client.js"></script>'

/** Starts a shop on a free port of this machine. `client` is the page's program, in TypeScript. */
export async function openShop(client: string): Promise<Shop> {
  const script = await bundled(client)
  const orders: { id: number; key: string }[] = []
  const posts: { key: string }[] = []
  let losing = 0
  let hold: { reached: () => void; gate: Promise<void> } | null = null

  const createOrder = idempotent({
    store: memoryServerStore(),
    operation: 'orders.create',
    scope: () => ({ tenant: 'shop', principal: 'anonymous' }),
    execute: ({ key }) => {
      orders.push({ id: orders.length + 1, key })
      return json(201, { id: orders.length })
    },
  })
  const keys = idempotencyRoutes({ keysUrl: '/keys', operations: [createOrder] })

  async function route(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname === '/') return new Response(page, { headers: { 'content-type': 'text/html' } })
    if (pathname === '/client.js') return new Response(script, { headers: { 'content-type': 'text/javascript' } })
    if (pathname === '/orders') return createOrder(request)
    return (await keys(request)) ?? new Response(null, { status: 404 })
  }

  async function handle(request: Request, incoming: IncomingMessage): Promise<Response> {
    const isOrder = new URL(request.url).pathname === '/orders'
    if (isOrder) posts.push({ key: request.headers.get('idempotency-key') ?? '' })
    const response = await route(request)
    if (!isOrder) return response
    if (losing > 0) {
      losing--
      incoming.socket.destroy()
    } else if (hold !== null) {
      const { reached, gate } = hold
      hold = null
      reached()
      await gate
    }
    return response
  }
  const server = createServer((incoming, outgoing) =>
    nodeHandler((request) => handle(request, incoming))(incoming, outgoing),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    origin: `http://127.0.0.1:${port}`,
    orders,
    posts,
    loseAnswers(count) {
      losing = count
    },
    holdAnswer() {
      let release: () => void = () => {}
      const gate = new Promise<void>((resolve) => {
        release = resolve
      })
      const committed = new Promise<void>((reached) => {
        hold = { reached, gate }
      })
      return { committed, release }
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function bundled(client: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: client, loader: 'ts', resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    alias: sourceAliases,
  })
  return outputFiles[0]?.text ?? ''
}
