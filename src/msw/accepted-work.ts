/** The work of a 202: what its monitor says next, and how it is finished. */
import { ConfigError } from '../errors.ts'
import type { MonitorStatus } from '../protocol/wire.ts'
import { complete } from '../server/complete.ts'
import type { TaskStatus } from '../server/decide.ts'
import type { MemoryTransaction } from '../server/memory.ts'
import type { ExecuteContext } from '../server/options.ts'
import { type Answer, type ExecuteResult, type Refusal, refuse } from '../server/results.ts'
import type { KeyId } from '../server/store.ts'
import type { AcceptedScript } from './faults.ts'
import type { NamedOperation } from './operations.ts'
import { nameOf, type World } from './world.ts'

/** All accepted work of a world. */
export interface AcceptedWork {
  /** Begins when the 202 commits. */
  accept(id: KeyId, script: AcceptedScript, operation: NamedOperation, context: ExecuteContext<MemoryTransaction>): void
  /** Somebody looks at the monitor: the script moves on. */
  looked(id: KeyId): Promise<void>
  /** Finishes the work under this key. See `MockServer.complete`. */
  finish(key: string, answer?: Answer | Refusal): Promise<boolean>
}

interface Work {
  readonly script: AcceptedScript
  readonly operation: NamedOperation
  readonly context: ExecuteContext<MemoryTransaction>
  looks: number
}

/** Accepted work, none so far. */
export function acceptedWork(world: World): AcceptedWork {
  const { store } = world
  const going = new Map<string, Work>()

  /** The business change and the result at one moment, as a worker's own transaction would commit them. */
  async function end(id: KeyId, given?: Answer | Refusal): Promise<boolean> {
    const work = going.get(nameOf(id))
    // Two looks at the same time must not do it twice.
    going.delete(nameOf(id))
    const effects: (() => void)[] = []
    if (given !== undefined) effects.push(() => world.count(id))
    const result = given ?? (await executed(id, work, { onCommit: (effect) => void effects.push(effect) }))
    if (!(await complete(store, id, result))) return false
    const refused = 'outcome' in result && result.outcome === 'refused'
    if (!refused) for (const effect of effects) effect()
    return true
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
    if (status === 'voided') {
      world.voidedWork.add(nameOf(id))
    } else if (status === 'succeeded') {
      await end(id)
    } else if (status === 'failed') {
      await end(id, failure)
    } else {
      await store.complete(id, { status, result: null, error: errors[status], retryAfterSeconds })
    }
  }

  function isUnfinished({ row, ...id }: ReturnType<typeof store.rows>[number]): boolean {
    const status = world.shown(id, row)?.state === 'finished' ? row.task?.status : undefined
    return status !== undefined && status !== 'succeeded' && status !== 'failed'
  }

  return {
    accept(id, script, operation, context) {
      going.set(nameOf(id), { script, operation, context, looks: 0 })
    },

    async looked(id) {
      const work = going.get(nameOf(id))
      if (work === undefined) return
      const { processing, ends, retryAfterSeconds } = work.script
      const step = work.looks - processing
      work.looks += 1
      const status = step < 0 ? 'processing' : (ends[step] ?? ends.at(-1) ?? 'processing')
      await say(id, status, retryAfterSeconds)
    },

    finish(key, answer) {
      const [found, ...more] = store.rows().filter((each) => each.key === key && isUnfinished(each))
      if (more.length > 0) throw new ConfigError('key', `${key} was accepted for more than one principal or operation`)
      return found === undefined ? Promise.resolve(false) : end(found, answer)
    },
  }
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
