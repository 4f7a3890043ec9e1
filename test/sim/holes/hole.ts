/**
 * A hole: a schedule that broke an earlier draft of the protocol although each of its rules was obeyed, as a script of the
 * simulator, with the rule that closes it.
 */
import type { StateName } from '../../../src/protocol/states.ts'
import type { Edit } from '../bundle.ts'
import type { Rest } from '../run.ts'
import { plainSetting, type Schedule, type Setting, type Step, type User } from '../schedule.ts'

export type HoleName = `H${number}`

/** How an intent stands when everything has come to rest, before people have their say. */
export interface End {
  readonly intent: string
  /** Default is alice. */
  readonly user?: User
  /** Of its current record; null where there is none. */
  readonly state: StateName | null
  /** Why unknown, what blocked on, who cancelled. Default: whatever it is. */
  readonly because?: string
  /** In the books of the server. */
  readonly effects: number
}

/** A bug to plant: the rule switched off. */
export interface Without {
  /** What is wrong then, in a few words. */
  readonly name: string
  readonly edits: readonly Edit[]
}

export interface Hole {
  readonly hole: HoleName
  /** What happens, in one sentence. */
  readonly schedule: string
  /** The promises that close it. */
  readonly rule: string
  /** What is not as usual. */
  readonly setting?: Partial<Setting>
  readonly steps: readonly Step[]
  /** All intents that there are in the end, stored or done. */
  readonly ends: readonly End[]
  readonly without: Without
}

/** The hole as a schedule. */
export function scheduleOf({ setting, steps }: Pick<Hole, 'setting' | 'steps'>): Schedule {
  return { setting: { ...plainSetting, ...setting }, steps }
}

/** What the ends are compared as, one line for each intent: of what came to rest, as far as the hole says something about it. */
export function linesOf(rest: readonly (Rest | End)[], ends: readonly End[]): string[] {
  const isSaid = ({ intent, user = 'alice' }: Rest | End): boolean =>
    ends.some((end) => end.because !== undefined && end.intent === intent && (end.user ?? 'alice') === user)
  return rest
    .map((one) => {
      const { intent, user = 'alice', state, because, effects } = one
      const why = isSaid(one) ? ` (${because})` : ''
      return `${user}'s ${intent}: ${state ?? 'no record'}${why}, ${effects} ${effects === 1 ? 'effect' : 'effects'}`
    })
    .sort()
}
