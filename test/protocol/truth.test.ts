/**
 * A small world: one intent on one device, one server that keeps PROTOCOL.md sections 12 and 16, and a network that
 * loses, delays and answers as it likes. Whatever happens there, what the machine says must be true of the server.
 * `SAMEKEY_RUNS=1000000` searches for longer.
 */
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import type { IntentEvent } from '../../src/protocol/events.ts'
import type { Policy } from '../../src/protocol/policy.ts'
import { firstHandOver, type IntentRecord, isInDoubt } from '../../src/protocol/record.ts'
import { isSettled } from '../../src/protocol/states.ts'
import { transition } from '../../src/protocol/transition.ts'
import { ageSeconds, isWindowOpen } from '../../src/protocol/window.ts'
import { answer, event, HOUR, MONITOR, NONE, NOW, PLAIN, POLICY, record } from '../support/machine.ts'

const runs = Number(process.env.SAMEKEY_RUNS ?? 5000)
vi.setConfig({ testTimeout: 30_000 + runs })

/** Two hours, so that random waits often leave the window. */
const RETENTION = 2 * HOUR
const POLICIES: readonly Policy[] = [{ ...POLICY, retentionMs: RETENTION }, { ...PLAIN, retentionMs: RETENTION }, NONE]
const { transitMs, attemptTimeoutMs } = POLICY

interface Copy {
  readonly kind: 'send' | 'void'
  readonly ageMs: number
  readonly since: number | null
  /** True time until which it may still arrive. */
  readonly until: number
}

/** What a row says; `task`: accepted, and still at work. */
type Row = { readonly what: 'done' | 'refused' | 'voided' | 'task'; readonly at: number }

class World {
  readonly policy: Policy
  readonly exact: boolean
  /** Whether the device hears the server's dates; only then may its own clock jump unseen (PROTOCOL.md section 18). */
  readonly dates: boolean
  truth = NOW
  /** Device clock less true time. */
  drift = 0
  row: Row | null = null
  effects = 0
  copies: Copy[] = []
  /** Answers that were on their way when the client stopped listening. */
  late: IntentEvent[] = []
  client: IntentRecord
  readonly log: string[] = []
  readonly #tape: readonly number[]
  #at = 0

  constructor(tape: readonly number[]) {
    this.#tape = tape
    this.policy = this.pick(POLICIES)
    this.exact = this.pick([true, true, true, false])
    this.dates = this.pick([false, true])
    const since = this.pick([null, null, NOW - HOUR])
    if (since !== null && this.pick([true, false])) this.commit(since)
    this.client = record({
      since,
      keyOrigin: since === null ? 'minted' : 'derived',
      doubt: since === null ? null : { at: since, serverAt: null },
      sendBefore: this.pick([null, null, NOW + HOUR]),
    })
  }

  /** The next choice; an exhausted tape chooses the first. */
  pick<T>(choices: readonly T[]): T {
    const number = this.#tape[this.#at++] ?? 0
    return choices[number % choices.length] as T
  }

  get over(): boolean {
    return this.#at >= this.#tape.length
  }

  get now(): number {
    return this.truth + this.drift
  }

  get times() {
    return { now: this.now, serverNow: this.dates ? this.truth : null }
  }

  /** Time passes; what is under way arrives or is lost before its transit is over. */
  pass(ms: number): void {
    const until = this.truth + ms
    for (const copy of this.copies.filter((one) => one.until <= until)) {
      this.truth = Math.max(this.truth, copy.until)
      this.arrive(copy, this.pick([true, false]))
    }
    this.truth = until
    this.reap()
  }

  arrive(copy: Copy, reaches: boolean): void {
    this.copies = this.copies.filter((one) => one !== copy)
    if (!reaches) return
    const said = copy.kind === 'send' ? this.serve(copy) : this.voidKey(copy)
    if (this.pick([true, false, false])) this.late.push(said)
  }

  reap(): void {
    const kept = RETENTION + transitMs + 1000
    if (this.row !== null && this.row.what !== 'task' && this.truth - this.row.at > kept) this.row = null
  }

  commit(at: number): void {
    this.effects++
    this.row = { what: 'done', at }
  }

  tooOld({ ageMs, since }: Copy): boolean {
    return ageMs + transitMs >= RETENTION || (since !== null && this.truth - since >= RETENTION)
  }

