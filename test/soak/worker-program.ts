/** One of the workers: does what the servers accepted. */
import { flushCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { finish, json, refuse, startWorker } from 'samekey/server'
import { type PgQueryable, postgresServerStore } from 'samekey/server/postgres'
import { openPool, setting } from '../../examples/orders/program.ts'
import { bookEffect, takeBack } from './tables.ts'
import type { Work } from './words.ts'

const program = setting('PROGRAM_NAME')
const pool = openPool(program)

startWorker<PgQueryable>({
  store: postgresServerStore(pool),
  work: {
    async 'orders.later'(task) {
      const { intent, kind, orderId, dwellMs } = task.work as Work
      await sleep(dwellMs)
      if (kind === 'later refused') {
        // In a step of its own: what `finish` writes is taken back together with a refusal.
        await task.step('take back', (transaction) => takeBack(transaction, orderId))
        await sleep(dwellMs)
        return refuse(422, { intent, reason: 'refused on purpose' })
      }
      const { key, epoch } = task
      return finish(async (transaction) => {
        await bookEffect(transaction, { intent, key, orderId, epoch, madeBy: program })
        await sleep(dwellMs)
        return json(200, { intent, orderId })
      })
    },
  },
  // Workers die every few seconds.
  leaseMs: 2000,
  pollMs: 300,
  retry: { baseMs: 100, capMs: 1000 },
})
process.stdout.write(`${program}: ready\n`)
flushCompileCache()
