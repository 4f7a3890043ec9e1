/** The whole table, state x event, row by row: what must be so of every row, whatever it says. */
import { describe, expect, it } from 'vitest'
import { type EffectName, effectNames, exchanges } from '../../src/protocol/effects.ts'
import { type Asked, type EventName, eventNames, unknownReasons } from '../../src/protocol/events.ts'
import { guards } from '../../src/protocol/guards.ts'
import { isOpen, isSettled, rank, type StateName, stateMeanings, stateNames } from '../../src/protocol/states.ts'
import { type Rule, transitions } from '../../src/protocol/transitions.ts'
import { updates } from '../../src/protocol/updates.ts'
import { EVENTS } from '../support/machine.ts'

interface Row {
  readonly state: StateName
  readonly event: EventName
  readonly index: number
  readonly rule: Rule
}

const cells = stateNames.flatMap((state) =>
  eventNames.map((event) => ({ state, event, rules: transitions[state][event] ?? [] })),
)
const rows: readonly Row[] = cells.flatMap(({ state, event, rules }) =>
  rules.map((rule, index) => ({ state, event, index, rule })),
)
const target = ({ state, rule }: Row): StateName => (rule.next === 'same' ? state : rule.next.name)
const where = ({ state, event, index }: Row): string => `${state} + ${event} #${index + 1}`

/** Every row that breaks a promise, by place; a failure then shows them all. */
function breaking(promise: (row: Row) => boolean, among: (row: Row) => boolean = () => true): string[] {
  return rows.filter((row) => among(row) && !promise(row)).map(where)
}

const asked: ReadonlySet<EventName> = new Set<Asked['type']>([
  'cancelAsked',
  'checkAsked',
  'retryAsked',
  'abandonAsked',
  'resolvedSucceeded',
  'resolvedNotHappened',
  'skipAsked',
  'laneResumed',
  'acknowledged',
])
/** What only a check by a person brings to an intent that is unknown (P45). */
const checked: ReadonlySet<EventName> = new Set<EventName>(['foundElsewhere', 'absent', 'stillProcessing'])

describe('effects', () => {
  it('P17, P22: in every row persist comes first, or the row only removes', () => {
    expect(
      breaking(
        ({ rule: { effects } }) => effects[0] === 'persist' || (effects.length === 1 && effects[0] === 'remove'),
      ),
    ).toEqual([])
  })

  it('P17: at most one exchange with the server, as the last thing done', () => {
    expect(breaking(({ rule: { effects } }) => effects.slice(0, -1).every((effect) => !exchanges.has(effect)))).toEqual(
      [],
    )
  })

  it('P22: whatever changes the state is announced', () => {
    const changes = (row: Row): boolean => target(row) !== row.state
    expect(breaking(({ rule }) => rule.effects.includes('announce'), changes)).toEqual([])
  })

  it('P35: only a queued, waiting or blocked intent that is due is sent', () => {
    const sends = rows.filter(({ rule }) => rule.effects.includes('send'))
    expect(sends.map(({ state, event }) => `${state} ${event}`)).toEqual(['queued due', 'waiting due', 'blocked due'])
    expect(breaking((row) => (target(row) === 'sending') === row.rule.effects.includes('send'))).toEqual([])
  })

  it('P8: nothing but a settled intent that is due is removed', () => {
    const removes = (row: Row): boolean => row.rule.effects.includes('remove')
    expect(breaking(({ state, event }) => isSettled(state) && event === 'due', removes)).toEqual([])
  })
})

