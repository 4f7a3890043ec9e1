/**
 * What must hold in every schedule, whatever happens in it. Each is looked at where it could break: at every write of a
 * record, at every send, at every execution, whenever somebody is told something, and at the end against the books.
 */
import type { Note } from '../../src/engine/observer.ts'
import type { Outcome } from '../../src/engine/outcome.ts'
import { isSamekeyError } from '../../src/errors.ts'
import type { StoredRow } from '../../src/ports.ts'
import type { IntentRecord } from '../../src/protocol/record.ts'
import { isOpen, isSettled, rank, type StateName } from '../../src/protocol/states.ts'
import type { Setting } from './schedule.ts'
import { times } from './schedule.ts'
import { tagOf } from './server.ts'
import type { Timeline } from './timeline.ts'
import type { Truth } from './truth.ts'

/** The invariants, with the promises that they come from. */
export const invariants = {
  I1: 'An intent has at most one effect, over all its keys, unless it was given up (P5, P6, P8).',
  I2: 'A stored intent never vanishes (P8, P17, P23).',
  I3: 'An intent keeps its one key until P7 or P8 frees its name (P5, P8).',
  I4: 'The same key always means the same request, byte for byte (P9).',
  I5: 'Nothing is sent that is not on disk as handed over, under the lease of the sender (P17, P47).',
  I6: 'Nothing is executed after the server forgot the key (P35, P57).',
  I7: 'Outcomes are true: succeeded means an effect; rejected, cancelled and conflicted mean none, ever (P27).',
  I8: 'Unknown only when in doubt, and for a reason that holds (P1, P19, P29, P35, P42).',
  I9: 'States only move forward; only a person moves unknown back (P48).',
  I10: 'Nothing is sent or done under another identity (P3, P50).',
  I11: 'No credential is stored (P51).',
  I12: 'Attempts are bounded, and a wait that the server asked for is kept (P21, P29, P31, P32).',
  I13: 'An outcome is stored before anybody is told (P17, P22).',
  I14: 'All callers of an intent hear the same outcome (P6).',
  I15: 'When faults stop, every intent ends, or waits for something that a person can do (P29, P33, P49).',
  I16: 'Every error is typed and names intent and key; nothing else is thrown (P13).',
  I17: 'An older write never lands after a newer one, and a lane goes on only after success (P34).',
  I18: 'Nothing is sent after its send-by time (P36).',
  I19: 'A proof that was heard is kept (P42, P48).',
  I20: 'Nobody is told of the intents of others (P50).',
} as const

export type InvariantName = keyof typeof invariants

export interface Violation {
  readonly invariant: InvariantName
  readonly text: string
}

/** A request as it leaves a tab. */
export interface Leaving {
  readonly holder: string
  readonly method: string
  readonly url: string
  readonly headers: Headers
  /** Of its credentials. */
  readonly user: string
}

/** An answer as a tab hears it. */
export interface HeardAnswer {
  readonly status: number
  /** It is the server's own, and whole. */
  readonly proof: boolean
  readonly replayed: boolean
  readonly retryAfterMs: number | null
  /** A redirect that stays on the same origin. */
  readonly followable: boolean
}

/** Everything known about one key. */
interface Life {
  readonly key: string
  readonly intent: string
  readonly scope: string
  /** Lives of one intent that may have only one effect between them share it. */
  readonly era: number
  row: StoredRow
  /** What the first send was, to compare. */
  request: string | null
  sends: number
  /** Device time of the latest sends, for bursts. */
  readonly latest: number[]
  /** Actions of people that were recorded when it became unknown. */
  actionsAtUnknown: number
  /** Device time before which the server does not want to see it, and the actions recorded then. */
  wait: { readonly until: number; readonly actions: number } | null
  /** A wait that a tab heard and has not stored yet. */
  heardWait: { readonly holder: string; readonly until: number } | null
  /** What an answer from behind the key said, while whoever heard it can still keep it. */
  owed: { readonly holder: string; readonly state: StateName } | null
  told: StateName | null
  /** True time of the first send, or of the time from which its key counts. */
  firstSentAt: number | null
  /** Sends that count against the limit, since a person last had a say, and the actions recorded then. */
  spent: number
  spentActions: number
  /** Revision of the record under which it was last sent. */
  attempt: number | null
  /** Actions that were recorded when a stored failure was heard: from then on it is not sent by itself. */
  stoppedAt: number | null
  /** Who was answered by a redirect, and may follow it. */
  redirected: { readonly holder: string; readonly at: number } | null
  removed: boolean
}

