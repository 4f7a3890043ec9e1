/** Runs one schedule from beginning to end: its steps, then calm, then people, then the books. */
import { isOpen, isSettled, type StateName } from '../../src/protocol/states.ts'
import { settleWithinMs, type Violation } from './invariants.ts'
import type { Schedule, User } from './schedule.ts'
import { times } from './schedule.ts'
import { perform } from './steps.ts'
import { stepWords } from './words.ts'
import { createWorld, type World } from './world.ts'

export interface Report {
  /** The first one; null where everything held. */
  readonly violation: Violation | null
  /** What happened, line by line; empty unless it was asked for. */
  readonly trace: readonly string[]
  /** How the intents ended, by state. */
  readonly ends: Readonly<Record<string, number>>
  /** Each intent when everything had come to rest, before people had their say; empty where it did not come so far. */
  readonly rest: readonly Rest[]
}

/** How one intent stands, and what the books say of it. */
export interface Rest {
  readonly intent: string
  readonly user: string
  /** Of its current record; null where there is none. */
  readonly state: StateName | null
  /** Why unknown, what blocked on, who cancelled; null where the state says it all, or cannot be read. */
  readonly because: string | null
  readonly effects: number
}

/** @param traced keeps a trace, which costs time. */
export async function run(schedule: Schedule, traced = false): Promise<Report> {
  const trace: string[] = []
  const world = createWorld(schedule.setting, (line) => {
    if (traced) trace.push(`${at(world)} ${line}`)
  })
  const { watch } = world
  let rest: Rest[] = []
  /** True once something broke: then there is nothing more to learn. */
  const broke = (): boolean => watch.violations.length > 0

  for (const step of schedule.steps) {
    if (traced) world.told(`— ${stepWords(step)}`)
    await perform(world, step)
    if (broke()) break
  }
  if (!broke()) {
    if (traced) world.told('— calm')
    await calm(world)
    watch.atEnd('waits')
    rest = restOf(world)
  }
  if (!broke() && (await peopleSettle(world))) {
    if (traced) world.told('— people have settled the rest')
    await calm(world)
    watch.atEnd('ended')
  }
  const violation = watch.violations[0] ?? null
  for (const { tab } of world.seats.values()) tab.kill()
  if (violation !== null) world.told(`VIOLATION ${violation.invariant}: ${violation.text}`)
  return { violation, trace, ends: endsOf(world), rest }
}

function at({ time }: World): string {
  return `+${(time.server.monotonic() / 1000).toFixed(3)}`
}

/** All faults stop, everybody is back; then as much time passes as is promised to be enough. */
async function calm(world: World): Promise<void> {
  const { network, server, seats, time } = world
  // Whoever is about to die has died before anybody counts who is left.
  await time.advance(0)
  network.mend()
  for (const { tab, store } of seats.values()) {
    store.mend()
    tab.mend()
  }
  ensureSomebody(world)
  world.chooseAccount(null)
  for (const user of users) world.renew(user)
  await server.mend()
  if (!world.online()) world.hint(true)
  // What was frozen on its way into the store is there before anybody looks; what was slow comes a round later.
  await time.advance(100)
  for (let round = 0; round < 3; round++) for (const user of users) await untilAtRest(world, user)
  // Whatever is still under way comes to its end.
  await time.advance(times.transit + times.attemptTimeout)
  for (const user of users) await untilAtRest(world, user)
}

async function untilAtRest(world: World, user: User): Promise<void> {
  if (!openRows(world, user)) return
  comesBack(world, user)
  for (const ms of waits) {
    await world.time.advance(ms)
    // One that was about to die may have died only now.
    ensureSomebody(world)
    await world.server.mend()
    if (!openRows(world, user)) return
  }
}

/** There is a tab that lives. */
function ensureSomebody(world: World): void {
  if (![...world.seats.values()].some(({ tab, closed }) => !tab.isDead && !closed)) world.open(9)
}

/** The user is signed in, and every tab knows. */
function comesBack(world: World, user: User): void {
  const seats = [...world.seats.values()]
  if (world.user() !== user || seats.some((seat) => seat.user !== user)) world.signIn(user, seats)
}

const users: readonly User[] = ['alice', 'bob']

/** Most things end soon. */
const waits: readonly number[] = [1000, 5000, 30_000, 120_000, 300_000, 600_000, 600_000, settleWithinMs - 1_656_000]

/** True while something of theirs may still move by itself. */
function openRows({ storage }: World, user: User): boolean {
  return storage()
    .rows()
    .some(({ scope, state, dueAt }) => scope === user && isOpen(state as StateName) && dueAt !== null)
}

/** Whatever waits for a person is settled by one; false when nothing does. */
async function peopleSettle(world: World): Promise<boolean> {
  let some = false
  for (const user of users) {
    const waiting = (): { id: string; state: string }[] =>
      world
        .storage()
        .rows()
        .filter(({ scope, state, current }) => scope === user && current && !isSettled(state as StateName))
    if (waiting().length === 0) continue
    some = true
    comesBack(world, user)
    const tab = [...world.seats].find(([, seat]) => !seat.tab.isDead && !seat.closed)?.[0] ?? 9
    for (const act of ['check', 'resolve', 'retry', 'cancel'] as const) {
      for (const { id } of waiting()) {
        await perform(world, { do: act, tab, intent: id })
        await world.time.advance(2000)
      }
    }
    await perform(world, { do: 'resume', tab })
    await world.time.advance(2000)
  }
  return some
}

function endsOf({ storage }: World): Record<string, number> {
  const ends: Record<string, number> = {}
  for (const { state } of storage().rows()) ends[state] = (ends[state] ?? 0) + 1
  return ends
}

function restOf({ storage, truth }: World): Rest[] {
  const found = new Map<string, Rest>()
  for (const { scope: user, id: intent, current, state, data } of storage().rows()) {
    const rest = { intent, user, state: state as StateName, because: becauseOf(data), effects: 0 }
    if (current) found.set(`${user} ${intent}`, rest)
  }
  for (const { intent, user } of truth.effects) {
    const before = found.get(`${user} ${intent}`) ?? { intent, user, state: null, because: null, effects: 0 }
    found.set(`${user} ${intent}`, { ...before, effects: before.effects + 1 })
  }
  return [...found.values()]
}

function becauseOf(data: string): string | null {
  try {
    const { state } = JSON.parse(data) as { state: { because?: string; on?: string } }
    return state.because ?? state.on ?? null
  } catch {
    return null
  }
}
