import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { root } from '../../scripts/entries.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'

const programs = ['node', 'express', 'fastify', 'hono']
const withBodyParser = ['express', 'fastify']

let postgres: TestPostgres

beforeAll(async () => {
  postgres = await startPostgres()
})

afterAll(() => postgres?.stop())

it('none is left out', () => {
  const files = readdirSync(join(root, 'examples/frameworks'))
  expect(files.sort()).toEqual([...programs.map((name) => `${name}.ts`), 'next', 'orders.ts'].sort())
})

describe.each(programs)('examples/frameworks/%s.ts', (name) => {
  let server: ChildProcess
  let url = ''

  beforeAll(async () => {
    const tsx = join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs')
    server = spawn(process.execPath, [tsx, `examples/frameworks/${name}.ts`], {
      cwd: root,
      env: { ...process.env, DATABASE_URL: postgres.url, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [said] = (await once(server.stdout?.setEncoding('utf8') ?? server, 'data')) as [string]
    url = said.replace(/^.*listening on /s, '').trim()
  })

  afterAll(async () => {
    if (server?.exitCode !== null) return
    server.kill('SIGTERM')
    expect(await once(server, 'exit')).toEqual([0, null])
  })

  it('makes one order of two requests, knows it by its key, and leaves other routes their body parser', async () => {
    await orderTwice(name, (path, init) => fetch(url + path, init))
    if (!withBodyParser.includes(name)) return
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: ' {"a": 1}' }
    expect(await (await fetch(`${url}/echo`, init)).json()).toEqual({ a: 1 })
  })
})

it('examples/frameworks/next: one order of two requests, known by its key', async () => {
  process.env.DATABASE_URL = postgres.url
  const app = '../../examples/frameworks/next'
  const { register } = await import(`${app}/instrumentation.ts`)
  const modules: Record<string, Partial<Record<string, (request: Request) => Promise<Response>>>> = {
    orders: await import(`${app}/app/orders/route.ts`),
    'idempotency-keys': await import(`${app}/app/idempotency-keys/[operation]/[key]/route.ts`),
  }
  const listened = vi.spyOn(process, 'once')
  await register()
  onTestFinished(() => listened.mock.calls.find(([signal]) => signal === 'SIGTERM')?.[1]())
  await orderTwice('next', async (path, init) => {
    const request = new Request(`https://shop.example${path}`, init)
    const response = await modules[path.split('/')[1] ?? '']?.[request.method]?.(request)
    return response ?? new Response(null, { status: 405 })
  })
})

async function orderTwice(name: string, ask: (path: string, init: RequestInit) => Promise<Response>): Promise<void> {
  const key = `${name}/50%`
  const headers = { authorization: 'ann', 'idempotency-key': key, 'content-type': 'application/json' }
  const submit = () => ask('/orders', { method: 'POST', headers, body: JSON.stringify({ sku: name }) })
  const byKey = (method: string, which: string) =>
    ask(`/idempotency-keys/orders.create/${encodeURIComponent(which)}`, { method, headers: { authorization: 'ann' } })

  const [first, second] = [await submit(), await submit()]
  expect([first.status, second.status]).toEqual([201, 201])
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(await second.text()).toBe(await first.text())
  expect(await (await byKey('GET', key)).json()).toMatchObject({ id: key, status: 'succeeded' })
  expect(await (await byKey('DELETE', `${key}-2`)).json()).toMatchObject({ status: 'voided' })

  const origin = 'https://shop.example'
  const preflight = await ask('/orders', {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST' },
  })
  expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, origin])

  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  const { rows } = await client.query('select sku from orders where sku = $1', [name])
  await client.end()
  expect(rows).toEqual([{ sku: name }])
}
