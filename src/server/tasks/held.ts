/**
 * Work that this process has taken, as far as this process knows. Whether it still has it is decided in the database,
 * under the row's lock, by the epoch (P63); the clocks here only tell a handler early.
 */
import type { Clock, Timer } from '../../ports.ts'
import type { Report, ServerEvent } from '../report.ts'
import type { ClaimedTask, Ending, KeyId, LockedTask, ServerStore, Unit } from '../store.ts'
import { WorkLostError } from './errors.ts'
import { LOCK_WAIT_MS, lockTask } from './lock.ts'
import { elapsedMs, type Moment, moment } from './moment.ts'
import { begun, isHeld, renewed, type TaskRow } from './task-row.ts'

/** A call of this execution: one name means one request, and one call at a time. */
export interface OwnCall {
  /** Canonical JSON. */
  readonly request: string
  readonly running: boolean
}

/** What holding work needs. */
export interface HoldSettings<Transaction> {
  readonly store: Pick<ServerStore<Transaction>, 'begin'>
  readonly clock: Clock
  readonly leaseMs: number
  readonly report: Report
}

/** How a change of held work ends. */
export type Change<T> =
  | { readonly commit: false; readonly value: T }
  /** `row`: what to save, as the pure functions give it; null means that the work is lost. */
  | { readonly commit: true; readonly row: TaskRow | null; readonly value: T }

/** Work in hand. */
export interface Held<Transaction> {
  readonly id: KeyId
  /** As it was claimed. */
  readonly row: TaskRow
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Resolves when `signal` is aborted. */
  readonly over: Promise<void>
  /** By name. */
  readonly calls: Map<string, OwnCall>
  /** Null while, as far as this process knows, it has the work and may go on. */
  lost(): WorkLostError | null
  /** True once the lease has passed without having been renewed, by the clock that is further on. */
  leaseOver(): boolean
  /** True when it was let go of because the worker stops. */
  dismissed(): boolean
  /** True when a step was committed or a call written down in this execution, or may have been. */
  triedSomething(): boolean

  /**
   * Runs `work` in a transaction under the lock of the row, whoever has the work.
   *
   * @throws StoreUnavailableError, CommitUnknownError, and what `work` throws.
   */
  locked<T>(work: (unit: Unit<Transaction>, locked: LockedTask) => Promise<Ending<T>>): Promise<T>

  /**
   * Changes the row, only while this execution has the work.
   *
   * @param what its name, for the error.
   * @throws WorkLostError nothing was written.
   */
  fenced<T>(what: string, work: (unit: Unit<Transaction>, row: TaskRow, now: number) => Promise<Change<T>>): Promise<T>

  /** The same for what a void cannot take back (P58). Renews the lease with it. */
  effect<T>(what: string, work: (unit: Unit<Transaction>, now: number) => Promise<Ending<T>>): Promise<T>

  /** The work is found to be somebody else's: aborts the signal. */
  lose(detail: string, cause?: unknown): WorkLostError
  tell(kind: ServerEvent['kind'], detail: string, error?: unknown): void
  /** No renewals from here on: the end is being written, and a renewal after it would find the work gone. */
  settle(): void
  /** The worker stops: aborts the signal and lets go. */
  dismiss(): void
}

/**
 * Holds it: renews the lease until it is lost or settled.
 *
 * @param since a moment before the claim was made.
 */
