/**
 * Key rows in memory, for the mock and for trying things out. It serialises rivals per key as PostgreSQL does: the
 * second insert of a key waits for the first transaction to end. Rows are gone with the process, so it is nothing for
 * a real server.
 */
import { systemClock } from '../platform/clock.ts'
import type { Clock } from '../ports.ts'
import { MAX_TIMER_MS } from '../protocol/backoff.ts'
import type { KeyRow, StoredAnswer } from './decide.ts'
import type { Claim, Ending, KeyId, NewKey, Reading, ServerStore, Unit, UnknownTask } from './store.ts'
import { type CallRow, isOpen } from './tasks/call-row.ts'
import { claimed, isSettled, keyStateOf, type NewTask, newTask, type TaskRow, viewOf } from './tasks/task-row.ts'

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
  /** The committed work under a key, with its calls; null where there is none. */
  task(id: KeyId): { readonly row: TaskRow; readonly calls: ReadonlyMap<string, CallRow> } | null
}

/** Everything about one key. Never changed: a transaction puts another one in its place when it commits. */
interface Entry {
  readonly id: KeyId
  /** Its `task` is not kept up to date here: see {@link shown}. */
  readonly row: KeyRow
  /** Epoch ms at which it may be reaped, once nothing is open. */
  readonly reapAt: number
  readonly task: TaskRow | null
  /** Epoch ms until which the result of the work is kept. */
  readonly resultExpiresAt: number
  readonly calls: ReadonlyMap<string, CallRow>
}

/** Keeps key rows in memory. */
export function memoryServerStore(options: MemoryServerStoreOptions = {}): MemoryServerStore {
  const { now, timer } = options.clock ?? systemClock
  const committed = new Map<string, Entry>()
  /** Keys that a running transaction has inserted, or whose work it has locked, with what tells its end. */
  const held = new Map<string, Promise<void>>()
  const wakers = new Set<() => void>()

  function read(id: KeyId): Promise<Reading> {
    const entry = committed.get(nameOf(id))
    return Promise.resolve({ row: entry === undefined ? null : shown(entry), now: now() })
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
    const locked = new Set<string>()
    let effects: (() => void)[] = []
    let committing = false
    let end = (): void => {}
    const untilEnd = new Promise<void>((resolve) => {
      end = resolve
    })

    function current(id: KeyId): Entry | undefined {
      return mine.get(nameOf(id)) ?? committed.get(nameOf(id))
    }

    function hold(name: string): void {
      held.set(name, untilEnd)
      locked.add(name)
    }

    function save(id: KeyId, change: (entry: Entry) => Entry): Promise<void> {
      const entry = current(id)
      if (entry === undefined || !locked.has(nameOf(id)))
        return Promise.reject(new Error('Only what is locked is saved.'))
      mine.set(nameOf(id), change(entry))
      return Promise.resolve()
    }

    const unit: Unit<MemoryTransaction> = {
      async run(work) {
        let over = false
        try {
          return await work({
            onCommit(effect) {
              if (over) throw new Error('The transaction is over: await everything that you start in it.')
              effects.push(effect)
            },
          })
        } finally {
          over = true
        }
      },

      async claim(id, key): Promise<Claim> {
        const name = nameOf(id)
        if (mine.has(name)) return { seen: 'taken' }
        // A rival that rolled back leaves the key free, perhaps for another one that waited too: look again each time.
        while (!committed.has(name)) {
          const rival = held.get(name)
          if (rival === undefined) break
          if (!(await waitFor(rival, waitMs))) return { seen: 'busy' }
        }
        if (committed.has(name)) return { seen: 'taken' }
        hold(name)
        const entry = newEntry(id, key, now())
        mine.set(name, entry)
        return { seen: 'inserted', now: entry.row.createdAt, expiresAt: entry.row.expiresAt }
      },

      read(id) {
        const entry = current(id)
        return Promise.resolve({ row: entry === undefined ? null : shown(entry), now: now() })
      },

      undo() {
        effects = []
        return Promise.resolve()
      },

      finish(id, answer, task) {
        if (!mine.has(nameOf(id))) return Promise.reject(new Error('Only a claimed key can be finished.'))
        return save(id, (entry) => finished(entry, answer, task, now()))
      },

      async lockTask(id) {
        const name = nameOf(id)
        for (let rival = held.get(name); rival !== undefined && !locked.has(name); rival = held.get(name)) {
          if (!(await waitFor(rival, waitMs))) return { seen: 'busy' }
        }
        const row = current(id)?.task ?? null
        if (row !== null) hold(name)
        return { seen: 'task', row, now: now() }
      },

      saveTask: (id, row) => save(id, (entry) => withTask(entry, row, now())),

      readCall: (id, name) => Promise.resolve(current(id)?.calls.get(name) ?? null),

      findCall(operationId) {
        for (const { id, calls } of [...mine.values(), ...committed.values()]) {
          for (const [name, call] of calls) if (call.operationId === operationId) return Promise.resolve({ id, name })
        }
        return Promise.resolve(null)
      },

      saveCall: (id, name, row) => save(id, (entry) => ({ ...entry, calls: new Map(entry.calls).set(name, row) })),

      hasOpenCalls: (id) => Promise.resolve([...(current(id)?.calls.values() ?? [])].some(isOpen)),
    }

    try {
      const { commit, value } = await work(unit)
      if (commit) {
        for (const effect of effects) effect()
        committing = true
        for (const [name, entry] of mine) committed.set(name, entry)
      }
      return value
    } finally {
      for (const name of locked) held.delete(name)
      end()
      // Not before it is unlocked: whoever is woken looks at once. A renewed lease is nothing to look for.
      if (committing && [...mine.values()].some(({ task }) => isDue(task, now()))) for (const wake of wakers) wake()
    }
  }

  return {
    begin,
    find: read,

    claimTasks({ operations, limit, leaseMs }) {
      const due = [...committed].flatMap(([name, entry]) => {
        if (held.has(name) || entry.task === null || !operations.includes(entry.id.operation)) return []
        const row = claimed(entry.task, now(), leaseMs)
        return row === null ? [] : [{ name, entry, row, dueAt: entry.task.dueAt ?? 0 }]
      })
      due.sort((a, b) => a.dueAt - b.dueAt)
      const taken = due.slice(0, limit)
      for (const { name, entry, row } of taken) committed.set(name, withTask(entry, row, now()))
      return Promise.resolve(taken.map(({ entry, row }) => ({ id: entry.id, row })))
    },

    unknownTasks(limit = 100) {
      const unknown = [...committed.values()].flatMap(({ id, row, task, calls }): UnknownTask[] => {
        if (task?.status !== 'unknown') return []
        const open = [...calls].filter(([, call]) => isOpen(call)).map(([name, call]) => ({ name, row: call }))
        return [{ id, row: task, calls: open, acceptedAt: row.createdAt }]
      })
      return Promise.resolve(unknown.slice(0, limit))
    },

    onTask(wake) {
      wakers.add(wake)
      return () => void wakers.delete(wake)
    },

    reap(limit = 1000) {
      const due = [...committed.values()].filter(({ reapAt, row }) => reapAt <= now() && REAPABLE.has(row.state))
      due.sort((a, b) => a.reapAt - b.reapAt)
      const batch = due.slice(0, limit)
      for (const { id } of batch) committed.delete(nameOf(id))
      return Promise.resolve(batch.length)
    },

    rows() {
      return [...committed.values()].map((entry) => ({ ...entry.id, row: shown(entry) }))
    },

    task(id) {
      const entry = committed.get(nameOf(id))
      return entry === undefined || entry.task === null ? null : { row: entry.task, calls: entry.calls }
    },
  }
}

