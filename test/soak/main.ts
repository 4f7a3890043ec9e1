/**
 * `npm run soak`: real clients, servers, workers and a real PostgreSQL, a bad network between them, and SIGKILL for all
 * but the database. Then everything is counted: none lost, none doubled, no wrong outcome.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { guarded, type TidyUp } from '../../examples/demo/guarded.ts'
import { resultJson, resultText } from './report.ts'
import { openScreen } from './screen.ts'
import { soak } from './soak.ts'

const usage = `npm run soak -- [--minutes 2] [--seed 7] [--json]

  --minutes    how long there are faults, 0.3 for instance; some seconds more for the rest (default 2)
  --seed       of everything that is left to chance (default: any)
  --json       print the result as JSON on stdout, and nothing else there
  --help       this text

Exit code: 0 when nothing is lost, doubled or wrong, 1 when something is, 2 for a wrong call.
`

/** Start, settling and count; what takes longer, hangs. */
const besidesMs = 300_000

const { minutes, seed, json } = argumentsOf(process.argv.slice(2))
const tidyUp: TidyUp = []
await guarded({
  work: run,
  tidyUp,
  timeLimitMs: minutes * 60_000 + besidesMs,
  overdue: () => `This took ${besidesMs / 1000} s longer than it should, and was stopped. The seed is ${seed}.`,
})

async function run(): Promise<number> {
  const screen = openScreen(seed)
  tidyUp.push(async () => screen.close())
  const result = await soak({ minutes, seed, tidyUp, watch: screen.watch })
  screen.close()
  const { stdout } = process
  const columns = stdout.columns ?? (Number(process.env.COLUMNS) || 120)
  const text = json ? resultJson(result) : resultText(result, columns, stdout.hasColors?.() ?? false)
  await new Promise((resolve) => stdout.write(`${text}\n`, resolve))
  return result.violations.length === 0 ? 0 : 1
}

function argumentsOf(args: string[]): { minutes: number; seed: number; json: boolean } {
  try {
    const { values } = parseArgs({
      args,
      options: {
        minutes: { type: 'string', default: '2' },
        seed: { type: 'string', default: String(randomInt(1_000_000)) },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) {
      process.stdout.write(usage)
      process.exit(0)
    }
    const [minutes, seed] = [Number(values.minutes), Number(values.seed)]
    if (!(minutes > 0 && minutes <= 24 * 60)) throw new Error('--minutes wants a number above 0, of a day at most.')
    if (!Number.isSafeInteger(seed)) throw new Error('--seed wants a whole number.')
    return { minutes, seed, json: values.json }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    process.exit(2)
  }
}