  /** Sections 12 and 16; a server that does not de-duplicate executes every copy. */
  serve(copy: Copy): IntentEvent {
    if (!this.policy.deduplicates) {
      this.effects++
      return event('done')
    }
    this.reap()
    const known = this.known()
    if (known !== null) return known
    if (this.tooOld(copy)) return event('expired')
    switch (this.pick(['done', 'done', 'refused', 'plain', 'task'] as const)) {
      case 'done':
        this.commit(this.truth)
        return event('done')
      case 'refused':
        this.row = { what: 'refused', at: this.truth }
        return event('refused', { proof: true })
      case 'plain':
        return event('refused', { proof: false })
      case 'task':
        this.row = { what: 'task', at: this.truth }
        return event('accepted', { monitorUrl: this.pick([MONITOR.url, null]) })
    }
  }

  known(): IntentEvent | null {
    switch (this.row?.what) {
      case 'done':
        return event('done', { answer: answer({ replayed: true }) })
      case 'refused':
        return event('refused', { proof: true })
      case 'voided':
        return event('voided')
      case 'task':
        return event('accepted')
      default:
        return null
    }
  }

  voidKey(copy: Copy): IntentEvent {
    this.reap()
    const known = this.known()
    if (known?.type === 'accepted') return event('stillProcessing')
    if (known !== null) return known
    if (this.tooOld(copy)) return event('expired')
    this.row = { what: 'voided', at: this.truth }
    return event('voided')
  }

  /** The worker of an accepted task ends it. */
  work(): void {
    if (this.row?.what !== 'task') return
    if (this.pick([true, false])) this.commit(this.truth)
    else this.row = { what: 'refused', at: this.truth }
  }

  copy(kind: Copy['kind']): Copy {
    const age = this.client.doubt === null ? 0 : (ageSeconds(this.client, this.times) ?? 0)
    const until = this.truth + transitMs
    return { kind, ageMs: age * 1000, since: firstHandOver(this.client)?.serverAt ?? null, until }
  }

  /** One exchange: answered, lost with or without a copy under way, or refused by somebody before the key. */
  exchange(kind: Copy['kind']): IntentEvent {
    const lost: IntentEvent = event(kind === 'send' ? 'ambiguous' : 'inquiryFailed')
    const fates = [
      'answered',
      'answered',
      'lost',
      'under way',
      'cut',
      'gateway',
      'undelivered',
      'crash',
      'none',
    ] as const
    const fate = this.pick(fates)
    if (fate === 'none') return kind === 'send' ? this.pick([event('notHandedOver'), event('scopeDiffers')]) : lost
    const copy = this.copy(kind)
    // A transport that repeats may have sent another copy of whatever it reports (P30).
    if (kind === 'send' && !this.exact && this.pick([true, false])) this.copies.push(copy)
    switch (fate) {
      case 'answered':
        this.pass(this.pick([0, 100, 5000]))
        return kind === 'send' ? this.serve(copy) : this.voidKey(copy)
      case 'cut': {
        const said = kind === 'send' ? this.serve(copy) : this.voidKey(copy)
        return kind === 'send' && said.type === 'done' ? event('doneIncomplete') : lost
      }
      case 'under way':
        this.copies.push(copy)
        this.pass(this.pick([0, attemptTimeoutMs]))
        return lost
      case 'crash':
        if (this.pick([true, false])) this.copies.push(copy)
        return kind === 'send' ? event('recovered') : lost
      case 'gateway':
        if (kind === 'void') return event('inquiryUnauthorized')
        return this.pick([event('refusedWithoutEffect'), event('needsCredentials'), event('refused', { proof: false })])
      case 'undelivered':
        return kind === 'send' && this.exact ? event('neverDelivered') : lost
      case 'lost':
        return lost
    }
  }

  poll(): IntentEvent {
    const known = this.known()
    if (this.pick([true, false, false]) || known === null)
      return this.pick([event('inquiryFailed'), event('monitorMissing')])
    return known.type === 'accepted' ? event('stillProcessing') : known
  }

  lookup(): IntentEvent {
    const known = this.known()
    if (known === null) return this.tooOld(this.copy('void')) ? event('expired') : event('inquiryFailed')
    return known.type === 'accepted' ? event('stillProcessing') : known
  }

