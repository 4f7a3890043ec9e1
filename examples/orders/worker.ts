/**
 * Does accepted work: charges paid orders and confirms them. Start as many as you like; one that dies is taken over by
 * another, after its lease.
 */
import { startWorker } from 'samekey/server'
import { postgresServerStore } from 'samekey/server/postgres'
import { fulfilment } from './fulfil.ts'
import { atTheEnd, numberSetting, openPool, setting } from './program.ts'
import { prepare } from './tables.ts'

const program = setting('PROGRAM_NAME', 'worker')
const pool = openPool(program)
await prepare(pool)

const worker = startWorker({
  store: postgresServerStore(pool),
  work: {
    'paid-orders.create': fulfilment({
      url: setting('PROVIDER_URL', 'http://127.0.0.1:3001'),
      timeoutMs: numberSetting('CALL_TIMEOUT_MS', 10_000),
      transitMs: numberSetting('CALL_TRANSIT_MS', 120_000),
    }),
  },
  concurrency: numberSetting('CONCURRENCY', 4),
  leaseMs: numberSetting('LEASE_MS', 30_000),
  pollMs: numberSetting('POLL_MS', 1000),
  retry: { baseMs: numberSetting('RETRY_BASE_MS', 1000) },
})
console.log(`${program}: ready`)
atTheEnd(
  () => worker.stop(),
  () => pool.end(),
)
