/**
 * The state machine as README.md shows it: a diagram, a table of states, a table of answers. Made from the table that
 * the library runs on (src/protocol/transitions.ts), so that a document cannot say anything else. Pure.
 */
import { exchanges } from '../src/protocol/effects.ts'
import { type Asked, type EventName, eventNames, type Verdict, verdictMeanings } from '../src/protocol/events.ts'
import type { Context } from '../src/protocol/guards.ts'
import type { Policy } from '../src/protocol/policy.ts'
import { type Answer, type IntentRecord, untouched } from '../src/protocol/record.ts'
import { isOpen, isSettled, type State, type StateName, stateMeanings, stateNames } from '../src/protocol/states.ts'
import { transition } from '../src/protocol/transition.ts'
import { type Next, type Rule, transitions } from '../src/protocol/transitions.ts'

/** What a person or the app can do, in the words of the API, in the order in which they are listed. */
const wishes: Readonly<Record<Asked['type'], string>> = {
  checkAsked: 'check',
  cancelAsked: 'cancel',
  retryAsked: 'retry',
  resolvedSucceeded: 'resolve',
  resolvedNotHappened: 'resolve',
  abandonAsked: 'abandon',
  skipAsked: 'skip',
  laneResumed: 'resume',
  acknowledged: 'acknowledge',
}

/** What only a check brings along, and a person asks for it. */
const checked: ReadonlySet<EventName> = new Set<EventName>(['foundElsewhere', 'absent'])
/** Answers that decide an intent wherever they come from. To one that rests or is unknown they come late (P48). */
const proofs: ReadonlySet<EventName> = new Set<EventName>(['done', 'doneIncomplete', 'refused', 'voided'])

function isWish(event: EventName): event is Asked['type'] {
  return event in wishes
}

interface Arrow {
  readonly from: StateName
  readonly to: StateName
  readonly event: EventName
  readonly rule: Rule
}

/** States in which something may have happened, always: their rows for "not in doubt" come from a shared cell. */
const doubtful: ReadonlySet<StateName> = new Set<StateName>(['processing', 'cancelling', 'unknown'])

/** Every row that changes the state, in the order of the table. */
function arrows(): Arrow[] {
  return stateNames.flatMap((from) =>
    eventNames.flatMap((event) =>
      (transitions[from][event] ?? []).flatMap((rule) => {
        const never = doubtful.has(from) && rule.when.includes('!inDoubt')
        return never || rule.next === 'same' || rule.next.name === from
          ? []
          : [{ from, to: rule.next.name, event, rule }]
      }),
    ),
  )
}

// ---- diagram

/** States that do the same with every event are drawn as one, by the first of them. */
const boxes: ReadonlyMap<StateName, StateName> = new Map(
  stateNames.map((name) => {
    const cells = JSON.stringify(transitions[name])
    return [name, stateNames.find((other) => JSON.stringify(transitions[other]) === cells) ?? name]
  }),
)
const boxOf = (name: StateName): StateName => boxes.get(name) ?? name

/** Drawn is what goes on by itself, and, where nothing does, what a person can do. */
function isDrawn({ from, to, event, rule }: Arrow): boolean {
  if (boxOf(from) === boxOf(to) || isSettled(from) || rule.when.includes('knownDone')) return false
  if (from === 'unknown') return true
  if (isWish(event) || checked.has(event)) return false
  return !(boxOf(from) === 'queued' && proofs.has(event))
}

/** Words on one arrow: more are left out, the least telling ones. */
const mostWords = 3
const telling = [
  'due',
  'late answer',
  'ambiguous',
  'refused for now',
  'in progress',
  'window over',
  'server does not deduplicate',
  'conflict in doubt',
  'void window over',
  'void not offered',
  'monitor lost',
  'server unknown',
  'credentials',
  'lane',
  'done',
  'voided',
  'refused',
  'resolve',
  'cancel',
  'abandon',
]

/** A Mermaid state diagram with one arrow per pair of boxes. */
export function renderDiagram(): string {
  const labels = new Map<string, Set<string>>()
  for (const arrow of arrows().filter(isDrawn)) {
    const pair = `${boxOf(arrow.from)} --> ${boxOf(arrow.to)}`
    labels.set(pair, (labels.get(pair) ?? new Set()).add(wordFor(arrow)))
  }
  const shared = [...new Set(boxes.values())].flatMap((box) => {
    const names = stateNames.filter((name) => boxOf(name) === box)
    return names.length === 1 ? [] : [`  state "${or(names)}" as ${box}`]
  })
  return [
    '```mermaid',
    'stateDiagram-v2',
    ...shared,
    '  [*] --> queued',
    ...[...labels].map(([pair, words]) => `  ${pair}: ${shortened([...words])}`),
    '```',
    '',
    'Not drawn: what people do while an intent is open, answers that come late (they move any state forward, never back),',
    'and that a success whose body was lost ends as succeeded without body.',
  ].join('\n')
}