export interface Watch {
  readonly violations: readonly Violation[]
  // What the store did.
  inserted(row: StoredRow): void
  updated(row: StoredRow, holder: string): void
  removed(row: StoredRow): void
  /** A caller is told that it is stored. */
  stored(key: string, intent: string): void
  /** Somebody else's hand was at a record: a damaged disk, a newer version. */
  spoiled(row: StoredRow): void
  storageLost(): void
  /** A person asked for it: from now on it may go. */
  forgetAsked(intent: string, scope: string): void
  /** A person gives it up for good: from now on its name may take another key. */
  forceAsked(intent: string): void
  // What went over the network.
  /** In the tick in which it leaves; returns the key that it belongs to, empty where there is none. */
  leaving(request: Leaving): string
  /** Its bytes, as soon as they could be read. */
  left(key: string, request: Leaving, body: string): void
  /** An answer reached a living tab. */
  heard(key: string, holder: string, answer: HeardAnswer): void
  /** The tab cannot be counted on from now on: killed, frozen, stopped, its store broken. */
  unreliable(holder: string): void
  /** A tab is in a loop that no schedule calls for. */
  races(holder: string): void
  executing(key: string): void
  /** The server has a row of this key. */
  remembered(key: string): void
  executed(): void
  /** The device's clock stepped back while nobody who could see it was there: ages before that cannot be known (section 18). */
  clockUnseen(): void
  clockJumped(): void
  slept(): void
  /** What the platform says. */
  hinted(isOnline: boolean): void
  // What people were told.
  /** The app's log is told. */
  logged(note: Note): void
  /** @param who is signed in where listeners are told. */
  noted(note: Note, who: string | null): void
  /** @param content what this caller had asked for. */
  told(outcome: Outcome, content: string): void
  listed(keys: readonly string[], who: string | null): void
  /** @param intent null where it is about none. */
  threw(error: unknown, intent: string | null): void
  /** Everything has come to rest: intents have ended or `waits` for a person; or, when people had their say, have `ended`. */
  atEnd(rest: 'waits' | 'ended'): void
  /** Everything that was ever stored, by key. */
  lives(): ReadonlyMap<string, Pick<Life, 'key' | 'intent' | 'scope' | 'row' | 'removed'>>
}

/** A business header of every order, by which the simulation knows it again where no key is sent. */
export const intentHeader = 'x-intent'

/** Answers after which an attempt is not counted: nothing was tried, or it is under way already. */
const unspent: ReadonlySet<number> = new Set([202, 401, 403, 409])
/** Until so long after the first send, sending again is safe, and a client does not give up for want of time. */
const windowMs = times.retention - times.transit - times.attemptTimeout - 1000

/** Sends of one key in a whole schedule, and within a second. */
const mostSends = 300
const mostSendsInASecond = 8

