/** The program's side of `processes.ts`, without the tools that start programs. */

import { rmSync } from 'node:fs'
import { flushCompileCache } from 'node:module'

/** What goes over IPC. */
export interface Message {
  readonly number: number
  readonly value: unknown
}

/**
 * In the program: takes the job, and then questions. Ends when its parent is gone, and tidies up after it.
 *
 * @param begin gets the job; gives what the parent is told once it is ready, and what answers a question.
 */
export function serveQuestions<Job, Ready, Question = never>(
  begin: (job: Job) => Promise<{ readonly ready: Ready; answer?(question: Question): unknown }>,
): void {
  process.once('disconnect', () => {
    const { PROGRAM_FOLDER: folder } = process.env
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    process.exit()
  })
  let started: ReturnType<typeof begin> | null = null
  process.on('message', async (message) => {
    const { number, value } = message as Message
    const isJob = started === null
    started ??= begin(value as Job)
    const { ready, answer } = await started
    // Otherwise written at an orderly end, which hardly any process here comes to.
    if (isJob) flushCompileCache()
    process.send?.({ number, value: isJob ? ready : await answer?.(value as Question) })
  })
}