function shortened(words: readonly string[]): string {
  const place = (word: string): number => (telling.includes(word) ? telling.indexOf(word) : telling.length)
  const best = words.toSorted((one, other) => place(one) - place(other))
  return best.length > mostWords ? `${best.slice(0, mostWords).join(', ')}, …` : best.join(', ')
}

/** The reason that the next state gives says more than the event; where it gives none, the event does. */
function wordFor({ from, event, rule }: Arrow): string {
  if (isWish(event)) return wishes[event]
  if (from === 'unknown') return proofs.has(event) ? 'late answer' : 'check'
  if (rule.when.includes('voidForFound')) return 'found'
  if (rule.when.includes('voidToGiveUp')) return 'no void to be had'
  if (event === 'doneIncomplete') return 'done'
  return (reasonOf(rule.next) ?? event.replace(/[A-Z]/g, (letter) => ` ${letter}`)).replaceAll('_', ' ').toLowerCase()
}

function reasonOf(next: Next): string | null {
  if (next === 'same') return null
  if ('because' in next) return next.because
  if ('purpose' in next) return next.purpose
  return 'on' in next ? next.on : null
}

// ---- states

/** What starts whatever happens next by itself. */
const triggers: Partial<Record<StateName, string>> = {
  queued: 'when it is due',
  sending: 'when the attempt ends, or its holder dies',
  waiting: 'when its time has come',
  processing: 'at the pace that the server states',
  blocked: 'when what it waits for has changed, and from time to time',
  cancelling: 'until the server has answered',
}

/** What an exchange with the server does, in words. */
const deeds: Readonly<Record<string, string>> = {
  send: 'is sent',
  lookup: 'is asked about by key',
  poll: 'its monitor is asked',
  void: 'its key is voided',
}

/** State, meaning, what happens next by itself, what a person can do. */
export function renderStates(): string {
  const rows = stateNames.map((name) => [`\`${name}\``, stateMeanings[name], byItself(name), byPerson(name)])
  const head = ['state', 'what it means', 'what happens next by itself', 'what a person can do']
  return `${table(head, rows)}\n\n\`skip\` and \`resume\` are for named lanes.`
}

function byItself(name: StateName): string {
  // An intent that is unknown is asked about only when somebody wants that.
  const own = ({ from, event }: Arrow): boolean =>
    from === name && !isWish(event) && !checked.has(event) && (name !== 'unknown' || proofs.has(event))
  const targets = new Set(
    arrows()
      .filter(own)
      .map(({ to }) => to),
  )
  const ends = stateNames.filter((target) => targets.has(target)).map((target) => `\`${target}\``)
  if (!isOpen(name)) {
    const late = ends.length === 0 ? '' : `; an answer that comes late makes it ${or(ends)}`
    const forgotten = isSettled(name) ? '; forgotten once noted and no longer remembered' : ''
    return `nothing${late}${forgotten}`
  }
  const done = (transitions[name].due ?? []).flatMap(({ effects }) => effects.filter((effect) => exchanges.has(effect)))
  const deed = [...new Set(done)].map((effect) => deeds[effect])
  return `${[triggers[name], ...deed].filter(Boolean).join(', ')}; becomes ${or(ends)}`
}

/** What a person can do in a state, in the words of the API. */
export function byPerson(name: StateName): string {
  const words = (Object.keys(wishes) as Asked['type'][]).filter((event) => transitions[name][event] !== undefined)
  const forget = isSettled(name) ? ['forget'] : []
  return [...new Set([...words.map((event) => wishes[event]), ...forget])].map((word) => `\`${word}\``).join(', ')
}

