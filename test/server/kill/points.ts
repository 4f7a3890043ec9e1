/**
 * Moments at which a process can die: around every statement that it sends, and wherever else it says so. Nobody types
 * their list: a run that dies nowhere writes it down, and as many runs follow, each of which dies at one of them.
 */
import type { Writable } from 'node:stream'
import type pg from 'pg'
import type { PgClient, PgPool, PgQueryable } from '../../../src/server/postgres/client.ts'

export interface Points {
  /** The moment is now. */
  reach(label: string): void
  /** Forgets what was reached, and dies at this one of those to come; null: at none. */
  arm(deadly: number | null): void
  reached(): readonly string[]
}

/** @param die must not return. */
export function pointsOf(die: (label: string) => void): Points {
  let labels: string[] = []
  let deadly: number | null = null
  return {
    reach(label) {
      labels.push(label)
      if (labels.length - 1 === deadly) die(label)
    },
    arm(index) {
      labels = []
      deadly = index
    },
    reached: () => labels,
  }
}

/**
 * A pool whose every statement is two points: it is on the wire, and it was answered. The second one is also the moment
 * before the next statement: to the world outside, nothing happens between them.
 */
export function watchedPool(pool: pg.Pool, reach: (label: string) => void): PgPool {
  const connect = async (): Promise<PgClient> => watchedClient(await pool.connect(), reach)
  return {
    connect,
    // Not the pool's own: that would look for a connection first.
    async query(text, values) {
      const client = await connect()
      try {
        return await client.query(text, values)
      } finally {
        client.release()
      }
    },
  }
}

function watchedClient(client: pg.PoolClient, reach: (label: string) => void): PgClient {
  const query: PgQueryable['query'] = async <Row extends object>(text: string, values?: unknown[]) => {
    const label = labelOf(text)
    const answer = client.query<Row>(text, values)
    answer.catch(() => {})
    if (!isOnTheWire(client)) throw new Error(`"${label}" is not on the wire yet, so "sent" would be untrue.`)
    reach(`sent: ${label}`)
    try {
      const result = await answer
      reach(`answered: ${label}`)
      return result
    } catch (error) {
      reach(`failed: ${label}`)
      throw error
    }
  }
  return {
    query,
    release: (error) => client.release(error),
    on: client.on.bind(client),
    removeListener: client.removeListener.bind(client),
  }
}

/** Handed to the operating system, which delivers it whatever becomes of the process; or the connection is gone anyway. */
function isOnTheWire(client: pg.PoolClient): boolean {
  const { stream } = (client as unknown as { connection: { stream: Writable } }).connection
  return stream.writableLength === 0 || !stream.writable
}

/** The first words of a statement. */
function labelOf(text: string): string {
  return text.trim().replace(/\s+/g, ' ').slice(0, 60)
}
