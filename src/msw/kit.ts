/** The real server kit, for one request: over the world's rows, with that request's faults at its commit. */
import { IDEMPOTENT_REPLAYED } from '../protocol/wire.ts'
import type { AnswerData } from '../server/answer-for.ts'
import { CommitUnknownError, StoreUnavailableError } from '../server/errors.ts'
import { type IdempotentHandler, idempotent } from '../server/idempotent.ts'
import type { MemoryTransaction } from '../server/memory.ts'
import type { ExecuteContext, IdempotentOptions } from '../server/options.ts'
import type { Report } from '../server/report.ts'
import { accepted, type ExecuteResult, refuse } from '../server/results.ts'
import type { ServerStore, Unit } from '../server/store.ts'
import type { AcceptedWork } from './accepted-work.ts'
import type { Stages } from './faults.ts'
import type { NamedOperation } from './operations.ts'
import type { World } from './world.ts'

/** What the kit is told for every operation. */
export type KitOptions = Pick<IdempotentOptions<MemoryTransaction>, 'scope' | 'keysUrl'> & {
  readonly retention: Pick<IdempotentOptions<MemoryTransaction>, 'retentionMs' | 'transitMs' | 'graceMs'>
  readonly report: Report
}

/** What happens around one request. */
export interface Visit {
  readonly stages: Stages
  /** Lets time pass before the commit. */
  pause(ms: number): Promise<void>
  /** The operation is being executed, for the first time or again after a roll-back. */
  executing(): void
}

/** A handler of one operation for one request: options are checked, state is the world's. */
export function kitHandler(
  options: KitOptions,
  world: World,
  work: AcceptedWork,
  operation: NamedOperation,
  visit: Visit,
): IdempotentHandler {
  const { authorize, fingerprint, limits, retentionMs, transitMs, graceMs, reread, onVoid } = operation.options
  return idempotent<MemoryTransaction>({
    scope: options.scope,
    ...(options.keysUrl !== undefined && { keysUrl: options.keysUrl }),
    report: options.report,
    ...options.retention,
    ...(retentionMs !== undefined && { retentionMs }),
    ...(transitMs !== undefined && { transitMs }),
    ...(graceMs !== undefined && { graceMs }),
    ...(authorize && { authorize }),
    ...(fingerprint && { fingerprint }),
    ...(limits && { limits }),
    ...(reread && { reread }),
    ...(onVoid && {
      onVoid(context) {
        const { scope, operation, key } = context
        // For work that a script accepted, `execute` has written nothing that could be taken back.
        if (!work.isScripted({ ...scope, operation, key })) return onVoid(context)
      },
    }),
    operation: operation.name,
    store: storeFor(world, work, visit),
    execute(context) {
      visit.executing()
      return executeOnce(world, work, operation, visit, context)
    },
  })
}

async function executeOnce(
  world: World,
  work: AcceptedWork,
  operation: NamedOperation,
  { stages: { execution } }: Visit,
  context: ExecuteContext<MemoryTransaction>,
): Promise<ExecuteResult> {
  const { scope, key, transaction } = context
  const id = { tenant: scope.tenant, principal: scope.principal, operation: operation.name, key }
  if (execution === undefined) {
    const result = await world.execute(operation, context)
    // Accepting is no effect: the work counts when it is done.
    if (result.outcome !== 'accepted') world.count(id, transaction)
    return result
  }
  if (execution.kind === 'storedFailure') {
    return refuse(500, { title: 'It failed, and this is the stored answer.', code: 'stored_failure' })
  }
  const { script } = execution
  transaction.onCommit(() => work.accept(id, script, operation, context))
  return accepted({ retryAfterSeconds: script.retryAfterSeconds })
}

/** The world's store, where time passes and things break at the commit. */
function storeFor(world: World, work: AcceptedWork, { stages, pause }: Visit): ServerStore<MemoryTransaction> {
  const { store } = world

  function unitFor(unit: Unit<MemoryTransaction>): Unit<MemoryTransaction> {
    return {
      ...unit,
      async read(id) {
        const { row, now } = await unit.read(id)
        return { row: world.shown(id, row), now }
      },
      async lockTask(id) {
        const locked = await unit.lockTask(id)
        if (locked.seen === 'busy' || locked.row === null || !work.isScripted(id)) return locked
        // Nobody knows how far an app's own work is; of scripted work the script does, and nothing of it has begun.
        return { ...locked, row: { ...locked.row, input: locked.row.input ?? 'null' } }
      },
      ...(stages.damage && {
        // The row stays as it was inserted: it commits without its answer (F21).
        finish: () => (stages.damage === 'rolledBack' ? unit.undo() : Promise.resolve()),
      }),
    }
  }

  return {
    ...store,

    async begin(options, work) {
      if (stages.store === 'unavailable') throw new StoreUnavailableError('The key store is down, as scripted.')
      let committed = false
      const value = await store.begin(options, async (unit) => {
        const ending = await work(unitFor(unit))
        await pause(stages.commitMs ?? 0)
        if (ending.commit && stages.store === 'rolledBack') throw new CommitUnknownError('Lost in COMMIT, as scripted.')
        committed = ending.commit
        return ending
      })
      if (committed && stages.store === 'committed') throw new CommitUnknownError('Lost in COMMIT, as scripted.')
      return value
    },

    async find(id) {
      if (stages.store === 'unavailable') throw new StoreUnavailableError('The key store is down, as scripted.')
      await pause(stages.commitMs ?? 0)
      await work.looked(id)
      const { row, now } = await store.find(id)
      return { row: world.shown(id, row), now }
    },
  }
}

/** What the kit made of a request, in a word; it tells nobody but the client, so this reads what the client gets. */
export function decisionOf(executed: boolean, { status, headers, body }: AnswerData): string {
  if (executed) return 'executed'
  const replayed = headers.some(([name]) => name.toLowerCase() === IDEMPOTENT_REPLAYED.toLowerCase())
  if (replayed) return 'replayed'
  const document = jsonOf(body)
  if (typeof document.code === 'string') return document.code
  if (typeof document.status === 'string') return `monitor ${document.status}`
  return `status ${status}`
}

function jsonOf(body: Uint8Array | null): { readonly code?: unknown; readonly status?: unknown } {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body ?? new Uint8Array()))
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
