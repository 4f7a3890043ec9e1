/**
 * `npm run sim`: thousands of schedules of faults against the real client and the real server kit, on virtual time. What
 * must hold in each of them: invariants.ts.
 */
import { randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { guarded, type TidyUp } from '../../examples/demo/guarded.ts'
import { type Command, commandOf, usage } from './arguments.ts'
import { runMutants } from './mutants/main.ts'
import { type Paper, replayJson, replayText, simulationJson, simulationText } from './report.ts'
import { openScreen } from './screen.ts'
import { programsIn, replay, simulate } from './simulate.ts'

const command = commandFrom(process.argv.slice(2))
const tidyUp: TidyUp = []
const dayMs = 24 * 3_600_000
await guarded({
  work: () => run(command),
  tidyUp,
  timeLimitMs: dayMs,
  overdue: () => 'This took more than a day, and was stopped.',
})

function commandFrom(args: string[]): Command {
  try {
    return commandOf(args, availableParallelism(), randomInt(1_000_000))
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    process.exit(2)
  }
}

async function run(asked: Command): Promise<number> {
  if (asked.do === 'help') return print(usage.trimEnd(), 0)
  if (asked.do === 'mutants') {
    const { text, code } = await runMutants(await folderOf(), asked.json, tidyUp)
    return print(text, code)
  }
  const { signal } = interrupted()
  const programs = await programsIn(await folderOf())
  const { json } = asked
  if (asked.do === 'replay') {
    const replayed = await replay(programs.replay, asked.seed, true, signal)
    return print(json ? replayJson(replayed) : replayText(replayed, paper()), replayed.violation === null ? 0 : 1)
  }
  const screen = openScreen(asked.schedules)
  tidyUp.push(async () => screen.close())
  const simulation = await simulate({ ...asked, programs, signal, onSight: screen.onSight })
  screen.close()
  const text = json ? simulationJson(simulation) : simulationText(simulation, paper())
  return print(text, simulation.found.length === 0 ? 0 : 1)
}

/** Ends the processes when this one is to end. */
function interrupted(): AbortController {
  const interruption = new AbortController()
  tidyUp.push(async () => interruption.abort())
  return interruption
}

async function folderOf(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'samekey-sim-'))
  tidyUp.push(() => rm(folder, { recursive: true, force: true }))
  return folder
}

function paper(): Paper {
  const { stdout } = process
  return { columns: stdout.columns ?? (Number(process.env.COLUMNS) || 120), colour: stdout.hasColors?.() ?? false }
}

async function print(text: string, code: number): Promise<number> {
  await new Promise((resolve) => process.stdout.write(`${text}\n`, resolve))
  return code
}