export function hold<Transaction>(
  settings: HoldSettings<Transaction>,
  { id, row: claimedRow }: ClaimedTask,
  since: Moment,
): Held<Transaction> {
  const { store, clock, leaseMs, report } = settings
  const { epoch } = claimedRow
  const everyMs = Math.ceil(leaseMs / 3)
  const controller = new AbortController()
  const { signal } = controller
  const over = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  let lease = since
  let gone: WorkLostError | null = null
  let dismissed = false
  let tried = false
  let settling = false
  let renewing = false
  /** Why the last renewal failed. */
  let trouble: unknown
  /** Units of ours that have the row locked: nobody can take it meanwhile. */
  let locks = 0
  let timer: Timer | null = null

  const tell: Held<Transaction>['tell'] = (kind, detail, error) =>
    report({ kind, operation: id.operation, id, detail, error })

  function letGo(error: WorkLostError): WorkLostError {
    if (gone === null) {
      gone = error
      timer?.cancel()
      controller.abort(error)
    }
    return gone
  }

  function lose(detail: string, cause?: unknown): WorkLostError {
    if (gone === null) tell('workLost', detail, cause)
    return letGo(new WorkLostError(detail, cause))
  }

  const leaseOver = (): boolean => elapsedMs(clock, lease) >= leaseMs

  function lost(): WorkLostError | null {
    if (gone === null && locks === 0 && leaseOver()) lose('The lease was over before it could be renewed.', trouble)
    return gone
  }

  function keptFrom(from: Moment): void {
    if (from.monotonic >= lease.monotonic) lease = from
  }

  async function locked<T>(
    work: (unit: Unit<Transaction>, locked: LockedTask) => Promise<Ending<T>>,
    waitMs = LOCK_WAIT_MS,
  ): Promise<T> {
    let mine = 0
    try {
      return await store.begin({ waitMs }, async (unit) => {
        const found = await lockTask(unit, id)
        mine = 1
        locks += 1
        return work(unit, found)
      })
    } finally {
      locks -= mine
    }
  }

  async function fenced<T>(
    what: string,
    work: (unit: Unit<Transaction>, row: TaskRow, now: number) => Promise<Change<T>>,
  ): Promise<T> {
    const known = lost()
    if (known !== null) throw known
    const refused = `${what} was refused: somebody else has the work by now.`
    return locked(async (unit, { row, now }) => {
      // Before any business write: the epoch alone decides, whatever the clocks say.
      if (row === null || !isHeld(row, epoch)) throw lose(refused)
      const change = await work(unit, row, now)
      if (!change.commit) return change
      if (change.row === null) throw lose(refused)
      await unit.saveTask(id, change.row)
      return { commit: true, value: change.value }
    })
  }

  async function effect<T>(
    what: string,
    work: (unit: Unit<Transaction>, now: number) => Promise<Ending<T>>,
  ): Promise<T> {
    let from = moment(clock)
    const value = await fenced<T>(what, async (unit, row, now) => {
      const { commit, value } = await work(unit, now)
      if (!commit) return { commit, value }
      let at = now
      // It may have taken longer than the lease: what commits then must not be due at once.
      if (elapsedMs(clock, from) > everyMs) {
        from = moment(clock)
        at = (await unit.read(id)).now
      }
      tried = true
      return { commit, value, row: begun(row, epoch, at, leaseMs) }
    })
    keptFrom(from)
    return value
  }

  async function renew(): Promise<void> {
    const from = moment(clock)
    const kept = await locked(async (unit, { row, now }) => {
      const next = row === null ? null : renewed(row, epoch, now, leaseMs)
      if (next === null) return { commit: false, value: false }
      await unit.saveTask(id, next)
      return { commit: true, value: true }
    }, everyMs)
    if (kept) keptFrom(from)
    else if (!settling) lose('Somebody else has the work by now.')
  }

  async function tick(): Promise<void> {
    if (lost() !== null) return
    schedule()
    // While we have it locked, a renewal would only wait for ourselves.
    if (renewing || locks > 0) return
    renewing = true
    try {
      await renew()
      trouble = undefined
    } catch (error) {
      // Locked by somebody, or the store is away: not lost, as long as the lease lasts.
      trouble = error
    } finally {
      renewing = false
    }
  }

  function schedule(): void {
    const leftMs = leaseMs - elapsedMs(clock, lease)
    timer = clock.timer(leftMs > 0 ? Math.min(everyMs, leftMs) : everyMs, () => void tick(), true)
  }

  schedule()
  return {
    id,
    row: claimedRow,
    clock,
    signal,
    over,
    calls: new Map(),
    lost,
    leaseOver,
    dismissed: () => dismissed,
    triedSomething: () => tried,
    locked,
    fenced,
    effect,
    lose,
    tell,
    settle() {
      settling = true
      timer?.cancel()
    },
    dismiss() {
      dismissed = gone === null
      letGo(new WorkLostError('The worker is stopping.'))
    },
  }
}
