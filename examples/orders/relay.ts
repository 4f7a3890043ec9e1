/** Takes messages out of the shop's outbox and hands them to the mailer, each at least once. */
import { reapOutbox, startRelay } from 'samekey/server/postgres'
import { E_MAILS } from './e-mails.ts'
import { atTheEnd, numberSetting, openPool, setting } from './program.ts'
import { prepare } from './tables.ts'

const program = setting('PROGRAM_NAME', 'relay')
const mailer = setting('MAILER_URL', 'http://127.0.0.1:3002')
const pool = openPool(program)
await prepare(pool)

const relay = startRelay({
  pool,
  topics: [E_MAILS],
  concurrency: numberSetting('CONCURRENCY', 4),
  leaseMs: numberSetting('LEASE_MS', 30_000),
  pollMs: numberSetting('POLL_MS', 1000),
  async deliver({ id, text }, { signal }) {
    const response = await fetch(`${mailer}/messages/${id}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: text,
      signal,
    })
    // Whatever is not known to be delivered is delivered again: the mailer tells it by the id.
    if (!response.ok) throw new Error(`The mailer answered ${response.status}.`)
  },
})

// What was delivered is kept for a while, for people who want to see it.
const weekMs = 7 * 86_400_000
const reaper = setInterval(() => void reapOutbox(pool, { keepMs: weekMs }).catch(() => {}), 60_000)

console.log(`${program}: ready`)
atTheEnd(
  () => relay.stop(),
  () => clearInterval(reaper),
  () => pool.end(),
)
