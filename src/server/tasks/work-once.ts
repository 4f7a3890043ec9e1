import type { ClaimedTask } from '../store.ts'
import { type Held, hold } from './held.ts'
import { runJob } from './job.ts'
import { moment } from './moment.ts'
import { type WorkOptions, type WorkSettings, workSettings } from './options.ts'

/** Takes due work, at most so much of it, and holds it; whoever calls runs it or gives it back. */
export async function takeDue<Transaction>(
  settings: WorkSettings<Transaction>,
  limit: number,
): Promise<readonly Held<Transaction>[]> {
  const { store, work, leaseMs, clock } = settings
  // Before the claim is sent: by our clocks, the lease ends early rather than late.
  const since = moment(clock)
  const taken: readonly ClaimedTask[] = await store.claimTasks({ operations: [...work.keys()], limit, leaseMs })
  return taken.map((task) => hold(settings, task, since))
}

/**
 * One round: takes what is due now, at most `concurrency` of it, runs it, and resolves once its ends are written down.
 * For tests, scripts and schedulers of your own; `startWorker` does this for ever.
 *
 * @returns how much was taken.
 * @throws ConfigError for an option that cannot be meant.
 * @throws StoreUnavailableError it could not be taken. CommitUnknownError: it may have been; its lease then ends unused.
 */
export async function workOnce<Transaction>(options: WorkOptions<Transaction>): Promise<number> {
  const settings = workSettings(options)
  const taken = await takeDue(settings, settings.concurrency)
  await Promise.all(taken.map((held) => runJob(settings, held)))
  return taken.length
}
