/** What people and the app can do with intents (P45), under the client's scope only (P50). */
import { ConfigError, NotPossibleError, RecordSetAsideError } from '../errors.ts'
import type { IntentStore, Platform } from '../ports.ts'
import type { IntentEvent } from '../protocol/events.ts'
import { type IntentRecord, isInDoubt } from '../protocol/record.ts'
import { isSettled, type State, type StateName } from '../protocol/states.ts'
import { isForgettable } from '../protocol/submission.ts'
import type { Announcer } from './announcer.ts'
import type { AskApp } from './app-code.ts'
import { isSetAside, keyOf, type Ledger, type Loaded, type SetAside } from './ledger.ts'
import { named } from './naming.ts'
import type { Resolved } from './options.ts'
import { type Outcome, outcomeOf } from './outcome.ts'
import type { Policies } from './policies.ts'
import { askReconcile } from './reconcile.ts'
import type { Runner } from './runner.ts'
import { salvaged } from './set-aside.ts'
import { type IntentView, type SetAsideView, setAsideViewOf, viewOf } from './view.ts'
import { isEnd, type Waiting } from './waiting.ts'

/** What to list. All given conditions hold at once. */
export interface IntentFilter {
  /** Only intents in one of these states. Default is all. */
  readonly states?: readonly StateName[]
  /** Only what is settled and not yet acknowledged, or unknown: the inbox (P22). Default is false. */
  readonly inbox?: boolean
  /** Only this id, superseded records included. */
  readonly id?: string
  /** Most entries. Default is 100. */
  readonly limit?: number
  /** Go on behind this place: `next` of the list before. Default is from the beginning. */
  readonly after?: number
}

/** What was found. */
export interface IntentList {
  /** Oldest first. */
  readonly intents: readonly IntentView[]
  /** Records that cannot be read; their ids stay taken (P23). */
  readonly setAside: readonly SetAsideView[]
  /** How many open intents belong to others who used this device (P50). */
  readonly elsewhere: number
  /** Where the next page begins, for `after`; null when this is the last one. */
  readonly next: number | null
}

/** What a person found out. */
export type Resolution = 'succeeded' | 'did_not_happen'

/**
 * The intents of whoever is signed in. Every method rejects with `ConfigError` while nobody is; those that name an id reject
 * with `NotPossibleError` when there is no such intent, and with `RecordSetAsideError` when its record cannot be read, except
 * `get` for the first and `resolve` and `abandon` for the second. All reject with `StoreFailure` when the store cannot be
 * used; `written` says whether what was asked for may have been stored.
 */
export interface Intents {
  /** Lists this scope's intents. */
  list(filter?: IntentFilter): Promise<IntentList>
  /** The current intent of this id, or undefined. @throws RecordSetAsideError when its record cannot be read. */
  get(id: string): Promise<IntentView | undefined>
  /** Waits for the end of an intent, also one of an earlier page, and takes note of it. @throws NotPossibleError when there is no such intent. */
  wait(id: string, options?: { readonly signal?: AbortSignal; readonly waitMs?: number }): Promise<Outcome>
  /** Asks the server now: by key where it can, then through the operation's `reconcile` (P43). Resolves with what is known after that. */
  check(id: string, note?: string): Promise<IntentView>
  /** Same key, once more, inside the window; also wakes what is blocked. @throws NotPossibleError when the window is over. */
  retry(id: string, note?: string): Promise<IntentView>
  /**
   * For certain when nothing is in doubt, else by a void (P44), which goes on by itself: `wait` tells its end.
   *
   * @throws NotPossibleError when it is settled, or in doubt and the server does not void (any more).
   */
  cancel(id: string, note?: string): Promise<IntentView>
  /** Records what a person found. "It did not happen" voids first; where that cannot be, it counts as abandoned. */
  resolve(id: string, outcome: Resolution, note?: string): Promise<IntentView>
  /** Gives up; voids first where it can. `force` frees the id although it may still happen. */
  abandon(id: string, note?: string, options?: { readonly force?: boolean }): Promise<IntentView>
  /** Clears it from the inbox; it stays remembered (P8). */
  acknowledge(id: string): Promise<IntentView>
  /** Frees the id of a settled intent for a new key. @throws NotPossibleError while something may still happen. */
  forget(id: string): Promise<void>
}

