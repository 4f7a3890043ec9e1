/** One execution of accepted work: runs its handler, and writes down how it ended (P62-P65). */
import { errorText } from '../error-text.ts'
import { CommitUnknownError } from '../errors.ts'
import { type Answer, checkAnswer } from '../results.ts'
import { afterFailure, type Failure, plainFailure, workUnknown } from './attempt.ts'
import type { Finish, TaskAnswer, TaskEnd } from './ends.ts'
import { hasCode } from './errors.ts'
import type { Held } from './held.ts'
import type { WorkSettings } from './options.ts'
import { taskOf } from './task.ts'
import { leftUnknown, released, retried, settled, type TaskRow } from './task-row.ts'

/** How an execution went: `trouble` when the store was the reason that its end could not be written. */
export type JobEnd = 'well' | 'trouble'

/** Runs it to its end, or until the work is lost. Never rejects. */
export async function runJob<Transaction>(
  settings: WorkSettings<Transaction>,
  held: Held<Transaction>,
): Promise<JobEnd> {
  try {
    await attempt(settings, held)
    return 'well'
  } catch (error) {
    if (hasCode(error, 'work_lost')) return held.dismissed() ? giveBack(held) : 'well'
    return trouble(held, error)
  } finally {
    held.settle()
  }
}

/** Gives back what a stopping worker has: the next one need not wait for the end of the lease. Never rejects. */
export async function giveBack<Transaction>(held: Held<Transaction>): Promise<JobEnd> {
  held.settle()
  try {
    await held.locked(async (unit, { row, now }) => {
      const next = row === null ? null : givenBack(held, row, now)
      if (next === null) return { commit: false, value: null }
      await unit.saveTask(held.id, next)
      return { commit: true, value: null }
    })
    return 'well'
  } catch (error) {
    return trouble(held, error)
  }
}

/** What was not begun costs no attempt; what broke off in the middle was one, or a crash loop would have no end. */
function givenBack<Transaction>(held: Held<Transaction>, row: TaskRow, now: number): TaskRow | null {
  const { epoch } = held.row
  return held.triedSomething() ? retried(row, epoch, now, row.error) : released(row, epoch, now)
}

function trouble<Transaction>(held: Held<Transaction>, error: unknown): JobEnd {
  if (error instanceof CommitUnknownError) held.tell('commitUnknown', error.message, error.cause)
  else held.tell('workerTrouble', `The end could not be written: ${errorText(error)}`, error)
  return 'trouble'
}

/** @throws WorkLostError, StoreUnavailableError, CommitUnknownError */
async function attempt<Transaction>(settings: WorkSettings<Transaction>, held: Held<Transaction>): Promise<void> {
  const { row } = held
  if (row.attempts > settings.retry.maxAttempts) {
    // Whoever had it died each time before saying so. It may be the work that kills them, or a neighbour; and what a
    // process did that never reported is not known (P27).
    return unknown(held, `No execution of ${row.attempts - 1} came to an end.`, null)
  }
  let end: TaskEnd<Transaction>
  try {
    end = await handled(settings, held)
    if (end.outcome !== 'retry' && end.outcome !== 'unknown') return await finished(settings, held, end)
  } catch (error) {
    return afterThrow(settings, held, error)
  }
  if (end.outcome === 'unknown') return unknown(held, 'The handler left it unknown.', end.error)
  return failed(settings, held, undefined, { error: end.error, afterMs: end.afterMs, notBefore: null })
}

/** The handler's word, unless the work is lost before: then nobody waits for it any more. */
async function handled<Transaction>(
  settings: WorkSettings<Transaction>,
  held: Held<Transaction>,
): Promise<TaskEnd<Transaction>> {
  const handler = settings.work.get(held.id.operation)
  if (handler === undefined) throw new Error(`There is no handler for ${held.id.operation}.`)
  const known = held.lost()
  if (known !== null) throw known
  const task = taskOf(held)
  const end: unknown = await Promise.race([(async () => handler(task))(), held.over])
  const lost = held.lost()
  if (lost !== null) throw lost
  if (typeof end !== 'object' || end === null) {
    throw new TypeError('A handler must return an answer, refuse(...), finish(...), retry() or leaveUnknown().')
  }
  return end as TaskEnd<Transaction>
}

