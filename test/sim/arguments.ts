/** What the command is asked for. */
import { parseArgs } from 'node:util'

export type Command =
  | { readonly do: 'help' }
  | { readonly do: 'mutants'; readonly json: boolean }
  | { readonly do: 'replay'; readonly seed: number; readonly json: boolean }
  | {
      readonly do: 'simulate'
      readonly schedules: number
      readonly seed: number
      readonly jobs: number
      readonly json: boolean
    }

const mostSchedules = 100_000_000
/** Seeds are 32 bits. */
const mostSeed = 2 ** 32 - 1

/**
 * @param cores of this machine
 * @param anySeed where none is given
 * @throws Error that says in one sentence what is wrong
 */
export function commandOf(args: readonly string[], cores: number, anySeed: number): Command {
  const { values } = parseArgs({
    args: [...args],
    options: {
      schedules: { type: 'string', default: '10000' },
      seed: { type: 'string', default: String(anySeed) },
      jobs: { type: 'string', default: '1' },
      replay: { type: 'string' },
      mutants: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const { json } = values
  if (values.help) return { do: 'help' }
  if (values.mutants && values.replay !== undefined) throw new Error('--mutants and --replay do not go together.')
  if (values.mutants) return { do: 'mutants', json }
  if (values.replay !== undefined) return { do: 'replay', seed: whole('--replay', values.replay, 0, mostSeed), json }
  return {
    do: 'simulate',
    schedules: whole('--schedules', values.schedules, 1, mostSchedules),
    seed: whole('--seed', values.seed, 0, mostSeed),
    jobs: whole('--jobs', values.jobs, 1, cores),
    json,
  }
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= least && value <= most) return value
  const wanted = most === least ? String(least) : `a whole number from ${least} to ${most}`
  throw new Error(`${name} wants ${wanted}, not ${JSON.stringify(text)}.`)
}

export const usage = `npm run sim -- [--schedules 10000] [--seed 7] [--jobs 1] [--json]
npm run sim -- --replay SEED
npm run sim -- --mutants

  --schedules  how many to run (default 10000)
  --seed       of all of them: the same seed gives the same schedules (default: any)
  --jobs       processes, up to the cores of this machine (default 1); the schedules stay the same
  --replay     runs one schedule again, by its own seed, and tells everything that happens in it
  --mutants    plants faults in the library, one after another, and tells which ones are found
  --json       print the result as JSON on stdout, and nothing else there
  --help       this text

Exit code: 0 when every invariant held, 1 when one was broken, 2 for a wrong call.
`
