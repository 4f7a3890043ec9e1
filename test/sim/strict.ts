/** Runs one schedule, and takes a rejection that nobody handles for what it is: something untyped that was thrown. */
import { type Report, run } from './run.ts'
import type { Schedule } from './schedule.ts'

/** For a process in which nothing else happens meanwhile. */
export async function runStrictly(schedule: Schedule, traced = false): Promise<Report> {
  const unhandled: unknown[] = []
  const keep = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', keep)
  try {
    const report = await run(schedule, traced)
    if (unhandled.length === 0) return report
    return { ...report, violation: { invariant: 'I16', text: `nobody handles: ${String(unhandled[0])}` } }
  } finally {
    process.off('unhandledRejection', keep)
  }
}
