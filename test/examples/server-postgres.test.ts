import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { root } from '../../scripts/entries.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'

let postgres: TestPostgres
let server: ChildProcess
let url = ''

beforeAll(async () => {
  postgres = await startPostgres()
  const tsx = join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs')
  const env = { ...process.env, DATABASE_URL: postgres.url, PORT: '0' }
  server = spawn(process.execPath, [tsx, 'examples/server.ts'], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = (await once(server.stdout?.setEncoding('utf8') ?? server, 'data')) as [string]
  url = said.replace(/^.*listening on /s, '').trim()
})

afterAll(async () => {
  if (server?.exitCode === null) {
    server.kill('SIGTERM')
    await once(server, 'exit')
  }
  await postgres?.stop()
})

it('examples/server.ts: one order per key, replayed, looked up and voided, in a real database', async () => {
  const post = (key: string, order: unknown) =>
    fetch(`${url}/orders`, {
      method: 'POST',
      headers: { authorization: 'ann', 'idempotency-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(order),
    })
  const byKey = (method: string, key: string) =>
    fetch(`${url}/idempotency-keys/orders.create/${key}`, { method, headers: { authorization: 'ann' } })
  const tea = { sku: 'tea', quantity: 3 }

  const [first, second] = [await post('k-1', tea), await post('k-1', tea)]
  expect([first.status, second.status]).toEqual([201, 201])
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(await second.text()).toBe(await first.text())
  expect((await post('k-1', { ...tea, quantity: 4 })).status).toBe(409)

  const refused = [await post('k-2', { ...tea, quantity: 101 }), await post('k-2', { ...tea, quantity: 101 })]
  expect(refused.map((answer) => [answer.status, answer.headers.get('idempotent-replayed')])).toEqual([
    [409, null],
    [409, 'true'],
  ])
  expect((await post('k-3', { sku: 'tea' })).status).toBe(422)
  expect((await post('k-3', tea)).status).toBe(201)

  expect(await (await byKey('GET', 'k-1')).json()).toMatchObject({ status: 'succeeded' })
  expect(await (await byKey('DELETE', 'k-4')).json()).toMatchObject({ status: 'voided' })
  expect((await post('k-4', tea)).status).toBe(409)

  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  const { rows } = await client.query('select sku, quantity from orders')
  await client.end()
  expect(rows).toEqual([tea, tea])
})
