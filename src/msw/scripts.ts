/** Fault scripts: which fault happens to which request. */
import { ConfigError } from '../errors.ts'
import { checked, type Fault, type FaultKind } from './faults.ts'

/**
 * Scripts for requests of one kind. A script is used up in order, one fault per request. A request takes from the first
 * script that has something left: its key's, its intent's, its operation's, then `next`.
 */
export interface FaultScripts {
  /** For the next requests, whatever they are about. */
  next(...faults: readonly Fault[]): void
  /** For the requests with this key. */
  forKey(key: string, ...faults: readonly Fault[]): void
  /** For the requests of the n-th key that the server sees, counted from 1: keys that no test can know. */
  forIntent(n: number, ...faults: readonly Fault[]): void
  /** For the requests of an operation. @throws ConfigError where there is none of that name. */
  forOperation(name: string, ...faults: readonly Fault[]): void
}

/** Scripts for submits; those for the questions about a key, and for workers, stand beside them. */
export interface Faults extends FaultScripts {
  /** For look-ups by key and looks at the monitor of a 202. */
  readonly lookups: FaultScripts
  /** For voids. */
  readonly voids: FaultScripts
  /** For all other requests; `forKey`, `forIntent` and `forOperation` never match one. */
  readonly others: FaultScripts
  /** For executions of accepted work by an operation's own `work`: `workerDies`, `workerSleeps`. */
  readonly work: FaultScripts
  /** How many scripted faults have not happened yet; those of `always` do not count. */
  readonly left: number
  /** Forgets all that has not happened yet. */
  clear(): void
}

/** What is known of a request when its fault is chosen. */
export interface FaultTarget {
  readonly kind: FaultKind
  readonly key: string | null
  /** 1 for the first key that the server sees; null without a key. */
  readonly intent: number | null
  readonly operation: string | null
}

/** Scripts, and the one place that takes from them. */
export interface ScriptBook {
  readonly faults: Faults
  /** Uses up the fault of this request; null where none is scripted. */
  take(target: FaultTarget): Fault | null
}

/**
 * @param operations names that `forOperation` accepts.
 */
export function scriptBook(operations: readonly string[]): ScriptBook {
  const scripts = new Map<string, Fault[]>()

  function add(kind: FaultKind, name: string, faults: readonly Fault[]): void {
    for (const fault of faults) {
      if (!checked(fault).kinds.includes(kind)) {
        throw new ConfigError(
          'faults',
          `${fault.name} cannot happen to ${kind === 'work' ? 'work' : `a request of the kind "${kind}"`}`,
        )
      }
    }
    const script = scripts.get(nameOf(kind, name)) ?? []
    for (const fault of faults) {
      // One entry per request, so that taking is the same for all; endless ones stay in front.
      for (let n = 0; n < (Number.isFinite(fault.times) ? fault.times : 1); n++) script.push(fault)
    }
    scripts.set(nameOf(kind, name), script)
  }

  function scriptsOf(kind: FaultKind): FaultScripts {
    return {
      next: (...faults) => add(kind, 'next', faults),
      forKey: (key, ...faults) => add(kind, `key ${key}`, faults),
      forIntent(n, ...faults) {
        if (!Number.isSafeInteger(n) || n < 1) throw new ConfigError('faults.forIntent', 'counts from 1')
        add(kind, `intent ${n}`, faults)
      },
      forOperation(name, ...faults) {
        if (!operations.includes(name)) {
          throw new ConfigError('faults.forOperation', `there is no "${name}"; there are: ${operations.join(', ')}`)
        }
        add(kind, `operation ${name}`, faults)
      },
    }
  }

  return {
    faults: {
      ...scriptsOf('submit'),
      lookups: scriptsOf('lookup'),
      voids: scriptsOf('void'),
      others: scriptsOf('other'),
      work: scriptsOf('work'),
      get left() {
        return [...scripts.values()].flat().filter(({ times }) => Number.isFinite(times)).length
      },
      clear: () => scripts.clear(),
    },

    take({ kind, key, intent, operation }) {
      for (const name of [`key ${key}`, `intent ${intent}`, `operation ${operation}`, 'next']) {
        const script = scripts.get(nameOf(kind, name))
        const [fault] = script ?? []
        if (script === undefined || fault === undefined) continue
        if (Number.isFinite(fault.times)) script.shift()
        return fault
      }
      return null
    },
  }
}

function nameOf(kind: FaultKind, name: string): string {
  return `${kind} ${name}`
}
