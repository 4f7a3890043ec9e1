/** What every program here does alike: settings from the environment, a word when it is ready, an orderly end. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'pg'

/** A setting from the environment. */
export function setting(name: string, otherwise?: string): string {
  const value = process.env[name] ?? otherwise
  if (value === undefined) {
    console.error(`Set ${name}: see examples/orders/README.md.`)
    process.exit(2)
  }
  return value
}

/** A number from the environment. */
export function numberSetting(name: string, otherwise: number): number {
  const value = Number(setting(name, String(otherwise)))
  if (Number.isFinite(value)) return value
  console.error(`${name} must be a number.`)
  process.exit(2)
}

/** Connections to the database of `DATABASE_URL`. */
export function openPool(program: string): Pool {
  const pool = new Pool({
    connectionString: setting('DATABASE_URL'),
    application_name: setting('PROGRAM_NAME', program),
    max: numberSetting('POOL_SIZE', 20),
    // A request that finds no free connection is told so, instead of waiting for ever.
    connectionTimeoutMillis: 5000,
    // A process that is frozen in the middle of a transaction keeps its locks, and nobody could take its work over.
    idle_in_transaction_session_timeout: numberSetting('IDLE_TRANSACTION_MS', 30_000),
  })
  // `pg` ends the process for an idle connection that is lost, unless somebody listens.
  pool.on('error', (error) => console.error(`${program}: a connection was lost: ${error.message}`))
  return pool
}

/** Listens at `PORT`, 0 for any free one. */
export async function listen(program: string, server: Server, otherwise: number): Promise<void> {
  const host = setting('HOST', '127.0.0.1')
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ port: numberSetting('PORT', otherwise), host }, resolve)
  })
  console.log(`${program}: ready on http://${host}:${(server.address() as AddressInfo).port}`)
}

/** Takes no new requests, and waits for those under way, but not for ever. */
export function closed(server: Server): Promise<void> {
  const patience = setTimeout(() => server.closeAllConnections(), 10_000)
  return new Promise((resolve) => {
    server.close(() => {
      clearTimeout(patience)
      resolve()
    })
  })
}

/** At SIGTERM or Ctrl-C, ends what it is given, step by step; then the process ends by itself. */
export function atTheEnd(...steps: (() => unknown)[]): void {
  let stopping = false
  const stop = async (): Promise<void> => {
    if (stopping) return
    stopping = true
    for (const step of steps) await step()
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop())
}
