/** What the demo knows of one fault of PROTOCOL.md, section 17. */
import type { Stage } from './stage.ts'

export interface Fault {
  /** As in PROTOCOL.md: F5. */
  readonly id: string
  /** What goes wrong, for the table. */
  readonly story: string
  /** What a person can do about an intent that stands there, for the table. */
  readonly person: string
  /** Some of these can end unknown: the protocol says so, and no client could know better. */
  readonly mayStayUnknown?: true
  /** Lets it happen to both clients, and returns when both are through. */
  readonly play: (stage: Stage) => Promise<Played>
}

export interface Played {
  /** How often it really went wrong for samekey. A fault that did not happen proves nothing. */
  readonly happened: number
  /** Promises that only this fault can see broken, in words. */
  readonly broken?: readonly string[]
  /** How many intents have to end in a state other than succeeded. Default: none, and unknown as they come where they may. */
  readonly besides?: Readonly<Record<string, number>>
}