/** Ordered lanes (P34). */
export interface Lanes {
  /**
   * Goes on past a head that ended without success. Does nothing where the lane is not stopped.
   *
   * @param lane the app's name for it.
   * @throws NotPossibleError while the head has no end yet: settle it, or skip it.
   */
  resume(lane: string, note?: string): Promise<void>
  /**
   * Skips a head: cancels it, voids it if it is in doubt; `order: 'broken'` when neither could be had and it may still land later.
   *
   * @param id the intent at the head.
   * @throws NotPossibleError while an attempt is under way that cannot be voided.
   */
  skip(id: string, note?: string): Promise<{ readonly order: 'kept' | 'broken' }>
}

export interface IntentParts {
  readonly options: Resolved
  readonly store: IntentStore
  readonly platform: Platform
  readonly ledger: Ledger
  readonly announcer: Announcer
  readonly policies: Policies
  readonly runner: Runner
  readonly waiting: Waiting
  readonly askApp: AskApp
  readonly started: () => Promise<void>
  /** What a stopping client waits for. */
  readonly track: <T>(promise: Promise<T>) => Promise<T>
  readonly wake: () => void
}

export function createIntents(parts: IntentParts): {
  intents: Intents
  lanes: Lanes
  acknowledge: (loaded: Loaded) => Promise<void>
} {
  const { options, store, platform, ledger, announcer, policies, runner } = parts

  function scope(): string {
    const current = options.scope()
    if (current === null) throw new ConfigError('scope', 'nobody is signed in, so there are no intents to show')
    return current
  }

  async function find(id: string): Promise<Loaded | SetAside | undefined> {
    await parts.started()
    return look(id)
  }

  async function look(id: string): Promise<Loaded | SetAside | undefined> {
    const row = await store.current(options.name, scope(), id)
    return row === undefined ? undefined : ledger.read(row)
  }

  async function need(id: string): Promise<Loaded | SetAside> {
    const found = await find(id)
    if (found === undefined) throw new NotPossibleError('none', `There is no intent "${id}" here.`, { intentId: id })
    return found
  }

  async function needReadable(id: string): Promise<Loaded> {
    const found = await need(id)
    if (!isSetAside(found)) return found
    throw new RecordSetAsideError(
      found.reason,
      `The record of "${id}" cannot be read (${found.reason}); only resolve and abandon help.`,
      { intentId: id, key: found.row.key },
    )
  }

  /** A person's action takes the record over, whoever holds it: the former holder's answer still counts if it proves something (P47, P48). */
  async function act(id: string, event: IntentEvent, otherwise: (record: IntentRecord) => string): Promise<Loaded> {
    for (;;) {
      const loaded = await needReadable(id)
      const { was, loaded: after } = await runner.tryStep(loaded, event)
      // Somebody wrote in between: look again.
      if (was === 'outdated') continue
      if (was === 'not_for_this_state' || after === null) {
        const { record } = loaded
        throw new NotPossibleError(record.state.name, otherwise(record), { intentId: id, key: record.key })
      }
      parts.wake()
      return after
    }
  }

  /** As it stands now; what was done is done, whether or not it can be read again. */
  async function refreshed(id: string, otherwise: Loaded): Promise<IntentView> {
    const found = await look(id).catch(() => undefined)
    return viewOf(found === undefined || isSetAside(found) ? otherwise : found)
  }

  async function settleUnreadable(
    found: SetAside,
    state: State,
    action: 'resolve' | 'abandon',
    note: string | undefined,
  ): Promise<IntentView> {
    const record = salvaged(found, state, { at: platform.clock.now(), action, ...noted(note) })
    const stored = await ledger.commit({ row: found.row, record }, record, false, { request: null })
    if (stored === null)
      throw new NotPossibleError('set_aside', `"${found.row.id}" changed meanwhile; look again.`, {
        intentId: found.row.id,
        key: found.row.key,
      })
    announcer.announce(null, stored, state.name === 'succeeded' ? 'resolvedSucceeded' : 'abandonAsked', null)
    parts.wake()
    return viewOf(stored)
  }

  const wait: Intents['wait'] = async (id, { signal, waitMs = options.waitMs } = {}) => {
    const { loaded, body } = await parts.waiting.end(await needReadable(id), { signal, waitMs })
    // An outcome that is known is told, whether or not the note of it can be stored (P22).
    if (isEnd(loaded.record)) await acknowledge(loaded).catch(() => {})
    return outcomeOf(loaded.record, body)
  }

  async function check(id: string, note: string | undefined): Promise<IntentView> {
    for (;;) {
      const found = await needReadable(id)
      const { was, loaded } = await runner.tryStep(found, { type: 'checkAsked', ...noted(note) })
      if (was === 'outdated') continue
      // What is settled needs no question, and to one that is being sent the answer is on its way.
      if (was === 'not_for_this_state' || loaded === null) return viewOf(found)
      await askAbout(loaded)
      parts.wake()
      return refreshed(id, loaded)
    }
  }

  async function askAbout(loaded: Loaded): Promise<void> {
    const { record, row } = loaded
    if (record.state.name === 'processing' || record.state.name === 'cancelling') return runner.work(row)
    const mayHaveHappened = isInDoubt(record) || record.state.name === 'abandoned'
    const after = mayHaveHappened && policies.of(record).looksUp ? await runner.lookup(loaded) : loaded
    const now = after?.record.state.name
    // The server's own word that it is at work comes before what is not to be found yet.
    const isAnswered = now === undefined || now === 'processing' || (isSettled(now) && now !== 'abandoned')
    if (after === null || isAnswered) return
    const { reconcile } = policies.operationOf(record.operation) ?? {}
    const found = await askReconcile(after, reconcile, (ask) => parts.askApp(ask, options.attemptTimeoutMs), announcer)
    if (found !== null) await runner.step(after, found.event, found.body)
  }

  const intents: Intents = {
    async list({ states, inbox = false, id, limit = 100, after = 0 } = {}) {
      await parts.started()
      const current = scope()
      const found: IntentView[] = []
      const setAside: SetAsideView[] = []
      let afterSeq = after
      let more = true
      while (more && found.length < limit) {
        const rows = await store.list(options.name, {
          scope: current,
          afterSeq,
          limit,
          ...(states === undefined ? {} : { states }),
          ...(id === undefined ? {} : { id }),
        })
        more = rows.length === limit
        for (const row of rows) {
          if (found.length === limit) {
            more = true
            break
          }
          afterSeq = row.seq
          const read = ledger.read(row)
          if (isSetAside(read)) setAside.push(setAsideViewOf(read))
          else if (!inbox || (isEnd(read.record) && read.record.acknowledgedAt === null)) found.push(viewOf(read))
        }
      }
      const elsewhere = await store.countElsewhere(options.name, current)
      return { intents: found, setAside, elsewhere, next: more ? afterSeq : null }
    },

    get: named(async (id) => {
      return (await find(id)) === undefined ? undefined : viewOf(await needReadable(id))
    }),

    wait: named((id, waitOptions) => parts.track(wait(id, waitOptions))),

    check: named((id, note) => parts.track(check(id, note))),

    retry: named(async (id, note) => {
      const after = await act(id, { type: 'retryAsked', ...noted(note) }, (record) =>
        record.state.name === 'unknown'
          ? 'It may not be sent again: the server does not de-duplicate, or may have forgotten the key. Check, resolve or abandon it.'
          : `An intent that is ${record.state.name} is not retried.`,
      )
      return refreshed(id, after)
    }),

    cancel: named(async (id, note) => {
      const after = await act(id, { type: 'cancelAsked', ...noted(note) }, (record) =>
        isSettled(record.state.name)
          ? `It is ${record.state.name} already.`
          : 'It may have been executed, and the server cannot void its key (any more). Check it, or abandon it.',
      )
      return refreshed(id, after)
    }),

    resolve: named(async (id, outcome, note) => {
      const found = await need(id)
      if (isSetAside(found)) {
        const state: State =
          outcome === 'succeeded'
            ? { name: 'succeeded', by: 'person' }
            : { name: 'abandoned', mayStillHappen: true, freed: false }
        return settleUnreadable(found, state, 'resolve', note)
      }
      const type = outcome === 'succeeded' ? 'resolvedSucceeded' : 'resolvedNotHappened'
      return refreshed(id, await act(id, { type, ...noted(note) }, alreadySo))
    }),

    abandon: named(async (id, note, { force = false } = {}) => {
      const found = await need(id)
      if (isSetAside(found)) {
        return settleUnreadable(found, { name: 'abandoned', mayStillHappen: true, freed: force }, 'abandon', note)
      }
      return refreshed(id, await act(id, { type: 'abandonAsked', force, ...noted(note) }, alreadySo))
    }),

    acknowledge: named(async (id) => {
      const loaded = await needReadable(id)
      await acknowledge(loaded)
      return refreshed(id, loaded)
    }),

    forget: named(async (id) => {
      const loaded = await needReadable(id)
      const { record, row } = loaded
      if (!isForgettable(record)) {
        const why =
          record.keyOrigin === 'derived'
            ? 'its key is derived from its name, which is never freed'
            : 'it is not settled, or may still happen'
        throw new NotPossibleError(record.state.name, `"${id}" cannot be forgotten: ${why}.`, {
          intentId: id,
          key: record.key,
        })
      }
      if (!(await store.remove(keyOf(row), { revision: row.revision }))) {
        throw new NotPossibleError(record.state.name, `"${id}" changed meanwhile; look again.`, {
          intentId: id,
          key: record.key,
        })
      }
      parts.wake()
    }),
  }

  const lanes: Lanes = {
    async resume(lane, note) {
      await parts.started()
      const head = await laneHead(lane)
      if (head === undefined) return
      if (!isSettled(head.record.state.name)) {
        throw new NotPossibleError(
          head.record.state.name,
          `The lane waits for "${head.record.id}", which has no end yet. Settle or skip it.`,
          { intentId: head.record.id, key: head.record.key },
        )
      }
      await runner.step(head, { type: 'laneResumed', ...noted(note) })
      parts.wake()
    },

    skip: named(async (id, note) => {
      const after = await act(
        id,
        { type: 'skipAsked', ...noted(note) },
        () => 'An attempt is under way and cannot be voided; wait for its end.',
      )
      const certain = isSettled(after.record.state.name) || after.record.state.name === 'cancelling'
      return { order: certain ? 'kept' : 'broken' }
    }),
  }

  async function laneHead(lane: string): Promise<Loaded | undefined> {
    const row = await store.laneHead(options.name, JSON.stringify([scope(), 'named', lane]))
    const head = row === undefined ? undefined : ledger.read(row)
    if (head === undefined || !isSetAside(head)) return head
    throw new RecordSetAsideError(
      head.reason,
      `The lane's head "${head.row.id}" cannot be read; resolve or abandon it.`,
      { intentId: head.row.id, key: head.row.key },
    )
  }

  async function acknowledge(loaded: Loaded): Promise<void> {
    if (isSettled(loaded.record.state.name) && loaded.record.acknowledgedAt === null)
      await runner.step(loaded, { type: 'acknowledged' })
  }

  return { intents, lanes, acknowledge }
}

function alreadySo({ state }: IntentRecord): string {
  return state.name === 'sending'
    ? 'An attempt is under way; wait for its end, or cancel it.'
    : `It is ${state.name} already.`
}

function noted(note: string | undefined): { note?: string } {
  if (note !== undefined && typeof note !== 'string') throw new ConfigError('note', 'must be a text')
  return note === undefined ? {} : { note }
}
