/** A tab's way to the device's storage: the real memory store, with the faults that a schedule plants. */
import { StoreFailure } from '../../src/errors.ts'
import type { Clock, IntentStore } from '../../src/ports.ts'
import type { StoreFault } from './schedule.ts'

export interface FaultyStore {
  readonly store: IntentStore
  /** At the tab's operation number `operation` from now. */
  plant(fault: StoreFault, operation: number): void
  mend(): void
}

/** How long a store that is slow takes: longer than a lease. */
const slowMs = 20_000
/** Operations that fail when the connection is lost. */
const goneFor = 4

const writes: ReadonlySet<string | symbol> = new Set(['insert', 'update', 'remove'])

export function faultyStore(inner: IntentStore, clock: Clock): FaultyStore {
  const planted: { fault: StoreFault; left: number }[] = []
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.timer(ms, resolve))

  function next(isWrite: boolean): StoreFault | null {
    for (const entry of planted) entry.left--
    const due = planted.find(({ fault, left }) => left < 0 && (isWrite || !onlyWrites.has(fault)))
    if (due === undefined) return null
    if (due.fault !== 'gone' || due.left <= -goneFor) planted.splice(planted.indexOf(due), 1)
    return due.fault
  }

  async function faulty<T>(fault: StoreFault | null, run: () => Promise<T>): Promise<T> {
    switch (fault) {
      case null:
        return run()
      case 'slow':
        await pause(slowMs)
        return run()
      case 'fails':
        throw new StoreFailure('other', 'no', 'planted')
      case 'full':
        throw new StoreFailure('quota', 'no', 'planted')
      case 'gone':
        throw new StoreFailure('unavailable', 'no', 'planted')
      case 'unsure-lost':
        throw new StoreFailure('timeout', 'maybe', 'planted')
      case 'unsure-written':
        await run()
        throw new StoreFailure('timeout', 'maybe', 'planted')
      case 'unsure-late':
        void pause(5000)
          .then(run)
          .catch(() => {})
        throw new StoreFailure('timeout', 'maybe', 'planted')
    }
  }

  const store = new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function' || name === 'close') return value
      return (...args: unknown[]) =>
        faulty(next(writes.has(name)), () => (value as (...args: unknown[]) => Promise<unknown>).apply(target, args))
    },
  })

  return {
    store,
    plant: (fault, operation) => void planted.push({ fault, left: operation }),
    mend: () => void planted.splice(0),
  }
}

const onlyWrites: ReadonlySet<StoreFault> = new Set(['full', 'unsure-written', 'unsure-lost', 'unsure-late'])
