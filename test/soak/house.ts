/** What stands: a database, servers and workers on it, clients with their files, and bad networks between all of them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'pg'
import { migrate } from 'samekey/server/postgres'
import { bundle, type FileOf } from '../../examples/demo/bundle.ts'
import { killChildren, launch } from '../../examples/demo/child.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../../examples/demo/database-proxy.ts'
import type { TidyUp } from '../../examples/demo/guarded.ts'
import { type Chance, chance, seedOf } from '../support/chance.ts'
import { startPostgres } from '../support/postgres.ts'
import { type Member, memberOf } from './member.ts'
import { type Network, startNetwork } from './network.ts'
import { freePorts } from './ports.ts'
import type { ReaderJob } from './reader-program.ts'
import { TABLES } from './tables.ts'
import type { ClientJob, ClientReport, StoredIntent } from './words.ts'

/** Somebody who orders: one store file, and the processes that open it. */
export interface Account {
  readonly name: string
  readonly storeFile: string
  readonly clients: readonly Member[]
  readonly network: Network
}

export interface House {
  readonly database: Pool
  readonly members: readonly Member[]
  readonly accounts: readonly Account[]
  readonly databaseProxy: DatabaseProxy
  /** Starts everything; resolves when everything is ready. */
  startAll(): Promise<void>
  /** The end of all faults but kills. Resolves when nothing is under way any more. */
  heal(): Promise<void>
  /** What an account's store file holds. */
  readStore(account: Account): Promise<StoredIntent[]>
}

export interface HouseOptions {
  readonly seed: number
  readonly tidyUp: TidyUp
  readonly onReport: (from: string, report: ClientReport) => void
  readonly onCrash: (member: string, error: unknown) => void
}

/** The first one's file is shared by two processes. `server`: the only one that it may use; null: whichever is up. */
const accountPlans = [
  { name: 'ann', clients: 2, server: null },
  { name: 'ben', clients: 1, server: 0 },
  { name: 'cem', clients: 1, server: 1 },
] as const
const serverCount = 2
const workerCount = 2

/** How often a COMMIT is cut off, before the database hears of it and after it is done. */
const commitFates = [
  [97, 'pass'],
  [1, 'cut before'],
  [2, 'cut after'],
] as const

/** Streams of chance, each with its own seed: how often one is asked does not change what another says. */
const streams = { database: 1, network: 10 } as const

const programs = ['test/soak/server-program', 'test/soak/worker-program', 'test/soak/client-program'] as const
const others = ['test/soak/reader-program', 'examples/demo/leash'] as const

export async function buildHouse({ seed, tidyUp, onReport, onCrash }: HouseOptions): Promise<House> {
  const folder = mkdtempSync(join(tmpdir(), 'samekey-soak-'))
  tidyUp.push(async () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  const starting = startPostgres({ connections: 200 })
  // Whoever interrupts the start waits for it: half a start has no end of its own.
  tidyUp.push(() => starting.then((started) => started.stop()).catch(() => {}))
  const [fileOf, postgres] = await Promise.all([
    bundle(new URL('../..', import.meta.url), [...programs, ...others], join(folder, 'programs')),
    starting,
  ])
  tidyUp.push(killChildren)
  const database = new Pool({ connectionString: postgres.url, max: 4 })
  // Its end is the end of PostgreSQL.
  database.on('error', () => {})
  await migrate(database)
  await database.query(TABLES)

  let isHealed = false
  const commitChance = chance(seedOf(seed, streams.database))
  const databaseProxy = await startDatabaseProxy(postgres.url, () => {
    const fate = commitChance.weighted(commitFates)
    return isHealed ? 'pass' : fate
  })
  tidyUp.push(() => databaseProxy.close())

  const ports = await freePorts(serverCount + accountPlans.length, (process.pid % 1000) / 1000)
  const serverPorts = ports.splice(0, serverCount)
  const onServerChange = (): void => {
    for (const [index, { network }] of accounts.entries())
      network.setOpen(routesOf(accountPlans[index]?.server).length > 0)
  }
  const env = { NODE_COMPILE_CACHE: join(folder, 'compiled') }

  function program(kind: 'server' | 'worker', index: number, more: NodeJS.ProcessEnv): Member {
    const name = `${kind}-${index + 1}`
    return memberOf({
      name,
      kind,
      file: fileOf(`test/soak/${kind}-program`),
      preload: fileOf('examples/demo/leash'),
      env: {
        ...env,
        PROGRAM_NAME: name,
        DATABASE_URL: databaseProxy.databaseUrl,
        POOL_SIZE: '12',
        IDLE_TRANSACTION_MS: '5000',
        ...more,
      },
      onChange: kind === 'server' ? onServerChange : () => {},
      onCrash: (error) => onCrash(name, error),
    })
  }

  const servers = serverPorts.map((port, index) => program('server', index, { PORT: String(port) }))
  const workers = Array.from({ length: workerCount }, (_, index) => program('worker', index, {}))

  /** Ports of the servers that an account may use now. */
  function routesOf(only: number | null | undefined): number[] {
    return serverPorts.filter((_, index) => (only ?? index) === index && servers[index]?.isReady === true)
  }

  const accounts: Account[] = []
  for (const [index, { name, clients, server }] of accountPlans.entries()) {
    const networkChance = chance(seedOf(seed, streams.network + index))
    const network = await startNetwork(ports[index] ?? 0, () => anyOf(routesOf(server), networkChance), networkChance)
    tidyUp.push(() => network.close())
    const storeFile = join(folder, `${name}.db`)
    const members = Array.from({ length: clients }, (_, number) => {
      const client = `client-${name}-${number + 1}`
      return memberOf({
        name: client,
        kind: 'client',
        file: fileOf('test/soak/client-program'),
        env,
        job: { name: client, account: name, baseUrl: network.url, storeFile } satisfies ClientJob,
        onReport: (report) => onReport(client, report as ClientReport),
        onChange: () => {},
        onCrash: (error) => onCrash(client, error),
      })
    })
    accounts.push({ name, storeFile, clients: members, network })
  }
  const members = [...servers, ...workers, ...accounts.flatMap(({ clients }) => clients)]

  return {
    database,
    members,
    accounts,
    databaseProxy,
    async startAll() {
      await Promise.all(members.map((member) => (member.isAlive ? undefined : member.start())))
    },
    async heal() {
      isHealed = true
      await Promise.all(accounts.map(({ network }) => network.heal()))
    },
    readStore: ({ storeFile, name }) => readStore(fileOf, { storeFile, account: name }),
  }
}

function anyOf(ports: readonly number[], { below }: Chance): number | null {
  return ports[below(ports.length)] ?? null
}

async function readStore(fileOf: FileOf, job: ReaderJob): Promise<StoredIntent[]> {
  const found: StoredIntent[] = []
  const { child, send } = launch({
    file: fileOf('test/soak/reader-program'),
    onLine(line) {
      if (line.startsWith('{"')) found.push(JSON.parse(line) as StoredIntent)
    },
  })
  send(job)
  await child.ended
  return found
}
