/**
 * Who is told of what: listeners of this client, callers that wait for an intent, and the other contexts of the store.
 * Only what is stored is ever told (P22).
 */
import type { Channel } from '../ports.ts'
import type { EventName } from '../protocol/events.ts'
import { isInDoubt } from '../protocol/record.ts'
import type { StateName } from '../protocol/states.ts'
import type { Loaded } from './ledger.ts'
import { guarded, type Note, type Observer, type StateNote, type WarningNote } from './observer.ts'

/** Called with each stored state of one intent, and the answer's bytes where this context holds them. */
export type Watcher = (loaded: Loaded, body: Uint8Array | null) => void

export interface Announcer {
  /** Tells everybody that the record is stored in a new state. */
  announce(before: StateName | null, loaded: Loaded, because: EventName | 'submitted', body: Uint8Array | null): void
  /** Tells the watchers of this context only: what another context stored. */
  relay(loaded: Loaded): void
  /** Tells the watchers and listeners of this context what another one stored. The observer there was told already. */
  elsewhere(loaded: Loaded): void
  warn(warning: Omit<WarningNote, 'type'>): void
  /** Warns once per client for the same code and place. */
  warnOnce(place: string, warning: Omit<WarningNote, 'type'>): void
  subscribe(listener: Observer): () => void
  /** For the engine's own use: told of what this context stores. */
  follow(listener: Observer): void
  watch(key: string, watcher: Watcher): () => void
  /** Keys that somebody in this context waits for. */
  watched(): ReadonlyMap<string, unknown>
  /** True when somebody would hear of a change of this key that another context made. */
  isHeard(key: string): boolean
}

function stateNote(from: StateName | null, { record }: Loaded, because: StateNote['because']): StateNote {
  return {
    type: 'state',
    intentId: record.id,
    key: record.key,
    operation: record.operation,
    from,
    to: record.state.name,
    because,
    attempts: record.attempts,
    inDoubt: isInDoubt(record),
  }
}

export interface AnnouncerParts {
  readonly client: string
  readonly observer: Observer | null
  readonly channel: Channel
  /** Whose intents listeners may hear of now (P50). */
  readonly scope: () => string | null
}

export function createAnnouncer({ client, observer, channel, scope }: AnnouncerParts): Announcer {
  const followers = new Set<Observer>()
  const listeners = new Set<Observer>()
  const watchers = new Map<string, Set<Watcher>>()
  const warned = new Set<string>()

  function log(note: Note): void {
    if (observer !== null) guarded(() => observer(note))
    for (const follower of followers) follower(note)
  }

  function tell(note: Note): void {
    for (const listener of [...listeners]) guarded(() => listener(note))
  }

  function relay(loaded: Loaded, body: Uint8Array | null): void {
    for (const watcher of [...(watchers.get(loaded.record.key) ?? [])]) watcher(loaded, body)
  }

  function warn(warning: Omit<WarningNote, 'type'>): void {
    const note: Note = { type: 'warning', ...warning }
    log(note)
    tell(note)
  }

  return {
    announce(before, loaded, because, body) {
      relay(loaded, body)
      channel.post({ client, key: loaded.record.key, revision: loaded.row.revision })
      const note = stateNote(before, loaded, because)
      log(note)
      if (loaded.record.scope === scope()) tell(note)
    },
    relay: (loaded) => relay(loaded, null),
    elsewhere(loaded) {
      relay(loaded, null)
      if (loaded.record.scope === scope()) tell(stateNote(null, loaded, 'elsewhere'))
    },
    warn,
    warnOnce(place, warning) {
      const mark = `${warning.code} ${place}`
      if (warned.has(mark)) return
      warned.add(mark)
      warn(warning)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    follow: (listener) => void followers.add(listener),
    watch(key, watcher) {
      const set = watchers.get(key) ?? new Set()
      watchers.set(key, set.add(watcher))
      return () => {
        set.delete(watcher)
        if (set.size === 0) watchers.delete(key)
      }
    },
    watched: () => watchers,
    isHeard: (key) => watchers.has(key) || listeners.size > 0,
  }
}