export function createWatch(setting: Setting, time: Timeline, truth: Truth, rememberMs: number): Watch {
  const { device, server } = time
  const violations: Violation[] = []
  const lives = new Map<string, Life>()
  const eras = new Map<string, number>()
  const forgetting = new Set<string>()
  /** Keys that the server has had a row for. */
  const known = new Set<string>()
  /** Keys whose age nobody can know. */
  const ageless = new Set<string>()
  let spoiledKeys = new Set<string>()
  let judged = 0
  let lost = false
  /** Intents that a person gave up for good. */
  const forced = new Set<string>()
  /** True once the device's wall clock was set: what it says of ages is no measure any more. */
  let jumped = false
  let slept = false
  let online = true
  /** Tabs that may forget what they hear. */
  const shaky = new Set<string>()

  function violated(invariant: InvariantName, text: string): void {
    violations.push({ invariant, text })
  }

  const intentOf = ({ scope, id }: Pick<StoredRow, 'scope' | 'id'>): string => `${scope} ${id}`

  function newest(scope: string, id: string): Life | undefined {
    let found: Life | undefined
    for (const life of lives.values()) if (life.scope === scope && life.intent === id) found = life
    return found
  }

  function nextEra(row: Pick<StoredRow, 'scope' | 'id'>): void {
    eras.set(intentOf(row), (eras.get(intentOf(row)) ?? 0) + 1)
  }

  function inserted(row: StoredRow): void {
    const before = newest(row.scope, row.id)
    if (before !== undefined && before.key !== row.key) {
      const { removed } = before
      const { state } = before.row
      const freed = state === 'abandoned' && forced.has(row.id)
      if (freed) nextEra(row)
      if (!removed && !freed && state !== 'rejected' && state !== 'cancelled')
        violated('I3', `${row.id} was ${state} under ${before.key} and got a second key ${row.key}`)
    }
    lives.set(row.key, {
      key: row.key,
      intent: row.id,
      scope: row.scope,
      era: eras.get(intentOf(row)) ?? 0,
      row,
      request: null,
      sends: 0,
      latest: [],
      actionsAtUnknown: 0,
      wait: null,
      heardWait: null,
      owed: null,
      told: null,
      firstSentAt: recordOf(row)?.since ?? null,
      spent: 0,
      attempt: null,
      spentActions: 0,
      stoppedAt: null,
      redirected: null,
      removed: false,
    })
    checkSecrets(row)
  }

  function updated(row: StoredRow, holder: string): void {
    const life = lives.get(row.key)
    if (life === undefined) {
      violated('I2', `${row.key} was updated but never inserted`)
      return
    }
    const before = life.row
    life.row = row
    checkSecrets(row)
    if (before.format !== row.format && !isSettled(row.state as StateName))
      violated('I2', `${row.id} is of a newer version and was written over`)
    if (before.state === row.state && before.state !== 'waiting' && before.state !== 'sending') return
    const record = recordOf(row)
    if (record === null) return
    checkForward(life, before, row, record)
    checkLease(before, row, record, holder)
    if (row.state === 'unknown' && before.state !== 'unknown') {
      life.actionsAtUnknown = record.actions.length
      checkUnknown(life, record)
    }
    if (record.actions.length > life.spentActions) {
      life.spent = 0
      life.spentActions = record.actions.length
    }
    if (record.state.name === 'abandoned' && record.state.freed && !forced.has(row.id))
      violated('I3', `the name ${row.id} is free for another key although nobody gave it up by force`)
    if (record.spent > setting.attempts) violated('I12', `${row.id} has spent ${record.spent} attempts`)
    // Marked as it was when the mark was made, which may have been long before it could be stored.
    if (record.state.name === 'sending') life.firstSentAt ??= server.now() - (device.now() - record.state.attempt.at)
    if (before.state === 'sending' && life.heardWait !== null) {
      const { holder: hearer, until } = life.heardWait
      if (hearer === holder) life.wait = { until, actions: record.actions.length }
      life.heardWait = null
    }
    if (row.state === 'sending' && before.state !== 'sending' && life.wait !== null) {
      if (record.actions.length === life.wait.actions && device.now() < life.wait.until)
        violated('I12', `${row.id} is sent ${life.wait.until - device.now()} ms before the server's wait is over`)
      life.wait = null
    }
  }

  function checkForward(life: Life, before: StoredRow, row: StoredRow, record: IntentRecord): void {
    const from = before.state as StateName
    const to = row.state as StateName
    if (rank[to] >= rank[from] && !(isSettled(from) && rank[to] === rank[from] && from !== to)) return
    // What a check finds may come when somebody else has just given up.
    const last = record.actions.at(-1)
    const isChecking = last?.action === 'check' && device.now() - last.at < 3 * times.attemptTimeout
    const byPerson = from === 'unknown' && isOpen(to) && (isChecking || record.actions.length > life.actionsAtUnknown)
    if (!byPerson && !spoiledKeys.has(row.key)) violated('I9', `${row.id} moved back from ${from} to ${to}`)
  }

  /** Whoever holds a lease that is not over, and lives, is not disturbed by others (P47). */
  function checkLease(before: StoredRow, row: StoredRow, record: IntentRecord, holder: string): void {
    const { token, leaseUntil } = before
    const owner = token?.slice(0, token.indexOf('.')) ?? holder
    if (owner === holder || jumped || leaseUntil === null || leaseUntil <= device.now() || shaky.has(owner)) return
    const isAllowed = !isOpen(row.state as StateName) || record.actions.length > (recordOf(before)?.actions.length ?? 0)
    if (!isAllowed) violated('I5', `${holder} takes ${row.id} from ${owner}, whose lease is not over`)
  }

  function checkUnknown({ intent, firstSentAt, row }: Life, record: IntentRecord): void {
    if (!record.handedOver && record.since === null) violated('I8', `${intent} is unknown though never handed over`)
    const because = record.state.name === 'unknown' ? record.state.because : ''
    const ageMs = firstSentAt === null ? 0 : server.now() - firstSentAt
    // Where the device's clock and the shop's disagree about when it began, the larger age is the safe one (P35).
    // An answer that was on its way while the device slept makes the age too large.
    const isMeasured = !jumped && !slept && (setting.keys === 'minted' || setting.skewMs === 0)
    const isWrong: Partial<Record<string, boolean>> = {
      window_over: isMeasured && ageMs < windowMs,
      age_unknown: isMeasured,
      attempts_spent: record.spent < setting.attempts,
      server_does_not_deduplicate: setting.dialect !== 'none',
      send_before_passed: record.sendBefore === null || device.now() < record.sendBefore,
      stored_failure: !row.data.includes('"storedFailure"'),
    }
    if (isWrong[because] === true) violated('I8', `${intent} is unknown because of ${because}, which is not so`)
  }

  function checkSecrets(row: StoredRow): void {
    if (row.data.includes('secret-')) violated('I11', `the record of ${row.id} holds a credential`)
  }

  function removed(row: StoredRow): void {
    const life = lives.get(row.key)
    if (life === undefined) return
    life.removed = true
    const record = recordOf(row)
    const isOver = record?.settledAt != null && device.now() - record.settledAt >= rememberMs
    // A submit that was held up for longer than intents are remembered takes itself back (P8, H21).
    const isTooLate = row.state === 'queued' && record !== null && device.now() - record.createdAt > rememberMs
    const isAllowed = isTooLate || (isSettled(row.state as StateName) && (isOver || forgetting.has(intentOf(row))))
    if (!isAllowed && !spoiledKeys.has(row.key)) violated('I2', `${row.id} was removed while ${row.state}`)
    nextEra(row)
  }

  function leaving({ holder, method, url, headers, user }: Leaving): string {
    const isWrite = method !== 'GET' && method !== 'DELETE'
    const life = lifeOf(headers, url, user)
    if (life === undefined) {
      if (!url.endsWith('/sign-in')) violated('I5', `${method} ${url} is sent for nothing that is stored`)
      return ''
    }
    const { row } = life
    const isOwn =
      setting.identity === 'cookie' ? headers.get('idempotency-scope') === tagOf(row.scope) : user === row.scope
    if (!isOwn) violated('I10', `${method} of ${row.id}, which is ${row.scope}'s, is sent as ${user}`)
    if (!isWrite) return life.key
    life.sends++
    life.latest.push(device.monotonic())
    if (life.latest.length > mostSendsInASecond) {
      const first = life.latest.shift() ?? 0
      if (device.monotonic() - first < 1000) violated('I12', `${row.id} is sent in a busy loop`)
    }
    // A redirect that is followed belongs to the same attempt, and waiting offline spends none (P33).
    if (life.attempt !== row.revision && online) life.spent++
    life.attempt = row.revision
    if (life.spent > setting.attempts + 1)
      violated('I12', `${row.id} is sent ${life.spent} times, of ${setting.attempts}`)
    if (life.stoppedAt !== null && recordOf(row)?.actions.length === life.stoppedAt)
      violated('I12', `${row.id} is sent again although its failure is stored`)
    if (life.sends > mostSends) violated('I12', `${row.id} is sent ${life.sends} times`)
    // A redirect that is followed is part of an attempt: what became of the record meanwhile is not known in its tick.
    const { redirected } = life
    life.redirected = null
    const record = recordOf(row)
    if (record?.sendBefore != null && device.now() >= record.sendBefore)
      violated('I18', `${row.id} is sent ${device.now() - record.sendBefore} ms after its send-by time`)
    if (redirected?.holder === holder && redirected.at === device.monotonic()) return life.key
    if (row.leaseUntil !== null && row.leaseUntil <= device.now())
      violated('I5', `${row.id} is sent by ${holder} although its lease is over`)
    if (row.state !== 'sending' || row.token?.startsWith(`${holder}.`) !== true || life.removed)
      violated('I5', `${row.id} is sent by ${holder} while on disk it is ${row.state} under ${row.token ?? 'no lease'}`)
    checkLane(row)
    return life.key
  }

  function left(key: string, { method, url, headers }: Leaving, body: string): void {
    const life = lives.get(key)
    if (life === undefined || method === 'GET' || method === 'DELETE') return
    const request = fixedPart(method, url, headers, body)
    life.request ??= request
    if (life.request !== request) violated('I4', `${life.intent} was ${life.request} and is ${request}`)
  }

  function checkLane(row: StoredRow): void {
    if (row.lane === null) return
    for (const { row: other, removed: isGone } of lives.values()) {
      if (other.lane !== row.lane || other.seq >= row.seq || isGone) continue
      const record = recordOf(other)
      if (record === null || record.laneReleased || other.state === 'succeeded') continue
      if (record.lane?.kind === 'serial' && isSettled(other.state as StateName)) continue
      violated('I17', `${row.id} is sent although ${other.id} before it in the lane is ${other.state}`)
    }
  }

  function lifeOf(headers: Headers, url: string, user: string): Life | undefined {
    const key = keyOf(headers, url)
    if (key !== null) return lives.get(key)
    // A dialect without keys: the request names its intent, and only one of that name can be under way.
    const named = headers.get(intentHeader)
    let found: Life | undefined
    for (const life of lives.values()) {
      const isSender = life.row.state === 'sending' && life.scope === user
      if (life.intent === named && (isSender || found === undefined)) found = life
    }
    return found
  }

  function executed(): void {
    for (const effect of truth.effects.slice(judged)) {
      judged = effect.at + 1
      const life = lives.get(effect.key)
      if (life === undefined) {
        violated('I5', `an effect under ${effect.key}, which was never stored`)
        continue
      }
      if (effect.user !== life.scope) violated('I10', `${life.intent} of ${life.scope} was done for ${effect.user}`)
      if (ageless.has(effect.key)) continue
      const same = [...lives.values()].filter((other) => intentOf(other.row) === intentOf(life.row))
      const total = same.reduce((sum, { key, era }) => sum + (era === life.era ? truth.count(key) : 0), 0)
      if (truth.count(effect.key) > 1 || total > 1) violated('I1', `${life.intent} took effect ${total} times`)
      checkOrder(life)
    }
  }

  function checkOrder({ row }: Life): void {
    // A name that outlived its record has another place in its lane than its first effect had.
    if (row.lane === null || lost) return
    for (const { row: other } of lives.values()) {
      const isNewer = other.lane === row.lane && other.seq > row.seq && truth.count(other.key) > 0
      const record = recordOf(row)
      const isGivenUp = record === null || record.laneReleased || row.state === 'abandoned'
      if (isNewer && !isGivenUp) violated('I17', `${row.id} took effect after ${other.id}, which is newer`)
    }
  }

  function checkTruth(life: Life, state: StateName, when: string): void {
    if (spoiledKeys.has(life.key) || ageless.has(life.key)) return
    const count = truth.count(life.key)
    if (state === 'succeeded') {
      // Found under the business identity: by another key of the same intent, perhaps.
      const found = truth.effects.some(({ intent, user }) => intent === life.intent && user === life.scope)
      if (!found) violated('I7', `${life.intent} is said to have succeeded ${when}, and nothing happened`)
    }
    if ((state === 'rejected' || state === 'cancelled' || state === 'conflicted') && count > 0)
      violated('I7', `${life.intent} is said to be ${state} ${when}, and it happened`)
  }

  return {
    violations,
    inserted,
    updated,
    removed,
    stored(key, intent) {
      const life = lives.get(key)
      const isGone = life?.removed === true && isOpen(life.row.state as StateName) && !lost
      if (life === undefined || isGone) violated('I2', `${intent} is said to be stored under ${key}, and is not`)
    },
    spoiled(row) {
      spoiledKeys.add(row.key)
      const life = lives.get(row.key)
      if (life !== undefined) life.row = row
    },
    storageLost() {
      lost = true
      for (const life of lives.values()) {
        life.removed = true
        life.owed = null
        if (setting.keys === 'minted') nextEra(life.row)
      }
      spoiledKeys = new Set()
    },
    forgetAsked: (intent, scope) => void forgetting.add(intentOf({ id: intent, scope })),
    forceAsked: (intent) => void forced.add(intent),
    leaving,
    left,
    heard(key, holder, { status, proof, replayed, retryAfterMs, followable }) {
      const life = lives.get(key)
      if (life === undefined) return
      if (unspent.has(status)) life.spent--
      life.redirected = status === 307 && followable ? { holder, at: device.monotonic() } : null
      if (status >= 500 && proof && replayed && !shaky.has(holder)) {
        life.stoppedAt = recordOf(life.row)?.actions.length ?? null
      }
      if (retryAfterMs !== null && (status === 429 || status === 503))
        life.heardWait = { holder, until: device.now() + retryAfterMs }
      if (proof && status !== 202 && status < 500 && !shaky.has(holder))
        life.owed = { holder, state: status < 300 ? 'succeeded' : 'rejected' }
    },
    unreliable(holder) {
      shaky.add(holder)
      for (const life of lives.values()) if (life.owed?.holder === holder) life.owed = null
    },
    races(holder) {
      violated('I12', `${holder} is in a busy loop`)
    },
    executing(key) {
      if (known.has(key) && !ageless.has(key)) violated('I6', `${key} is executed after the server forgot it`)
    },
    remembered: (key) => void known.add(key),
    executed,
    clockUnseen() {
      for (const life of lives.values()) if (!isSettled(life.row.state as StateName)) ageless.add(life.key)
    },
    slept() {
      slept = true
    },
    hinted(isOnline) {
      online = isOnline
    },
    clockJumped() {
      jumped = true
      for (const life of lives.values()) life.wait = null
    },
    logged(note) {
      if (note.type !== 'state') return
      const life = lives.get(note.key)
      if (life === undefined) return violated('I13', `a note about ${note.key}, which is not stored`)
      if (!isOpen(note.to) && rank[life.row.state as StateName] < rank[note.to])
        violated('I13', `${life.intent} is announced as ${note.to} and stored as ${life.row.state}`)
    },
    noted(note, who) {
      const life = note.type === 'state' ? lives.get(note.key) : undefined
      if (life === undefined) return
      if (life.scope !== who) violated('I20', `${who ?? 'nobody'} is told of ${life.scope}'s ${life.intent}`)
    },
    told(outcome, content) {
      const life = lives.get(outcome.key)
      if (life === undefined || life.removed) return
      const { state } = outcome
      if (isOpen(state)) return
      if (rank[life.row.state as StateName] < rank[state] && !spoiledKeys.has(life.key))
        violated('I13', `a caller is told that ${life.intent} is ${state}, and it is stored as ${life.row.state}`)
      checkTruth(life, state, 'to a caller')
      const done = truth.effects.find(({ key }) => key === life.key)
      if (state === 'succeeded' && done !== undefined && done.content !== content)
        violated(
          'I7',
          `a caller who wanted ${content} is told that ${life.intent} succeeded, which was ${done.content}`,
        )
      if (life.told !== null && isSettled(life.told) && rank[state] <= rank[life.told] && state !== life.told)
        violated('I14', `callers of ${life.intent} were told ${life.told} and ${state}`)
      if (state !== 'unknown') life.told = state
    },
    listed(keys, who) {
      for (const key of keys) {
        const life = lives.get(key)
        if (life !== undefined && life.scope !== who) violated('I20', `${life.scope}'s ${life.intent} is listed`)
      }
    },
    threw(error, intent) {
      if (error instanceof DOMException && error.name === 'AbortError') return
      if (!isSamekeyError(error)) return violated('I16', `${intent ?? ''}: ${String(error)}`)
      if (intent !== null && error.intentId === undefined && error.code !== 'config')
        violated('I16', `${error.code} names no intent`)
    },
    atEnd(rest) {
      for (const life of lives.values()) {
        if (life.removed) continue
        const { row, owed } = life
        const state = row.state as StateName
        checkTruth(life, state, 'in the store')
        const record = recordOf(row)
        const isWaitingForSomeone =
          record?.state.name === 'blocked' && (record.state.on === 'attempts' || record.state.on === 'lane')
        const isAtRest = rest === 'waits' ? !isOpen(state) || isWaitingForSomeone : isSettled(state)
        if (!isAtRest && !spoiledKeys.has(life.key))
          violated('I15', `${life.intent} is still ${state} (${detailOf(record)})`)
        if (owed !== null && rank[state] < rank[owed.state] && !spoiledKeys.has(life.key))
          violated('I19', `${life.intent} was proven ${owed.state} and ended ${state}`)
      }
    },
    lives: () => lives,
  }
}

