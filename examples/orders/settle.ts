/**
 * What a person does about paid orders of which nobody knows whether they were charged.
 *
 *     npx tsx examples/orders/settle.ts                                   lists them
 *     npx tsx examples/orders/settle.ts charged <operation id> <number of the charge> "found in the statement"
 *     npx tsx examples/orders/settle.ts not-charged <operation id> "not in the statement of 3 December"
 */
import { settle } from 'samekey/server'
import { postgresServerStore } from 'samekey/server/postgres'
import type { Charge, ChargeRequest, Declined } from './payments.ts'
import { openPool } from './program.ts'

const pool = openPool('settle')
const store = postgresServerStore(pool)
const [verb, operationId = '', ...more] = process.argv.slice(2)

switch (verb) {
  case undefined:
    for (const { id, calls } of await store.unknownTasks()) {
      for (const { name, row } of calls) {
        const { reference, amount, currency } = JSON.parse(row.request) as ChargeRequest
        console.log(`${row.operationId}  ${name} of ${amount} ${currency} for ${reference}: ${row.error}`)
        if (row.lateAnswer !== null) console.log(`  heard too late: ${row.lateAnswer}`)
      }
      if (calls.length === 0) console.log(`${id.key} of ${id.principal} is unknown for another reason`)
    }
    break
  case 'charged': {
    const [id = '', note = ''] = more
    say(await settle(store, operationId, 'done', note, { id } satisfies Charge))
    break
  }
  case 'not-charged': {
    const [note = ''] = more
    say(await settle(store, operationId, 'refused', note, { code: 'not_charged' } satisfies Declined))
    break
  }
  default:
    console.error(`There is no "${verb}" here.`)
    process.exitCode = 2
}
await pool.end()

function say(isSettled: boolean): void {
  console.log(isSettled ? 'settled: a worker goes on with the order' : 'nothing waits under this id')
  if (!isSettled) process.exitCode = 1
}
