/**
 * Key rows in memory, for the mock and for trying things out. It serialises rivals per key as PostgreSQL does: the
 * second insert of a key waits for the first transaction to end. Rows are gone with the process, so it is nothing for
 * a real server.
 */
import { systemClock } from '../platform/clock.ts'
import type { Clock } from '../ports.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'
import type { KeyRow, StoredAnswer, TaskView } from './decide.ts'
import type { Claim, Ending, KeyId, NewKey, NewTask, Reading, ServerStore, TaskProgress, Unit } from './store.ts'

/** What `execute` gets from a memory store: effects that happen if, and only if, the transaction commits. */
export interface MemoryTransaction {
  /**
   * Runs `effect` at the commit, in the order of the calls; never after a rollback or a refusal. It must not throw and
   * must not be asynchronous: nothing comes between it and the key row.
   */
  onCommit(effect: () => void): void
}

/** What a {@link memoryServerStore} can be told. */
export interface MemoryServerStoreOptions {
  /** Time, for tests that own it. Default: the system's. */
  readonly clock?: Pick<Clock, 'now' | 'timer'>
}

/** A memory store; it can also be looked into. */
export interface MemoryServerStore extends ServerStore<MemoryTransaction> {
  /** The committed rows at this moment, oldest first. */
  rows(): readonly (KeyId & { readonly row: KeyRow })[]
}

/** A row with the time at which it may be reaped, epoch ms. */
interface Entry {
  readonly id: KeyId
  readonly row: KeyRow
  readonly reapAt: number
}

/** Keeps key rows in memory. */
export function memoryServerStore(options: MemoryServerStoreOptions = {}): MemoryServerStore {
  const { now, timer } = options.clock ?? systemClock
  const committed = new Map<string, Entry>()
  /** Keys that a running transaction has inserted, with what tells its end. */
  const held = new Map<string, Promise<void>>()

  function read(id: KeyId): Promise<Reading> {
    return Promise.resolve({ row: committed.get(nameOf(id))?.row ?? null, now: now() })
  }

  /** True when the rival ended in time. */
  async function waitFor(rival: Promise<void>, waitMs: number): Promise<boolean> {
    if (waitMs === Number.POSITIVE_INFINITY) return rival.then(() => true)
    let cancel = (): void => {}
    const timeUp = new Promise<boolean>((resolve) => {
      cancel = timer(Math.min(waitMs, MAX_TIMER_MS), () => resolve(false), true).cancel
    })
    const ended = await Promise.race([rival.then(() => true), timeUp])
    cancel()
    return ended
  }

  async function begin<T>(
    { waitMs }: { waitMs: number },
    work: (unit: Unit<MemoryTransaction>) => Promise<Ending<T>>,
  ): Promise<T> {
    const mine = new Map<string, Entry>()
    let effects: (() => void)[] = []
    let ended = false
    let end = (): void => {}
    const untilEnd = new Promise<void>((resolve) => {
      end = resolve
    })

    const unit: Unit<MemoryTransaction> = {
      transaction: {
        onCommit(effect) {
          if (ended) throw new Error('The transaction is over: await everything that execute starts.')
          effects.push(effect)
        },
      },

      async claim(id, key): Promise<Claim> {
        const name = nameOf(id)
        if (mine.has(name)) return { seen: 'taken' }
        // A rival that rolled back leaves the key free, perhaps for another one that waited too: look again each time.
        for (let rival = held.get(name); rival !== undefined; rival = held.get(name)) {
          if (!(await waitFor(rival, waitMs))) return { seen: 'busy' }
        }
        if (committed.has(name)) return { seen: 'taken' }
        held.set(name, untilEnd)
        const entry = newEntry(id, key, now())
        mine.set(name, entry)
        return { seen: 'inserted', now: entry.row.createdAt, expiresAt: entry.row.expiresAt }
      },

      async read(id) {
        const own = mine.get(nameOf(id))
        return own === undefined ? read(id) : { row: own.row, now: now() }
      },

      undo() {
        effects = []
        return Promise.resolve()
      },

      finish(id, answer, task) {
        const entry = mine.get(nameOf(id))
        if (entry === undefined) return Promise.reject(new Error('Only a claimed key can be finished.'))
        mine.set(nameOf(id), { ...entry, row: finished(entry.row, answer, task) })
        return Promise.resolve()
      },
    }

    try {
      const { commit, value } = await work(unit)
      if (commit) {
        for (const effect of effects) effect()
        for (const [name, entry] of mine) committed.set(name, entry)
      }
      return value
    } finally {
      ended = true
      for (const name of mine.keys()) held.delete(name)
      end()
    }
  }

  return {
    begin,
    find: read,

    complete(id, progress) {
      const entry = committed.get(nameOf(id))
      const task = entry?.row.task ?? null
      if (entry === undefined || task === null || entry.row.state === 'voided' || isFinished(task)) {
        return Promise.resolve(false)
      }
      committed.set(nameOf(id), progressed(entry, task, progress, now()))
      return Promise.resolve(true)
    },

    reap(limit = 1000) {
      const due = [...committed.values()].filter((entry) => entry.reapAt <= now() && mayReap(entry.row))
      due.sort((a, b) => a.reapAt - b.reapAt)
      const batch = due.slice(0, limit)
      for (const { id } of batch) committed.delete(nameOf(id))
      return Promise.resolve(batch.length)
    },

    rows() {
      return [...committed.values()].map(({ id, row }) => ({ ...id, row }))
    },
  }
}

/** One text per identity; a JSON array cannot be read as another one, whatever characters its members hold. */
function nameOf({ tenant, principal, operation, key }: KeyId): string {
  return JSON.stringify([tenant, principal, operation, key])
}

function newEntry(id: KeyId, { state, fingerprint, requestDigest, retentionMs, graceMs }: NewKey, now: number): Entry {
  const expiresAt = now + retentionMs
  const row: KeyRow = { state, fingerprint, requestDigest, answer: null, task: null, createdAt: now, expiresAt }
  return { id, row, reapAt: expiresAt + graceMs }
}

function finished(row: KeyRow, answer: StoredAnswer, task: NewTask | null): KeyRow {
  if (task === null) return { ...row, state: 'finished', answer }
  const { retryAfterSeconds } = task
  const view: TaskView = {
    status: 'processing',
    result: null,
    error: null,
    retryAfterSeconds,
    resultExpiresAt: row.expiresAt,
  }
  return { ...row, state: 'finished', answer, task: view }
}

function progressed(entry: Entry, task: TaskView, progress: TaskProgress, now: number): Entry {
  const next = { ...task, ...progress }
  if (!isFinished(next)) return { ...entry, row: { ...entry.row, task: next } }
  const { createdAt, expiresAt } = entry.row
  const resultExpiresAt = Math.max(expiresAt, now + (expiresAt - createdAt))
  const reapAt = Math.max(entry.reapAt, resultExpiresAt + (entry.reapAt - expiresAt))
  return { ...entry, row: { ...entry.row, task: { ...next, retryAfterSeconds: null, resultExpiresAt } }, reapAt }
}

function isFinished({ status }: TaskView): boolean {
  return status === 'succeeded' || status === 'failed'
}

function mayReap({ state, task }: KeyRow): boolean {
  return state === 'voided' || (state === 'finished' && (task === null || isFinished(task)))
}