function detailOf(record: IntentRecord | null): string {
  if (record === null) return 'unreadable'
  const { state } = record
  if (state.name === 'blocked') return state.on
  return state.name === 'waiting' ? state.because : state.name === 'cancelling' ? state.purpose : state.name
}

/** The key that a request carries, in its header or in its address. */
function keyOf(headers: Headers, url: string): string | null {
  const given = headers.get('idempotency-key')
  if (given !== null) return given
  const [, place, , key] = new URL(url).pathname.split('/')
  return place === 'keys' && key !== undefined ? decodeURIComponent(key) : null
}

/** What may not change from one send to the next. */
function fixedPart(method: string, url: string, headers: Headers, body: string): string {
  const kept = [...headers].filter(([name]) => !name.startsWith('idempotency-') && name !== 'authorization')
  return JSON.stringify([method, url, kept, body])
}

const records = new WeakMap<StoredRow, IntentRecord | null>()

/** What the row says, read once; null where it cannot be read. */
function recordOf(row: StoredRow): IntentRecord | null {
  let record = records.get(row)
  if (record === undefined) {
    record = parsed(row.data)
    records.set(row, record)
  }
  return record
}

function parsed(data: string): IntentRecord | null {
  try {
    return JSON.parse(data) as IntentRecord
  } catch {
    return null
  }
}

/** How long after the last fault everything has to be at its end, ms. */
export const settleWithinMs = times.retention + 10 * 60_000