describe('states', () => {
  it('P48: no row leads back, except from unknown, by a person', () => {
    const back = (row: Row): boolean => rank[target(row)] < rank[row.state]
    expect(
      breaking(({ state, event }) => state === 'unknown' && (asked.has(event) || checked.has(event)), back),
    ).toEqual([])
  })

  it('P42: no row leaves what is settled, but for success, or from abandoned for what is proven', () => {
    const leaves = (row: Row): boolean => isSettled(row.state) && target(row) !== row.state
    expect(breaking((row) => target(row) === 'succeeded' || row.state === 'abandoned', leaves)).toEqual([])
  })

  it('P45, H30: nothing but force frees an id', () => {
    const frees = ({ rule: { next } }: Row): boolean => next !== 'same' && 'freed' in next && next.freed
    expect(breaking(({ event, rule }) => event === 'abandonAsked' && rule.when.includes('forced'), frees)).toEqual([])
  })

  it('P22: whatever comes to an end is settled, and only that', () => {
    const ends = (row: Row): boolean => isSettled(target(row)) && target(row) !== row.state
    const settles = ({ rule }: Row): boolean => rule.set.includes('settle')
    expect(breaking(settles, ends)).toEqual([])
    expect(breaking((row) => isSettled(target(row)), settles)).toEqual([])
  })

  it('P27, P42: whatever becomes unknown keeps its doubt and waits for a person', () => {
    const gives = (row: Row): boolean => target(row) === 'unknown' && row.state !== 'unknown'
    expect(breaking(({ rule }) => rule.set.includes('notDue'), gives)).toEqual([])
    expect(breaking(({ state, rule }) => state === 'cancelling' || rule.set.includes('keepDoubt'), gives)).toEqual([])
  })

  it('P26: wherever giving up is possible, a success known before comes first', () => {
    const gives = (row: Row): boolean => target(row) === 'unknown' && !['unknown', 'cancelling'].includes(row.state)
    expect(
      breaking(({ state, event, index, rule }) => {
        const before = transitions[state][event]?.[index - 1]
        return (
          before !== undefined &&
          before.when.join() === [...rule.when, 'knownDone'].join() &&
          before.next !== 'same' &&
          before.next.name === 'succeeded'
        )
      }, gives),
    ).toEqual([])
  })

  it('P44, H1: a void begins at once, anew, and only where the server offers it and surely remembers', () => {
    const begins = (row: Row): boolean => target(row) === 'cancelling' && row.state !== 'cancelling'
    expect(breaking(({ rule }) => rule.when.includes('voids') && rule.when.includes('windowOpen'), begins)).toEqual([])
    expect(breaking(({ rule }) => rule.set.includes('dueNow') && rule.set.includes('resetAsked'), begins)).toEqual([])
  })

  it('P39: asking a monitor begins at its own pace', () => {
    const begins = (row: Row): boolean => target(row) === 'processing' && row.state !== 'processing'
    expect(breaking(({ rule }) => rule.set.includes('ask') && rule.set.includes('resetAsked'), begins)).toEqual([])
  })

  it('P39, B92: whatever a question brings, the next one has its time', () => {
    const questions: ReadonlySet<EventName> = new Set<EventName>([
      'stillProcessing',
      'accepted',
      'inProgress',
      'monitorMissing',
      'inquiryFailed',
      'inquiryUnauthorized',
      'credentialsMissing',
      'scopeDiffers',
    ])
    const stays = (row: Row): boolean =>
      questions.has(row.event) && (row.state === 'processing' || row.state === 'cancelling') && isOpen(target(row))
    const paced = ['ask', 'slowPoll', 'backoff']
    expect(breaking(({ rule }) => rule.set.some((name) => paced.includes(name)), stays)).toEqual([])
  })

  it('P45: a person who asks about work or a void that is under way is answered at once', () => {
    const asks = (row: Row): boolean =>
      asked.has(row.event) && (row.state === 'processing' || row.state === 'cancelling') && target(row) === row.state
    const hastens = ({ rule }: Row): boolean => rule.set.includes('dueNow') || rule.set.includes('releaseLane')
    const only = (row: Row): boolean => asks(row) && !(row.state === 'processing' && row.event === 'skipAsked')
    expect(breaking(hastens, only)).toEqual([])
    const anew = (row: Row): boolean => asks(row) && (row.event === 'retryAsked' || row.event === 'checkAsked')
    expect(breaking(({ rule }) => rule.set.includes('resetAsked'), anew)).toEqual([])
  })

  it('P22: whatever an answer ends keeps that answer', () => {
    const answers: ReadonlySet<EventName> = new Set<EventName>([
      'done',
      'doneIncomplete',
      'refused',
      'conflict',
      'expired',
    ])
    const ends = ({ state, event, rule }: Row): boolean =>
      answers.has(event) &&
      isSettled(target({ state, event, rule, index: 0 })) &&
      // What was found comes with its own answer, and what is given up has none.
      !rule.when.some((ref) => ['voidForFound', 'voidToGiveUp', 'knownDone'].includes(ref))
    expect(breaking(({ rule }) => rule.set.includes('keepAnswer'), ends)).toEqual([])
  })

  it('P33: every row that stays open says when it goes on, waits for a lane or a person, or leaves its time alone', () => {
    const sets = ['backoff', 'ask', 'slowPoll', 'dueNow', 'dueSoon', 'keepWait']
    const stays = (row: Row): boolean => isOpen(target(row)) && row.state !== target(row)
    const waits = ({ rule: { next } }: Row): boolean =>
      next !== 'same' && next.name === 'blocked' && (next.on === 'lane' || next.on === 'attempts')
    expect(breaking((row) => waits(row) !== row.rule.set.some((name) => sets.includes(name)), stays)).toEqual([])
  })

  it('P33: every open state goes on by itself, and a person can end or hasten it', () => {
    const people: readonly EventName[] = ['cancelAsked', 'retryAsked', 'abandonAsked', 'resolvedSucceeded']
    for (const state of stateNames.filter(isOpen)) {
      // An attempt has a time limit, and a dead holder is found: nothing else is needed.
      const wakes: EventName = state === 'sending' ? 'recovered' : 'due'
      expect(transitions[state][wakes], state).toBeDefined()
      if (state !== 'sending')
        for (const event of people) expect(transitions[state][event], `${state} ${event}`).toBeDefined()
    }
  })

  it('P45: a person can check, cancel, retry, resolve and abandon what is unknown', () => {
    expect(Object.keys(transitions.unknown)).toEqual(
      expect.arrayContaining(['cancelAsked', 'retryAsked', 'abandonAsked', 'resolvedSucceeded', 'resolvedNotHappened']),
    )
    expect(Object.keys(transitions.unknown)).toEqual(expect.arrayContaining(['foundElsewhere', 'absent', 'done']))
  })

  it('P20: an attempt ends in every way an attempt can end', () => {
    const verdicts: readonly EventName[] = [
      'neverDelivered',
      'refusedWithoutEffect',
      'needsCredentials',
      'scopeMismatch',
      'inProgress',
      'accepted',
      'done',
      'doneIncomplete',
      'conflict',
      'expired',
      'voided',
      'storedFailure',
      'refused',
      'ambiguous',
      'recovered',
      'notHandedOver',
      'scopeDiffers',
    ]
    for (const event of verdicts) {
      const rules = transitions.sending[event] ?? []
      expect(rules.length, event).toBeGreaterThan(0)
      expect(isTotal(rules), event).toBe(true)
    }
  })

  it('P38, P44: a poll and a void end in every way they can end', () => {
    for (const event of [
      'inquiryFailed',
      'inquiryUnauthorized',
      'stillProcessing',
      'done',
      'voided',
      'serverUnknown',
    ] as const) {
      for (const state of ['processing', 'cancelling'] as const) {
        expect(isTotal(transitions[state][event] ?? []), `${state} ${event}`).toBe(true)
      }
    }
    for (const event of ['monitorMissing', 'clientMayRetry', 'expired', 'storedFailure', 'otherPayload'] as const) {
      expect(isTotal(transitions.processing[event] ?? []), event).toBe(true)
    }
    for (const event of ['voidNotOffered', 'expired', 'storedFailure', 'otherPayload', 'inProgress'] as const) {
      expect(isTotal(transitions.cancelling[event] ?? []), event).toBe(true)
    }
  })
})