  /** Takes an event through the table and does what it says. */
  tell(said: IntentEvent): void {
    const context = {
      times: this.times,
      policy: this.policy,
      random: 0.5,
      exact: this.exact,
      laneFree: true,
      offline: false,
    }
    const step = transition(this.client, said, context)
    this.log.push(
      `${this.truth - NOW} ${said.type}: ${this.client.state.name} -> ${step?.record.state.name ?? 'no change'}`,
    )
    if (step === null) return
    if (step.effects.includes('remove')) return
    this.client = step.record
    this.check()
    if (step.effects.includes('send')) {
      this.pass(this.pick([0, 0, 50, 3 * HOUR]))
      // The last synchronous check (P35): a holder that was frozen does not send.
      const frozen = !isWindowOpen(this.client, { ...this.policy, retentionMs: RETENTION }, this.times)
      this.tell(frozen ? event('notHandedOver') : this.exchange('send'))
    } else if (step.effects.includes('void')) this.tell(this.exchange('void'))
    else if (step.effects.includes('poll')) this.tell(this.poll())
    else if (step.effects.includes('lookup')) this.tell(this.lookup())
  }

  live(): void {
    const { dueAt, state } = this.client
    const acts = ['due', 'due', 'due', 'pass', 'arrive', 'late', 'work', 'person', 'check', 'jump'] as const
    switch (this.pick(acts)) {
      case 'due':
        if (dueAt === null) return
        this.pass(Math.max(0, dueAt - this.now))
        this.tell(event('due'))
        break
      case 'pass':
        this.pass(this.pick([1000, transitMs + 1000, HOUR, 5 * HOUR]))
        break
      case 'arrive':
        if (this.copies[0] !== undefined) this.arrive(this.copies[0], true)
        break
      case 'late': {
        // What the shell adopts from an attempt that lost its lease: answers from behind the key (P48).
        const said = this.late.pop()
        if (said?.type === 'done' || said?.type === 'voided' || (said?.type === 'refused' && said.proof))
          this.tell(said)
        break
      }
      case 'work':
        this.work()
        break
      case 'person':
        this.tell(
          this.pick([
            event('cancelAsked'),
            event('retryAsked'),
            event('abandonAsked'),
            event('resolvedNotHappened'),
            event('skipAsked'),
          ]),
        )
        break
      case 'check':
        // The app asks by business identity; its word may be stale by the time it is heard.
        if (state.name !== 'sending') {
          if (this.policy.looksUp && isInDoubt(this.client)) this.tell(this.lookup())
          const found = this.effects > 0
          this.pass(this.pick([0, 100]))
          this.tell(found ? event('foundElsewhere') : event('absent'))
        }
        break
      case 'jump':
        if (this.dates && this.client.since === null) this.drift += this.pick([-5 * HOUR, -1000, 1000, 5 * HOUR])
        break
    }
  }

  /** Everything still under way arrives, or is lost. */
  end(): void {
    for (const copy of [...this.copies]) this.arrive(copy, this.pick([true, false]))
    this.work()
  }

  /** What the client says must be so. */
  check(): void {
    const { state } = this.client
    const said = `${state.name}, effects: ${this.effects}\n${this.log.join('\n')}`
    if (this.policy.deduplicates || this.exact)
      expect(this.effects, `P5, P27, P35: one effect at most; ${said}`).toBeLessThan(2)
    if (state.name === 'succeeded') expect(this.effects, `P42: it happened; ${said}`).toBeGreaterThan(0)
    const never = state.name === 'cancelled' || state.name === 'rejected' || state.name === 'conflicted'
    if (never) expect(this.effects, `P27: it never happens; ${said}`).toBe(0)
    if (this.effects > 0 && !isSettled(state.name)) expect(isInDoubt(this.client), `P19: in doubt; ${said}`).toBe(true)
  }
}

describe('a world in which anything gets lost, late or refused', () => {
  it('P27, P19, P35, P43, P44: what the machine says of an intent is true of the server, now and after the last copy', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5039), { minLength: 10, maxLength: 200, size: 'max' }), (tape) => {
        const world = new World(tape)
        while (!world.over) world.live()
        world.end()
        world.check()
      }),
      { numRuns: runs },
    )
  })
})