const REAPABLE: ReadonlySet<KeyRow['state']> = new Set(['finished', 'voided'])

/** One text per identity; a JSON array cannot be read as another one, whatever characters its members hold. */
function nameOf({ tenant, principal, operation, key }: KeyId): string {
  return JSON.stringify([tenant, principal, operation, key])
}

function newEntry(id: KeyId, { state, fingerprint, requestDigest, retentionMs, graceMs }: NewKey, now: number): Entry {
  const expiresAt = now + retentionMs
  const row: KeyRow = { state, fingerprint, requestDigest, answer: null, task: null, createdAt: now, expiresAt }
  return { id, row, reapAt: expiresAt + graceMs, task: null, resultExpiresAt: expiresAt, calls: new Map() }
}

function finished(entry: Entry, answer: StoredAnswer, task: NewTask | null, now: number): Entry {
  if (task === null) return { ...entry, row: { ...entry.row, state: 'finished', answer } }
  return { ...entry, row: { ...entry.row, state: 'accepted', answer }, task: newTask(task, now) }
}

function isDue(task: TaskRow | null, now: number): boolean {
  return task !== null && task.dueAt !== null && task.dueAt <= now
}

/** The result outlives its key's retention by as much as it came late (P62). */
function withTask(entry: Entry, task: TaskRow, now: number): Entry {
  const row: KeyRow = { ...entry.row, state: keyStateOf(task) }
  if (!isSettled(task)) return { ...entry, row, task }
  const { createdAt, expiresAt } = row
  const resultExpiresAt = Math.max(expiresAt, now + (expiresAt - createdAt))
  const reapAt = Math.max(entry.reapAt, resultExpiresAt + (entry.reapAt - expiresAt))
  return { ...entry, row, task, resultExpiresAt, reapAt }
}

/** The row as decisions see it. */
function shown({ row, task, resultExpiresAt }: Entry): KeyRow {
  return task === null ? row : { ...row, task: viewOf(task, resultExpiresAt) }
}
