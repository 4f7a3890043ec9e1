/** A bundled program as a process of its own. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** Worlds are short-lived: with more room for the young, fewer of them are carried on for nothing. */
const youngGeneration = '--max-semi-space-size=64'

/** Of what it complains about, so much is kept. */
const mostComplaint = 4000

/**
 * Runs it to its end, and hands over each line of JSON as it comes.
 *
 * @param order what it is asked for
 * @param signal ends it
 * @throws Error when it ends with anything but 0, with what it complained about.
 */
export async function runProgram(
  file: string,
  order: object,
  onLine: (line: unknown) => void,
  signal?: AbortSignal,
): Promise<void> {
  const child = spawn(process.execPath, [youngGeneration, file, JSON.stringify(order)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(signal && { signal }),
  })
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    complaint = (complaint + chunk).slice(-mostComplaint)
  })
  const ended = new Promise<string | number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, by) => resolve(by ?? code))
  })
  // It may be ended while its lines are still read.
  ended.catch(() => {})
  for await (const line of createInterface({ input: child.stdout })) onLine(JSON.parse(line))
  const how = await ended
  if (how !== 0) throw new Error(`A process of the simulator ended with ${how}.\n${complaint}`)
}
