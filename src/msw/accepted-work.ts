/**
 * The work of a 202 that a test scripts: what its monitor says next, and how it ends. Work that an operation queues for
 * its own handler is none of this: see `worker.ts`.
 */
import { ConfigError } from '../errors.ts'
import type { MonitorStatus } from '../protocol/wire.ts'
import { complete } from '../server/complete.ts'
import type { TaskStatus } from '../server/decide.ts'
import type { MemoryServerStore, MemoryTransaction } from '../server/memory.ts'
import type { ExecuteContext } from '../server/options.ts'
import { type Answer, type ExecuteResult, type Refusal, refuse } from '../server/results.ts'
import type { KeyId } from '../server/store.ts'
import { lockTask } from '../server/tasks/lock.ts'
import { isSettled, voidedTask } from '../server/tasks/task-row.ts'
import { tellTask } from '../server/tasks/tell.ts'
import type { AcceptedScript } from './faults.ts'
import type { NamedOperation } from './operations.ts'
import { nameOf, type World } from './world.ts'

/** All scripted work of a world. */
export interface AcceptedWork {
  /** Begins when the 202 commits. */
  accept(id: KeyId, script: AcceptedScript, operation: NamedOperation, context: ExecuteContext<MemoryTransaction>): void
  /** True for work that the operation's own `execute` has not written anything for. */
  isScripted(id: KeyId): boolean
  /** Somebody looks at the monitor: the script moves on. */
  looked(id: KeyId): Promise<void>
  /** Finishes the work under this key, scripted or not. See `MockServer.complete`. */
  finish(key: string, answer?: Answer | Refusal): Promise<boolean>
}

interface Work {
  readonly script: AcceptedScript
  readonly operation: NamedOperation
  readonly context: ExecuteContext<MemoryTransaction>
  looks: number
}

/** Scripted work, none so far. */
export function acceptedWork(world: World): AcceptedWork {
  const { store } = world
  const going = new Map<string, Work>()

  async function end(id: KeyId, given?: Answer | Refusal): Promise<boolean> {
    const work = going.get(nameOf(id))
    // Two looks at the same time must not do it twice.
    going.delete(nameOf(id))
    const changes: (() => void)[] = []
    const result = given ?? (await executed(id, work, { onCommit: (change) => void changes.push(change) }))
    const refused = 'outcome' in result && result.outcome === 'refused'
    return complete(refused ? store : committing(store, changes), id, result)
  }

  async function executed(
    { key }: KeyId,
    work: Work | undefined,
    transaction: MemoryTransaction,
  ): Promise<Answer | Refusal> {
    if (work === undefined) {
      throw new ConfigError('answer', `say what the work under the key ${key} came to: its operation accepts by itself`)
    }
    return finalOf(await world.execute(work.operation, { ...work.context, transaction }))
  }

  async function say(id: KeyId, status: MonitorStatus, retryAfterSeconds: number): Promise<void> {
    if (status === 'voided') await voidIt(store, id)
    else if (status === 'succeeded') await end(id)
    else if (status === 'failed') await end(id, failure)
    else await tellTask(store, id, { status, result: null, error: errors[status], retryAfterSeconds })
  }

  return {
    accept(id, script, operation, context) {
      going.set(nameOf(id), { script, operation, context, looks: 0 })
    },

    isScripted: (id) => going.has(nameOf(id)),

    async looked(id) {
      const work = going.get(nameOf(id))
      const task = store.task(id)
      if (work === undefined || task === null || isSettled(task.row)) return
      const { processing, ends, retryAfterSeconds } = work.script
      const step = work.looks - processing
      work.looks += 1
      const status = step < 0 ? 'processing' : (ends[step] ?? ends.at(-1) ?? 'processing')
      await say(id, status, retryAfterSeconds)
    },

    finish(key, answer) {
      const unfinished = store.rows().filter((each) => {
        const task = each.key === key && !world.expired.has(key) ? store.task(each) : null
        return task !== null && !isSettled(task.row)
      })
      const [found, ...more] = unfinished
      if (more.length > 0) throw new ConfigError('key', `${key} was accepted for more than one principal or operation`)
      return found === undefined ? Promise.resolve(false) : end(found, answer)
    },
  }
}

/** The store, where these changes happen with the next commit: business change and result at one moment (P54). */
function committing(store: MemoryServerStore, changes: readonly (() => void)[]): Pick<MemoryServerStore, 'begin'> {
  return {
    begin: (options, work) =>
      store.begin(options, async (unit) => {
        await unit.run((transaction) => {
          for (const change of changes) transaction.onCommit(change)
        })
        return work(unit)
      }),
  }
}

/** Somebody voids it, by the same rule as anybody (P58). */
function voidIt(store: MemoryServerStore, id: KeyId): Promise<boolean> {
  return store.begin({ waitMs: Number.POSITIVE_INFINITY }, async (unit) => {
    const { row } = await lockTask(unit, id)
    const next = row === null ? null : voidedTask(row)
    if (next === null) return { commit: false, value: false }
    await unit.saveTask(id, next)
    return { commit: true, value: true }
  })
}

const failure: Refusal = refuse(422, { title: 'The work failed for good.', code: 'work_failed' })

const errors: Readonly<Record<Exclude<TaskStatus, 'succeeded' | 'failed'>, { title: string } | null>> = {
  processing: null,
  failed_retryable: { title: 'It failed; the server tries again by itself.' },
  unknown: { title: 'What became of it is not known.' },
}

/** Long after the 202, a refusal that is not remembered has nobody to go to: the work has failed. */
function finalOf(result: ExecuteResult): Answer | Refusal {
  if (result.outcome === 'accepted') throw new TypeError('Work that was accepted cannot be accepted once more.')
  return result.outcome === 'declined' ? { ...result, outcome: 'refused' } : result
}
