/** Hints through LISTEN and NOTIFY. They can get lost, with their connection or behind a pooler: whoever gets them polls too. */
import { systemClock } from '../../platform/clock.ts'
import type { Clock, Timer } from '../../ports.ts'
import { connect, type PgClient, type PgPool } from './client.ts'

/** After a connection was lost, ms. */
const AGAIN_MS = 5000

/**
 * Calls `wake` for every notification, and whenever some may have been missed.
 *
 * @param pool one of its connections is kept for this.
 * @returns ends it, and gives the connection back.
 */
export function listen(
  pool: PgPool,
  channel: string,
  wake: () => void,
  clock: Pick<Clock, 'timer'> = systemClock,
): () => void {
  let ended = false
  let close: (() => void) | null = null
  let timer: Timer | null = null

  function later(): void {
    if (!ended) timer = clock.timer(AGAIN_MS, () => void attempt())
  }

  async function attempt(): Promise<void> {
    let client: PgClient
    try {
      client = await connect(pool)
    } catch {
      return later()
    }
    const lost = (error: Error): void => {
      release(error)
      later()
    }
    const release = (error?: Error): void => {
      close = null
      client.removeListener('error', lost)
      client.removeListener('notification', wake)
      // Closed, not given back: it listens.
      client.release(error ?? true)
    }
    client.on('error', lost)
    client.on('notification', wake)
    close = release
    try {
      await client.query(`listen ${channel}`)
    } catch (error) {
      if (close === release) lost(error instanceof Error ? error : new Error(String(error)))
      return
    }
    if (ended) release()
    else wake()
  }

  void attempt()
  return () => {
    ended = true
    timer?.cancel()
    close?.()
  }
}
