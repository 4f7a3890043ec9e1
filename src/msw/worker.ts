/**
 * Does the work that mocked operations accept: the kit's own worker, execution by execution, on the mock's clock. Each
 * execution has a life of its own, so that a script can end it or let it sleep without the others noticing.
 */
import type { Clock, Timer } from '../ports.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'
import type { MemoryServerStore, MemoryTransaction } from '../server/memory.ts'
import type { Report } from '../server/report.ts'
import type { KeyId } from '../server/store.ts'
import type { WorkOptions } from '../server/tasks/options.ts'
import type { TaskHandler } from '../server/tasks/task.ts'
import { workOnce } from '../server/tasks/work-once.ts'
import type { Stages } from './faults.ts'
import { connectionReset } from './network-error.ts'
import type { NamedOperation } from './operations.ts'
import type { World } from './world.ts'

/** How mocked work is done; see `startWorker`. */
export type MockWorkerOptions = Pick<WorkOptions<MemoryTransaction>, 'leaseMs' | 'retry' | 'answerBytes' | 'random'>

/** What a worker is for. */
export interface WorkerOfWorld {
  readonly world: World
  readonly operations: readonly NamedOperation[]
  readonly clock: Clock
  readonly options: MockWorkerOptions
  readonly report: Report
  /** What happens to this execution. */
  fateOf(id: KeyId): NonNullable<Stages['worker']> | null
}

/** A running worker. */
export interface MockWorker {
  /** Ends it and every execution; nothing of them keeps the process alive, and nothing is told of them any more. */
  stop(): void
}

/** Handlers of the operations that have one, by name, as the kit takes them. */
export function handlersOf(
  world: World,
  operations: readonly NamedOperation[],
): Record<string, TaskHandler<MemoryTransaction>> {
  return Object.fromEntries(
    operations.flatMap(({ name, options: { work } }) => {
      if (work === undefined) return []
      const handler: TaskHandler<MemoryTransaction> = (task) =>
        work(task, { createOrder: (transaction, value) => world.createOrder(task.id, transaction, value) })
      return [[name, handler] as const]
    }),
  )
}

/** Does whatever is due, as soon as it is; on a virtual clock, when that is advanced. */
export function mockWorker({ world, operations, clock, options, report, fateOf }: WorkerOfWorld): MockWorker {
  const { store } = world
  const work = handlersOf(world, operations)
  const lives = new Set<Life>()
  let timer: Timer | null = null
  let stopped = false
  if (Object.keys(work).length === 0) return { stop() {} }

  /** Looks again when the next piece of work is due; never at once, so that nothing begins before its 202 is out. */
  function arm(): void {
    timer?.cancel()
    const dueAt = nextDue(store, work)
    timer =
      stopped || dueAt === null
        ? null
        : clock.timer(Math.min(Math.max(dueAt - clock.now(), 0), MAX_TIMER_MS), () => void look())
  }

  async function look(): Promise<void> {
    // One claim at a time: the next one finds what this one left.
    while (!stopped && (await execution()));
    arm()
  }

  /** Begins one execution; resolves once it is known whether there was any work for it. */
  function execution(): Promise<boolean> {
    const life = newLife(clock)
    lives.add(life)
    return new Promise((begun) => {
      workOnce({
        random: () => 1,
        ...options,
        work,
        concurrency: 1,
        clock: life.clock,
        report: (event) => {
          if (!life.over()) report(event)
        },
        store: livedOn(store, life, fateOf, begun),
      })
        .catch((error: unknown) => {
          begun(false)
          const detail = 'The mock could not take work.'
          report({ kind: 'workerTrouble', operation: Object.keys(work).join(', '), id: null, detail, error })
        })
        .finally(() => {
          lives.delete(life)
          arm()
        })
    })
  }

  const unsubscribe = store.onTask(arm)
  return {
    stop() {
      stopped = true
      unsubscribe()
      timer?.cancel()
      for (const life of lives) life.end()
    },
  }
}

/** One execution's hold on the world. */
interface Life {
  readonly clock: Clock
  /** Lets `ms` pass; for ever, where it ends meanwhile. */
  pause(ms: number): Promise<void>
  over(): boolean
  /** Its timers are gone and it is never heard of again. */
  end(): void
}

function newLife({ now, monotonic, timer }: Clock): Life {
  const timers = new Set<Timer>()
  let over = false
  const clock: Clock = {
    now,
    monotonic,
    timer(ms, run) {
      if (over) return { cancel() {} }
      const mine = timer(ms, () => {
        timers.delete(mine)
        run()
      })
      timers.add(mine)
      return {
        cancel() {
          timers.delete(mine)
          mine.cancel()
        },
      }
    },
  }
  return {
    clock,
    pause: (ms) =>
      new Promise((resolve) => {
        clock.timer(ms, resolve)
      }),
    over: () => over,
    end() {
      over = true
      for (const each of timers) each.cancel()
      timers.clear()
    },
  }
}

/** The store as one execution sees it, up to its death. */
function livedOn(
  store: MemoryServerStore,
  life: Life,
  fateOf: WorkerOfWorld['fateOf'],
  begun: (took: boolean) => void,
): MemoryServerStore {
  let commitsLeft = Number.POSITIVE_INFINITY
  return {
    ...store,

    async claimTasks(wanted) {
      const taken = await store.claimTasks({ ...wanted, limit: 1 })
      begun(taken.length > 0)
      const [task] = taken
      const fate = task === undefined ? null : fateOf(task.id)
      // Asleep between the claim and the first line of the handler: nothing renews the lease meanwhile (F10).
      if (fate?.kind === 'sleeps') await life.pause(fate.ms)
      if (fate?.kind === 'dies') commitsLeft = fate.afterCommits
      if (commitsLeft <= 0) return dead(life)
      return taken
    },

    async begin(options, work) {
      if (life.over() || commitsLeft <= 0) return dead(life)
      let committing = false
      const value = await store.begin(options, async (unit) => {
        const ending = await work(unit)
        if (life.over()) throw connectionReset()
        committing = ending.commit
        return ending
      })
      if (committing) commitsLeft -= 1
      return value
    },
  }
}

/** Whoever waits for a dead worker waits for ever; its lease does not (F9). */
function dead(life: Life): Promise<never> {
  life.end()
  return new Promise(() => {})
}

/** Epoch ms; null where no work of these operations will ever be due. */
function nextDue(store: MemoryServerStore, work: Readonly<Record<string, unknown>>): number | null {
  const times = store
    .rows()
    .flatMap((id) => (Object.hasOwn(work, id.operation) ? (store.task(id)?.row.dueAt ?? []) : []))
  return times.length === 0 ? null : Math.min(...times)
}
