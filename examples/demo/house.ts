/** What stands before the first fault, and what faults build for themselves: databases, and the programs on them. */
import { Pool } from 'pg'
import { signIn } from '../orders/sessions.ts'
import { prepare } from '../orders/tables.ts'
import type { FileOf } from './bundle.ts'
import { type Environment, type Program, type ProgramName, startProgram } from './programs.ts'
import { SHORT_GRACE_MS, SHORT_RETENTION_MS, TRANSIT_MS } from './terms.ts'

/** The account of each client. */
export type ClientName = 'plain' | 'samekey'

export const clientNames: readonly ClientName[] = ['plain', 'samekey']

/** One database with the shop's tables, and whoever works on it. */
export interface Site {
  readonly databaseUrl: string
  readonly database: Pool
  start(name: ProgramName, env?: Environment, more?: { readonly willBeStopped?: boolean }): Promise<Program>
  /** Kills its programs. */
  close(): Promise<void>
}

export interface House extends Site {
  readonly folder: string
  readonly fileOf: FileOf
  readonly shop: Program
  /** Of each account, valid in every database. */
  readonly tokens: Readonly<Record<ClientName, string>>
  /** A shop that remembers keys for some seconds only, on the same database. */
  forgetfulShop(): Promise<Program>
  /** A database of its own, for faults that kill or stop what others need. */
  newSite(name: string): Promise<Site>
  /** Told that one client is through with one order, under a name for that. */
  readonly onThrough: (what: string) => void
}

/** @param url of a superuser. */
export async function buildHouse(
  url: string,
  { folder, fileOf, onThrough }: Pick<House, 'folder' | 'fileOf' | 'onThrough'>,
): Promise<House> {
  const admin = poolOf(url, 2)
  const tokens = await makeTemplate(admin, url)

  async function newSite(name: string): Promise<Site> {
    await admin.query(`create database ${name} template shop_template`)
    const databaseUrl = at(url, name)
    const database = poolOf(databaseUrl, 6)
    const programs: Program[] = []
    return {
      databaseUrl,
      database,
      async start(program, env, more = {}) {
        const started = await startProgram(program, { fileOf, databaseUrl, ...(env && { env }), ...more })
        programs.push(started)
        if (program === 'shop') await warmUp(started, tokens)
        return started
      },
      async close() {
        await Promise.all(programs.map((program) => program.kill()))
        await database.end()
      },
    }
  }

  const main = await newSite('shop')
  const [shop, mailer] = await Promise.all([main.start('shop', { POOL_SIZE: 40 }), main.start('mailer')])
  await main.start('relay', { MAILER_URL: mailer.url })
  let forgetful: Promise<Program> | null = null
  return {
    ...main,
    folder,
    fileOf,
    onThrough,
    shop,
    tokens,
    newSite,
    forgetfulShop() {
      forgetful ??= main.start('shop', {
        PROGRAM_NAME: 'forgetful shop',
        RETENTION_MS: SHORT_RETENTION_MS,
        TRANSIT_MS,
        GRACE_MS: SHORT_GRACE_MS,
        REAP_EVERY_MS: 250,
      })
      return forgetful
    },
  }
}

/** Its first connections take longest; here that would look like a fault of the network. */
async function warmUp({ url }: Program, { plain }: House['tokens']): Promise<void> {
  const headers = { authorization: `Bearer ${plain}` }
  await Promise.all(Array.from({ length: 8 }, async () => (await fetch(`${url}/orders`, { headers })).text()))
}

/** A database that is only ever copied. */
async function makeTemplate(admin: Pool, url: string): Promise<House['tokens']> {
  await admin.query('create database shop_template')
  const pool = poolOf(at(url, 'shop_template'), 1)
  await prepare(pool)
  const tokens = { plain: await signIn(pool, 'plain'), samekey: await signIn(pool, 'samekey') }
  await pool.end()
  return tokens
}

function at(url: string, database: string): string {
  return Object.assign(new URL(url), { pathname: `/${database}` }).href
}

function poolOf(connectionString: string, max: number): Pool {
  const pool = new Pool({ connectionString, max })
  // Its end is the end of PostgreSQL.
  pool.on('error', () => {})
  return pool
}