/** Some row always applies: the last one asks nothing, or the opposite of what the one before it asks alone. */
function isTotal(rules: readonly Rule[]): boolean {
  const last = rules.at(-1)
  if (last === undefined) return false
  const opposite = (ref: string): string => (ref.startsWith('!') ? ref.slice(1) : `!${ref}`)
  if (last.when.length === 0) return true
  // `inProgress`: all that the first row asks is asked again, the other way round.
  const alone = rules.filter(({ when }) => when.length === 1).map(({ when: [ref] }) => ref as string)
  return (rules[0]?.when ?? []).every((ref) => alone.includes(opposite(ref)))
}

describe('the table itself', () => {
  it('every rule names the promise that it keeps', () => {
    expect(breaking(({ rule }) => /\b(?:[PFHB]\d+|section \d+)\b/.test(rule.rule))).toEqual([])
  })

  it('no row is dead: none asks all that an earlier row of its cell asks', () => {
    expect(
      breaking(({ state, event, index, rule }) =>
        (transitions[state][event] ?? [])
          .slice(0, index)
          .every(({ when }) => !when.every((ref) => rule.when.includes(ref))),
      ),
    ).toEqual([])
  })

  it('no row asks for a guard and its opposite', () => {
    expect(breaking(({ rule: { when } }) => when.every((ref) => !when.includes(`!${ref}` as never)))).toEqual([])
  })

  it('every guard, update and effect is used', () => {
    const used = new Set(rows.flatMap(({ rule }) => rule.when.map((ref) => ref.replace('!', ''))))
    expect(Object.keys(guards).filter((name) => !used.has(name))).toEqual([])
    const set = new Set<string>(rows.flatMap(({ rule }) => rule.set))
    expect(Object.keys(updates).filter((name) => !set.has(name))).toEqual([])
    const effects = new Set<EffectName>(rows.flatMap(({ rule }) => rule.effects))
    expect(effectNames.filter((name) => !effects.has(name))).toEqual([])
  })

  it('every event does something somewhere, and every state is reached from another', () => {
    const handled = new Set(rows.map(({ event }) => event))
    expect(eventNames.filter((name) => !handled.has(name))).toEqual([])
    const reached = new Set(rows.filter((row) => target(row) !== row.state).map(target))
    expect(stateNames.filter((name) => !reached.has(name))).toEqual(['queued'])
    expect(Object.keys(EVENTS)).toEqual([...eventNames])
  })

  it('P42: every reason to be unknown comes about, and is said in words', () => {
    const reasons = new Set(
      rows.flatMap(({ rule: { next } }) =>
        next !== 'same' && next.name === 'unknown' && 'because' in next ? [next.because] : [],
      ),
    )
    expect([...reasons].sort()).toEqual(Object.keys(unknownReasons).sort())
  })

  it('every state says what it means', () => {
    expect(Object.keys(stateMeanings)).toEqual([...stateNames])
    for (const meaning of Object.values(stateMeanings)) expect(meaning).toMatch(/\.$/)
  })

  it('P23: the table is plain data', () => {
    expect(JSON.parse(JSON.stringify(transitions))).toEqual(transitions)
  })
})
