/**
 * `npm start`: the same customer orders, sent by two clients through a bad network to a real shop on a real PostgreSQL.
 * One client is plain fetch with an ordinary retry loop, the other is samekey. What came of it is counted in SQL.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Pool } from 'pg'
import { migrate } from 'samekey/server/postgres'
import { startPostgres } from '../../test/support/postgres.ts'
import { audit, type Finding } from './audit.ts'
import { killChildren } from './child.ts'
import type { Fault } from './fault.ts'
import { faults } from './faults/all.ts'
import { type Order, readOrders } from './orders.ts'
import { type Progress, startProgress } from './progress.ts'
import { allHeld, jsonReport, textReport } from './report.ts'
import { type House, openStage, startShop } from './stage.ts'
import { TABLES } from './tables.ts'

const usage = `npm start -- [--json] [--only F5,F6]

  --json    print the result as JSON on stdout, and nothing else there
  --only    only these faults: ${faults.map(({ id }) => id).join(', ')}
  --help    this text

Exit code: 0 when every promise held, 1 when not, 2 for a wrong call.
`

/** Faults at the same time: most of them wait more than they work. */
const atOnce = 3
/** Nothing here takes that long; what does, hangs. */
const timeLimitMs = 170_000

const { json, chosen } = argumentsOf(process.argv.slice(2))
const tidyUp: (() => Promise<unknown>)[] = []
await guarded(run)

async function run(): Promise<number> {
  const orders = readOrders()
  const share = Math.floor(orders.length / faults.length)
  const progress = startProgress(2 * share * chosen.length)
  tidyUp.push(async () => progress.close())
  progress.say(
    `${share} of ${orders.length} orders for each of ${chosen.length} faults; starting PostgreSQL and the shop`,
  )
  const house = await openHouse(progress)
  progress.say('ready')
  const closed = house.shop.ended.then(() => Promise.reject(new Error('The shop ended.')))
  const walks = inTurns(chosen, atOnce, (fault) => {
    const at = faults.indexOf(fault) * share
    return walk(fault, house, orders.slice(at, at + share), progress)
  })
  const findings = await Promise.race([walks, closed])
  progress.close()
  const { stdout } = process
  const columns = stdout.columns ?? (Number(process.env.COLUMNS) || 120)
  const text = json ? jsonReport(findings) : textReport(findings, { columns, colour: stdout.hasColors?.() ?? false })
  await new Promise((resolve) => stdout.write(`${text}\n`, resolve))
  return allHeld(findings) ? 0 : 1
}

async function openHouse(progress: Progress): Promise<House> {
  const folder = mkdtempSync(join(tmpdir(), 'samekey-demo-'))
  tidyUp.push(async () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  const postgres = await startPostgres()
  tidyUp.push(() => postgres.stop())
  tidyUp.push(killChildren)
  const database = new Pool({ connectionString: postgres.url, max: 10 })
  // Its end is the end of PostgreSQL.
  database.on('error', () => {})
  await migrate(database)
  await database.query(TABLES)
  const shop = await startShop({ databaseUrl: postgres.url, name: 'shop', port: 0 })
  await warmUp(shop.port)
  return { databaseUrl: postgres.url, database, folder, shop, onThrough: (what) => progress.through(what) }
}

/** The first requests of a process take longest; here that would look like a fault of the network. */
async function warmUp(port: number): Promise<void> {
  const order: Order = {
    reference: 'warm-up',
    customer: { name: 'Nobody' },
    currency: 'EUR',
    items: [{ quantity: 1, unitPrice: 1 }],
  }
  const init = {
    method: 'POST',
    body: JSON.stringify(order),
    headers: { authorization: 'Bearer nobody', 'content-type': 'application/json' },
  }
  await Promise.all(
    Array.from({ length: 24 }, async () => (await fetch(`http://127.0.0.1:${port}/orders`, init)).text()),
  )
}

async function walk(fault: Fault, house: House, orders: readonly Order[], progress: Progress): Promise<Finding> {
  const startedAt = performance.now()
  progress.begin(fault.id)
  const stage = openStage(house, fault.id, orders)
  try {
    const finding = await audit(fault, stage, await Promise.race([fault.play(stage), stage.failure]))
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    const { wanted, plain, samekey, broken } = finding
    const counts = `wanted ${wanted}, plain ${plain.orders}, samekey ${samekey.orders}${broken.length > 0 ? ' BROKEN' : ''}`
    progress.end(fault.id, `${fault.id.padEnd(3)}  ${counts} (${seconds} s): ${fault.story}`)
    if (json) for (const what of broken) progress.say(`${fault.id.padEnd(3)}  ${what}`)
    return finding
  } catch (error) {
    throw new Error(`${fault.id} could not be played.`, { cause: error })
  } finally {
    await stage.close()
  }
}

/** Runs over the list, several at a time, results in the list's order. */
async function inTurns<T, R>(list: readonly T[], width: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const entries = [...list.entries()]
  const turn = async (): Promise<void> => {
    for (let next = entries.shift(); next !== undefined; next = entries.shift()) results[next[0]] = await work(next[1])
  }
  await Promise.all(Array.from({ length: width }, turn))
  return results
}

/** Runs to the end, to Ctrl-C or to the time limit, and leaves nothing behind in any case. */
async function guarded(work: () => Promise<number>): Promise<never> {
  let timer: NodeJS.Timeout | undefined
  const stopped = new Promise<number>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(130))
    timer = setTimeout(() => {
      console.error(`The demo took longer than ${timeLimitMs / 1000} s and was stopped.`)
      resolve(1)
    }, timeLimitMs)
  })
  const code = await Promise.race([work(), stopped]).catch((error: unknown) => {
    console.error(error)
    return 1
  })
  clearTimeout(timer)
  for (let step = tidyUp.pop(); step !== undefined; step = tidyUp.pop()) {
    await Promise.race([step(), sleep(5000)]).catch((error: unknown) => console.error(error))
  }
  // What was interrupted may still be waiting for something.
  process.exit(code)
}

function argumentsOf(args: string[]): { json: boolean; chosen: readonly Fault[] } {
  try {
    const { values } = parseArgs({
      args,
      options: { json: { type: 'boolean' }, only: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    })
    if (values.help === true) {
      process.stdout.write(usage)
      process.exit(0)
    }
    const wanted = values.only?.split(',').map((id) => id.trim().toUpperCase())
    const strange = wanted?.filter((id) => !faults.some((fault) => fault.id === id)) ?? []
    if (strange.length > 0) throw new Error(`There is no fault ${strange.join(', ')} here.`)
    return { json: values.json ?? false, chosen: faults.filter(({ id }) => wanted?.includes(id) ?? true) }
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    process.exit(2)
  }
}
