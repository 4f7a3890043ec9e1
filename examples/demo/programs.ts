/** The programs of examples/orders, started as their README tells people to start them. */
import type { FileOf } from './bundle.ts'
import { type Child, launch } from './child.ts'
import { CALL_TRANSIT_MS, LEASE_MS, POLL_MS } from './terms.ts'

export type ProgramName = 'shop' | 'worker' | 'provider' | 'relay' | 'mailer'

/** A program that is ready. */
export interface Program extends Child {
  /** Empty for those that nobody sends requests to. */
  readonly url: string
  /** 0 for those. */
  readonly port: number
  /** Every line that it said on its console. */
  readonly said: readonly string[]
}

export interface ProgramOptions {
  readonly fileOf: FileOf
  readonly databaseUrl: string
  readonly env?: Environment
  readonly willBeStopped?: boolean
}

export type Environment = Readonly<Record<string, string | number>>

/** What is the same for all of them here: any free port, and short times, so that the demo is short too. */
const common: Environment = {
  PORT: 0,
  POOL_SIZE: 8,
  PUBLIC_ORIGIN: 'https://shop.example',
  LEASE_MS,
  IDLE_TRANSACTION_MS: LEASE_MS,
  POLL_MS,
  RETRY_BASE_MS: 200,
  CALL_TRANSIT_MS,
  CALL_TIMEOUT_MS: CALL_TRANSIT_MS / 2,
}

/** Resolves when it says that it is ready. */
export function startProgram(name: ProgramName, options: ProgramOptions): Promise<Program> {
  const { fileOf, databaseUrl, env = {}, willBeStopped = false } = options
  return new Promise((resolve, reject) => {
    const said: string[] = []
    const { child } = launch({
      file: fileOf(`orders/${name}`),
      preload: fileOf('demo/leash'),
      env: texts({ ...common, PROGRAM_NAME: name, DATABASE_URL: databaseUrl, ...env }),
      willBeStopped,
      onLine(line) {
        said.push(line)
        const ready = /: ready(?: on (http:\S+))?$/.exec(line)
        if (ready === null) return
        const url = ready[1] ?? ''
        resolve({ ...child, url, port: url === '' ? 0 : Number(new URL(url).port), said })
      },
    })
    child.ended.then(() => reject(new Error(`${name} ended before it was ready.`)), reject)
  })
}

function texts(env: Environment): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)]))
}
