/**
 * The simulator's process: runs schedules of one seed, one after the other, and says on its standard output, as lines of
 * JSON, how far it is and what it found.
 */
import { seedOf } from '../support/chance.ts'
import { generate } from './generate.ts'
import type { Violation } from './invariants.ts'
import { run } from './run.ts'

/** What it is asked for, as JSON in its first argument. */
export interface Order {
  readonly seed: number
  /** Index of the first schedule. */
  readonly from: number
  readonly count: number
  /** Every so manieth schedule only, so that several processes can share a seed. */
  readonly every: number
  /** Ends with so many violations. */
  readonly most: number
}

/** A line of its answer. */
export type Line =
  | { readonly type: 'progress'; readonly done: number }
  | { readonly type: 'violation'; readonly seed: number; readonly done: number; readonly violation: Violation }
  | {
      readonly type: 'end'
      readonly done: number
      readonly ms: number
      readonly ends: Readonly<Record<string, number>>
    }

const progressEvery = 100

async function work({ seed, from, count, every, most }: Order): Promise<void> {
  const ends: Record<string, number> = {}
  const beganAt = performance.now()
  let done = 0
  let found = 0
  let current = 0
  const say = (line: Line): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
  process.on('unhandledRejection', (error) => {
    say({
      type: 'violation',
      seed: current,
      done: done + 1,
      violation: { invariant: 'I16', text: `nobody handles: ${String(error)}` },
    })
    process.exit(0)
  })
  for (let index = from; done < count && found < most; index += every) {
    current = seedOf(seed, index)
    const report = await run(generate(current))
    done++
    for (const [state, times] of Object.entries(report.ends)) ends[state] = (ends[state] ?? 0) + times
    if (report.violation !== null) {
      found++
      say({ type: 'violation', seed: current, done, violation: report.violation })
    }
    if (done % progressEvery === 0) say({ type: 'progress', done })
  }
  say({ type: 'end', done, ms: performance.now() - beganAt, ends })
}

await work(JSON.parse(process.argv[2] ?? '') as Order)