function afterThrow<Transaction>(
  settings: WorkSettings<Transaction>,
  held: Held<Transaction>,
  error: unknown,
): Promise<void> {
  // By code, not by class: handlers may be bundled with another copy of the library.
  if (hasCode(error, 'work_lost') && held.lost() !== null) throw error
  if (error instanceof CommitUnknownError) throw error
  if (hasCode(error, 'call_unknown')) return unknown(held, errorText(error), null, error)
  const notBefore = hasCode(error, 'call_open') ? (error as { readonly retryAt?: number | null }).retryAt : null
  return failed(settings, held, error, { ...plainFailure, notBefore: notBefore ?? null })
}

/** Business writes and answer, in one transaction (P54); never while a call is open (P65). */
async function finished<Transaction>(
  settings: WorkSettings<Transaction>,
  held: Held<Transaction>,
  end: TaskAnswer | Finish<Transaction>,
): Promise<void> {
  held.settle()
  const { id, row: claimed } = held
  const ended = await held.fenced<'kept' | 'bodyNotStored' | 'open'>('The end', async (unit, row) => {
    if (await unit.hasOpenCalls(id)) {
      return { commit: true, row: leftUnknown(row, claimed.epoch, workUnknown), value: 'open' }
    }
    const answer = end.outcome === 'finish' ? await unit.run(end.work) : end
    const { kept } = checkAnswer(answer, answer.outcome === 'refused' ? [400, 599] : [200, 399], settings.answerBytes)
    // The refusal is kept, the business change is not (P56).
    if (answer.outcome === 'refused') await unit.undo()
    return { commit: true, row: settled(row, claimed.epoch, kept), value: bodyWord(answer, kept.body.kind) }
  })
  if (ended === 'open') {
    held.tell('taskUnknown', 'It came to an end while a call to another service is open: nobody knows how that ended.')
  }
  if (ended === 'bodyNotStored') {
    held.tell('bodyNotStored', `The answer has more than ${settings.answerBytes} bytes.`)
  }
}

function bodyWord({ storeBody }: Answer, kept: string): 'kept' | 'bodyNotStored' {
  return kept === 'omitted' && storeBody !== false ? 'bodyNotStored' : 'kept'
}

async function unknown<Transaction>(
  held: Held<Transaction>,
  detail: string,
  shown: Failure['error'],
  error?: unknown,
): Promise<void> {
  held.settle()
  await held.fenced('The end', async (_, row) => ({
    commit: true,
    row: leftUnknown(row, held.row.epoch, shown ?? workUnknown),
    value: null,
  }))
  held.tell('taskUnknown', detail, error)
}

async function failed<Transaction>(
  { retry, random }: WorkSettings<Transaction>,
  held: Held<Transaction>,
  error: unknown,
  failure: Failure,
): Promise<void> {
  held.settle()
  const { epoch, attempts } = held.row
  const status = await held.fenced('The end', (_, row, now) => {
    const next = afterFailure(row, epoch, failure, { now, random: random(), policy: retry })
    return Promise.resolve({ commit: true, row: next, value: next?.status })
  })
  const why = error === undefined ? 'the handler asked for another try' : errorText(error)
  if (status === 'unknown') held.tell('taskUnknown', `Given up after ${attempts} attempts: ${why}`, error)
  else if (status === 'failed') held.tell('taskFailed', `Given up after ${attempts} attempts: ${why}`, error)
  else if (error !== undefined) held.tell('taskFailed', `Attempt ${attempts} failed: ${why}`, error)
}
