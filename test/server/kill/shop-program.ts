/** The shop as a process: dies where it is told to. */
import { writeSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { nodeHandler } from '../../../src/server/adapters/node.ts'
import { serveQuestions } from '../../support/questions.ts'
import { pointsOf, watchedPool } from './points.ts'
import { shopOf } from './shop.ts'

export interface ShopJob {
  readonly databaseUrl: string
  /** Shown in PostgreSQL's list of connections. */
  readonly name: string
  /** Connections. */
  readonly max: number
}

export interface ShopReady {
  readonly url: string
}

/** `arm`: the next request dies at this point, null: at none. `reached`: which points there were since. */
export type ShopQuestion = { readonly arm: number | null } | { readonly reached: true }

serveQuestions<ShopJob, ShopReady, ShopQuestion>(async ({ databaseUrl, name, max }) => {
  const points = pointsOf((label) => {
    // At once and without a chance to tidy up: nothing of what is buffered in this process goes anywhere.
    writeSync(1, label)
    process.kill(process.pid, 'SIGKILL')
  })
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    application_name: name,
    max,
    connectionTimeoutMillis: 5000,
  })
  pool.on('error', () => {})
  await pool.query('select 1')
  const shop = shopOf(watchedPool(pool, points.reach))
  const listener = nodeHandler(shop)
  const server = createServer((incoming, outgoing) => {
    points.reach('a request arrives')
    outgoing.once('finish', () => points.reach('the answer is on the wire'))
    listener(incoming, outgoing)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    ready: { url: `http://127.0.0.1:${port}` },
    answer(question) {
      if ('reached' in question) return points.reached()
      points.arm(question.arm)
      return null
    },
  }
})
