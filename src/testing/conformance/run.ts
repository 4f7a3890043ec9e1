/** Takes one case through one bench. */
import { abilityMembers, type BenchAbility, type ConformanceTools, type Hold, type ServerBench } from './bench.ts'
import type { Seen } from './check.ts'
import { conversation } from './conversation.ts'
import { DEFAULT_CALLER, DEFAULT_KEY, DEFAULT_OPERATION } from './send.ts'
import { type ConformanceCase, type Expected, needsOf, type Step } from './steps.ts'
import { atOnce, crowd } from './together.ts'

/**
 * Runs it.
 *
 * @throws what `expect` throws, and an Error where the bench cannot do what it did not say it could not.
 */
export async function runCase(
  bench: ServerBench,
  one: ConformanceCase,
  expect: ConformanceTools['expect'],
): Promise<void> {
  for (const ability of needsOf(one)) mustHave(bench, ability)
  const talk = conversation(bench, expect)
  const running = new Map<string, Promise<Seen>>()
  let hold: Hold | undefined

  async function take(step: Step, name: string): Promise<void> {
    if ('crowd' in step) return crowd(talk, name, step.crowd, step.send, step.gets)
    if ('atOnce' in step) return atOnce(talk, name, step.atOnce, step.ends)
    if ('begin' in step) {
      const seen = talk.send(step.send)
      // Awaited at its end; until then a failure is nobody's.
      seen.catch(() => {})
      running.set(step.begin, seen)
      return
    }
    if ('send' in step) {
      for (let time = 0; time < (step.times ?? 1); time += 1) hear(name, await talk.send(step.send), step)
      return
    }
    if ('end' in step) {
      const seen = await running.get(step.end)
      if (seen === undefined) throw new Error(`${name}: nothing was begun as ${step.end}`)
      return hear(name, seen, { gets: step.gets, name: step.end })
    }
    if ('passMs' in step) return bench.passMs?.(step.passMs)
    if ('revoke' in step) return bench.revoke?.(step.revoke)
    if ('grant' in step) return bench.grant?.(step.grant)
    if ('work' in step) {
      if (step.work === 'wakes') return bench.wake?.()
      return bench.work?.(step.work === 'done' ? undefined : step.work)
    }
    if ('damage' in step) {
      const { operation = DEFAULT_OPERATION, key = DEFAULT_KEY, by } = step.damage
      return bench.damage?.(operation, key ?? DEFAULT_KEY, by ?? DEFAULT_CALLER)
    }
    if ('hold' in step) {
      if (step.hold === 'next') hold = bench.hold?.()
      else if (step.hold === 'release') hold?.release()
      else await hold?.reached
      return
    }
    await count(name, step.effects)
  }

  function hear(step: string, seen: Seen, { gets, name }: { readonly gets: Expected; readonly name?: string }): void {
    // First, because a document may have to show the digest of its own request.
    if (name !== undefined) talk.named.set(name, seen)
    talk.check(step, seen, gets)
  }

  async function count(step: string, effects: number): Promise<void> {
    expect({ step, effects: await bench.effects() }).toEqual({ step, effects })
  }

  try {
    for (const [index, step] of one.steps.entries()) await take(step, `step ${index + 1}: ${inShort(step)}`)
    if (one.effects !== 'as they end') await count('in the end', one.effects)
  } finally {
    hold?.release()
  }
}

function mustHave(bench: ServerBench, ability: BenchAbility): void {
  for (const member of abilityMembers[ability]) {
    if (bench[member] !== undefined) continue
    throw new Error(`This bench has no ${member}(): give it one, or say without: ['${ability}'].`)
  }
}

/** For messages: which step of the case it was. */
function inShort(step: Step): string {
  if ('atOnce' in step) return `${step.atOnce.length} at once`
  if ('send' in step) {
    const { send } = step
    return send.kind === 'other' ? `${send.method} ${send.path}` : `${send.kind} ${send.operation ?? DEFAULT_OPERATION}`
  }
  return JSON.stringify(step)
}
