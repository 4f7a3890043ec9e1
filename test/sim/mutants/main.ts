/** `npm run sim -- --mutants`: proof that the simulator can fail. */
import type { TidyUp } from '../../../examples/demo/guarded.ts'
import { mutants } from './all.ts'
import { type Hunted, hunt } from './hunt.ts'
import { mutantsJson, mutantsText } from './report.ts'

/** So many schedules have to be enough for each. */
export const mostSchedules = 5000
/** The same schedules each time. */
const seed = 1

/**
 * @param folder for the bundles.
 * @returns what is to be printed, and the exit code: 1 where one survived.
 */
export async function runMutants(
  folder: string,
  json: boolean,
  tidyUp: TidyUp,
): Promise<{ readonly text: string; readonly code: number }> {
  const stop = new AbortController()
  tidyUp.push(async () => stop.abort())
  let done = 0
  const onHunted = ({ name, killedBy, schedules }: Hunted): void => {
    const how = killedBy === null ? `survived ${schedules}` : `${killedBy} after ${schedules}`
    process.stderr.write(`${String(++done).padStart(3)} of ${mutants.length}  ${name}: ${how}\n`)
  }
  const hunted = await hunt({ mutants, folder, seed, most: mostSchedules, onHunted, signal: stop.signal })
  const survivors = hunted.filter(({ killedBy }) => killedBy === null).length
  return { text: json ? mutantsJson(hunted) : mutantsText(hunted), code: survivors === 0 ? 0 : 1 }
}
