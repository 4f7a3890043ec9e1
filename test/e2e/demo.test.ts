/** `npm start` as it is run, and the programs that it runs: real processes, sockets, kills and PostgreSQL, counted in SQL. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import type { Finding } from '../../examples/demo/audit.ts'
import { bundlePrograms } from '../../examples/demo/bundle.ts'
import { killChildren } from '../../examples/demo/child.ts'
import { faults } from '../../examples/demo/faults/all.ts'
import { buildHouse } from '../../examples/demo/house.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

describe('npm start', () => {
  interface Report {
    faults: ({ id: string } & Omit<Finding, 'fault'>)[]
    ok: boolean
  }

  test('every fault leaves one order, one charge and one e-mail each, or says what nobody can know', async () => {
    const args = ['node_modules/tsx/dist/cli.mjs', 'examples/demo/main.ts', '--json']
    const { stdout } = await run(process.execPath, args, { cwd: root })
    const report = JSON.parse(stdout) as Report
    const byId = new Map(report.faults.map((fault) => [fault.id, fault]))
    const of = (id: string) => byId.get(id)!

    expect(report.faults.map(({ id }) => id)).toEqual(faults.map(({ id }) => id))
    expect(report.faults.flatMap(({ broken }) => broken)).toEqual([])
    for (const { wanted, samekey } of report.faults) {
      expect(wanted).toBeGreaterThanOrEqual(10)
      expect(samekey).toMatchObject({ tooMany: 0, lost: 0, charges: samekey.orders })
    }
    // No order is left open where the server can tell in the end.
    for (const id of ['F2', 'F3', 'F4', 'F5', 'F6', 'F7', 'F9', 'F10', 'F11', 'F12', 'F14', 'F20']) {
      expect(of(id).samekey.outcomes).toEqual({ succeeded: of(id).wanted })
    }
    for (const id of ['F9', 'F10', 'F11', 'F12']) expect(of(id).samekey.effects).toBe(of(id).wanted)
    for (const { samekey } of report.faults) expect(typeof samekey.effects).toBe('number')
    expect(of('F18').samekey.outcomes).toEqual({ unknown: of('F18').wanted })
    expect(of('F19').samekey.outcomes.cancelled).toBeGreaterThan(0)
    expect(of('F21').samekey.outcomes).toMatchObject({ succeeded: of('F21').samekey.orders })
    // Without these, the faults would have been harmless, and the numbers above would prove nothing.
    for (const id of ['F5', 'F6', 'F7', 'F8', 'F19', 'F20', 'P57']) {
      expect([id, of(id).plain?.tooMany]).toEqual([id, expect.toSatisfy((count: number) => count > 0)])
    }
    expect(of('F11').plain?.failedButThere).toBeGreaterThan(0)
    expect(of('F14').plain?.failed).toBeGreaterThan(0)
    expect(of('F19').plain?.cancelledButThere).toBeGreaterThan(0)
    expect(report.ok).toBe(true)
  }, 200_000)
})

describe('examples/orders', () => {
  const folder = mkdtempSync(join(tmpdir(), 'samekey-orders-'))
  let postgres: TestPostgres | undefined

  afterAll(async () => {
    await killChildren()
    await postgres?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('refusals are remembered, what is cancelled or declined goes back to stock, a person settles, all end well', async () => {
    postgres = await startPostgres()
    const fileOf = await bundlePrograms(folder)
    const { shop, tokens, newSite } = await buildHouse(postgres.url, { folder, fileOf, onThrough: () => {} })
    expect(shop.url).toMatch(/^http:/)
    const site = await newSite('orders')
    const { database } = site
    const [store, provider, mailer] = await Promise.all([
      site.start('shop'),
      site.start('provider'),
      site.start('mailer'),
    ])
    const relay = await site.start('relay', { MAILER_URL: mailer.url })

    const order = (reference: string, payment?: string) => ({
      reference,
      customer: { name: 'Ann', email: 'ann@post.example' },
      currency: 'EUR',
      items: [{ sku: 'TOWEL', quantity: 2, unitPrice: 950 }],
      ...(payment !== undefined && { payment }),
    })
    const send = (method: string, path: string, key: string, body?: object) =>
      fetch(`${store.url}/${path}`, {
        method,
        headers: {
          authorization: `Bearer ${tokens.samekey}`,
          'content-type': 'application/json',
          ...(body && { 'idempotency-key': key }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
    const monitor = async (key: string, method = 'GET') =>
      (await (await send(method, `idempotency-keys/paid-orders.create/${key}`, key)).json()) as {
        status: string
        response?: { status: number }
      }
    const stock = async (): Promise<number> =>
      (await database.query<{ quantity: number }>(`select quantity from stock where sku = 'TOWEL'`)).rows[0]!.quantity
    const statuses = async (): Promise<string[]> =>
      (
        await database.query<{ row: string }>(
          `select reference || ' ' || status as row from orders where reference <> 'R-0' order by id`,
        )
      ).rows.map(({ row }) => row)
    const behave = (reference: string, next: string) =>
      fetch(`${provider.url}/behaviour`, {
        method: 'POST',
        body: JSON.stringify({ reference: `samekey/${reference}`, next: [next] }),
      })

    // Sold out, and sold out for this key whatever arrives meanwhile: the order itself was rolled back.
    await database.query(`update stock set quantity = 1 where sku = 'TOWEL'`)
    const soldOut = [await send('POST', 'orders', 'k-1', order('R-1'))]
    await database.query(`update stock set quantity = 100 where sku = 'TOWEL'`)
    soldOut.push(await send('POST', 'orders', 'k-1', order('R-1')))
    expect(soldOut.map(({ status, headers }) => [status, headers.get('idempotent-replayed')])).toEqual([
      [409, null],
      [409, 'true'],
    ])
    expect((await send('POST', 'orders', 'k-2', order('R-2'))).status).toBe(201)
    expect([await statuses(), await stock()]).toEqual([['R-2 confirmed'], 98])

    // Many at once for the last ones: none of them is sold twice.
    await database.query(`update stock set quantity = 9 where sku = 'TOWEL'`)
    const rush = await Promise.all(
      Array.from({ length: 12 }, (_, place) => send('POST', 'orders', `r-${place}`, order('R-0'))),
    )
    expect(rush.map(({ status }) => status).sort()).toEqual([...Array(4).fill(201), ...Array(8).fill(409)])
    expect(await stock()).toBe(1)
    await database.query(`update stock set quantity = 98 where sku = 'TOWEL'`)

    // Cancelled before a worker began: the order is taken back, and never comes again under this key.
    expect((await send('POST', 'paid-orders', 'k-3', order('R-3'))).status).toBe(202)
    expect(await stock()).toBe(96)
    expect((await monitor('k-3', 'DELETE')).status).toBe('voided')
    expect((await send('POST', 'paid-orders', 'k-3', order('R-3'))).status).toBe(409)
    expect([(await statuses())[1], await stock()]).toEqual(['R-3 cancelled', 98])

    // Declined by the provider: the customer hears it, and the goods go back.
    await behave('R-4', 'decline')
    await behave('R-5', 'lose')
    const worker = await site.start('worker', { PROVIDER_URL: provider.url })
    await send('POST', 'paid-orders', 'k-4', order('R-4'))
    await until('the declined order has its end', async () => (await monitor('k-4')).status === 'failed')
    expect((await monitor('k-4')).response?.status).toBe(402)
    expect([(await statuses())[2], await stock()]).toEqual(['R-4 refused', 98])

    // Charged, and nobody can say so but a person.
    await send('POST', 'paid-orders', 'k-5', order('R-5', 'voucher'))
    await until('the order by voucher is unknown', async () => (await monitor('k-5')).status === 'unknown')
    const settle = (...args: string[]) =>
      run(process.execPath, ['node_modules/tsx/dist/cli.mjs', 'examples/orders/settle.ts', ...args], {
        cwd: root,
        env: { ...process.env, DATABASE_URL: site.databaseUrl },
      })
    const { stdout } = await settle()
    const [, operationId] = /^(\S+) {2}charge of 1900 EUR for samekey\/R-5: /.exec(stdout)!
    await settle('charged', operationId!, '1', 'found in the statement')
    await until('the order by voucher is confirmed', async () => (await monitor('k-5')).status === 'succeeded')

    const { rows } = await database.query(
      'select reference, count(*)::integer from provider_charges group by reference',
    )
    expect(rows).toEqual([{ reference: 'samekey/R-5', count: 1 }])
    const confirmed = `select id::text from orders where status = 'confirmed' order by orders.id`
    const sent = 'select order_id as id from sent_e_mails order by order_id::bigint'
    await until('every confirmed order has its e-mail', async () => {
      const [wanted, there] = [await database.query(confirmed), await database.query(sent)]
      return JSON.stringify(wanted.rows) === JSON.stringify(there.rows)
    })

    const programs = [store, provider, mailer, relay, worker]
    for (const program of programs) program.signal('SIGTERM')
    await Promise.all(programs.map(({ ended }) => ended))
  }, 120_000)
})
