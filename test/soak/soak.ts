/** One run: faults for some time, then peace until everything has its end, then the count. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TidyUp } from '../../examples/demo/guarded.ts'
import { chance, seedOf } from '../support/chance.ts'
import { type Book, openBook } from './book.ts'
import { count, type Verdict, type Violation } from './count.ts'
import { evidenceOf } from './evidence.ts'
import { buildHouse, type House } from './house.ts'
import { type Kills, killOff } from './killer.ts'
import { type NetworkFault, networkFaults } from './network.ts'
import { trafficOf } from './traffic.ts'
import { readTruth } from './truth.ts'
import type { ClientWord } from './words.ts'

export interface SoakOptions {
  /** Of faults. What comes before and after takes some seconds more. */
  readonly minutes: number
  readonly seed: number
  readonly tidyUp: TidyUp
  /** Told once, as soon as there is something to see. */
  readonly watch?: (look: () => Sight) => void
}

export type Fault = NetworkFault | 'commit lost' | 'commit unheard'

/** How it stands. */
export interface Sight {
  readonly phase: 'starting' | 'faults' | 'settling' | 'counting'
  /** Of the faults, ms. */
  readonly leftMs: number
  readonly intents: number
  /** Nobody was told of their end yet. */
  readonly open: number
  readonly outcomes: Readonly<Record<string, number>>
  readonly kills: Readonly<Kills>
  readonly faults: Readonly<Record<Fault, number>>
}

export interface SoakResult extends Verdict {
  readonly minutes: number
  readonly seed: number
  readonly kills: Readonly<Kills>
  readonly faults: Readonly<Record<Fault, number>>
  readonly wallMs: number
  readonly violations: readonly (Violation & { readonly evidence: readonly string[] })[]
}

/** Streams of chance; see house.ts for the others. */
const streams = { traffic: 2, kills: 3 } as const
/** Peace for so long, and everything has its end, or never will. */
const patienceMs = 120_000
/** How often users ask again then for what they were told nothing of. */
const askEveryMs = 3000
/** Intents of which all that is known is shown. */
const mostEvidence = 12

export async function soak({ minutes, seed, tidyUp, watch }: SoakOptions): Promise<SoakResult> {
  const startedAt = performance.now()
  const book = openBook()
  const kills: Kills = { client: 0, server: 0, worker: 0 }
  const crashes: Violation[] = []
  let house: House | null = null
  let phase: Sight['phase'] = 'starting'
  let endsAt = Number.POSITIVE_INFINITY
  const isOver = (): boolean => performance.now() >= endsAt
  watch?.(() => ({
    phase,
    leftMs: phase === 'starting' ? minutes * 60_000 : Math.max(0, endsAt - performance.now()),
    intents: book.wanted.size,
    open: openIn(book, house),
    outcomes: book.outcomes,
    kills,
    faults: faultsIn(house),
  }))

  house = await buildHouse({
    seed,
    tidyUp,
    onReport: (from, report) => book.hear(from, report),
    onCrash: (member, error) =>
      crashes.push({ kind: 'other', intent: null, what: `${member} ended, and nobody killed it: ${textOf(error)}` }),
  })
  await house.startAll()
  // What does not even start says nothing about faults.
  const [broken] = crashes
  if (broken !== undefined) throw new Error(broken.what)
  phase = 'faults'
  endsAt = performance.now() + minutes * 60_000
  const traffic = trafficOf(book, house.accounts, chance(seedOf(seed, streams.traffic)))
  await Promise.all([
    traffic.flow(isOver),
    killOff(house, traffic, { chance: chance(seedOf(seed, streams.kills)), kills, isOver }),
  ])

  phase = 'settling'
  await Promise.all([house.heal(), house.startAll()])
  const deadline = performance.now() + patienceMs
  for (let askAt = 0; openIn(book, house) > 0 && performance.now() < deadline; await sleep(100)) {
    if (performance.now() < askAt) continue
    askAt = performance.now() + askEveryMs
    for (const account of house.accounts) for (const client of account.clients) traffic.askAgain(account, client)
  }

  phase = 'counting'
  const clients = house.accounts.flatMap((account) => account.clients)
  await Promise.all(clients.map((client) => client.finish({ finish: true } satisfies ClientWord)))
  await Promise.all(house.members.map((member) => member.kill()))
  const stored = (await Promise.all(house.accounts.map(house.readStore))).flat()
  const evidence = {
    wanted: [...book.wanted.values()],
    told: book.told,
    stored,
    truth: await readTruth(house.database),
  }
  const verdict = count(evidence)
  const violations = [...crashes, ...verdict.violations]
  const { database, members } = house
  const shown = new Set<string | null>()
  const withEvidence = []
  for (const violation of violations) {
    const isNew = !shown.has(violation.intent) && shown.size < mostEvidence
    shown.add(violation.intent)
    withEvidence.push({
      ...violation,
      evidence: isNew ? await evidenceOf(violation, evidence, { database, members }) : [],
    })
  }
  await database.end()
  return {
    ...verdict,
    minutes,
    seed,
    kills,
    faults: faultsIn(house),
    wallMs: Math.round(performance.now() - startedAt),
    violations: withEvidence,
  }
}

function openIn(book: Book, house: House | null): number {
  return (house?.accounts ?? []).reduce((sum, { name }) => sum + book.notEnded(name).length, 0)
}

function faultsIn(house: House | null): Record<Fault, number> {
  const networks = (house?.accounts ?? []).map(({ network }) => network.counts)
  const commits = house?.databaseProxy.commits ?? []
  return {
    ...(Object.fromEntries(
      networkFaults.map((fault) => [fault, networks.reduce((sum, counts) => sum + counts[fault], 0)]),
    ) as Record<NetworkFault, number>),
    'commit lost': commits.filter((fate) => fate === 'cut before').length,
    'commit unheard': commits.filter((fate) => fate === 'cut after').length,
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