function or(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

// ---- answers

export const answer: Answer = { status: 200, headers: [], url: '', body: 'stored', replayed: false }
const heard = { retryAfterMs: null }

/** One verdict of each kind, and of each kind that goes on in two ways, both. */
const verdicts: readonly { readonly also?: string; readonly verdict: Verdict }[] = [
  { verdict: { type: 'done', answer } },
  { verdict: { type: 'doneIncomplete', answer: { ...answer, body: 'cut_off' } } },
  {
    also: 'with a way to ask how it goes',
    verdict: { type: 'accepted', ...heard, monitorUrl: 'x', resultExpiresAt: null },
  },
  { also: 'without', verdict: { type: 'accepted', ...heard, monitorUrl: null, resultExpiresAt: null } },
  { verdict: { type: 'neverDelivered' } },
  { verdict: { type: 'ambiguous', ...heard, unmarked: false } },
  { verdict: { type: 'refusedWithoutEffect', ...heard } },
  { verdict: { type: 'inProgress', ...heard } },
  { verdict: { type: 'needsCredentials' } },
  { verdict: { type: 'scopeMismatch' } },
  { also: 'with proof', verdict: { type: 'refused', answer, proof: true } },
  { also: 'without proof', verdict: { type: 'refused', answer, proof: false } },
  { verdict: { type: 'conflict', answer } },
  { verdict: { type: 'expired', answer } },
  { verdict: { type: 'voided' } },
  { verdict: { type: 'storedFailure', answer } },
]

/** Every kind of verdict that the table of answers has a row for. */
export const shownVerdicts: ReadonlySet<Verdict['type']> = new Set(verdicts.map(({ verdict }) => verdict.type))

const pace = { baseMs: 1, capMs: 1, minMs: 1 }
/** A server of section 16, where all is declared. */
export const declared: Policy = {
  deduplicates: true,
  retentionMs: 1000,
  attemptTimeoutMs: 1,
  transitMs: 1,
  voids: true,
  looksUp: true,
  operationKnown: true,
  maxAttempts: 9,
  backoff: pace,
  ask: pace,
  maxPollErrors: 1,
  monitorGraceMs: 1,
  slowPollMs: 1,
  rememberMs: 1,
}
const plain: Policy = { ...declared, voids: false, looksUp: false }
export const none: Policy = { ...plain, deduplicates: false, retentionMs: null }

export const firstAttempt: IntentRecord = {
  ...untouched,
  client: '',
  scope: '',
  id: '',
  key: '',
  keyOrigin: 'minted',
  operation: '',
  registered: false,
  fingerprint: { version: '', digest: '', rules: {} },
  request: {
    method: 'POST',
    url: '',
    headers: [],
    hasBody: false,
    bodyDigest: '',
    credentials: 'omit',
    mode: 'cors',
    referrerPolicy: '',
  },
  lane: null,
  createdAt: 0,
  since: null,
  sendBefore: null,
  state: { name: 'sending', attempt: { number: 1, at: 0, serverAt: null, exact: true } },
  dueAt: 0,
  attempts: 1,
  spent: 1,
  lastHandOverAt: 0,
  seenAt: 0,
}
const secondAttempt: IntentRecord = {
  ...firstAttempt,
  attempts: 2,
  spent: 2,
  handedOver: true,
  doubt: { at: 0, serverAt: null },
}

/** What an answer leads to: as the first one, after one that was lost, and where the server does not de-duplicate. */
export function renderVerdicts(): string {
  const rows = verdicts.map(({ also, verdict }) => {
    const what = verdictMeanings[verdict.type]
    return [
      also === undefined ? what : `${what}, ${also}`,
      next(firstAttempt, verdict, declared),
      either(next(secondAttempt, verdict, declared), next(secondAttempt, verdict, plain)),
      next(firstAttempt, verdict, none),
    ]
  })
  const head = ['answer', 'first attempt', 'after an attempt whose answer was lost', 'server does not de-duplicate']
  return table(head, rows)
}

function either(withVoid: string, without: string): string {
  return withVoid === without ? withVoid : `${withVoid}; where the server cannot void: ${without}`
}

/** By running the machine: the document shows what happens, not what somebody meant. */
function next(record: IntentRecord, verdict: Verdict, policy: Policy): string {
  const context: Context = {
    times: { now: 1, serverNow: null },
    policy,
    random: 0,
    exact: true,
    laneFree: true,
    offline: false,
  }
  const { state } = transition(record, verdict, context)?.record ?? record
  return nameOf(state)
}

/** A state in a document: its name, and what it waits for or why. */
export function nameOf(state: State): string {
  const reason = reasonOf(state as Next & State)?.replaceAll('_', ' ')
  return reason === undefined ? `\`${state.name}\`` : `\`${state.name}\` (${reason})`
}

/** A table in Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
