/**
 * A process that plays holes by name, in which a bug may be planted, and says as a line of JSON each what came of it.
 */
import { holes } from './all.ts'
import { type Played, play } from './play.ts'

/** What it is asked for, as JSON in its first argument. */
export interface HoleOrder {
  /** Names of the holes. */
  readonly holes: readonly string[]
  readonly traced?: boolean
}

/** A line of its answer. */
export type HoleLine = Played & { readonly hole: string }

async function work({ holes: names, traced = false }: HoleOrder): Promise<void> {
  let current = ''
  const say = (line: HoleLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
  process.on('unhandledRejection', (error) => {
    const violation = { invariant: 'I16', text: `nobody handles: ${String(error)}` } as const
    say({ hole: current, violation, ends: [], trace: [] })
    process.exit(0)
  })
  for (const hole of holes.filter((one) => names.includes(one.hole))) {
    current = hole.hole
    say({ hole: current, ...(await play(hole, traced)) })
  }
}

await work(JSON.parse(process.argv[2] ?? '') as HoleOrder)
