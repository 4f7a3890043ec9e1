/** A process with a relay, which may die between `deliver` and its mark (F12). Its receiver is in the same database. */
import pg from 'pg'
import { receiveInTransaction, startRelay } from 'samekey/server/postgres'
import type { PgPool } from '../../src/server/postgres/client.ts'
import { serveQuestions } from '../support/questions.ts'

export interface RelayJob {
  readonly url: string
  /** How far its clock for rows is ahead, ms: a lease of a minute is over at once. */
  readonly aheadMs: number
  readonly dies: boolean
}

serveQuestions<RelayJob, null>(async ({ url, aheadMs, dies }) => {
  const pool = new pg.Pool({ connectionString: url })
  pool.on('error', () => {})
  let delivered = false
  const deadly: PgPool = {
    query: (text, values) => pool.query(text, values),
    connect() {
      // Nothing of the mark has been sent, and everything of the delivery has been done.
      if (delivered && dies) process.kill(process.pid, 'SIGKILL')
      return pool.connect()
    },
  }
  startRelay({
    pool: deadly,
    now: () => Date.now() + aheadMs,
    report: () => {},
    async deliver(message, { attempt, epoch }) {
      await pool.query('insert into deliveries (text, attempt, epoch) values ($1, $2, $3)', [
        message.text,
        attempt,
        epoch,
      ])
      await receiveInTransaction(pool, { consumer: 'billing', messageId: message.id }, (transaction) =>
        transaction.query('insert into effects (text) values ($1)', [message.text]),
      )
      delivered = true
    },
  })
  return { ready: null }
})
