/** Short words for steps, so that a script reads as what happens. */
import type { Content, Fate, IntentName, ServerFault, Step, TabNumber, User, WorkerFault } from '../schedule.ts'

export const second = 1000
export const minute = 60_000
export const day = 24 * 3_600_000

type Submit = Extract<Step, { readonly do: 'submit' }>
type Person = Extract<Step, { readonly intent: IntentName; readonly tab: TabNumber }>['do']

export const open = (tab: TabNumber): Step => ({ do: 'open', tab })
export const kill = (tab: TabNumber): Step => ({ do: 'kill', tab })
export const freeze = (tab: TabNumber): Step => ({ do: 'freeze', tab })
export const thaw = (tab: TabNumber): Step => ({ do: 'thaw', tab })
export const pass = (ms: number): Step => ({ do: 'pass', ms })
export const jump = (ms: number): Step => ({ do: 'jump', ms })
export const network = (...fates: readonly Fate[]): Step => ({ do: 'network', fates })
export const partition: Step = { do: 'partition' }
export const heal: Step = { do: 'heal' }
export const server = (fault: ServerFault): Step => ({ do: 'server', fault })
export const worker = (fault: WorkerFault): Step => ({ do: 'worker', fault })
export const signIn = (user: User): Step => ({ do: 'sign-in', user })

/** In tab 0, for tea, unless said otherwise. */
export const submit = (intent: IntentName, more: Partial<Omit<Submit, 'do' | 'intent'>> = {}): Step => ({
  do: 'submit',
  tab: 0,
  intent,
  content: 'tea' satisfies Content,
  ...more,
})

/** A person acts, in tab 0 unless said otherwise. */
export const person = (act: Exclude<Person, 'submit'>, intent: IntentName, tab: TabNumber = 0): Step => ({
  do: act,
  tab,
  intent,
})
