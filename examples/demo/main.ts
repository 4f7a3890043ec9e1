/**
 * `npm start`: the same customer orders, sent by two clients through a bad network to a real shop on a real PostgreSQL.
 * One client is plain fetch with an ordinary retry loop, the other is samekey. What came of it is counted in SQL.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startPostgres } from '../../test/support/postgres.ts'
import type { Order } from '../orders/order.ts'
import { audit, type Finding } from './audit.ts'
import { bundlePrograms } from './bundle.ts'
import { killChildren } from './child.ts'
import type { Fault } from './fault.ts'
import { faults } from './faults/all.ts'
import { guarded, type TidyUp } from './guarded.ts'
import { buildHouse, type House } from './house.ts'
import { readOrders } from './orders.ts'
import { type Progress, startProgress } from './progress.ts'
import { allHeld, jsonReport, textReport } from './report.ts'
import { openStage } from './stage.ts'

const usage = `npm start -- [--json] [--only F5,F6]

  --json    print the result as JSON on stdout, and nothing else there
  --only    only these faults: ${faults.map(({ id }) => id).join(', ')}
  --help    this text

Exit code: 0 when every promise held, 1 when not, 2 for a wrong call.
`

/** Faults at the same time: most of them wait more than they work. */
const atOnce = 4
/** Nothing here takes that long; what does, hangs. */
const timeLimitMs = 170_000

const { json, chosen } = argumentsOf(process.argv.slice(2))
const tidyUp: TidyUp = []
const underWay = new Set<string>()
await guarded({
  work: run,
  tidyUp,
  timeLimitMs,
  overdue: () => `The demo took longer than ${timeLimitMs / 1000} s and was stopped in ${[...underWay].join(', ')}.`,
})

async function run(): Promise<number> {
  const orders = readOrders()
  const share = Math.floor(orders.length / faults.length)
  const clients = chosen.reduce((sum, { plainHasNone = false }) => sum + (plainHasNone ? 1 : 2), 0)
  const progress = startProgress(share * clients)
  tidyUp.push(async () => progress.close())
  progress.say(
    `${share} of ${orders.length} orders for each of ${chosen.length} faults; starting PostgreSQL, shop, relay and mailer`,
  )
  const house = await openHouse(progress)
  progress.say('ready')
  const closed = house.shop.ended.then(() => Promise.reject(new Error('The shop ended.')))
  // Slow ones first, or the last one would run alone.
  const inOrder = [...chosen].sort((a, b) => Number(b.isSlow ?? false) - Number(a.isSlow ?? false))
  const walks = inTurns(inOrder, atOnce, (fault) => {
    const at = faults.indexOf(fault) * share
    const edit = fault.edit ?? ((order: Order) => order)
    return walk(fault, house, orders.slice(at, at + share).map(edit), progress)
  })
  const played = await Promise.race([walks, closed])
  const findings = chosen.map((fault) => played[inOrder.indexOf(fault)]).filter((finding) => finding !== undefined)
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
  const starting = startPostgres({ connections: 300 })
  // Whoever interrupts the start waits for it: half a start has no end of its own.
  tidyUp.push(() => starting.then((started) => started.stop()).catch(() => {}))
  const [fileOf, postgres] = await Promise.all([bundlePrograms(join(folder, 'programs')), starting])
  tidyUp.push(killChildren)
  return buildHouse(postgres.url, { folder, fileOf, onThrough: (what) => progress.through(what) })
}

async function walk(fault: Fault, house: House, orders: readonly Order[], progress: Progress): Promise<Finding> {
  const startedAt = performance.now()
  progress.begin(fault.id)
  underWay.add(fault.id)
  const stage = openStage(house, fault.id, orders)
  try {
    const finding = await audit(fault, stage, await Promise.race([fault.play(stage), stage.failure]))
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    const { wanted, plain, samekey, broken } = finding
    const counts = `wanted ${wanted}, plain ${plain?.orders ?? '-'}, samekey ${samekey.orders}${broken.length > 0 ? ' BROKEN' : ''}`
    underWay.delete(fault.id)
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
